// SPDX-License-Identifier: Apache-2.0

/// Translates the `healthcheck` of a service to `ready` and `health`.
struct ComposeHealth {
    let node: DataNode?
    let folder: String
    /// How remarks call the health check: the name of its key.
    var title = "healthcheck"
    /// Whether the app is terminated when the check fails too often. If not, only the app's launch waits for the
    /// check.
    var ends = false

    func read(into program: inout ImportedProgram) {
        guard let node, !node.isNull, node["disable"]?.flag != true else { return }
        guard let test = node["test"] else {
            program.remark("\(title) has no test of its own, and the image's is not known", at: node.place)
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
                    "\(title) begins with \(quoted(kind)), which is neither CMD nor CMD-SHELL, and is left out",
                    at: test.place
                )
                return
            }
        } else if let text = test.text {
            words = ["/bin/sh", "-c", text]
        } else {
            words = []
        }
        guard let first = words.first, !first.isEmpty, words != ["/bin/sh", "-c", ""] else {
            program.remark("\(title) has nothing to run, and is left out", at: test.place)
            return
        }
        let isLine = words.count == 3 && words[0] == "/bin/sh" && words[1] == "-c"
        let address = isLine ? ProbeAddress.ofLine(words[2]) : ProbeAddress.ofCommand(words)
        var ready = OrderedTable<TOMLValue>()
        if case .table(let container) = program["container"] {
            if let address = address.flatMap({ PublishedPorts(container).outside($0) }) {
                ready["http"] = .string(address)
            } else if ends {
                inside(container, words, &program)
            } else if program["instances"] == nil {
                program.probe = words
            } else {
                program.remark("\(title) is left out: its instances have different containers", at: test.place)
                return
            }
        } else if let address {
            ready["http"] = .string(address.text)
        } else {
            ready["command"] = .strings(isLine ? Self.plain(words[2]) ?? words : words)
        }
        let interval = seconds("interval", 30, &program)
        let timeout = seconds("timeout", 30, &program)
        let retries = node["retries"]?.integer ?? 3
        let begin = seconds("start_period", 0, &program)
        ready["interval"] = .string(Amounts.duration(seconds: max(0.001, min(interval, 1))) ?? "1s")
        ready["timeout"] = .string(Amounts.duration(seconds: max(0.001, timeout)) ?? "30s")
        let isInside = ready["http"] == nil && ends && program["container"] != nil
        if !isInside { program["ready"] = .table(ready) }
        if let own = node["start_interval"], !own.isNull {
            program.remark(
                "\(title).start_interval is left out: the check runs at least once a second",
                at: own.place
            )
        }
        // The time after which compose counts a service as unhealthy: the start period, in which failures do not count,
        // plus the time of the configured number of failures.
        let whole = begin + Double(max(1, min(retries, 10_000))) * (interval + timeout)
        program["launch_deadline"] = Amounts.duration(seconds: max(1, whole.rounded())).map(TOMLValue.string)
        if ends, !isInside {
            program["health"] = .table(health(ready.filtered { ["http", "command"].contains($0.key) }, &program))
        }
        if ends { return }
        program.remark(
            "\(title) only decides when it is ready: a later failure restarts nothing",
            at: test.place
        )
    }

    /// Translates the check to `container.health`, from which torpord also learns that the app is ready.
    private func inside(
        _ container: OrderedTable<TOMLValue>,
        _ words: [String],
        _ program: inout ImportedProgram
    ) {
        var container = container
        container["health"] = .table(health([("command", TOMLValue.strings(words))], &program))
        program["container"] = .table(container)
    }

    private func health(
        _ check: OrderedTable<TOMLValue>,
        _ program: inout ImportedProgram
    ) -> OrderedTable<TOMLValue> {
        var health = check
        health["interval"] = .string(Amounts.duration(seconds: max(0.001, seconds("interval", 30, &program))) ?? "30s")
        health["timeout"] = .string(Amounts.duration(seconds: max(0.001, seconds("timeout", 30, &program))) ?? "30s")
        health["failures"] = .integer(Int64(max(1, min(node?["retries"]?.integer ?? 3, 1000))))
        return health
    }

    /// The words of a shell line that can be executed without a shell; nil for other lines.
    private static func plain(_ line: String) -> [String]? {
        guard ShellWords.need(line) == .none, let words = ShellWords.split(line), let first = words.first,
            ShellWords.assignment(first) == nil
        else { return nil }
        return words
    }

    private func seconds(_ key: String, _ usual: Double, _ program: inout ImportedProgram) -> Double {
        guard let text = node?[key]?.text, !text.isEmpty else { return usual }
        if let seconds = Amounts.compose(text) { return seconds }
        program.remark("\(title).\(key) = \(quoted(text)) is not a duration, and is left out")
        return usual
    }
}
