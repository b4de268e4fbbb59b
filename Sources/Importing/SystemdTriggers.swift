// SPDX-License-Identifier: Apache-2.0

/// Translates the sockets, timers and paths that start a systemd service.
struct SystemdTriggers {
    let service: SystemdService

    /// The maximum number of sockets of an app.
    private static let mostSockets = 64

    func read(into program: inout ImportedProgram) {
        for unit in service.units.triggers(of: service.unit) {
            if unit.suffix == ".socket" { sockets(unit, &program) }
            if unit.suffix == ".timer" { timer(unit, &program) }
            if unit.suffix == ".path" { paths(unit, &program) }
        }
    }

    private func sockets(_ unit: SystemdUnit, _ program: inout ImportedProgram) {
        let text = SystemdText(unit, tree: service.tree)
        if unit.value("Socket", "Accept").map({ ["yes", "true", "1", "on"].contains($0.lowercased()) }) == true {
            program.cannot(
                "its socket has Accept=yes: systemd starts a process for each connection, but Torpor only one for all"
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
        var common = OrderedTable<(value: TOMLValue, entry: SystemdUnit.Entry)>()
        var addresses: [(String, String)] = []
        for entry in unit.entries where entry.section == "Socket" && !entry.value.isEmpty {
            let value = text.expanded(entry.value)
            if let kind = kinds[entry.key] {
                addresses.append((kind, value))
            } else if let name = options[entry.key] {
                common[name] = (.string(value), entry)
            } else if let name = switches[entry.key] {
                common[name] = (.boolean(["yes", "true", "1", "on"].contains(value.lowercased())), entry)
            } else if entry.key == "Backlog", let number = Int64(value) {
                common["backlog"] = (.integer(number), entry)
            } else if !["Accept", "Service"].contains(entry.key) {
                program.remark("\(entry.key)=\(value) of its socket is not translated", at: entry.line)
            }
        }
        guard !addresses.isEmpty else { return }
        if addresses.count > Self.mostSockets {
            program.remark(
                "has \(addresses.count) sockets, of which the first \(Self.mostSockets) are taken: an app can have \(Self.mostSockets)"
            )
        }
        var unused = Set(common.members.map(\.key))
        for (kind, address) in addresses.prefix(Self.mostSockets) {
            var socket: OrderedTable = [(kind, TOMLValue.string(address))]
            for (key, (value, _)) in common where Self.fits(key, kind, address) {
                // Several sockets of an app need different names, so omit a name that all would share.
                if key == "name", addresses.count > 1 { continue }
                socket[key] = value
                unused.remove(key)
            }
            program.append(to: "sockets", .table(socket))
        }
        for (key, (_, entry)) in common where unused.contains(key) {
            let reason = key == "name" ? "each of its sockets has its own name" : "it is not for that kind of socket"
            program.remark("\(entry.key) of its socket is left out: \(reason)", at: entry.line)
        }
        let installs = !service.unit.lists("Install", "WantedBy").isEmpty
        if !installs { program["launch"] = .string("on-demand") }
    }

    /// Whether a key has a meaning for this kind of socket. Other keys must be left out: systemd ignores them, but
    /// Torpor reports them as errors.
    private static func fits(_ key: String, _ kind: String, _ address: String) -> Bool {
        let isPath = address.hasPrefix("/")
        let isUnix = isPath || address.hasPrefix("@")
        let isInternet = !isUnix && !address.hasPrefix("vsock:")
        switch key {
        case "mode", "owner", "group", "directory_mode", "remove_on_stop": return isPath
        case "pass_credentials": return isUnix
        case "no_delay", "keep_alive": return isInternet && kind == "stream"
        case "broadcast": return isInternet && kind == "datagram"
        case "reuse_port", "free_bind", "transparent", "bind_to_device": return isInternet
        case "backlog": return kind != "datagram"
        case "bind_ipv6_only": return isInternet && (Int(address) != nil || address.hasPrefix("[::]:"))
        default: return true
        }
    }

    private func timer(_ unit: SystemdUnit, _ program: inout ImportedProgram) {
        let text = SystemdText(unit, tree: service.tree)
        var timer = OrderedTable<TOMLValue>()
        let calendars = unit.values("Timer", "OnCalendar").map(text.expanded)
        if calendars.count == 1 { timer["calendar"] = .string(calendars[0]) }
        if calendars.count > 1 { timer["calendar"] = .strings(calendars) }
        let times = [
            "OnBootSec": "after_boot", "OnStartupSec": "after_start", "OnUnitActiveSec": "every",
            "AccuracySec": "accuracy", "RandomizedDelaySec": "random_delay",
        ]
        for entry in unit.entries where entry.section == "Timer" && !entry.value.isEmpty {
            if let key = times[entry.key] {
                if let seconds = Amounts.systemd(entry.value), let time = Amounts.duration(seconds: seconds) {
                    if timer[key] == nil { timer[key] = .string(time) }
                } else {
                    program.remark(
                        "\(entry.key)=\(entry.value) of its timer is not a time, and is left out",
                        at: entry.line
                    )
                }
            } else if entry.key == "Persistent" {
                timer["persistent"] = .boolean(["yes", "true", "1", "on"].contains(entry.value.lowercased()))
            } else if entry.key == "OnUnitInactiveSec", timer["every"] == nil {
                if let seconds = Amounts.systemd(entry.value), let time = Amounts.duration(seconds: seconds) {
                    timer["every"] = .string(time)
                    program.remark(
                        "OnUnitInactiveSec of its timer counts from its last start, not from its last end"
                    )
                }
            } else if !["OnCalendar", "Unit"].contains(entry.key) {
                program.remark("\(entry.key)=\(entry.value) of its timer is not translated", at: entry.line)
            }
        }
        guard ["calendar", "every", "after_boot", "after_start"].contains(where: { timer[$0] != nil }) else {
            return program.remark("its timer does not say when to fire, and is left out")
        }
        program.append(to: "timers", .table(timer))
        program["launch"] = .string("on-demand")
    }

    private func paths(_ unit: SystemdUnit, _ program: inout ImportedProgram) {
        let text = SystemdText(unit, tree: service.tree)
        let keys = [
            "PathExists": "exists", "PathExistsGlob": "exists", "PathChanged": "changed", "PathModified": "modified",
            "DirectoryNotEmpty": "not_empty",
        ]
        for entry in unit.entries where entry.section == "Path" && !entry.value.isEmpty {
            if let key = keys[entry.key] {
                program.append(to: "paths", .table([(key, .string(text.expanded(entry.value)))]))
            } else if entry.key != "Unit" {
                program.remark("\(entry.key)=\(entry.value) of its path is not translated", at: entry.line)
            }
        }
        guard program["paths"] != nil else { return program.remark("its path unit names no path, and is left out") }
        program["launch"] = .string("on-demand")
    }
}
