// SPDX-License-Identifier: Apache-2.0

import WireText

/// Parses the commands in a shell script: words with quotes, escapes, continued lines, comments and variables.
/// Nothing is executed.
struct ShellText {
    /// The reason why a value cannot be known without running a shell, and the number of the line.
    typealias Problem = (sentence: String, line: Int)

    struct Word {
        var text: String
        var line: Int
        /// The column in bytes, from 1.
        var column: Int
        /// Whether the word is written in the source without quotes and variables.
        var isPlain: Bool
        var problem: Problem?
    }

    struct Command {
        var words: [Word] = []
        /// Whether the command consists only of assignments.
        var isSetting = true
        /// Why the command needs a shell, and where; nil if it does not.
        var problem: Problem?
        /// The number of elements of ``ShellText/exports`` that were added before this command.
        var exports = 0
        /// The working directory; nil if it is not known.
        var folder: String?
    }

    /// A variable of the script.
    enum Variable {
        case text(String)
        /// The value cannot be known from the script alone, for this reason.
        case unknown(String)
    }

    /// The maximum length of a word in bytes.
    static let wordLimit = 1 << 20
    /// The maximum number of bytes to which all variables together may expand. A result that is larger could not be
    /// stored in a torpor.toml.
    static let expansionLimit = ImportedConfiguration.sizeLimit

    let bytes: [UInt8]
    var index = 0
    var line = 1
    var lineStart = 0
    /// The working directory at the start of the script.
    let folder: String
    /// Returns the text of a file of variables; nil if there is no such file.
    let file: (String) -> String?
    /// The nesting of sourced files at this text: 0 for the script itself, 1 for a file that the script sources.
    let sourceDepth: Int
    private(set) var variables: [String: Variable]
    /// The names of exported variables. `exports` contains each change of such a variable, in order.
    private(set) var exported: Set<String>
    private(set) var exports: [(name: String, value: Variable)] = []
    private(set) var commands: [Command] = []
    /// The number of bytes to which variables have expanded so far.
    var expanded = 0

    private var command = Command()
    var word: [UInt8]?
    private var start = (line: 1, column: 1)
    var isPlain = true
    private var problem: Problem?
    /// Whether the current word is an assignment `NAME=…`.
    private(set) var isAssigning = false
    private var braces = Braces.none
    private var bracket: Int?

    /// Whether the next word is the file of a redirection.
    private var isFile = false
    /// Whether the next word is the delimiter of a here-document. `hasTabs`: whether tabs before the delimiter must be
    /// kept (`<<`, not `<<-`).
    private var here: (isNext: Bool, hasTabs: Bool) = (false, true)
    private var documents: [(end: [UInt8], hasTabs: Bool)] = []

    /// The number of conditions and loops that are open at this point.
    private var depth = 0
    private var parentheses = 0
    /// For each open parenthesis, the working directory before it, to which the script returns at the closing one.
    private var outside: [Variable] = []
    /// Whether the command comes after `&&`, `||` or `|`.
    private var isConditional = false
    /// Whether the command comes after `||` or `|`.
    private var isAlternative = false
    /// Whether every variable that is set is exported (`set -a`).
    var exportsAll = false

    private enum Braces { case none, open, list }

    /// - Parameters:
    ///   - variables: the values of variables; the script may set more.
    ///   - folder: the working directory, the value of `$(pwd)`.
    ///   - file: reads a file that the script sources.
    init(
        _ text: String,
        variables: [String: String],
        folder: String,
        file: @escaping (String) -> String? = { _ in nil },
        sourceDepth: Int = 0,
        exportsAll: Bool = false,
        exported: Set<String>? = nil
    ) {
        bytes = Array(text.utf8)
        self.folder = folder
        self.file = file
        self.sourceDepth = sourceDepth
        self.exportsAll = exportsAll
        self.variables = variables.mapValues(Variable.text)
        self.variables["PWD"] = .text(folder)
        self.exported = exported ?? Set(variables.keys)
        read()
    }

    var byte: UInt8? { index < bytes.count ? bytes[index] : nil }

    func next(_ offset: Int = 1) -> UInt8? {
        index + offset < bytes.count ? bytes[index + offset] : nil
    }

    var column: Int { index - lineStart + 1 }

    /// Begins a word at this position, unless one has begun already.
    mutating func begin() {
        guard word == nil else { return }
        word = []
        start = (line, column)
    }

