// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import Linux
import Processes

/// The environment variables of an app.
struct LaunchEnvironment {
    /// Variables that a service manager sets for torpord itself. Apps do not inherit them, because an app would take
    /// them for its own.
    private static let ownVariables: Set<String> = [
        "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES",
        "RUNTIME_DIRECTORY", "STATE_DIRECTORY", "LOGS_DIRECTORY", "CONFIGURATION_DIRECTORY", "CACHE_DIRECTORY",
        "INVOCATION_ID", "JOURNAL_STREAM", "MAINPID", "SYSTEMD_EXEC_PID",
    ]

    /// The environment of torpord itself, which does not change while torpord runs.
    static let inherited = LaunchEnvironment(inheriting: ThisProcess.environment)

    /// The value of PATH by which programs are found, unless the app's own variables set PATH.
    static let path = inherited["PATH"] ?? ConfigurationSystem.servicePath

    private let variables: [(name: String, value: String, entry: String)]

    /// Keeps the inherited variables (`K=V`), except ``ownVariables``, names that begin with `TORPOR_`, and
    /// duplicates.
    init(inheriting environment: [String]) {
        var seen: Set<String> = []
        variables = environment.compactMap { entry in
            guard let split = entry.utf8.firstIndex(of: UInt8(ascii: "=")) else { return nil }
            let name = String(entry[..<split])
            guard !Self.ownVariables.contains(name), !name.hasPrefix("TORPOR_"), seen.insert(name).inserted else {
                return nil
            }
            return (name, String(entry[entry.utf8.index(after: split)...]), entry)
        }
    }

    /// The variables that the configuration sets for an app: those in `environment`, and those that follow from
    /// `language`.
    static func given(to specification: AppSpecification) -> [String: String] {
        var given = specification.environment
        guard let language = specification.presentation.language,
            let variables = AppPresentation.variables(ofLanguage: language)
        else { return given }
        given.merge(variables) { $1 }
        // LC_ALL and LC_MESSAGES override LANG unless they are empty (setlocale(3)). Empty them, so that inherited
        // values do not override the app's `language`.
        for name in ["LC_ALL", "LC_MESSAGES"] where given[name] == nil && inherited[name] != nil { given[name] = "" }
        return given
    }

    subscript(name: String) -> String? { variables.first { $0.name == name }?.value }

    /// All variables as `K=V`, including those in `others`, which replace inherited variables of the same name.
    func entries(adding others: [String: String]) -> [String] {
        var entries: [String] = []
        entries.reserveCapacity(variables.count + others.count)
        for variable in variables where others[variable.name] == nil { entries.append(variable.entry) }
        for (name, value) in others { entries.append(Self.entry(name, value)) }
        return entries
    }

    /// `NAME=VALUE`, in one allocation: each launch makes a dozen of these.
    private static func entry(_ name: String, _ value: String) -> String {
        var (name, value) = (name, value)
        return name.withUTF8 { name in
            value.withUTF8 { value in
                String(unsafeUninitializedCapacity: name.count + 1 + value.count) { buffer in
                    _ = buffer.update(fromContentsOf: name)
                    buffer[name.count] = UInt8(ascii: "=")
                    _ = buffer[(name.count + 1)...].update(fromContentsOf: value)
                    return name.count + 1 + value.count
                }
            }
        }
    }
}

/// Finds programs on the PATH, by the same rules as a shell.
enum Executable {
    /// - Parameter rights: the rights of the app's user. Programs that this user cannot reach are skipped, because the
    ///   user may have set the PATH.
    static func find(
        _ name: String,
        path: String?,
        directory: String?,
        as rights: FileRights? = nil
    ) throws(LaunchError) -> String {
        if name.contains("/") {
            if name.hasPrefix("/") { return name }
            return (directory == "/" ? "" : directory ?? "") + "/" + name
        }
        var candidate: String?
        for folder in (path ?? "/usr/bin:/bin").split(separator: ":", omittingEmptySubsequences: true) {
            let full = folder + "/" + name
            guard (try? FileRights.status(full, as: rights)) != nil else { continue }
            if File.isExecutable(full) { return full }
            candidate = full
        }
        if let candidate {
            throw LaunchError(
                "could not run \(name) (exec): \(candidate) is not executable: it needs chmod +x",
                LaunchFailure(stage: .exec, errno: .permissionDenied, executable: candidate)
            )
        }
        throw LaunchError(
            "could not run \(name) (exec): it is not on the PATH \(path ?? "")",
            LaunchFailure(stage: .exec, errno: .noSuchFileOrDirectory, executable: name)
        )
    }
}
