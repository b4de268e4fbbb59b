// SPDX-License-Identifier: Apache-2.0

import WireText

/// Commands of a shell's text: words with quotes, escapes, continued lines, comments and variables. Nothing is run.
struct ShellText {
    struct Word {
        var text: String
        var line: Int
        /// In bytes, from 1.
        var column: Int
    }

    struct Command {
        var words: [Word] = []
        /// What needs a shell, and where.
        var problem: (sentence: String, line: Int)?
        /// Variables that have no value.
        var missing: [String] = []
    }

    private let bytes: [UInt8]
    private var index = 0
    private var line = 1
    private var lineStart = 0
    private let folder: String
    private(set) var variables: [String: String]
    private(set) var commands: [Command] = []

    private var command = Command()
    private var word: [UInt8]?
    private var start = (line: 1, column: 1)
    /// Whether the next word is the file of a redirection.
    private var isFile = false

    /// - Parameters:
    ///   - variables: what `$NAME` is; the text may set more.
    ///   - folder: what `$(pwd)` is.
    init(_ text: String, variables: [String: String], folder: String) {
        bytes = Array(text.utf8)
        self.folder = folder
        self.variables = variables
        self.variables["PWD"] = folder
        read()
    }

    private var byte: UInt8? { index < bytes.count ? bytes[index] : nil }

    private func next(_ offset: Int = 1) -> UInt8? {
        index + offset < bytes.count ? bytes[index + offset] : nil
    }

    private mutating func begin() {
        guard word == nil else { return }
        word = []
        start = (line, index - lineStart + 1)
    }

    private mutating func append(_ byte: UInt8) {
        begin()
        word?.append(byte)
    }

    private mutating func newline() {
        line += 1
        lineStart = index + 1
    }

    private mutating func endWord() {
        guard let done = word else { return }
        word = nil
        guard !isFile else {
            isFile = false
            return
        }
        command.words.append(Word(text: String(wire: done), line: start.line, column: start.column))
    }

    private mutating func endCommand() {
        endWord()
        isFile = false
        defer { command = Command() }
        guard !command.words.isEmpty || command.problem != nil else { return }
        // A line that only sets variables counts for those behind it.
        let set = command.words.map { ShellWords.assignment($0.text) }
        if command.problem == nil, set.allSatisfy({ $0 != nil }) {
            for case let (name, value)? in set { variables[name] = value }
            return
        }
        commands.append(command)
    }

    private mutating func read() {
        while let byte {
            switch byte {
            case UInt8(ascii: "\n"):
                endCommand()
                newline()
            case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\r"): endWord()
            case UInt8(ascii: ";"), UInt8(ascii: "&"), UInt8(ascii: "|"): endCommand()
            case UInt8(ascii: "<"), UInt8(ascii: ">"): redirect()
            case UInt8(ascii: "#") where word == nil: comment()
            case UInt8(ascii: "'"): single()
            case UInt8(ascii: "\""): double()
            case UInt8(ascii: "\\"): escape()
            case UInt8(ascii: "$"), UInt8(ascii: "`"): expand()
            default: append(byte)
            }
            index += 1
        }
        endCommand()
    }

    private mutating func comment() {
        while let byte = next(), byte != UInt8(ascii: "\n") { index += 1 }
    }

    private mutating func redirect() {
        // The number of a stream belongs to it.
        if let done = word, done.allSatisfy({ (0x30...0x39).contains($0) }) { word = nil }
        endWord()
        while let byte = next(), [UInt8(ascii: ">"), UInt8(ascii: "&"), UInt8(ascii: "<")].contains(byte) { index += 1 }
        isFile = true
    }

    private mutating func escape() {
        guard let byte = next() else { return append(UInt8(ascii: "\\")) }
        index += 1
        if byte == UInt8(ascii: "\r"), next() == UInt8(ascii: "\n") { index += 1 }
        if bytes[index] == UInt8(ascii: "\n") { return newline() }
        append(byte)
    }

    private mutating func single() {
        begin()
        let place = line
        while let byte = next() {
            index += 1
            if byte == UInt8(ascii: "'") { return }
            word?.append(byte)
            if byte == UInt8(ascii: "\n") { newline() }
        }
        fail("a quote is not closed", place)
    }

    private mutating func double() {
        begin()
        let place = line
        index += 1
        while let byte {
            switch byte {
            case UInt8(ascii: "\""): return
            case UInt8(ascii: "\\"):
                let escaped: Set = [UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "$"), UInt8(ascii: "`")]
                if let other = next(), escaped.contains(other) {
                    index += 1
                    append(other)
                } else if next() == UInt8(ascii: "\n") {
                    index += 1
                    newline()
                } else {
                    append(byte)
                }
            case UInt8(ascii: "$"), UInt8(ascii: "`"): expand()
            case UInt8(ascii: "\n"):
                append(byte)
                newline()
            default: append(byte)
            }
            index += 1
        }
        fail("a quote is not closed", place)
    }

    private mutating func fail(_ sentence: String, _ line: Int) {
        if command.problem == nil { command.problem = (sentence, line) }
    }

    // MARK: What is expanded

    private static let folders = ["$(pwd)", "`pwd`", "${PWD}", "$(PWD)"].map { Array($0.utf8) }

    private mutating func expand() {
        begin()
        let rest = bytes[index...]
        if let written = Self.folders.first(where: { rest.starts(with: $0) }) {
            word?.append(contentsOf: folder.utf8)
            index += written.count - 1
            return
        }
        if byte == UInt8(ascii: "`") || next() == UInt8(ascii: "(") {
            fail("it has a command of a shell in it, which is not run", line)
            return append(bytes[index])
        }
        if next() == UInt8(ascii: "{") {
            guard let end = rest.prefix(1_000).firstIndex(of: UInt8(ascii: "}")) else { return append(bytes[index]) }
            put(String(wire: bytes[index...end]))
            index = end
            return
        }
        var end = index + 1
        while end < bytes.count, Self.isNameByte(bytes[end]) { end += 1 }
        guard end > index + 1 else { return append(bytes[index]) }
        put(String(wire: bytes[index..<end]))
        index = end - 1
    }

    private mutating func put(_ text: String) {
        var interpolation = ComposeInterpolation(variables: variables)
        word?.append(contentsOf: interpolation.expand(text).utf8)
        command.missing += interpolation.missing + interpolation.wanted
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, UInt8(ascii: "_"): true
        default: false
        }
    }
}
