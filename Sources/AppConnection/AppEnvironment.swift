// SPDX-License-Identifier: Apache-2.0

public import Linux
public import Varlink

/// What a supervisor tells a process of an app by its environment.
public struct AppEnvironment: Sendable {
    /// The app's name; nil when no supervisor started this.
    public let app: String?
    /// The app's own socket.
    public let socket: String?
    /// Why it was launched: an object.
    public let options: JSON
    /// Where it may keep files.
    public let stateDirectory: String?
    /// Where sd_notify speaks to.
    public let notifySocket: String?
    /// How often a heartbeat is due, when this process is to send it.
    public let watchdog: Duration?

    /// That of this process; `read` is for tests.
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
