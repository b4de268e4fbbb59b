// SPDX-License-Identifier: Apache-2.0

import WireText

/// Expands variables. Reports all other expansions (with `$` or a backquote), because only a shell can do these.
extension ShellText {
    private typealias Place = (line: Int, column: Int)

    private static let folders = ["$(pwd)", "`pwd`", "$(PWD)"].map { Array($0.utf8) }

    /// Expands the expansion that begins at `index`. Afterwards `index` is at the last byte of the expansion.
    mutating func expand(isQuoted: Bool, depth: Int = 0) {
        let place = (line, column)
        let rest = bytes[index...]
        if let written = Self.folders.first(where: { rest.starts(with: $0) }) {
            put("PWD", isQuoted: isQuoted, place)
            index += written.count - 1
            return
        }
        let begin = index
        if byte == UInt8(ascii: "`") || next() == UInt8(ascii: "(") {
            fail("it has a command of a shell in it, which is not run", line: place.0, column: place.1)
            if byte == UInt8(ascii: "`") {
                skip(to: UInt8(ascii: "`"))
            } else {
                index += 1
                skip(to: UInt8(ascii: ")"))
            }
            return record(bytes[begin..<min(index, bytes.count)], line: place.0)
        }
        guard let first = next() else { return append(bytes[index]) }
        if first == UInt8(ascii: "{") { return braced(isQuoted: isQuoted, depth: depth, place) }
        if !isQuoted, first == UInt8(ascii: "'") || first == UInt8(ascii: "\"") {
            // The word is refused, but its quoted text must still be read, to find where the text ends.
            return fail("$\(String(wire: [first])) needs a shell", line: place.0, column: place.1)
        }
        if Self.special.contains(first) {
            index += 1
            return fail("$\(String(wire: [first])) is known only when the script runs", line: place.0, column: place.1)
        }
        var end = index + 1
        while end < bytes.count, Self.isNameByte(bytes[end]) { end += 1 }
        guard end > index + 1 else { return append(bytes[index]) }
        put(String(wire: bytes[(index + 1)..<end]), isQuoted: isQuoted, place)
        index = end - 1
    }

    /// Special parameters, which are not variables.
    private static let special = Set("0123456789@*#?$!-".utf8)

    /// Skips to the byte `end`, but not to one within quotes or parentheses. Afterwards `index` is at that byte.
    mutating func skip(to end: UInt8) {
        var depth = 0
        let open: UInt8? = end == UInt8(ascii: ")") ? UInt8(ascii: "(") : end == 0x7d ? 0x7b : nil
        var quote: UInt8?
        index += 1
        while let byte {
            if byte == UInt8(ascii: "\n") { newline() }
            if byte == UInt8(ascii: "\\"), quote != UInt8(ascii: "'") {
                index += 1
                if self.byte == UInt8(ascii: "\n") { newline() }
            } else if let current = quote {
                if byte == current { quote = nil }
            } else if byte == UInt8(ascii: "'") || byte == UInt8(ascii: "\"") {
                quote = byte
            } else if byte == open {
                depth += 1
            } else if byte == end {
                if depth == 0 { return }
                depth -= 1
            }
            index += 1
        }
    }

    /// Expands `${NAME}`, or `${NAME` with an operator such as `:-` and the operator's word.
    private mutating func braced(isQuoted: Bool, depth: Int, _ place: Place) {
        var end = index + 2
        while end < bytes.count, Self.isNameByte(bytes[end]) { end += 1 }
        let name = String(wire: bytes[(index + 2)..<end])
        if end < bytes.count, bytes[end] == 0x7d, ShellWords.isName(name) {
            put(name, isQuoted: isQuoted, place)
            index = end
            return
        }
        var sign = end
        let countsEmpty = end < bytes.count && bytes[end] == UInt8(ascii: ":")
        if countsEmpty { sign += 1 }
        let operators: Set = [UInt8(ascii: "-"), UInt8(ascii: "+"), UInt8(ascii: "="), UInt8(ascii: "?")]
        guard depth < 16, ShellWords.isName(name), sign < bytes.count, operators.contains(bytes[sign]) else {
            index += 1
            fail("${…} with more than a name and a default needs a shell", line: place.line, column: place.column)
            return skip(to: 0x7d)
        }
        let operation = bytes[sign]
        index = sign + 1
        guard let other = operand(depth: depth) else {
            return fail("${ is not closed", line: place.line, column: place.column)
        }
        let isUnset: Bool
        switch variables[name] {
        case .unknown(let reason)?:
            return fail("the variable \(name) is not known: \(reason)", line: place.line, column: place.column)
        case .text(let text)?: isUnset = countsEmpty && text.isEmpty
        case nil: isUnset = true
        }
        switch operation {
        case UInt8(ascii: "+"): if !isUnset { put(other, isQuoted: isQuoted, place) }
        case UInt8(ascii: "?"): put(name, isQuoted: isQuoted, isRequired: isUnset, place)
        default:
            guard isUnset else { return put(name, isQuoted: isQuoted, place) }
            if operation == UInt8(ascii: "="), other.problem == nil {
                set(name, String(wire: other.bytes), line: place.line)
            }
            put(other, isQuoted: isQuoted, place)
        }
    }

