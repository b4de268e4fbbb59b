// SPDX-License-Identifier: Apache-2.0

/// Reads `ready` and `health`.
enum ReadyReader {
    /// The keys in the table `ready` that select the kind of probe. Exactly one of them must be written.
    static let kinds = ["tcp", "http", "command", "file"]
    static let keys = kinds + ["interval", "timeout"]
    /// The keys of the table `health`.
    static let healthKeys = keys + ["failures"]

    static func ready(_ context: Context, _ node: Node, _ settings: [SettingDeclaration]) -> ReadySpecification? {
        switch node.value {
        case .string(let text):
            switch text {
            case "exec": return .exec
            case "notify": return .notify
            case "delegate": return .delegate
            default:
                let hint = hint(text)
                context.error(
                    "\(quoted(text)) is not \"exec\", \"notify\", \"delegate\" or a table with tcp, http, command or file\(hint)",
                    at: node.position
                )
                return nil
            }
        case .table(let members): return probe(context, node, members, settings).map(ReadySpecification.probe)
        case .array, .integer, .double, .boolean, .date:
            return context.expected(
                "\"exec\", \"notify\", \"delegate\" or a table with tcp, http, command or file",
                node
            )
        }
    }

    /// A hint for a text that is not a kind of readiness: what to write instead, such as a table for an address.
    private static func hint(_ text: String) -> String {
        if text.hasPrefix("http://") { return ": write { http = \(quoted(text)) }" }
        if text.hasPrefix("https://") { return ": \(noTLS)" }
        if tcp(text) != nil { return ": write { tcp = \(quoted(text)) }" }
        if text.contains("/") { return ": write { file = \(quoted(text)) }, or { command = [\(quoted(text))] }" }
        return Nearest.hint(text, among: ["exec", "notify", "delegate"])
    }

    private static let noTLS =
        "Torpor asks without TLS: write { command = [\"curl\", \"-fs\", \"https://…\"] }"

    private static func probe(
        _ context: Context,
        _ node: Node,
        _ members: [Member],
        _ settings: [SettingDeclaration]
    ) -> Probe? {
        var found: [Probe.Kind?] = []
        var template: String?
        var interval: Duration?
        var timeout: Duration?
        var isKnown = true
        for member in members {
            let inner = context.at(member.key)
            switch member.key {
            case "tcp", "http":
                guard let node = filled(inner, member.node, settings, &template) else { return nil }
                found.append(member.key == "tcp" ? tcp(inner, node) : http(inner, node))
            case "command": found.append(Read.command(inner, member.node).map(Probe.Kind.command))
            case "file": found.append(Read.path(inner, member.node).map(Probe.Kind.file))
            case "interval": interval = Read.positiveDuration(inner, member.node)
            case "timeout": timeout = Read.positiveDuration(inner, member.node)
            default:
                isKnown = false
                Read.unknown(inner, member, among: keys)
            }
        }
        guard isKnown else { return nil }
        guard found.count == 1 else {
            context.error("needs exactly one of tcp, http, command and file", at: node.position)
            return nil
        }
        guard let kind = found[0] else { return nil }
        var probe = Probe(kind)
        probe.template = template
        if let interval { probe.interval = interval }
        if let timeout { probe.timeout = timeout }
        return probe
    }

    static func health(_ context: Context, _ node: Node, _ settings: [SettingDeclaration]) -> HealthSpecification? {
        guard case .table(let members) = node.value else {
            return context.expected("a table with tcp, http, command or file", node)
        }
        for member in members where !healthKeys.contains(member.key) {
            Read.unknown(context.at(member.key), member, among: healthKeys)
            return nil
        }
        let own = members.filter { $0.key != "failures" }
        guard let probe = probe(context, node, own, settings) else { return nil }
        var health = HealthSpecification(probe.kind)
        health.probe.template = probe.template
        return times(context, members, probe, &health) ? health : nil
    }

    /// Reads `container.health`, which is a command, or a table that contains a command.
    static func healthInside(_ context: Context, _ node: Node) -> HealthSpecification? {
        guard case .table(let members) = node.value else {
            return Read.command(context, node).map { HealthSpecification(.inside($0)) }
        }
        let keys = ["command", "interval", "timeout", "failures"]
        for member in members where !keys.contains(member.key) {
            Read.unknown(context.at(member.key), member, among: keys)
            return nil
        }
        guard let probe = probe(context, node, members.filter { $0.key != "failures" }, []),
            case .command(let words) = probe.kind
        else { return nil }
        var health = HealthSpecification(.inside(words))
        return times(context, members, probe, &health) ? health : nil
    }

