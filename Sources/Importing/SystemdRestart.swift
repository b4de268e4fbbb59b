// SPDX-License-Identifier: Apache-2.0

/// Translates `Restart=` of a systemd service and the keys that it depends on.
struct SystemdRestart {
    let service: SystemdService

    func read(into program: inout ImportedProgram) {
        let unit = service.unit
        let rule = service.value("Restart") ?? "no"
        switch rule {
        case "no": program["restart"] = .string("never")
        case "always": program["restart"] = .string("always")
        case "on-failure": program["restart"] = .string("on-failure")
        case "on-abnormal", "on-abort", "on-watchdog":
            program["restart"] = .string("on-failure")
            program.remark(
                "Restart=\(rule) is translated as on-failure, which restarts after every failure",
                at: unit.line("Service", "Restart")
            )
        default:
            program["restart"] = .string("never")
            program.remark(
                "Restart=\(rule) is not translated: it is not restarted",
                at: unit.line("Service", "Restart")
            )
        }
        success(rule, &program)
        if rule != "no" { backoff(&program) }
        stop(&program)
        if let text = service.value("WatchdogSec"), let time = service.deadline(text, "WatchdogSec", &program) {
            if time != .string("none") { program["watchdog"] = time }
        }
        if let signal = service.value("WatchdogSignal") { program["watchdog_signal"] = .string(Amounts.signal(signal)) }
        if let access = service.value("NotifyAccess") {
            program["notify_access"] = .string(access == "all" ? "all" : "main")
            if access != "all", access != "main" {
                program.remark("NotifyAccess=\(access) is taken as main", at: unit.line("Service", "NotifyAccess"))
            }
        }
    }

    /// Sets which exits count as success. These are the exits that systemd itself or the unit's `SuccessExitStatus=`
    /// counts as success, and those after which `RestartPreventExitStatus=` forbids a restart. Exits after which
    /// `RestartForceExitStatus=` demands a restart never count as success.
    private func success(_ rule: String, _ program: inout ImportedProgram) {
        let unit = service.unit
        let isOnFailure = program["restart"] == .string("on-failure")
        // systemd counts an end by one of these signals as success.
        let usual = isOnFailure && program["type"] == nil ? ["SIGHUP", "SIGINT", "SIGPIPE", "SIGTERM"] : []
        var words = usual + statuses("SuccessExitStatus", &program)
        let prevented = statuses("RestartPreventExitStatus", &program)
        let forced = statuses("RestartForceExitStatus", &program)
        if isOnFailure {
            words += prevented
            let isForced = Set(forced)
            words.removeAll { isForced.contains($0) }
            if !prevented.isEmpty {
                program.remark("RestartPreventExitStatus=\(prevented.joined(separator: " ")) counts as success")
            }
        } else if rule != "no" || !forced.isEmpty {
            for (key, found) in [("RestartPreventExitStatus", prevented), ("RestartForceExitStatus", forced)]
            where !found.isEmpty {
                program.remark(
                    "\(key)=\(found.joined(separator: " ")) is not translated",
                    at: unit.line("Service", key)
                )
            }
        }
        var seen: Set<String> = []
        let values = words.filter { seen.insert($0).inserted }.map { Int64($0).map(TOMLValue.integer) ?? .string($0) }
        if !values.isEmpty { program["success_exit_status"] = .array(values) }
    }

    /// The exit codes and signals that a key names.
    private func statuses(_ key: String, _ program: inout ImportedProgram) -> [String] {
        service.unit.lists("Service", key).compactMap { word in
            if Int64(word) != nil || word.hasPrefix("SIG") { return word }
            if word == "TEMPFAIL" { return "75" }
            program.remark("\(key)=\(word) is neither a number nor a signal, and is left out")
            return nil
        }
    }

    private func backoff(_ program: inout ImportedProgram) {
        let unit = service.unit
        let delay = service.value("RestartSec").flatMap(Amounts.systemd) ?? 0.1
        let burst = unit.value("Unit", "StartLimitBurst") ?? unit.value("Service", "StartLimitBurst")
        let interval =
            unit.value("Unit", "StartLimitIntervalSec") ?? unit.value("Unit", "StartLimitInterval")
            ?? unit.value("Service", "StartLimitInterval") ?? unit.value("Service", "StartLimitIntervalSec")
        let window = interval.flatMap { $0 == "infinity" ? 3_000_000_000 : Amounts.systemd($0) } ?? 10
        var backoff: OrderedTable<TOMLValue> = [
            ("initial", .string(Amounts.duration(seconds: delay) ?? "100ms")), ("factor", .integer(1)),
        ]
        if delay > 60 { backoff["cap"] = Amounts.duration(seconds: delay).map(TOMLValue.string) }
        let starts = burst.flatMap { Int64($0) } ?? 5
        if window > 0, starts > 0, let text = Amounts.duration(seconds: window) {
            // systemd allows this many starts within any window of this length. Do not count the first start, because
            // it may have happened long before the window.
            backoff["limit"] = .integer(min(10_000, starts))
            backoff["window"] = .string(text)
        } else {
            backoff["limit"] = .integer(10_000)
        }
        program["restart_backoff"] = .table(backoff)
    }

    private func stop(_ program: inout ImportedProgram) {
        let unit = service.unit
        if let signal = service.value("KillSignal"), Amounts.signal(signal) != "SIGTERM" {
            program["stop_signal"] = .string(Amounts.signal(signal))
        }
        switch service.value("KillMode") ?? "control-group" {
        case "control-group": break
        case "mixed": program["kill_mode"] = .string("main")
        case let mode:
            program["kill_mode"] = .string("main")
            program.remark(
                "KillMode=\(mode): processes that its main process leaves behind are ended anyway",
                at: unit.line("Service", "KillMode")
            )
        }
        let limit = service.value("TimeoutStopSec") ?? service.value("TimeoutSec") ?? "90s"
        program["grace"] = service.deadline(limit, "TimeoutStopSec", &program)
        if service.value("SendSIGKILL").map({ ["no", "false", "0", "off"].contains($0.lowercased()) }) == true {
            program["grace"] = .string("none")
        }
    }
}
