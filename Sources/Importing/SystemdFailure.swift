// SPDX-License-Identifier: Apache-2.0

/// Translates `OnFailure=` of a service: the commands of the units that it names become `on_failure`.
struct SystemdFailure {
    let service: SystemdService

    func read(into program: inout ImportedProgram) {
        var commands: [TOMLValue] = []
        for written in service.unit.lists("Unit", "OnFailure") {
            let name = service.text.expanded(written)
            let reason: String
            if let handler = handler(named: name) {
                if isCommand(handler) {
                    commands += translated(handler, &program)
                    continue
                }
                reason = "it is a service that keeps running"
            } else {
                reason = "\(name) is not in the same folder"
            }
            program.remark(
                "OnFailure=\(written) is not translated: \(reason); on_failure = [\"PROGRAM\"] runs a command when it "
                    + "has failed",
                at: service.unit.line("Unit", "OnFailure")
            )
        }
        if !commands.isEmpty { program["on_failure"] = .array(commands) }
    }

    /// Reads the unit of this name from the service's folder: its own file, or else its template.
    private func handler(named name: String) -> SystemdUnit? {
        guard let title = Systemd.service(name), name.hasSuffix(".service"), !name.contains("/") else { return nil }
        let folder = SourceTree.folder(service.unit.path)
        if let unit = SystemdUnit(path: folder + "/" + name, tree: service.tree) { return unit }
        guard let at = title.firstIndex(of: "@"),
            var unit = SystemdUnit(path: "\(folder)/\(title[...at]).service", tree: service.tree)
        else { return nil }
        unit.name = title
        return unit
    }

    /// Whether the unit is for a command that ends, and not for another service that replaces the failed one.
    private func isCommand(_ unit: SystemdUnit) -> Bool {
        unit.instance != nil || unit.value("Service", "Type") == "oneshot"
    }

    private func translated(_ handler: SystemdUnit, _ program: inout ImportedProgram) -> [TOMLValue] {
        let reader = SystemdService(unit: handler, units: service.units, tree: service.tree)
        let place = service.unit.line("Unit", "OnFailure")
        let user = reader.value("User") ?? "root"
        if !service.unit.isUser, user != service.value("User") ?? "root" {
            program.remark("OnFailure: its command runs as the app's user, not as \(user)", at: place)
        }
        if !handler.values("Service", "EnvironmentFile").isEmpty {
            program.remark("OnFailure: EnvironmentFile of \(handler.name).service is not translated", at: place)
        }
        let variables = reader.variables(&program).map { $0.key + "=" + $0.value }
        return reader.parsed("ExecStart", &program).map { found in
            var command = found
            if SystemdEnding.mentions(command.words, ["systemctl", "journalctl"], service.tree) {
                program.remark(
                    "OnFailure: \(command.words[0]) asks systemd, which does not know the app: TORPOR_FAILURE and "
                        + "TORPOR_LAST_OUTPUT say what happened",
                    at: place
                )
            }
            let usesEnding = SystemdEnding.isUsed(by: command.words, service.tree)
            if !variables.isEmpty { command.words = ["/usr/bin/env"] + variables + command.words }
            let words = usesEnding ? SystemdEnding.translated(command.hook) : command.hook
            // systemd has no deadline for a oneshot service, but Torpor runs few such commands at a time.
            return .table([("command", .strings(words)), ("deadline", .string("90s"))])
        }
    }
}