    /// Stores the values of `interval`, `timeout` and `failures`, if they are written. Returns false after an error.
    private static func times(
        _ context: Context,
        _ members: [Member],
        _ probe: Probe,
        _ health: inout HealthSpecification
    ) -> Bool {
        for member in members {
            switch member.key {
            case "interval": health.probe.interval = probe.interval
            case "timeout": health.probe.timeout = probe.timeout
            case "failures":
                guard let count = Read.integer(1...1000)(context.at(member.key), member.node) else { return false }
                health.failures = Int(count)
            default: break
            }
        }
        return true
    }

    /// Replaces the settings in an address by their default values. Returns nil after an error.
    private static func filled(
        _ context: Context,
        _ node: Node,
        _ settings: [SettingDeclaration],
        _ template: inout String?
    ) -> Node? {
        guard case .string(let text) = node.value, !SettingTemplate.names(in: text).isEmpty else { return node }
        template = text
        return SettingReader.address(text, settings, context, node).map {
            Node(value: .string($0), position: node.position)
        }
    }

    private static func tcp(_ context: Context, _ node: Node) -> Probe.Kind? {
        guard let text = Read.text(context, node) else { return nil }
        guard let kind = tcp(text) else {
            context.error("\(quoted(text)) is not an address with a port: write \"127.0.0.1:8000\"", at: node.position)
            return nil
        }
        return kind
    }

    private static func tcp(_ text: String) -> Probe.Kind? {
        guard let (host, port) = authority(text), let port else { return nil }
        return .tcp(host: host, port: port)
    }

    /// Parses an address as one for a probe of the same kind as `kind`. Nil if the text is not a valid address for that
    /// kind.
    static func kind(_ text: String, like kind: Probe.Kind) -> Probe.Kind? {
        switch kind {
        case .tcp: tcp(text)
        case .http: address(text).map { .http(host: $0.host, port: $0.port, path: $0.path) }
        case .command, .inside, .file: nil
        }
    }

    private static func http(_ context: Context, _ node: Node) -> Probe.Kind? {
        address(context, node).map { .http(host: $0.host, port: $0.port, path: $0.path) }
    }

    /// Reads an address that begins with `http://`. The returned path begins with `/` and includes the query.
    static func address(_ context: Context, _ node: Node) -> (host: String, port: UInt16, path: String)? {
        guard let text = Read.text(context, node) else { return nil }
        guard text.hasPrefix(scheme) else {
            let hint = text.hasPrefix("https://") ? ": \(noTLS)" : ""
            context.error("\(quoted(text)) does not begin with http://\(hint)", at: node.position)
            return nil
        }
        guard let address = address(text) else {
            context.error(
                "\(quoted(text)) is not an address: write \"http://127.0.0.1:8000/health\"",
                at: node.position
            )
            return nil
        }
        return address
    }

    private static let scheme = "http://"

    private static func address(_ text: String) -> (host: String, port: UInt16, path: String)? {
        guard text.hasPrefix(scheme) else { return nil }
        let rest = text.dropFirst(scheme.count)
        let place = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        let path = rest.dropFirst(place.count).prefix { $0 != "#" }
        let isPlain = text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f }
        guard isPlain, let (host, port) = authority(String(place)) else { return nil }
        return (host, port ?? 80, path.hasPrefix("/") ? String(path) : "/" + path)
    }

    /// Parses a host with an optional port, such as `host`, `host:port` or `[::1]:port`. Returns nil for other texts.
    static func authority(_ text: String) -> (host: String, port: UInt16?)? {
        let host: Substring
        var rest: Substring
        if text.hasPrefix("[") {
            guard let end = text.firstIndex(of: "]") else { return nil }
            host = text[text.index(after: text.startIndex)..<end]
            rest = text[text.index(after: end)...]
            guard host.contains(":") else { return nil }
        } else {
            host = text.prefix { $0 != ":" }
            rest = text[host.endIndex...]
        }
        guard !host.isEmpty, host.utf8.allSatisfy({ $0.isNameByte || $0 == 0x2e || $0 == 0x3a || $0 == 0x25 }) else {
            return nil
        }
        guard !rest.isEmpty else { return (String(host), nil) }
        guard rest.removeFirst() == ":", rest.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            let port = UInt16(rest), port > 0
        else { return nil }
        return (String(host), port)
    }
}
