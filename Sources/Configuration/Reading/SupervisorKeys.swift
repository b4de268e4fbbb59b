// SPDX-License-Identifier: Apache-2.0

/// The readers of all keys of `[supervisor]` and `[policies.NAME]`.
enum SupervisorKeys {
    static let all: [Key<SupervisorSpecification>] = [
        Key("alerts") { context, node, supervisor in
            Read.table(context, node, AlertReader.keys, into: &supervisor.alerts)
        },
        .value("desktop_entries", \.desktopEntries, Read.boolean),
        .value("exporters", \.exporters, Read.texts),
        .value("focus", \.focus) { Read.choice($0, $1) },
        .value("gpsd", \.gpsd, LocationReader.gpsd),
        .value("history_max_age", \.historyMaxAge, Read.deadline),
        .value("history_max_count", \.historyMaxCount, Read.integer(1...10_000_000)),
        .value("history_max_size", \.historyMaxSize, Read.size),
        .value("interrupt_on", \.interruptOn, Read.choices),
        .value("keep_alive_minimum", \.keepAliveMinimum, Read.positiveDuration),
        .value("log_directory", \.logDirectory, Read.path),
        .value("log_level", \.logLevel) { Read.choice($0, $1) },
        .optional("main", \.main, Read.text),
        Key("memory") { context, node, supervisor in
            MemorySpecification.read(context, node, into: &supervisor.memory)
        },
        .value("min_free", \.minFree, FreeSpaceRule.read),
        .value("on_exit", \.onExit) { Read.choice($0, $1) },
        .value("operators", \.operators, Read.texts),
        .value("orphans", \.orphans) { Read.choice($0, $1) },
        .value("policies", \.policies, Read.texts),
        .value("policy_directory", \.policyDirectory, Read.path),
        .value("posters", \.posters, Read.texts),
        Key("protected") { context, node, supervisor in
            Read.table(context, node, ProtectionReader.supervisor, into: &supervisor.protection)
        },
        .value("readers", \.readers, Read.texts),
        .value("runtime_directory", \.runtimeDirectory, Read.path),
        .value("session", \.session, Read.session),
        .value("sleep", \.sleep, Read.boolean),
        .value("state_directory", \.stateDirectory, Read.path),
        Key("transfers") { context, node, supervisor in
            Read.table(context, node, TransferReader.supervisor, into: &supervisor.transfers)
        },
    ]

    static let policy: [Key<PolicySpecification>] = [
        .value("deadline", \.deadline, Read.policyDeadline),
        .value("isolation", \.isolation) { Read.choice($0, $1) },
        .value("mode", \.mode) { Read.choice($0, $1) },
        Key("options") { context, node, policy in
            for member in Read.members(context, node) ?? [] { policy.options[member.key] = member.node.plain }
        },
        .value("path", \.path, Read.text),
    ]
}
