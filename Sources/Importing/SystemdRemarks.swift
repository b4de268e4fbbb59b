/// What of a unit is told and not translated.
enum SystemdRemarks {
    /// Keys that are read elsewhere.
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
    /// Keys that lose nothing, with the ones that only count where systemd does.
    private static let idle: Set = [
        "RemainAfterExit", "GuessMainPID", "SyslogIdentifier", "SyslogFacility", "Slice", "Delegate", "PIDFile",
        "UtmpIdentifier", "TTYVTDisallocate", "TTYVHangup", "TTYReset", "TTYPath", "IgnoreSIGPIPE", "CPUAccounting",
        "MemoryAccounting", "TasksAccounting", "IOAccounting", "BlockIOAccounting", "PermissionsStartOnly",
        "LogRateLimitIntervalSec", "LogRateLimitBurst",
    ]
    /// Folders that systemd makes, and below what.
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

    static func add(_ unit: SystemdUnit, _ program: inout ImportedProgram) {
        var sandbox: [String] = []
        for entry in unit.entries
        where entry.section == "Service" && !known.contains(entry.key) && !idle.contains(entry.key) {
            let (key, value) = (entry.key, entry.value)
            if key.hasPrefix("Limit") || key.hasPrefix("X-") || value.isEmpty { continue }
            if let folder = folders[key] {
                let paths = value.split(separator: " ").map { folder + "/" + $0 }.joined(separator: ", ")
                program.remark("\(key) is not translated: \(paths) must be there, and be its user's", line: entry.line)
            } else if folders.keys.contains(where: { key.hasPrefix($0) }) {
                continue
            } else if sandboxes.contains(where: { key.hasPrefix($0) }) {
                if !sandbox.contains(key) { sandbox.append(key) }
            } else {
                program.remark("\(key)=\(value) is not translated", line: entry.line)
            }
        }
        if !sandbox.isEmpty {
            program.remark(
                "runs with all that its user may: \(sandbox.joined(separator: ", ")) \(sandbox.count == 1 ? "is" : "are") not translated"
            )
        }
        let quiet: Set = [
            "Description", "Documentation", "After", "Before", "Wants", "Requires", "BindsTo", "Requisite", "PartOf",
            "Conflicts", "Upholds", "StartLimitBurst", "StartLimitInterval", "StartLimitIntervalSec",
            "DefaultDependencies", "SourcePath", "CollectMode",
        ]
        for entry in unit.entries where entry.section == "Unit" && !quiet.contains(entry.key) && !entry.value.isEmpty {
            if entry.key.hasPrefix("X-") { continue }
            program.remark("\(entry.key)=\(entry.value) is not translated", line: entry.line)
        }
        for entry in unit.entries
        where !["Unit", "Service", "Install"].contains(entry.section) && !entry.section.hasPrefix("X-") {
            program.remark("\(entry.key) of the section [\(entry.section)] is not translated", line: entry.line)
        }
    }
}
