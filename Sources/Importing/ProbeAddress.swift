// SPDX-License-Identifier: Apache-2.0

/// The URL that a health check requests, as seen from the machine or container in which the check runs.
struct ProbeAddress {
    /// The host as the check writes it. It always stands for this machine or container.
    var host: String
    var port: Int
    /// The path; it begins with a slash.
    var path: String

    var text: String { "http://\(host):\(port)\(path)" }

    /// The URL of a check that is a shell line, such as `curl -f http://localhost/ || exit 1`. Nil if the line does
    /// more than make this request.
    static func ofLine(_ line: String) -> ProbeAddress? {
        var head = line.trimmed
        if let bars = bars(head) {
            guard isFailure(head[bars...].dropFirst(2).trimmed) else { return nil }
            head = head[..<bars].trimmed
        }
        // Remove redirections of the output, which have no effect on the result of the check.
        let sinks = ["2>&1", ">/dev/null", "> /dev/null", "1>", "2>", "&>"]
        while let sink = sinks.first(where: { head.hasSuffix($0) }) {
            head = head.dropLast(sink.count).trimmed
        }
        guard ShellWords.need(head) == .none, let words = ShellWords.split(head) else { return nil }
        return ofCommand(words)
    }

    /// The position of `||` in a line; nil if there is none.
    private static func bars(_ line: String) -> String.Index? {
        var rest = line[...]
        while let bar = rest.utf8.firstIndex(of: UInt8(ascii: "|")) {
            let next = rest.utf8.index(after: bar)
            if rest[next...].utf8.first == UInt8(ascii: "|") { return bar }
            rest = rest[next...]
        }
        return nil
    }

    /// Whether a command does nothing but fail, such as `exit 1` or `false`. In checks, such commands come after `||`.
    private static func isFailure(_ text: String) -> Bool {
        var words = text.split(separator: " ").map(String.init)
        if let last = words.last, last.hasSuffix(";") { words[words.count - 1].removeLast() }
        if words == ["false"] || words == ["exit"] { return true }
        guard words.count == 2, ["exit", "return"].contains(words[0]), let status = UInt8(words[1]) else {
            return false
        }
        return status > 0
    }

    /// The URL of a command that only makes a request, such as `curl -f http://…` or `wget --spider http://…`.
    static func ofCommand(_ words: [String]) -> ProbeAddress? {
        guard let program = words.first else { return nil }
        switch SourceTree.lastPart(program) {
        case "curl": return curl(words.dropFirst())
        case "wget": return wget(words.dropFirst())
        default: return nil
        }
    }

    /// Parses a curl command. It must have `--fail`, because curl otherwise succeeds with every response.
    private static func curl(_ words: ArraySlice<String>) -> ProbeAddress? {
        let flags: Set = [
            "fail", "fail-with-body", "silent", "show-error", "location", "head", "insecure", "verbose", "ipv4",
            "globoff", "no-progress-meter", "retry-connrefused", "retry-all-errors", "compressed", "no-buffer",
        ]
        let valued: Set = [
            "output", "max-time", "connect-timeout", "retry", "retry-delay", "retry-max-time", "write-out", "url",
        ]
        guard
            let found = Options(
                words,
                flags: flags,
                valued: valued,
                letters: Set("fsSLIkv4gN"),
                valuedLetters: Set("omw")
            )
        else { return nil }
        guard found.has("fail") || found.has("fail-with-body") || found.has("f") else { return nil }
        guard let address = found.rest.first ?? found.values["url"], found.rest.count <= 1 else { return nil }
        return ProbeAddress(address)
    }

    private static func wget(_ words: ArraySlice<String>) -> ProbeAddress? {
        let flags: Set = [
            "quiet", "spider", "no-verbose", "verbose", "server-response", "no-check-certificate", "no-proxy",
            "no-cache", "inet4-only", "no-hsts", "content-on-error",
        ]
        let valued: Set = [
            "tries", "timeout", "connect-timeout", "read-timeout", "dns-timeout", "wait", "waitretry",
            "output-document", "output-file", "proxy",
        ]
        // For wget, `-nv` is a single option, not the letters n and v.
        let words = words.filter { $0 != "-nv" }
        guard
            let found = Options(
                words[...],
                flags: flags,
                valued: valued,
                letters: Set("qSv4"),
                valuedLetters: Set("tTOoYw")
            ), let address = found.rest.first, found.rest.count == 1
        else { return nil }
        return ProbeAddress(address)
    }

    /// Parses a URL; nil unless its host is this machine or container.
    init?(_ address: String) {
        var rest = address[...]
        if rest.hasPrefix("http://") { rest = rest.dropFirst("http://".count) }
        let authority = rest.utf8.prefix { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") }
        let after = String(rest[authority.endIndex...])
        var host = String(Substring(authority))
        var port = 80
        if let colon = host.utf8.lastIndex(of: UInt8(ascii: ":")), !host.hasSuffix("]") {
            guard let number = UInt16(host[host.utf8.index(after: colon)...]), number > 0 else { return nil }
            port = Int(number)
            host = String(host[..<colon])
        }
        guard ["localhost", "127.0.0.1", "0.0.0.0", "[::1]"].contains(host) else { return nil }
        guard address.utf8.allSatisfy({ (0x21...0x7e).contains($0) }) else { return nil }
        self.host = host
        self.port = port
        path = after.hasPrefix("/") ? after : "/" + after
    }
}

extension ProbeAddress {
    /// The options of a command, parsed by the rules of GNU getopt.
    private struct Options {
        private var flags: Set<String> = []
        private(set) var values: [String: String] = [:]
        private(set) var rest: [String] = []

        /// Parses the words. Nil if they contain an option that is not in these lists, because its effect is unknown.
        init?(
            _ words: ArraySlice<String>,
            flags known: Set<String>,
            valued: Set<String>,
            letters: Set<Character>,
            valuedLetters: Set<Character>
        ) {
            var words = words
            while let word = words.popFirst() {
                if word.hasPrefix("--"), word.utf8.count > 2 {
                    let parts = word.dropFirst(2).split(separator: "=", maxSplits: 1).map(String.init)
                    guard let name = parts.first else { return nil }
                    if known.contains(name), parts.count == 1 {
                        flags.insert(name)
                    } else if valued.contains(name), let value = parts.count > 1 ? parts[1] : words.popFirst() {
                        values[name] = value
                    } else {
                        return nil
                    }
                } else if word.hasPrefix("-"), word.utf8.count > 1 {
                    var rest = word.dropFirst()
                    while let letter = rest.popFirst() {
                        if letters.contains(letter) {
                            flags.insert(String(letter))
                        } else if valuedLetters.contains(letter) {
                            guard !rest.isEmpty || words.popFirst() != nil else { return nil }
                            break
                        } else {
                            return nil
                        }
                    }
                } else {
                    rest.append(word)
                }
            }
        }

        func has(_ name: String) -> Bool { flags.contains(name) }
    }
}
