import Lifecycle
import Linux
import Varlink

/// The variables that an app gets.
enum LaunchEnvironment {
    /// What speaks to torpord itself and would mislead an app.
    private static let ownVariables: Set<String> = [
        "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES",
        "RUNTIME_DIRECTORY", "STATE_DIRECTORY", "LOGS_DIRECTORY", "CONFIGURATION_DIRECTORY", "CACHE_DIRECTORY",
        "INVOCATION_ID", "JOURNAL_STREAM", "MAINPID", "SYSTEMD_EXEC_PID",
    ]

    /// The supervisor's own variables, less those that are about the supervisor.
    static func inherited(_ environment: [String]) -> [String: String] {
        var variables: [String: String] = [:]
        for entry in environment {
            guard let split = entry.firstIndex(of: "=") else { continue }
            let name = String(entry[..<split])
            guard !ownVariables.contains(name), !name.hasPrefix("TORPOR_") else { continue }
            variables[name] = String(entry[entry.index(after: split)...])
        }
        return variables
    }

    /// `TORPOR_LAUNCH_OPTIONS`.
    static func options(_ order: LaunchOrder) -> String {
        let options: JSON = [
            "reason": .string(order.reason.rawValue),
            "foreground": .bool(order.foreground),
            "incarnation": .int(Int64(order.incarnation)),
            "previous_termination": .optional(order.previousEnding?.rawValue),
            "event": .null,
            "payload": .null,
            "restored_state": .null,
        ]
        return String(decoding: options.serialised(), as: UTF8.self)
    }
}

/// Finds programs as a shell does.
enum Executable {
    static func find(_ name: String, path: String?, directory: String?) throws(LaunchTrouble) -> String {
        if name.contains("/") {
            if name.hasPrefix("/") { return name }
            return (directory ?? "") + "/" + name
        }
        var candidate: String?
        for folder in (path ?? "/usr/bin:/bin").split(separator: ":", omittingEmptySubsequences: true) {
            let full = folder + "/" + name
            if File.isExecutable(full) { return full }
            if File.exists(full) { candidate = full }
        }
        if let candidate {
            throw LaunchTrouble("could not run \(name) (exec): \(candidate) is not executable")
        }
        throw LaunchTrouble("could not run \(name) (exec): it is not on the PATH \(path ?? "")")
    }
}
