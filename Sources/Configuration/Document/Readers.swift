// SPDX-License-Identifier: Apache-2.0

import Linux
import WireText

/// A key of a table: its name, and a function that stores its value in the target.
package struct Key<Target>: Sendable {
    package let name: String
    let read: @Sendable (Context, Node, inout Target) -> Void

    package init(_ name: String, _ read: @escaping @Sendable (Context, Node, inout Target) -> Void) {
        self.name = name
        self.read = read
    }

    package static func value<T>(
        _ name: String,
        _ path: any WritableKeyPath<Target, T> & Sendable,
        _ read: @escaping @Sendable (Context, Node) -> T?
    ) -> Key {
        Key(name) { context, node, target in
            if let value = read(context, node) { target[keyPath: path] = value }
        }
    }

    package static func optional<T>(
        _ name: String,
        _ path: any WritableKeyPath<Target, T?> & Sendable,
        _ read: @escaping @Sendable (Context, Node) -> T?
    ) -> Key {
        Key(name) { context, node, target in
            if let value = read(context, node) { target[keyPath: path] = value }
        }
    }
}

/// Functions that read one value. If the value is not valid, the function reports an error to the context's sink and
/// returns nil.
package enum Read {
    static func members(_ context: Context, _ node: Node) -> [Member]? {
        guard case .table(let members) = node.value else { return context.expected("a table", node) }
        return members
    }

    /// Reads a table: stores the values of known keys, and reports unknown keys. Returns the place of each known key.
    @discardableResult
    package static func table<Target>(
        _ context: Context,
        _ node: Node,
        _ keys: [Key<Target>],
        into target: inout Target
    ) -> [String: Origin] {
        var origins: [String: Origin] = [:]
        for member in members(context, node) ?? [] {
            let inner = context.at(member.key)
            guard let key = keys.first(where: { $0.name == member.key }) else {
                unknown(inner, member, among: keys.map(\.name))
                continue
            }
            origins[member.key] = Origin(context: inner, position: member.node.position)
            key.read(inner, member.node, &target)
        }
        return origins
    }

    package static func unknown(_ context: Context, _ member: Member, among names: [String]) {
        guard !context.sink.isFull else { return }
        // First search the keys of other supervisors. For one of their keys, such as `env`, the most similar key of
        // Torpor would be a wrong hint.
        let hint = ForeignKeys.hint(member.key, member.node.value, at: context.path).map { "; \($0)" }
        context.error("there is no such key" + (hint ?? context.hint(member.key, among: names)), at: member.position)
    }

    static func string(_ context: Context, _ node: Node) -> String? {
        guard case .string(let text) = node.value else { return context.expected("a string", node) }
        guard !text.utf8.contains(0) else {
            context.error("must not contain NUL", at: node.position)
            return nil
        }
        return text
    }

    /// Reads a string that is not empty.
    package static func text(_ context: Context, _ node: Node) -> String? {
        guard let text = string(context, node) else { return nil }
        guard !text.isEmpty else {
            context.error("must not be empty", at: node.position)
            return nil
        }
        return text
    }

    package static func elements<T>(
        _ context: Context,
        _ node: Node,
        of kind: String,
        _ read: (Context, Node) -> T?
    ) -> [T]? {
        guard case .array(let nodes) = node.value else { return context.expected("an array of \(kind)", node) }
        let values = nodes.enumerated().map { read(context.at($0.offset), $0.element) }
        return values.contains { $0 == nil } ? nil : values.compactMap { $0 }
    }

    package static func texts(_ context: Context, _ node: Node) -> [String]? {
        elements(context, node, of: "strings", text)
    }

    /// Reads an array that consists of a program and its arguments.
    static func command(_ context: Context, _ node: Node) -> [String]? {
        if case .string(let line) = node.value {
            context.error("expected an array of strings, found a string: write \(array(of: line))", at: node.position)
            return nil
        }
        guard let words = elements(context, node, of: "strings", word) else { return nil }
        guard let program = words.first, !program.isEmpty else {
            context.error("must begin with a program", at: node.position)
            return nil
        }
        return words
    }

    /// Suggests an array for a command that was written as a single text: the words of the text, or a call of a shell
    /// if the text uses shell syntax.
    static func array(of line: String) -> String {
        let needsShell = line.utf8.contains { "|&;<>()$`'\"*?\\".utf8.contains($0) }
        let words = needsShell ? ["/bin/sh", "-c", line] : line.split(separator: " ").map(String.init)
        return "[\(words.map(quoted).joined(separator: ", "))]"
    }

    /// Reads a string, which may be empty. The error for a number or a boolean advises the user to put quotation marks
    /// around it.
    static func word(_ context: Context, _ node: Node) -> String? {
        let plain: String
        switch node.value {
        case .integer(let number): plain = "\(number)"
        case .double(let number): plain = "\(number)"
        case .boolean(let flag): plain = "\(flag)"
        case .string, .table, .array, .date: return string(context, node)
        }
        context.error("expected a string, found \(node.kind): write \(quoted(plain))", at: node.position)
        return nil
    }

    package static func boolean(_ context: Context, _ node: Node) -> Bool? {
        guard case .boolean(let flag) = node.value else { return context.expected("true or false", node) }
        return flag
    }

    package static func integer<T: FixedWidthInteger & Sendable & SendableMetatype>(
        _ range: ClosedRange<T>
    ) -> @Sendable (Context, Node) -> T? {
        { context, node in
            guard case .integer(let number) = node.value else { return context.expected("an integer", node) }
            guard let value = T(exactly: number), range.contains(value) else {
                context.error(
                    "\(number) is out of range: from \(range.lowerBound) to \(range.upperBound)",
                    at: node.position
                )
                return nil
            }
            return value
        }
    }

    /// Reads a number within the range. It may be written as a float or as an integer.
    static func number(_ range: ClosedRange<Double>) -> @Sendable (Context, Node) -> Double? {
        { context, node in
            let value: Double
            switch node.value {
            case .integer(let number): value = Double(number)
            case .double(let number): value = number
            case .table, .array, .string, .boolean, .date: return context.expected("a number", node)
            }
            guard range.contains(value) else {
                context.error(
                    "\(value) is out of range: from \(range.lowerBound) to \(range.upperBound)",
                    at: node.position
                )
                return nil
            }
            return value
        }
    }

    package static func choice<T: RawRepresentable & CaseIterable>(
        _ context: Context,
        _ node: Node
    ) -> T? where T.RawValue == String {
        guard let text = string(context, node) else { return nil }
        if let value = T(rawValue: text) { return value }
        let names = T.allCases.map(\.rawValue)
        let list = names.map(quoted).joined(separator: ", ")
        context.error(
            "\(quoted(text)) is not one of \(list)\(context.hint(text, among: names))",
            at: node.position
        )
        return nil
    }

    /// Reads `restart`. The error for true or false, as in other supervisors, names the word to write.
    static func restart<T: RawRepresentable & CaseIterable>(
        _ context: Context,
        _ node: Node
    ) -> T? where T.RawValue == String {
        guard case .boolean(let flag) = node.value else { return choice(context, node) }
        let word = quoted(flag ? "always" : "never")
        context.error("expected a string, found \(node.kind): write \(word)", at: node.position)
        return nil
    }

    /// Reads an array of words without duplicates. Each word must be the raw value of a case of `T`.
    static func choices<T: RawRepresentable & CaseIterable & Hashable>(
        _ context: Context,
        _ node: Node
    ) -> [T]? where T.RawValue == String {
        let values: [T]? = elements(context, node, of: "strings") { choice($0, $1) }
        guard let values, Set(values).count == values.count else {
            if values != nil { context.error("has the same word twice", at: node.position) }
            return nil
        }
        return values
    }

    /// Returns `values` unchanged. If two of them have the same name, reports an error and returns nil.
    static func unique<T>(_ context: Context, _ node: Node, _ values: [T], by name: (T) -> String) -> [T]? {
        var seen: Set<String> = []
        for value in values where !seen.insert(name(value)).inserted {
            context.error("two entries are named \(quoted(name(value))): give each its own name", at: node.position)
            return nil
        }
        return values
    }

    /// Reads a path. A relative path is resolved against the folder of the configuration file.
    package static func path(_ context: Context, _ node: Node) -> String? {
        text(context, node).map { Path.join(context.folder, $0) }
    }

    static func paths(_ context: Context, _ node: Node) -> [String]? {
        elements(context, node, of: "strings", path)
    }

    package static func duration(_ context: Context, _ node: Node) -> Duration? {
        guard let some = durationText(context, node) else { return nil }
        if some == "none" {
            context.error("\"none\" is not allowed here: write a duration like \"5s\"", at: node.position)
            return nil
        }
        do throws(QuantityError) {
            return try Quantity.duration(some)
        } catch {
            context.error(error.description, at: node.position)
            return nil
        }
    }

    /// Reads a duration longer than zero.
    static func positiveDuration(_ context: Context, _ node: Node) -> Duration? {
        guard let duration = duration(context, node) else { return nil }
        guard duration > .zero else {
            context.error("must be longer than zero", at: node.position)
            return nil
        }
        return duration
    }

    /// Reads a duration or `"none"`. For `"none"` the result is `.some(nil)`; after an error it is nil.
    static func limit(_ context: Context, _ node: Node) -> Duration?? {
        if case .string("none") = node.value { return .some(nil) }
        return duration(context, node).map { .some($0) }
    }

    /// Reads a duration longer than zero or `"none"`. For `"none"` the result is `.some(nil)`; after an error it is
    /// nil.
    static func deadline(_ context: Context, _ node: Node) -> Duration?? {
        if case .string("none") = node.value { return .some(nil) }
        guard let duration = duration(context, node) else { return nil }
        guard duration > .zero else {
            context.error("must be longer than zero; \"none\" switches it off", at: node.position)
            return nil
        }
        return .some(duration)
    }

    /// Reads a policy's deadline, at most 10 s. The limit is short because torpord cannot act before it has the
    /// policy's answer.
    static func policyDeadline(_ context: Context, _ node: Node) -> Duration? {
        guard let duration = duration(context, node) else { return nil }
        guard duration >= .milliseconds(1), duration <= .seconds(10) else {
            context.error("must be between 1ms and 10s", at: node.position)
            return nil
        }
        return duration
    }

    /// Reads `session`, which names the login session whose lock takes apps out of the foreground.
    static func session(_ context: Context, _ node: Node) -> SessionRule? {
        guard let some = text(context, node) else { return nil }
        if let rule = SessionRule(some) { return rule }
        context.error(
            "\(quoted(some)) is not \"auto\", \"none\", a seat such as \"seat0\" or the ID of a session as ‘loginctl’ "
                + "shows it",
            at: node.position
        )
        return nil
    }

    /// A hint for a large integer, which was probably meant in milliseconds, as in other programs; empty for a small
    /// integer.
    private static func orMilliseconds(_ number: Int64) -> String {
        number >= 100 ? ", or \"\(number)ms\" if you mean milliseconds" : ""
    }

    private static func durationText(_ context: Context, _ node: Node) -> String? {
        switch node.value {
        case .string(let text): return text
        case .integer(let number):
            let text = "expected a duration, found an integer: write \"\(number)s\"\(orMilliseconds(number))"
            context.error(text, at: node.position)
        case .double(let number):
            context.error("expected a duration, found a float: write \"\(number)s\"", at: node.position)
        case .table, .array, .boolean, .date:
            context.error("expected a duration like \"5s\", found \(node.kind)", at: node.position)
        }
        return nil
    }

    /// Reads a size and returns bytes. For `"none"` the result is `.some(nil)`; after an error it is nil.
    package static func size(_ context: Context, _ node: Node) -> UInt64?? {
        switch node.value {
        case .string("none"): return .some(nil)
        case .string(let text):
            do throws(QuantityError) {
                let size = try Quantity.size(text)
                guard size > 0 else {
                    context.error("must be more than zero; \"none\" switches it off", at: node.position)
                    return nil
                }
                return .some(size)
            } catch {
                context.error(error.description, at: node.position)
            }
        case .integer(let number):
            context.error("expected a size, found an integer: write \"\(number)B\" or \"64MiB\"", at: node.position)
        case .table, .array, .double, .boolean, .date:
            context.error("expected a size like \"64MiB\", found \(node.kind)", at: node.position)
        }
        return nil
    }

    /// Reads the name of a signal. Reports an error for SIGSTOP and SIGCONT, and for SIGKILL unless `orKill` is true.
    static func signal(orKill: Bool) -> @Sendable (Context, Node) -> Int32? {
        { context, node in
            if case .integer = node.value {
                context.error("expected a signal's name, found an integer: write \"SIGUSR1\"", at: node.position)
                return nil
            }
            guard let name = text(context, node) else { return nil }
            guard let number = Signal.number(named: name) else {
                let hint = context.hint(name, among: (1...31).map(Signal.name))
                context.error("\(quoted(name)) is not a signal\(hint)", at: node.position)
                return nil
            }
            if number == Signal.stop || number == Signal.continue || (number == Signal.kill && !orKill) {
                context.error("\(name) cannot be used here: Torpor itself needs it", at: node.position)
                return nil
            }
            return number
        }
    }
}

/// Functions that change paths as text, without access to the file system.
package enum Path {
    /// The normal form of a path. A relative path is resolved against `folder`.
    package static func join(_ folder: String, _ path: String) -> String {
        normal(path.hasPrefix("/") ? path : folder + "/" + path)
    }

    /// The normal form of a path: `.` and empty components are removed, and each `..` removes the component before it.
    static func normal(_ path: String) -> String {
        var parts: [Substring] = []
        let slash = UInt8(ascii: "/")
        let isAbsolute = path.utf8.first == slash
        // Bytes, as the kernel separates them: a slash also ends a component if a combining character follows.
        for part in path.utf8.split(separator: slash).map(Substring.init) where part != "." {
            if part == "..", let last = parts.last, last != ".." {
                parts.removeLast()
            } else if part != ".." || !isAbsolute {
                parts.append(part)
            }
        }
        let joined = parts.joined(separator: "/")
        return isAbsolute ? "/" + joined : joined.isEmpty ? "." : joined
    }

    /// The path without its last component.
    package static func folder(_ path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }
}
