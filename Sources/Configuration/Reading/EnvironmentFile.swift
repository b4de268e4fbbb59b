// SPDX-License-Identifier: Apache-2.0

import WireText

/// An error in a file with environment variables.
public struct EnvironmentFileError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The error as `file:line: sentence`.
    public var description: String
}

/// Reads the files that `environment_file` names. They contain lines `KEY=VALUE`, as for EnvironmentFile= in
/// systemd.exec(5).
public enum EnvironmentFile {
    /// Reads all `environment_file` files of an app. A variable of a later file overrides that of an earlier file.
    /// Called before each launch. May block on a disk.
    ///
    /// - Parameter read: returns the content of the file at a path.
    public static func load(
        _ files: [EnvironmentFileReference],
        read: (String) -> Result<[UInt8], ConfigurationSystem.ReadFailure>
    ) throws(EnvironmentFileError) -> [String: String] {
        var variables: [String: String] = [:]
        for file in files {
            switch read(file.path) {
            case .success(let bytes):
                for (name, value) in try parse(bytes, file: file.path) { variables[name] = value }
            case .failure(.missing):
                if !file.isOptional {
                    throw EnvironmentFileError(
                        description: "\(file.path): there is no such file; \"-\(file.path)\" makes it optional"
                    )
                }
            case .failure(.unusable(let reason)), .failure(.passing(let reason)):
                throw EnvironmentFileError(description: "\(file.path): \(reason)")
            }
        }
        return variables
    }

    /// Parses the variables of a file, and returns them in the order of their lines.
    ///
    /// Empty lines, lines that begin with `#` or `;`, and the word `export` before a name are skipped. A value in
    /// single quotes is used verbatim. In double quotes, a backslash escapes `"`, `\`, `$` and a backquote. Quoted
    /// values may contain line ends. Outside quotes, a backslash at the end of a line continues the value on the next
    /// line.
    public static func parse(
        _ bytes: [UInt8],
        file: String
    ) throws(EnvironmentFileError) -> [(name: String, value: String)] {
        var parser = Parser(bytes: bytes, file: file)
        return try parser.parse()
    }

    private struct Parser {
        let bytes: [UInt8]
        let file: String
        var at = 0
        var line = 1

        private var current: UInt8? { at < bytes.count ? bytes[at] : nil }

        private func failure(_ message: String, line: Int) -> EnvironmentFileError {
            EnvironmentFileError(description: "\(file):\(line): \(message)")
        }

        private mutating func advance() {
            if bytes[at] == UInt8(ascii: "\n") { line += 1 }
            at += 1
        }

        private mutating func skip(while condition: (UInt8) -> Bool) {
            while let byte = current, condition(byte) { advance() }
        }

        mutating func parse() throws(EnvironmentFileError) -> [(name: String, value: String)] {
            var variables: [(name: String, value: String)] = []
            while true {
                skip { $0 == 0x20 || $0 == 0x09 || $0 == 0x0a || $0 == 0x0d }
                guard let byte = current else { return variables }
                if byte == UInt8(ascii: "#") || byte == UInt8(ascii: ";") {
                    skip { $0 != 0x0a }
                    continue
                }
                let start = line
                let name = try name()
                let value = try value()
                guard !value.contains(0) else { throw failure("a value must not contain NUL", line: start) }
                variables.append((name, String(wire: value)))
            }
        }

        private mutating func name() throws(EnvironmentFileError) -> String {
            let start = at
            skip { $0 != UInt8(ascii: "=") && $0 != 0x0a }
            guard current == UInt8(ascii: "=") else {
                throw failure("expected NAME=VALUE", line: line)
            }
            var text = bytes[start..<at]
            at += 1
            if text.starts(with: "export ".utf8) { text = text.dropFirst(7) }
            while let last = text.last, last == 0x20 || last == 0x09 { text.removeLast() }
            let isName = text.allSatisfy { $0.isNameByte && $0 != UInt8(ascii: "-") }
            guard let first = text.first, isName, !(0x30...0x39).contains(first) else {
                throw failure(
                    "\(quoted(String(wire: text))) is not a variable name: use letters, digits and _",
                    line: line
                )
            }
            return String(wire: text)
        }

        private mutating func value() throws(EnvironmentFileError) -> [UInt8] {
            var value: [UInt8] = []
            // The length of the value without trailing blanks. Blanks inside quotes are part of the value.
            var kept = 0
            skip { $0 == 0x20 || $0 == 0x09 }
            while let byte = current, byte != 0x0a {
                let start = line
                advance()
                switch byte {
                case UInt8(ascii: "'"), UInt8(ascii: "\""):
                    while let inner = current, inner != byte {
                        advance()
                        guard inner == UInt8(ascii: "\\"), byte == UInt8(ascii: "\""), let next = current else {
                            value.append(inner)
                            continue
                        }
                        advance()
                        if next == 0x0a { continue }
                        if !"\"\\$`".utf8.contains(next) { value.append(inner) }
                        value.append(next)
                    }
                    guard current != nil else { throw failure("the quote is not closed", line: start) }
                    advance()
                    kept = value.count
                case UInt8(ascii: "\\"):
                    guard let next = current else { break }
                    advance()
                    if next != 0x0a {
                        value.append(next)
                        kept = value.count
                    }
                case 0x20, 0x09, 0x0d: value.append(byte)
                default:
                    value.append(byte)
                    kept = value.count
                }
            }
            return Array(value[..<kept])
        }
    }
}
