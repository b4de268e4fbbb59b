/// `Restart=` and what ends a service of systemd.
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
                line: unit.line("Service", "Restart")
            )
        default:
            program["restart"] = .string("never")
            program.remark(
                "Restart=\(rule) is not translated, it is not restarted",
                line: unit.line("Service", "Restart")
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
        }
        for key in ["RestartPreventExitStatus", "RestartForceExitStatus"] where unit.value("Service", key) != nil {
            program.remark(
                "\(key)=\(unit.value("Service", key) ?? "") is not translated",
                line: unit.line("Service", key)
            )
        }
    }

    private func success(_ rule: String, _ program: inout ImportedProgram) {
        let words = service.unit.lists("Service", "SuccessExitStatus")
        // Signals that systemd itself counts as a good end.
        var values: [TOMLValue] =
            rule == "on-failure" && program["type"] == nil
            ? ["SIGHUP", "SIGINT", "SIGPIPE", "SIGTERM"].map(TOMLValue.string) : []
        let names: [String: Int64] = ["TEMPFAIL": 75, "SIGTERM": 143]
        for word in words {
            if let code = Int64(word) {
                values.append(.integer(code))
            } else if word == "TEMPFAIL", let code = names[word] {
                values.append(.integer(code))
            } else if word.hasPrefix("SIG") {
                if !values.contains(.string(word)) { values.append(.string(word)) }
            } else {
                program.remark("SuccessExitStatus=\(word) is no number or signal, and is left out")
            }
        }
        if !values.isEmpty, rule != "no" || !words.isEmpty { program["success_exit_status"] = .array(values) }
    }

    private func backoff(_ program: inout ImportedProgram) {
        let unit = service.unit
        let delay = service.value("RestartSec").flatMap(Amounts.systemd) ?? 0.1
        let burst = unit.value("Unit", "StartLimitBurst") ?? unit.value("Service", "StartLimitBurst")
        let interval =
            unit.value("Unit", "StartLimitIntervalSec") ?? unit.value("Unit", "StartLimitInterval")
            ?? unit.value("Service", "StartLimitInterval") ?? unit.value("Service", "StartLimitIntervalSec")
        let window = interval.flatMap { $0 == "infinity" ? 3_000_000_000 : Amounts.systemd($0) } ?? 10
        var backoff: [(String, TOMLValue)] = [
            ("initial", .string(Amounts.duration(seconds: delay) ?? "100ms")), ("factor", .integer(1)),
        ]
        if delay > 60, let cap = Amounts.duration(seconds: delay) { backoff.append(("cap", .string(cap))) }
        if window > 0, let text = Amounts.duration(seconds: window) {
            // systemd counts the first start too.
            let limit = max(0, (burst.flatMap { Int64($0) } ?? 5) - 1)
            backoff.append(("limit", .integer(min(10_000, limit))))
            backoff.append(("window", .string(text)))
        } else {
            backoff.append(("limit", .integer(10_000)))
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
                "KillMode=\(mode): what its main process leaves is ended all the same",
                line: unit.line("Service", "KillMode")
            )
        }
        let limit = service.value("TimeoutStopSec") ?? service.value("TimeoutSec") ?? "90s"
        program["grace"] = service.deadline(limit, "TimeoutStopSec", &program)
        if service.value("SendSIGKILL").map({ ["no", "false", "0", "off"].contains($0.lowercased()) }) == true {
            program["grace"] = .string("none")
        }
    }
}
