/// Limits and shares of a service of systemd.
struct SystemdResources {
    let service: SystemdService

    func read(into program: inout ImportedProgram) {
        for entry in service.unit.entries where entry.section == "Service" && entry.key.hasPrefix("Limit") {
            let name = entry.key.dropFirst(5).lowercased()
            guard let value = service.value(entry.key) else { continue }
            program.set(inTable: "limits", name, Int64(value).map(TOMLValue.integer) ?? .string(value))
        }
        if let tasks = service.value("TasksMax") {
            if tasks.hasSuffix("%") {
                program.remark("TasksMax=\(tasks) is a part of the machine's, and is left out: write limits.tasks")
            } else {
                program.set(
                    inTable: "limits",
                    "tasks",
                    tasks == "infinity" ? .string("unlimited") : Int64(tasks).map(TOMLValue.integer) ?? .string(tasks)
                )
            }
        }
        if let text = service.value("MemoryMax") ?? service.value("MemoryLimit"), text != "infinity" {
            if let bytes = Amounts.bytes(text), bytes > 0 {
                program["memory_limit"] = .string(Amounts.size(bytes))
            } else {
                program.remark("MemoryMax=\(text) is no size, and is left out")
            }
        }
        var shares: [(String, TOMLValue)] = []
        if let weight = service.value("CPUWeight").flatMap({ Int64($0) }) {
            shares.append(("cpu_weight", .integer(weight)))
        }
        if let weight = service.value("IOWeight").flatMap({ Int64($0) }) {
            shares.append(("io_weight", .integer(weight)))
        }
        if let score = service.value("OOMScoreAdjust").flatMap({ Int64($0) }) {
            shares.append(("oom_score_adj", .integer(score)))
        }
        if let quota = service.value("CPUQuota") { shares.append(("cpu_max", .string(quota))) }
        if let text = service.value("MemoryHigh"), text != "infinity", let bytes = Amounts.bytes(text), bytes > 0 {
            shares.append(("memory_high", .string(Amounts.size(bytes))))
        }
        if let text = service.value("MemoryLow") ?? service.value("MemoryMin"), let bytes = Amounts.bytes(text),
            bytes > 0
        {
            shares.append(("memory_low", .string(Amounts.size(bytes))))
        }
        if !shares.isEmpty {
            program["resources"] = .table([("active", .table(shares)), ("background", .table(shares))])
        }
    }
}
