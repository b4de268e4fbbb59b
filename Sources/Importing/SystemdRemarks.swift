// SPDX-License-Identifier: Apache-2.0

/// Adds remarks about the keys of a unit that are not translated.
struct SystemdRemarks {
    let unit: SystemdUnit
    let text: SystemdText
    /// The sections that other code translates, so that their keys get no remark.
    var own: Set<String> = []

    /// Keys of `[Service]` that other code translates.
    private static let known: Set = [
        "Type", "ExecStart", "ExecStartPre", "ExecStartPost", "ExecCondition", "ExecStop", "ExecStopPost", "ExecReload",
        "Environment", "EnvironmentFile", "PassEnvironment", "UnsetEnvironment", "WorkingDirectory", "User", "Group",
        "SupplementaryGroups", "UMask", "Nice", "Restart", "RestartSec", "TimeoutStartSec", "TimeoutStopSec",
        "TimeoutSec", "KillSignal", "KillMode", "SendSIGKILL", "WatchdogSec", "WatchdogSignal", "SuccessExitStatus",
        "NotifyAccess", "RestartPreventExitStatus", "RestartForceExitStatus", "StartLimitBurst", "StartLimitInterval",
        "StartLimitIntervalSec", "TasksMax", "MemoryMax", "MemoryLimit", "MemoryHigh", "MemoryLow", "MemoryMin",
        "CPUWeight", "CPUQuota", "IOWeight", "OOMScoreAdjust", "StandardOutput", "StandardError", "StandardInput",
        "BusName",
    ]
    private static let process = "the main process is the one that Torpor starts, and its children are in its cgroup"
    private static let journal = "the log of an app has its name and timestamps, and no rate limit"
    private static let terminal = "an app has no terminal"
    private static let cgroup = "an app has its own cgroup, with everything that the kernel can account"
    /// Keys of `[Service]` that have a meaning only under systemd, each with the reason.
    private static let idle: [String: String] = [
        "GuessMainPID": process, "PIDFile": process, "RemainAfterExit": "a oneshot is done when it has exited with 0",
        "SyslogIdentifier": journal, "SyslogFacility": journal, "SyslogLevel": journal, "SyslogLevelPrefix": journal,
        "LogRateLimitIntervalSec": journal, "LogRateLimitBurst": journal, "LogLevelMax": journal,
        "LogExtraFields": journal, "LogNamespace": journal, "LogFilterPatterns": journal, "UtmpIdentifier": terminal,
        "UtmpMode": terminal, "TTYVTDisallocate": terminal, "TTYVHangup": terminal, "TTYReset": terminal,
        "TTYPath": terminal, "TTYRows": terminal, "TTYColumns": terminal, "Slice": cgroup, "Delegate": cgroup,
        "DelegateSubgroup": cgroup, "CPUAccounting": cgroup, "MemoryAccounting": cgroup, "TasksAccounting": cgroup,
        "IOAccounting": cgroup, "BlockIOAccounting": cgroup, "IPAccounting": cgroup, "DisableControllers": cgroup,
        "IgnoreSIGPIPE": "an app starts with the default action for SIGPIPE",
        "PermissionsStartOnly": "all commands run as the app's user",
    ]
    /// Keys that name folders which systemd creates, each with the parent folder.
    private static let folders = [
        "RuntimeDirectory": "/run", "StateDirectory": "/var/lib", "CacheDirectory": "/var/cache",
        "LogsDirectory": "/var/log", "ConfigurationDirectory": "/etc",
    ]
    private static let sandboxes = [
        "Private", "Protect", "Restrict", "ReadOnly", "ReadWrite", "Inaccessible", "Bind", "SystemCall", "Capability",
        "Ambient", "NoNewPrivileges", "LockPersonality", "MemoryDenyWriteExecute", "Device", "RemoveIPC", "Secure",
        "ProcSubset", "TemporaryFileSystem", "IPAddress", "NoExecPaths", "ExecPaths", "MountFlags", "MountAPIVFS",
        "UMaskFor", "KeyringMode", "Personality", "SELinux", "AppArmor",
    ]
    /// Keys of `[Unit]` that other code translates.
    private static let knownOfUnit: Set = [
        "Description", "After", "Before", "Wants", "Requires", "BindsTo", "Requisite", "PartOf", "Conflicts",
        "OnFailure", "Upholds", "StartLimitBurst", "StartLimitInterval", "StartLimitIntervalSec",
    ]
    /// Keys of `[Unit]` and `[Install]` that have a meaning only under systemd, each with the reason.
    private static let idleOfUnit: [String: String] = [
        "Documentation": "Torpor does not show it", "DefaultDependencies": "torpord is started when the machine is up",
        "SourcePath": "Torpor does not show it", "CollectMode": "an app that failed stays in the list",
        "Alias": "an app has one name", "Also": "all apps of the configuration are loaded",
    ]
    private static let knownOfInstall: Set = ["WantedBy", "RequiredBy", "UpheldBy", "DefaultInstance"]