    mutating func append(_ byte: UInt8) {
        begin()
        word?.append(byte)
    }

    mutating func newline() {
        line += 1
        lineStart = index + 1
    }

    /// Marks the value of the current word as unknown. If this is called several times, the first reason is kept.
    mutating func fail(_ sentence: String, line: Int, column: Int) {
        begin()
        if problem == nil { problem = ("\(sentence) (column \(column))", line) }
    }

    mutating func endWord() {
        defer {
            (isPlain, problem, isAssigning) = (true, nil, false)
            (braces, bracket) = (.none, nil)
        }
        guard let done = word else { return }
        word = nil
        guard !isFile else {
            if here.isNext { documents.append((done, here.hasTabs)) }
            (isFile, here.isNext) = (false, false)
            return
        }
        let text = String(wire: done)
        if command.isSetting { command.isSetting = Self.name(ofAssignment: text) != nil }
        command.words.append(
            Word(
                text: text,
                line: start.line,
                column: start.column,
                isPlain: isPlain,
                problem: problem
            )
        )
    }

    /// Ends a word within the value of a variable.
    mutating func endField() {
        guard word != nil else { return }
        endWord()
        isPlain = false
    }

    /// Exchanges the current word with a word that was set aside.
    mutating func exchange(_ fragment: inout ShellFragment) {
        swap(&word, &fragment.word)
        swap(&problem, &fragment.problem)
        swap(&start, &fragment.start)
    }

    // MARK: Commands

    private static let declarations: Set = ["declare", "export", "local", "readonly", "typeset"]

    private mutating func endCommand(conditional: Bool = false, alternative: Bool = false) {
        endWord()
        isFile = false
        here.isNext = false
        guard !command.words.isEmpty || command.problem != nil else {
            if conditional { isConditional = true }
            if alternative { isAlternative = true }
            return
        }
        if command.problem == nil { command.problem = command.words.lazy.compactMap(\.problem).first }
        command.exports = exports.count
        if case .text(let folder)? = variables["PWD"] { command.folder = folder }
        if !isUnderstood() { commands.append(command) }
        command = Command()
        (isConditional, isAlternative) = (conditional, alternative)
    }

    /// Handles keywords and assignments at the beginning of the command: counts open conditions and loops, and sets
    /// variables. Returns true if the command contains nothing else.
    private mutating func isUnderstood() -> Bool {
        var rest = command.words[...]
        keywords: while let first = rest.first, first.isPlain {
            switch first.text {
            case "if", "until", "while": depth += 1
            case "case", "for", "select":
                depth += 1
                if first.text != "case", rest.count > 1 { forget(rest[rest.startIndex + 1].text, "a loop sets it") }
                return false
            case "done", "esac", "fi": depth = max(0, depth - 1)
            case "!", "{", "}", "do", "elif", "else", "then": break
            default: break keywords
            }
            rest = rest.dropFirst()
        }
        let hasKeyword = rest.count < command.words.count
        guard let first = rest.first else { return false }
        if first.isPlain, Self.declarations.contains(first.text) {
            for word in rest.dropFirst() {
                assign(word)
                if first.text == "export" { export(Self.name(ofAssignment: word.text) ?? word.text) }
            }
            return !hasKeyword
        }
        if first.isPlain, first.text == "unset" || first.text == "read" {
            let reason = first.text == "read" ? "it is read when the script runs" : "it is unset"
            for word in rest.dropFirst() { forget(word.text, reason) }
            return !hasKeyword && first.text == "unset"
        }
        guard rest.allSatisfy({ Self.name(ofAssignment: $0.text) != nil }) else {
            return first.isPlain && isBuiltIn(first.text, Array(rest.dropFirst())) && !hasKeyword
        }
        for word in rest { assign(word) }
        return !hasKeyword
    }

    /// Whether it is certain that the commands up to here run. A command after `&&` counts as certain, because if the
    /// script does not reach it, the script does not start the program that follows.
    var isCertain: Bool { depth == 0 && !isAlternative }

    private mutating func forget(_ name: String, _ reason: String) {
        if ShellWords.isName(name) { store(.unknown(reason), in: name) }
    }

    mutating func store(_ value: Variable, in name: String) {
        variables[name] = value
        if exportsAll { exported.insert(name) }
        if exported.contains(name) { exports.append((name, value)) }
    }

