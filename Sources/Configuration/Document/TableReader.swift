// SPDX-License-Identifier: Apache-2.0

import Lifecycle

/// Readers of app keys whose values are tables, lists or texts with a special syntax.
enum TableReader {
    static let backoff: [Key<RestartBackoff>] = [
        .value("initial", \.initial, Read.duration),
        .value("factor", \.factor, Read.number(1...100)),
        .value("cap", \.cap, Read.positiveDuration),
        .value("limit", \.limit, Read.integer(0...10_000)),
        .value("window", \.window, Read.positiveDuration),
        .value("jitter", \.jitter, Read.number(0...1)),
    ]

    static let profile: [Key<ResourceProfile>] = [
        .optional("cpu_weight", \.cpuWeight, Read.integer(1...10_000)),
        .optional("io_weight", \.ioWeight, Read.integer(1...10_000)),
        .optional("oom_score_adj", \.oomScoreAdjust, Read.integer(-1_000...1_000)),
        .optional("timer_slack", \.timerSlack, Read.duration),
        .optional("cpu_max", \.cpuMaximum, TableReader.processorLimit),
        .optional("memory_high", \.memoryHigh) { Read.size($0, $1).map { $0 ?? .max } },
        .optional("memory_low", \.memoryLow) { Read.size($0, $1).map { $0 ?? 0 } },
    ]

    /// Reads a limit on processor time: `"50%"` is half of one processor, `"200%"` is two processors. Returns
    /// thousandths of a percent.
    static func processorLimit(_ context: Context, _ node: Node) -> Int? {
        guard case .string(let text) = node.value else {
            return context.expected("a share of one processor like \"50%\"", node)
        }
        if text == "none" { return .max }
        guard text.hasSuffix("%"), let percent = Double(text.dropLast()), (1...1_000_000).contains(percent) else {
            context.error(
                "\(quoted(text)) is not a share of a processor: write \"50%\" for half of one, \"200%\" for two, "
                    + "at least \"1%\", or \"none\"",
                at: node.position
            )
            return nil
        }
        return Int((percent * 1000).rounded())
    }

    /// The states for which `resources` may have a profile.
    static let states: [AppState] = [.active, .inactive, .background, .suspended]

    static func resources(_ context: Context, _ node: Node, into profiles: inout [AppState: ResourceProfile]) {
        for member in Read.members(context, node) ?? [] {
            let inner = context.at(member.key)
            guard let state = AppState(rawValue: member.key), states.contains(state) else {
                Read.unknown(inner, member, among: states.map(\.rawValue))
                continue
            }
            Read.table(inner, member.node, profile, into: &profiles[state, default: ResourceProfile()])
        }
    }

    static func environment(_ context: Context, _ node: Node) -> [(String, String)] {
        if case .array(let elements) = node.value {
            var example = "NAME = \"value\""
            if case .string(let text) = elements.first?.value, let equals = text.firstIndex(of: "=") {
                let name = text[..<equals]
                if !name.isEmpty, name.utf8.allSatisfy(\.isNameByte) {
                    example = "\(name) = \(quoted(String(text[text.index(after: equals)...])))"
                }
            }
            context.error("expected a table, found an array: write { \(example) }", at: node.position)
            return []
        }
        var variables: [(String, String)] = []
        for member in Read.members(context, node) ?? [] {
            let inner = context.at(member.key)
            if member.key.isEmpty || member.key.utf8.contains(where: { $0 == 0 || $0 == UInt8(ascii: "=") }) {
                inner.error("the name of a variable must not be empty or contain =", at: member.position)
            } else if let value = Read.word(inner, member.node) {
                variables.append((member.key, value))
            }
        }
        return variables
    }

    static func environmentFiles(_ context: Context, _ node: Node) -> [EnvironmentFileReference]? {
        if case .array = node.value { return Read.elements(context, node, of: "strings", environmentFile) }
        guard case .string = node.value else { return context.expected("a string or an array of strings", node) }
        return environmentFile(context, node).map { [$0] }
    }

    private static func environmentFile(_ context: Context, _ node: Node) -> EnvironmentFileReference? {
        guard let text = Read.text(context, node) else { return nil }
        let isOptional = text.hasPrefix("-")
        let path = isOptional ? String(text.dropFirst()) : text
        guard !path.isEmpty else {
            context.error("must name a file after -", at: node.position)
            return nil
        }
        return EnvironmentFileReference(path: Path.join(context.folder, path), isOptional: isOptional)
    }