    func add(to program: inout ImportedProgram) {
        var sandbox = OrderedTable<Void>()
        var leftOut = LeftOutKeys()
        for entry in unit.entries where !entry.key.hasPrefix("X-") && !entry.section.hasPrefix("X-") {
            if entry.value.isEmpty { continue }
            switch entry.section {
            case let section where own.contains(section): break
            case "Service": service(entry, &sandbox, &leftOut, &program)
            case "Unit", "Install":
                let isIdle = entry.key == "DefaultInstance" && unit.instance == nil
                let isKnown = entry.section == "Unit" ? Self.knownOfUnit : Self.knownOfInstall
                if let reason = isIdle ? "it is not a template" : Self.idleOfUnit[entry.key] {
                    leftOut.add(entry.key, because: reason, at: entry.line)
                } else if !isKnown.contains(entry.key) {
                    program.remark("\(entry.key)=\(entry.value) is not translated", at: entry.line)
                }
            default:
                program.remark("\(entry.key) of the section [\(entry.section)] is not translated", at: entry.line)
            }
            specifiers(entry, &program)
        }
        if !sandbox.isEmpty {
            let keys = sandbox.members.map(\.key)
            program.remark(
                "runs with all rights of its user: \(keys.joined(separator: ", ")) \(keys.count == 1 ? "is" : "are") "
                    + "not translated"
            )
        }
        program.remark(leftOut)
    }

    private func service(
        _ entry: SystemdUnit.Entry,
        _ sandbox: inout OrderedTable<Void>,
        _ leftOut: inout LeftOutKeys,
        _ program: inout ImportedProgram
    ) {
        let (key, value) = (entry.key, entry.value)
        if Self.known.contains(key) || key.hasPrefix("Limit") { return }
        if let reason = Self.idle[key] {
            leftOut.add(key, because: reason, at: entry.line)
        } else if let folder = Self.folders[key] {
            let paths = value.split(separator: " ").map { folder + "/" + $0 }.joined(separator: ", ")
            program.remark("\(key) is not translated: \(paths) must exist and belong to its user", at: entry.line)
        } else if Self.folders.keys.contains(where: { key.hasPrefix($0) }) {
            leftOut.add(key, because: "Torpor creates no folder for it", at: entry.line)
        } else if Self.sandboxes.contains(where: { key.hasPrefix($0) }) {
            sandbox[key] = ()
        } else {
            program.remark("\(key)=\(value) is not translated", at: entry.line)
        }
    }

    /// Adds remarks about specifiers (`%h`): the import inserts their current values, and some values are not known
    /// here.
    private func specifiers(_ entry: SystemdUnit.Entry, _ program: inout ImportedProgram) {
        for name in SystemdText.specifiers(in: entry.value) {
            guard let value = text.specifiers[name] else {
                program.remark("%\(name) of \(entry.key) is not translated, and stays as it is", at: entry.line)
                continue
            }
            if SystemdText.ofMachine.contains(name) {
                program.remark(
                    "%\(name) of \(entry.key) becomes \(quoted(value)), its value at the import",
                    at: entry.line
                )
            }
        }
    }
}