    mutating func export(_ name: String) {
        guard exported.insert(name).inserted, let value = variables[name] else { return }
        exports.append((name, value))
    }

    /// The name in `NAME=` or `NAME+=`; nil if the word is not an assignment.
    private static func name(ofAssignment word: String) -> String? {
        guard let equals = word.utf8.firstIndex(of: UInt8(ascii: "=")) else { return nil }
        var name = word[..<equals]
        if name.utf8.last == UInt8(ascii: "+") { name = name.dropLast() }
        return ShellWords.isName(String(name)) ? String(name) : nil
    }

    private mutating func assign(_ word: Word) {
        guard let name = Self.name(ofAssignment: word.text),
            let equals = word.text.utf8.firstIndex(of: UInt8(ascii: "="))
        else { return }
        let value = String(word.text[word.text.utf8.index(after: equals)...])
        let isMore = word.text.utf8.dropFirst(name.utf8.count).first == UInt8(ascii: "+")
        guard word.problem == nil else {
            store(.unknown("line \(word.line) sets it to a value that is not known"), in: name)
            return
        }
        guard isMore else { return set(name, value, line: word.line) }
        guard case .text(let before)? = variables[name] ?? .text("") else { return }
        let whole = before.utf8.count + value.utf8.count
        expanded += whole
        guard whole <= Self.wordLimit, expanded <= Self.expansionLimit else {
            store(.unknown("it is too large"), in: name)
            return
        }
        set(name, before + value, line: word.line)
    }

    /// Sets a variable. If a condition decides whether this command runs, the value counts as unknown.
    mutating func set(_ name: String, _ value: String, line: Int) {
        let isSure = depth == 0 && parentheses == 0 && !isConditional
        store(isSure ? .text(value) : .unknown("line \(line) sets it under a condition"), in: name)
    }

    // MARK: Words

    private mutating func read() {
        while let byte {
            switch byte {
            case UInt8(ascii: "\n"):
                endCommand()
                newline()
                skipDocuments()
            case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\r"): endWord()
            case UInt8(ascii: ";"): endCommand()
            case UInt8(ascii: "&"), UInt8(ascii: "|"):
                let isDouble = next() == byte
                if isDouble { index += 1 }
                let isBar = byte == UInt8(ascii: "|")
                endCommand(conditional: isDouble || isBar, alternative: isBar)
            case UInt8(ascii: "<"), UInt8(ascii: ">"): redirect()
            case UInt8(ascii: "("), UInt8(ascii: ")"): parenthesis(byte)
            case UInt8(ascii: "#") where word == nil: comment()
            case UInt8(ascii: "'"): single()
            case UInt8(ascii: "\""): double()
            case UInt8(ascii: "\\"): escape()
            case UInt8(ascii: "$"), UInt8(ascii: "`"):
                isPlain = false
                expand(isQuoted: false)
            default: plain(byte)
            }
            index += 1
        }
        endCommand()
    }

    /// Handles a byte outside quotes.
    private mutating func plain(_ byte: UInt8) {
        switch byte {
        case UInt8(ascii: "="): equals()
        case UInt8(ascii: "~"):
            let isBegin = word == nil || isAssigning && (word?.last == UInt8(ascii: "=") || word?.last == 0x3a)
            if isBegin { return home() }
        case UInt8(ascii: "*"), UInt8(ascii: "?"): pattern(byte)
        case UInt8(ascii: "["): if bracket == nil { bracket = column }
        case UInt8(ascii: "]"): if bracket != nil { pattern(UInt8(ascii: "[")) }
        case UInt8(ascii: "{"): if braces == .none { braces = .open }
        case UInt8(ascii: ","): if braces == .open { braces = .list }
        case UInt8(ascii: "."): if braces == .open, word?.last == byte { braces = .list }
        case UInt8(ascii: "}"):
            if braces == .list, !isAssigning {
                fail(
                    "it has braces that a shell expands: write each word, or put it into quotes",
                    line: line,
                    column: column
                )
            }
            braces = .none
        default: break
        }
        append(byte)
    }

    /// Handles a wildcard. It makes the word a pattern for file names, except in an assignment.
    mutating func pattern(_ byte: UInt8) {
        guard !isAssigning else { return }
        let sign = String(wire: [byte])
        fail("\(sign) makes it a pattern of files: put it into quotes", line: line, column: column)
    }

