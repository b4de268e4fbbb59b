// SPDX-License-Identifier: Apache-2.0

public import Linux
public import Varlink

/// What a supervisor passes to an app's process in its environment.
public struct AppEnvironment: Sendable {
    /// The app's name; nil without a supervisor.
    public let app: String?
    /// The app's own socket.
    public let socket: String?
    /// Why the app was launched, as a JSON object.
    public let options: JSON
    /// The directory for the app's files.
    public let stateDirectory: String?
    /// The socket of sd_notify(3).
    public let notifySocket: String?
    /// The interval of heartbeats, if this process has to send them.
    public let watchdog: Duration?

    /// The environment of this process; tests pass another `read`.
    public init(_ read: (String) -> String? = { ThisProcess.environment($0) }) {
        func value(_ name: String) -> String? { read(name).flatMap { $0.isEmpty ? nil : $0 } }
        app = value("TORPOR_APP")
        socket = value("TORPOR_APP_SOCKET")
        options = value("TORPOR_LAUNCH_OPTIONS").flatMap { try? JSON.parse($0) } ?? .emptyObject
        stateDirectory = value("TORPOR_STATE_DIRECTORY")
        notifySocket = value("NOTIFY_SOCKET")
        let isMeant = value("WATCHDOG_PID").map { $0 == "\(ThisProcess.pid)" } ?? true
        let period = value("WATCHDOG_USEC").flatMap { Int64($0) }
        watchdog = period.flatMap { isMeant && $0 > 0 ? .microseconds($0) : nil }
    }
}
