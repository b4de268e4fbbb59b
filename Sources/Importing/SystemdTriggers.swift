/// The socket and the timer of a service of systemd.
struct SystemdTriggers {
    let service: SystemdService

    func read(into program: inout ImportedProgram) {
        let own = service.unit.name
        for unit in service.units where unit.suffix == ".socket" {
            let target = unit.value("Socket", "Service") ?? unit.name + ".service"
            if target == own + ".service" { sockets(unit, &program) }
        }
        for unit in service.units where unit.suffix == ".timer" {
            let target = unit.value("Timer", "Unit") ?? unit.name + ".service"
            if target == own + ".service" { timer(unit, &program) }
        }
    }

    private func sockets(_ unit: SystemdUnit, _ program: inout ImportedProgram) {
        let text = SystemdText(unit, variables: service.tree.variables)
        if unit.value("Socket", "Accept").map({ ["yes", "true", "1", "on"].contains($0.lowercased()) }) == true {
            program.cannot(
                "its socket has Accept=yes: systemd starts it anew for each connection, and Torpor starts it once"
            )
            return
        }
        let kinds = ["ListenStream": "stream", "ListenDatagram": "datagram", "ListenSequentialPacket": "seqpacket"]
        let options = [
            "SocketMode": "mode", "SocketUser": "owner", "SocketGroup": "group", "DirectoryMode": "directory_mode",
            "FileDescriptorName": "name", "BindToDevice": "bind_to_device", "BindIPv6Only": "bind_ipv6_only",
        ]
        let switches = [
            "ReusePort": "reuse_port", "FreeBind": "free_bind", "NoDelay": "no_delay", "KeepAlive": "keep_alive",
            "Transparent": "transparent", "Broadcast": "broadcast", "PassCredentials": "pass_credentials",
            "RemoveOnStop": "remove_on_stop",
        ]
        var common: [(String, TOMLValue)] = []
        var addresses: [(String, TOMLValue)] = []
        for entry in unit.entries where entry.section == "Socket" && !entry.value.isEmpty {
            let value = text.expanded(entry.value)
            if let kind = kinds[entry.key] {
                addresses.append((kind, .string(value)))
            } else if let name = options[entry.key] {
                common.append((name, .string(value)))
            } else if let name = switches[entry.key] {
                common.append((name, .boolean(["yes", "true", "1", "on"].contains(value.lowercased()))))
            } else if entry.key == "Backlog", let number = Int64(value) {
                common.append(("backlog", .integer(number)))
            } else if !["Accept", "Service"].contains(entry.key) {
                program.remark("\(entry.key)=\(value) of its socket is not translated")
            }
        }
        // Names are each socket's own.
        if addresses.count > 1 { common.removeAll { $0.0 == "name" } }
        guard !addresses.isEmpty else { return }
        // systemd lets stand what means nothing for a socket of its sort; Torpor does not.
        let ofPaths: Set = ["mode", "owner", "group", "directory_mode", "remove_on_stop"]
        for (kind, address) in addresses {
            let isPath = address.text.hasPrefix("\"/")
            let isUnix = isPath || address.text.hasPrefix("\"@")
            let keys = common.filter { (!ofPaths.contains($0.0) || isPath) && ($0.0 != "pass_credentials" || isUnix) }
            program.append(to: "sockets", .table([(kind, address)] + keys))
        }
        let installs = !service.unit.lists("Install", "WantedBy").isEmpty
        if !installs { program["launch"] = .string("on-demand") }
    }

    private func timer(_ unit: SystemdUnit, _ program: inout ImportedProgram) {
        let text = SystemdText(unit, variables: service.tree.variables)
        var timer: [(String, TOMLValue)] = []
        let calendars = unit.values("Timer", "OnCalendar").map(text.expanded)
        if calendars.count == 1 { timer.append(("calendar", .string(calendars[0]))) }
        if calendars.count > 1 { timer.append(("calendar", .strings(calendars))) }
        let times = [
            "OnBootSec": "after_boot", "OnStartupSec": "after_start", "OnUnitActiveSec": "every",
            "AccuracySec": "accuracy", "RandomizedDelaySec": "random_delay",
        ]
        for entry in unit.entries where entry.section == "Timer" && !entry.value.isEmpty {
            if let key = times[entry.key] {
                if let seconds = Amounts.systemd(entry.value), let time = Amounts.duration(seconds: seconds) {
                    timer.append((key, .string(time)))
                } else {
                    program.remark("\(entry.key)=\(entry.value) of its timer is no time, and is left out")
                }
            } else if entry.key == "Persistent" {
                timer.append(("persistent", .boolean(["yes", "true", "1", "on"].contains(entry.value.lowercased()))))
            } else if entry.key == "OnUnitInactiveSec", !timer.contains(where: { $0.0 == "every" }) {
                if let seconds = Amounts.systemd(entry.value), let time = Amounts.duration(seconds: seconds) {
                    timer.append(("every", .string(time)))
                    program.remark(
                        "OnUnitInactiveSec of its timer counts from its last start, and not from its last end"
                    )
                }
            } else if !["OnCalendar", "Unit"].contains(entry.key) {
                program.remark("\(entry.key)=\(entry.value) of its timer is not translated")
            }
        }
        var seen: Set<String> = []
        timer = timer.filter { seen.insert($0.0).inserted }
        guard timer.contains(where: { ["calendar", "every", "after_boot", "after_start"].contains($0.0) }) else {
            return program.remark("its timer says not when it comes, and is left out")
        }
        program.append(to: "timers", .table(timer))
        program["launch"] = .string("on-demand")
    }
}
