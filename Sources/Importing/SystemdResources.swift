// SPDX-License-Identifier: Apache-2.0

/// Translates the resource limits and shares of a systemd service.
struct SystemdResources {
    let service: SystemdService

    func read(into program: inout ImportedProgram) {
        for entry in service.unit.entries where entry.section == "Service" && entry.key.hasPrefix("Limit") {
            limit(entry, &program)
        }
        if let tasks = service.value("TasksMax") {
            if tasks.hasSuffix("%") {
                told("TasksMax", "is a share of the machine's limit, and is left out: write limits.tasks", &program)
            } else {
                program.set(
                    inTable: "limits",
                    "tasks",
                    tasks == "infinity" ? .string("unlimited") : Int64(tasks).map(TOMLValue.integer) ?? .string(tasks)
                )
            }
        }
        for key in ["MemoryMax", "MemoryLimit"] {
            guard let bytes = bytes(key, &program), program["memory_limit"] == nil else { continue }
            program["memory_limit"] = .string(Amounts.size(bytes))
        }
        var shares = OrderedTable<TOMLValue>()
        for (key, name) in [
            ("CPUWeight", "cpu_weight"), ("IOWeight", "io_weight"), ("OOMScoreAdjust", "oom_score_adj"),
        ] {
            shares[name] = service.integer(key, &program).map(TOMLValue.integer)
        }
        shares["cpu_max"] = service.value("CPUQuota").map(TOMLValue.string)
        for (key, name) in [("MemoryHigh", "memory_high"), ("MemoryLow", "memory_low"), ("MemoryMin", "memory_low")] {
            guard let bytes = bytes(key, &program) else { continue }
            if shares[name] == nil {
                shares[name] = .string(Amounts.size(bytes))
            } else {
                told(key, "is left out: \(name) is already set", &program)
            }
        }
        if !shares.isEmpty {
            let states = ["active", "inactive", "background"]
            program["resources"] = .table(OrderedTable(states.map { ($0, .table(shares)) }))
        }
    }

    private func told(_ key: String, _ what: String, _ program: inout ImportedProgram) {
        program.remark(
            "\(key)=\(service.value(key) ?? "") \(what)",
            at: service.unit.line("Service", key)
        )
    }

    /// A size in bytes; nil for `infinity`, which means no limit.
    private func bytes(_ key: String, _ program: inout ImportedProgram) -> UInt64? {
        guard let text = service.value(key), text != "infinity" else { return nil }
        if let bytes = Amounts.bytes(text), bytes > 0 { return bytes }
        told(key, "is not a size, and is left out", &program)
        return nil
    }

    /// Limits that are times, with the unit of each limit, in seconds.
    private static let times = ["cpu": 1.0, "rttime": 1e-6]
    private static let names: Set = [
        "cpu", "fsize", "data", "stack", "core", "rss", "nofile", "as", "nproc", "memlock", "locks", "sigpending",
        "msgqueue", "nice", "rtprio", "rttime",
    ]

    private func limit(_ entry: SystemdUnit.Entry, _ program: inout ImportedProgram) {
        let name = entry.key.dropFirst(5).lowercased()
        guard Self.names.contains(name), !entry.value.isEmpty else {
            if !entry.value.isEmpty { told(entry.key, "is not a limit, and is left out", &program) }
            return
        }
        let bounds = service.text.expanded(entry.value).split(separator: ":").map { bound(String($0), of: name) }
        let found = bounds.compactMap { $0 }
        guard (1...2).contains(found.count), found.count == bounds.count else {
            return told(entry.key, "is not a limit, and is left out", &program)
        }
        let text = found.joined(separator: ":")
        program.set(inTable: "limits", name, Int64(text).map(TOMLValue.integer) ?? .string(text))
    }

    /// The soft or hard value of a limit, in the limit's own unit; nil if the text is not valid.
    private func bound(_ text: String, of name: String) -> String? {
        if text == "infinity" { return "unlimited" }
        if let number = UInt64(text) { return "\(number)" }
        if let unit = Self.times[name] {
            return Amounts.systemd(text).flatMap { $0 / unit < 9e18 ? "\(Int64(($0 / unit).rounded(.up)))" : nil }
        }
        return Amounts.bytes(text).map { "\($0)" }
    }
}