    static func umask(_ context: Context, _ node: Node) -> UInt32? {
        if case .integer = node.value {
            context.error("expected a string of octal digits, found an integer: write \"0027\"", at: node.position)
            return nil
        }
        guard let text = Read.text(context, node) else { return nil }
        let isOctal = text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "7")).contains($0) }
        guard isOctal, let value = UInt32(text, radix: 8), value <= 0o777 else {
            context.error("\(quoted(text)) is not an octal mode up to \"0777\"", at: node.position)
            return nil
        }
        return value
    }

    /// Reads the mode of a file, written as octal digits.
    static func mode(_ context: Context, _ node: Node) -> UInt32? { umask(context, node) }

    static func signals(_ context: Context, _ node: Node) -> [(Message, Int32)] {
        var signals: [(Message, Int32)] = []
        let read = Read.signal(orKill: false)
        for member in Read.members(context, node) ?? [] {
            let inner = context.at(member.key)
            guard let message = Message(rawValue: member.key) else {
                Read.unknown(inner, member, among: Message.allCases.map(\.rawValue))
                continue
            }
            if message.isAboutScenes {
                inner.error(
                    "goes only to the app's delegate: a signal cannot say which scene it is about",
                    at: member.position
                )
                continue
            }
            if let signal = read(inner, member.node) { signals.append((message, signal)) }
        }
        return signals
    }

    static func success(_ context: Context, _ node: Node) -> (codes: Set<Int32>, signals: Set<Int32>)? {
        enum Status {
            case code(Int32)
            case signal(Int32)
        }
        let code = Read.integer(Int32(0)...255)
        let signal = Read.signal(orKill: true)
        let statuses: [Status]? = Read.elements(context, node, of: "exit codes and signals' names") { context, node in
            if case .integer = node.value { return code(context, node).map(Status.code) }
            guard case .string = node.value else {
                return context.expected("an exit code or a signal's name", node)
            }
            return signal(context, node).map(Status.signal)
        }
        guard let statuses else { return nil }
        var result: (codes: Set<Int32>, signals: Set<Int32>) = ([], [])
        for status in statuses {
            switch status {
            case .code(let code): result.codes.insert(code)
            case .signal(let signal): result.signals.insert(signal)
            }
        }
        return result
    }

    static func standardError(_ context: Context, _ node: Node) -> StandardError? {
        guard let text = Read.text(context, node) else { return nil }
        if text == "log" { return .log }
        return isFile(context, node, text, word: "log") ? .file(Path.normal(text)) : nil
    }

    static func standardInput(_ context: Context, _ node: Node) -> StandardInput? {
        guard let text = Read.text(context, node) else { return nil }
        if text == "null" { return .null }
        return isFile(context, node, text, word: "null") ? .file(Path.join(context.folder, text)) : nil
    }

    /// Whether the text is a path. Reports an error for a word without a slash or dot, which is probably a mistyped
    /// keyword.
    private static func isFile(_ context: Context, _ node: Node, _ text: String, word: String) -> Bool {
        if text.contains("/") || text.contains(".") { return true }
        context.error(
            "\(quoted(text)) is neither \(quoted(word)) nor a path: write \"./\(text)\" for a file of that name",
            at: node.position
        )
        return false
    }

    static let hookKeys: [Key<HookCommand>] = [
        .value("command", \.command, Read.command),
        .value("deadline", \.deadline, Read.deadline),
    ]

    static let failureKeys: [Key<FailureCommand>] = [
        .value("command", \.command, Read.command),
        .value("deadline", \.deadline, Read.positiveDuration),
        .value("each", \.each, Read.boolean),
    ]

    static func hooks(_ context: Context, _ node: Node) -> [HookCommand]? { commands(context, node, hookKeys) }

    static func failureCommands(_ context: Context, _ node: Node) -> [FailureCommand]? {
        commands(context, node, failureKeys)
    }

    /// Reads one command, or a list of commands and of tables with these keys.
    private static func commands<Command: ConfiguredCommand>(
        _ context: Context,
        _ node: Node,
        _ keys: [Key<Command>]
    ) -> [Command]? {
        guard case .array(let elements) = node.value else { return context.expected("an array of commands", node) }
        if case .string = elements.first?.value { return Read.command(context, node).map { [Command($0)] } }
        return Read.elements(context, node, of: "commands") { context, node in
            switch node.value {
            case .array: return Read.command(context, node).map { Command($0) }
            case .table:
                var command = Command([])
                let found = Read.table(context, node, keys, into: &command)
                if found["command"] == nil {
                    context.error("command is missing: write command = [\"/path/to/program\"]", at: node.position)
                }
                return command
            case .string, .integer, .double, .boolean, .date:
                return context.expected("a command as an array of strings, or a table with command and deadline", node)
            }
        }
    }
}

/// A command of a list in which an element is the command alone, or a table.
private protocol ConfiguredCommand {
    init(_ command: [String])
}

extension HookCommand: ConfiguredCommand {}

extension FailureCommand: ConfiguredCommand {}
