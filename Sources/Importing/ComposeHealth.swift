// SPDX-License-Identifier: Apache-2.0

/// `healthcheck` of a service, which becomes `ready`.
struct ComposeHealth {
    let node: DataNode?
    let folder: String

    func read(into program: inout ImportedProgram) {
        guard let node, !node.isNull, node["disable"]?.flag != true else { return }
        guard let test = node["test"] else {
            program.remark("healthcheck has no test of its own, and the image's is not known", line: node.line)
            return
        }
        var words: [String]
        if let list = test.list?.compactMap(\.text), let kind = list.first {
            switch kind {
            case "NONE": return
            case "CMD": words = Array(list.dropFirst())
            case "CMD-SHELL": words = ["/bin/sh", "-c", list.dropFirst().joined(separator: " ")]
            default:
                program.remark(
                    "healthcheck begins with \(quoted(kind)), which is neither CMD nor CMD-SHELL, and is left out",
                    line: test.line
                )
                return
            }
        } else if let text = test.text {
            words = ["/bin/sh", "-c", text]
        } else {
            words = []
        }
        guard let first = words.first, !first.isEmpty, words != ["/bin/sh", "-c", ""] else {
            program.remark("healthcheck has nothing to run, and is left out", line: test.line)
            return
        }
        let container = Container(program)
        let isLine = words.count == 3 && words[0] == "/bin/sh" && words[1] == "-c"
        if container == nil, isLine, ShellWords.need(words[2]) == .none,
            let plain = ShellWords.split(words[2]),
            !plain.isEmpty,
            ShellWords.assignment(plain[0]) == nil
        {
            words = plain
        }
        var ready = OrderedTable<TOMLValue>()
        if let container {
            if let plain = isLine ? ShellWords.split(words[2]) : words,
                let address = Self.address(plain).flatMap(container.published)
            {
                ready["http"] = .string(address)
            } else if let name = container.name {
                ready["command"] = .strings(["podman", "exec", name] + words)
            } else {
                program.remark("healthcheck is left out: its instances have different containers", line: test.line)
                return
            }
        } else if let address = Self.address(words) {
            ready["http"] = .string(address)
        } else {
            ready["command"] = .strings(words)
        }
        let interval = seconds("interval", 30, &program)
        let timeout = seconds("timeout", 30, &program)
        let retries = node["retries"]?.integer ?? 3
        let begin = seconds("start_period", 0, &program)
        ready["interval"] = .string(Amounts.duration(seconds: max(0.001, min(interval, 1))) ?? "1s")
        ready["timeout"] = .string(Amounts.duration(seconds: max(0.001, timeout)) ?? "30s")
        program["ready"] = .table(ready)
        if let own = node["start_interval"], !own.isNull {
            program.remark(
                "healthcheck.start_interval is left out: the check runs at least once a second",
                line: own.line
            )
        }
        // It counts as unhealthy after so many failures behind the period in which none count.
        let whole = begin + Double(max(1, min(retries, 10_000))) * (interval + timeout)
        program["launch_deadline"] = Amounts.duration(seconds: max(1, whole.rounded())).map(TOMLValue.string)
        program.remark(
            "healthcheck only decides when it is ready: a later failure restarts nothing (as in compose)",
            line: test.line
        )
    }

    /// What a check of a container needs to know of it.
    private struct Container {
        /// Its name for podman; nil where there are several.
        let name: String?
        private let ports: [String]

        /// Nil for a program of this machine.
        init?(_ program: ImportedProgram) {
            guard case .table(let table) = program["container"] else { return nil }
            if case .string(let name) = table["name"] {
                self.name = name
            } else {
                name = program["instances"] == nil ? "torpor-" + Names.valid(program.name) : nil
            }
            var ports: [String] = []
            if case .array(let elements) = table["ports"] {
                for case .string(let text) in elements { ports.append(text) }
            }
            self.ports = ports
        }

        /// The address outside of one inside, where its port is published.
        func published(_ address: String) -> String? {
            let rest = address.dropFirst("http://".count)
            let authority = rest.prefix { $0 != "/" }
            let parts = authority.split(separator: ":")
            guard let host = parts.first, ["localhost", "127.0.0.1"].contains(host), parts.count <= 2 else {
                return nil
            }
            let inside = parts.count == 2 ? String(parts[1]) : "80"
            for port in ports {
                let fields = port.split(separator: ":").map(String.init)
                guard fields.count >= 2, fields[fields.count - 1] == inside,
                    let outside = UInt16(fields[fields.count - 2])
                else { continue }
                let path = rest.dropFirst(authority.count)
                return "http://127.0.0.1:\(outside)" + (path.isEmpty ? "/" : path)
            }
            return nil
        }
    }

    private func seconds(_ key: String, _ usual: Double, _ program: inout ImportedProgram) -> Double {
        guard let text = node?[key]?.text, !text.isEmpty else { return usual }
        if let seconds = Amounts.compose(text) { return seconds }
        program.remark("healthcheck.\(key) = \(quoted(text)) is not a duration, and is left out")
        return usual
    }

    /// The address of a plain `curl -f http://…` or `wget --spider http://…`.
    private static func address(_ words: [String]) -> String? {
        guard let program = words.first, ["curl", "wget"].contains(SourceTree.lastPart(program)) else { return nil }
        let options: Set = [
            "-f", "--fail", "-s", "--silent", "-S", "-sf", "-fs", "-fsS", "-sS", "-q", "--quiet", "--spider", "-sSf",
            "--no-verbose", "-nv",
        ]
        let rest = words.dropFirst().filter { !options.contains($0) }
        // Without -f any answer is good enough for curl.
        let fails =
            SourceTree.lastPart(program) == "wget"
            || words.contains { $0 == "--fail" || ($0.hasPrefix("-") && !$0.hasPrefix("--") && $0.contains("f")) }
        guard rest.count == 1, let address = rest.first, address.hasPrefix("http://"), fails else { return nil }
        return address
    }
}
