// SPDX-License-Identifier: Apache-2.0

/// For each key of `[supervisor]` and `[policies.NAME]`, when a change of the key takes effect for a running
/// supervisor. A test checks that each key of `SupervisorKeys` is listed.
enum SupervisorKeyEffects {
    static let all: [ComparedKey<SupervisorSpecification>] =
        [
            .table("alerts", \.alerts, .live, AlertReader.members(of:)),
            .value("desktop_entries", \.desktopEntries, .live),
            .value("focus", \.focus, .live),
            .value("exporters", \.exporters, .live),
            .value("gpsd", \.gpsd, .live),
            .value("history_max_age", \.historyMaxAge, .live),
            .value("history_max_count", \.historyMaxCount, .live),
            .table("history_max_size", \.historyMaxSize, .live, AppKeyEffects.size),
            .value("interrupt_on", \.interruptOn, .live),
            .value("keep_alive_minimum", \.keepAliveMinimum, .live),
            .value("log_level", \.logLevel, .live),
            .value("main", \.main, .live),
            .table("memory", \.memory, .live, MemorySpecification.members),
            .table("min_free", \.minFree, .live, \.written),
            .value("on_exit", \.onExit, .live),
            .value("operators", \.operators, .live),
            .value("posters", \.posters, .live),
            .value("orphans", \.orphans, .live),
            .value("policies", \.policies, .live),
            .table("protected", \.protection, .live, ProtectionReader.members(of:)),
            .value("readers", \.readers, .live),
            .value("session", \.session, .live),
            .value("sleep", \.sleep, .live),
            .table("transfers", \.transfers, .live, TransferReader.members(of:)),
        ] + directories

    /// The keys of directories. A change takes effect only when the supervisor restarts, because a running supervisor
    /// has sockets, logs and state in these directories, and apps know the paths.
    static let directories = directoryPaths.map { name, path in
        ComparedKey<SupervisorSpecification>.value(name, path, .supervisor)
    }

    private static let directoryPaths: [(String, any WritableKeyPath<SupervisorSpecification, String> & Sendable)] = [
        ("log_directory", \.logDirectory), ("policy_directory", \.policyDirectory),
        ("runtime_directory", \.runtimeDirectory), ("state_directory", \.stateDirectory),
    ]

    /// Sets the directory that belongs to this key, such as `state_directory`. Does nothing for other keys.
    static func setDirectory(_ key: String, _ path: String, _ specification: inout SupervisorSpecification) {
        for (name, keyPath) in directoryPaths where name == key { specification[keyPath: keyPath] = path }
    }

    static let policy: [ComparedKey<PolicySpecification>] = [
        .value("deadline", \.deadline, .live),
        .value("isolation", \.isolation, .live),
        .value("mode", \.mode, .live),
        .table("options", \.options, .live) { $0.mapValues(Write.value) },
        .value("path", \.path, .live),
    ]
}