    /// The word after an operator such as `:-` in `${…}`.
    private struct Operand {
        var bytes: [UInt8] = []
        /// Why the value of the operand cannot be known; nil if it is known.
        var problem: String?
    }

    /// Reads the operand up to the closing brace. Nil if there is no closing brace.
    private mutating func operand(depth: Int) -> Operand? {
        var operand = Operand()
        var isQuoted = false
        while let byte {
            switch byte {
            case 0x7d where !isQuoted: return operand
            case UInt8(ascii: "\""): isQuoted.toggle()
            case UInt8(ascii: "\\"):
                if next() != nil { index += 1 }
                operand.bytes.append(bytes[index])
                if bytes[index] == UInt8(ascii: "\n") { newline() }
            case UInt8(ascii: "'") where !isQuoted:
                while let byte = next(), byte != UInt8(ascii: "'") {
                    index += 1
                    operand.bytes.append(byte)
                    if byte == UInt8(ascii: "\n") { newline() }
                }
                index += 1
            case UInt8(ascii: "$"), UInt8(ascii: "`"): nested(&operand, depth: depth)
            default:
                operand.bytes.append(byte)
                if byte == UInt8(ascii: "\n") { newline() }
            }
            index += 1
        }
        return nil
    }

    /// Expands a variable within the operand. Its value is collected separately, because it depends on the operator
    /// whether the operand becomes part of the current word.
    private mutating func nested(_ operand: inout Operand, depth: Int) {
        var inner = ShellFragment()
        exchange(&inner)
        begin()
        expand(isQuoted: true, depth: depth + 1)
        exchange(&inner)
        if let problem = inner.problem, operand.problem == nil { operand.problem = problem.sentence }
        if operand.bytes.count + (inner.word?.count ?? 0) > Self.wordLimit {
            operand.problem = operand.problem ?? Self.tooLarge
        } else {
            operand.bytes += inner.word ?? []
        }
    }

    private static let tooLarge = "its variables expand to more than 1 MiB, or those of the file to more than 4 MiB"

    private mutating func put(_ operand: Operand, isQuoted: Bool, _ place: Place) {
        if let problem = operand.problem { return fail(problem, line: place.line, column: place.column) }
        put(bytes: operand.bytes, isQuoted: isQuoted, place)
    }

    /// Appends the value of a variable to the current word.
    mutating func put(_ name: String, isQuoted: Bool, isRequired: Bool = false, _ place: (line: Int, column: Int)) {
        switch isRequired ? nil : variables[name] {
        case .text(let text)?: put(bytes: Array(text.utf8), isQuoted: isQuoted, place)
        case .unknown(let reason)?:
            fail("the variable \(name) is not known: \(reason)", line: place.line, column: place.column)
        case nil:
            fail(
                "the variable \(name) is not set here: write its value, or set it for the import",
                line: place.line,
                column: place.column
            )
        }
    }

    /// Appends a value to the current word. Outside quotes, the value is split into words.
    private mutating func put(bytes value: [UInt8], isQuoted: Bool, _ place: Place) {
        expanded += value.count
        guard (word?.count ?? 0) + value.count <= Self.wordLimit, expanded <= Self.expansionLimit else {
            return fail(Self.tooLarge, line: place.line, column: place.column)
        }
        if isQuoted || isAssigning {
            begin()
            word?.append(contentsOf: value)
            return
        }
        for byte in value {
            switch byte {
            case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\n"): endField()
            case UInt8(ascii: "*"), UInt8(ascii: "?"):
                pattern(byte)
                append(byte)
            default: append(byte)
            }
        }
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, UInt8(ascii: "_"): true
        default: false
        }
    }
}

extension ShellText {
    mutating func double() {
        isPlain = false
        begin()
        let place = (line, column)
        index += 1
        while let byte {
            switch byte {
            case UInt8(ascii: "\""): return
            case UInt8(ascii: "\\"): escapeInQuotes()
            case UInt8(ascii: "$"), UInt8(ascii: "`"): expand(isQuoted: true)
            case UInt8(ascii: "\n"):
                append(byte)
                newline()
            default: append(byte)
            }
            index += 1
        }
        fail("a quote is not closed", line: place.0, column: place.1)
    }

    mutating func escapeInQuotes() {
        let escaped: Set = [UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "$"), UInt8(ascii: "`")]
        if let other = next(), escaped.contains(other) {
            index += 1
            append(other)
        } else if next() == UInt8(ascii: "\n") {
            index += 1
            newline()
        } else {
            append(UInt8(ascii: "\\"))
        }
    }
}

/// A partly read word that was set aside while another one is read.
struct ShellFragment {
    var word: [UInt8]?
    var problem: ShellText.Problem?
    var start = (line: 1, column: 1)
}
