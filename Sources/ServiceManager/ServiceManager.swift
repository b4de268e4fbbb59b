// SPDX-License-Identifier: Apache-2.0

import CSystemd
import Linux
import WireText

/// The systemd instance that manages this process, to which a service may send requests: to learn why the service is
/// being stopped, and to create a scope for processes that must outlive the service.
///
/// Requests block for up to two seconds each: use them at the start and the end of a service only.
public struct ServiceManager: Hashable, Sendable {
    /// The unit of this process, such as `torpord.service`.
    public let unit: String
    /// Whether the unit belongs to a user's systemd instance.
    public let isUser: Bool

    /// The service whose main process is `process`; nil if there is none. A process in another service's cgroup, such
    /// as a terminal's or a test runner's, must not act for that service.
    public init?(main process: Int32) throws(ServiceManagerError) {
        if let unit = Self.name(sd_pid_get_user_unit), unit.hasSuffix(".service") {
            self.unit = unit
            isUser = true
        } else if let unit = Self.name(sd_pid_get_unit), unit.hasSuffix(".service") {
            self.unit = unit
            isUser = false
        } else {
            return nil
        }
        let path = try ManagerConnection.path(of: unit)
        let main = try ManagerConnection(isUser: isUser).number(path, "Service", "MainPID")
        guard main == UInt32(bitPattern: process) else { return nil }
    }

    private static func name(
        _ find: (pid_t, UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?) -> Int32
    ) -> String? {
        var found: UnsafeMutablePointer<CChar>?
        guard find(0, &found) >= 0, let found else { return nil }
        defer { Memory.free(found) }
        return String(terminatedWire: found)
    }

    /// The pending job of the unit: `start`, `stop`, `restart` and so on; nil if there is none. A unit that stops by
    /// itself or by a signal has no job.
    public func job() throws(ServiceManagerError) -> String? {
        let connection = try ManagerConnection(isUser: isUser)
        let path = try ManagerConnection.path(of: unit)
        return try connection.job(ofUnitAt: path).map { job throws(ServiceManagerError) in
            try connection.text(job, "Job", "JobType")
        }
    }

    /// Whether systemd is ending all its units: the machine shuts down, or the user's systemd instance ends.
    public func isEnding() throws(ServiceManagerError) -> Bool {
        try ManagerConnection(isUser: isUser).text("/org/freedesktop/systemd1", "Manager", "SystemState") == "stopping"
    }

    // MARK: The scope

    /// The name of the scope for this unit's apps: `torpor-apps.scope` for `torpord.service`; for an instance or a
    /// unit with another name, `torpor-apps-NAME.scope`.
    public var scopeName: String {
        var name = Substring(unit.dropLast(".service".count))
        if name == "torpord" { return "torpor-apps.scope" }
        if name.hasPrefix("torpord@") { name = name.dropFirst("torpord@".count) }
        return "torpor-apps-" + name.map { $0 == "@" ? "-" : String($0) }.joined() + ".scope"
    }

    /// The absolute path of the scope's cgroup; nil if the scope does not exist.
    public func scope() throws(ServiceManagerError) -> String? {
        try Self.group(of: scopeName, try ManagerConnection(isUser: isUser))
    }

    /// Creates the scope around a process, and returns the absolute path of its cgroup. The scope is in this unit's
    /// slice and ordered before this unit, so that at shutdown the scope's processes are left alone until this unit has
    /// stopped.
    public func makeScope(around process: Int32) throws(ServiceManagerError) -> String {
        let connection = try ManagerConnection(isUser: isUser)
        let name = scopeName
        let slice = try connection.text(try ManagerConnection.path(of: unit), "Service", "Slice")
        let properties: [(String, ManagerConnection.Value)] = [
            ("Description", .text("Apps of \(unit)")),
            ("Slice", .text(slice)),
            ("PIDs", .processes([UInt32(process)])),
            ("Delegate", .boolean(true)),
            ("Before", .texts([unit])),
            ("TasksMax", .number(.max)),
            ("CollectMode", .text("inactive-or-failed")),
            // Refuse to stop the scope by itself: a process that is launched into a stopping scope is killed. To stop
            // the apps, stop the service.
            ("RefuseManualStop", .boolean(true)),
        ]
        let end = Clock.monotonic() + ManagerConnection.patience
        var isAskedFor = false
        while true {
            do throws(ServiceManagerError) {
                if !isAskedFor { try connection.startTransient(name, properties) }
                isAskedFor = true
                if let group = try Self.group(of: name, connection) { return group }
            } catch {
                // An earlier scope of this name may not be completely removed yet: retry.
                guard !isAskedFor, Clock.monotonic() < end else { throw error }
            }
            guard Clock.monotonic() < end else { throw ServiceManagerError("\(name) does not come up") }
            ThisProcess.sleep(.milliseconds(2))
        }
    }

    private static func group(
        of unit: String,
        _ connection: ManagerConnection
    ) throws(ServiceManagerError) -> String? {
        let path = try ManagerConnection.path(of: unit)
        guard try connection.text(path, "Unit", "ActiveState") == "active" else { return nil }
        let group = try connection.text(path, "Scope", "ControlGroup")
        guard !group.isEmpty, let mount = Cgroup.mount else { return nil }
        return mount + group
    }
}