    private mutating func equals() {
        guard !isAssigning, let word, isPlain else { return }
        let isDeclaring = command.words.first.map { $0.isPlain && Self.declarations.contains($0.text) } ?? false
        guard command.isSetting || isDeclaring, word.count < 1_000 else { return }
        let name = word.last == UInt8(ascii: "+") ? word.dropLast() : word[...]
        isAssigning = ShellWords.isName(String(wire: name))
    }

    /// Expands `~` if it is the whole word or `/` follows it.
    private mutating func home() {
        isPlain = false
        guard next().map(Set(" \t\n\r;&|<>()/:".utf8).contains) ?? true else {
            return fail("the home of another user is not known here", line: line, column: column)
        }
        put("HOME", isQuoted: true, (line, column))
    }

    private mutating func comment() {
        while let byte = next(), byte != UInt8(ascii: "\n") { index += 1 }
    }

    private mutating func redirect() {
        // A number before `<` or `>` is a file descriptor, not a word.
        if let done = word, done.allSatisfy({ (0x30...0x39).contains($0) }) { word = nil }
        endWord()
        let begin = index
        while let byte = next(), [UInt8(ascii: ">"), UInt8(ascii: "&"), UInt8(ascii: "<")].contains(byte) { index += 1 }
        let isHere = bytes[begin...index].elementsEqual("<<".utf8)
        let hasTabs = !(isHere && next() == UInt8(ascii: "-"))
        if !hasTabs { index += 1 }
        here = (isHere, hasTabs)
        isFile = true
    }

    /// Skips the here-documents of this line's commands. `index` must be at the end of the line.
    private mutating func skipDocuments() {
        for (end, hasTabs) in documents {
            while index + 1 < bytes.count {
                let begin = index + 1
                let stop = bytes[begin...].firstIndex(of: UInt8(ascii: "\n")) ?? bytes.count
                index = stop
                var text = bytes[begin..<stop]
                if !hasTabs { text = text.drop { $0 == UInt8(ascii: "\t") } }
                newline()
                if text.elementsEqual(end) { break }
            }
        }
        documents = []
    }

    private mutating func parenthesis(_ byte: UInt8) {
        let isOpen = byte == UInt8(ascii: "(")
        if word != nil, isOpen, next() == UInt8(ascii: ")") {
            // `NAME()` is the head of a function: skip its parentheses.
            index += 1
            return endCommand()
        }
        if isOpen, word != nil || !command.words.isEmpty || isFile {
            fail("it has parentheses, which need a shell", line: line, column: column)
            return skip(to: UInt8(ascii: ")"))
        }
        if isOpen {
            parentheses += 1
            outside.append(variables["PWD"] ?? .text(folder))
        } else if parentheses > 0 {
            endCommand()
            parentheses -= 1
            if let folder = outside.popLast() { variables["PWD"] = folder }
        } else {
            // A `)` without an opening parenthesis ends a pattern in `case`.
            endWord()
            _ = isUnderstood()
            command = Command()
        }
    }

    private mutating func escape() {
        isPlain = false
        guard let byte = next() else { return append(UInt8(ascii: "\\")) }
        if byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r") && next(2) == UInt8(ascii: "\n") {
            index += byte == UInt8(ascii: "\n") ? 1 : 2
            if word == nil { isPlain = true }
            return newline()
        }
        begin()
        index += 1
        append(byte)
    }

    private mutating func single() {
        isPlain = false
        begin()
        let place = (line, column)
        while let byte = next() {
            index += 1
            if byte == UInt8(ascii: "'") { return }
            word?.append(byte)
            if byte == UInt8(ascii: "\n") { newline() }
        }
        fail("a quote is not closed", line: place.0, column: place.1)
    }

    /// Adds a docker or podman command that runs within `$(…)`. The command has a problem, because what the shell does
    /// with its output is not known.
    mutating func record(_ text: ArraySlice<UInt8>, line: Int) {
        let text = String(wire: text)
        guard let program = ["docker", "podman"].first(where: { text.contains("\($0) run ") }) else { return }
        let words = [program, "run"].map { Word(text: $0, line: line, column: 1, isPlain: true) }
        let problem = ("it runs within $(…), a command of a shell: write it as a command of its own", line)
        commands.append(Command(words: words, problem: problem))
    }
}
