// SPDX-License-Identifier: Apache-2.0

import CSystemd
import Linux
import WireText

/// systemd above this process, for what a service asks of it: what it is being stopped for, and a scope in which processes
/// live that are to outlive the service.
///
/// Questions wait for their answers, each at most two seconds: they are for the start and the end of a service.
public struct ServiceManager: Hashable, Sendable {
    /// The unit that this process belongs to, such as `torpord.service`.
    public let unit: String
    /// Whether it is a user's.
    public let isUser: Bool

    /// The service of which `process` is the main one; nil when it is none's: what belongs to another service, such as a
    /// terminal's or a runner of tests, is not to be spoken for.
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

    /// What systemd is about to do with the unit: `start`, `stop`, `restart` and so on; nil for nothing. Of a unit that is
    /// stopped by itself or by a signal it knows nothing.
    public func job() throws(ServiceManagerError) -> String? {
        let connection = try ManagerConnection(isUser: isUser)
        let path = try ManagerConnection.path(of: unit)
        return try connection.job(ofUnitAt: path).map { job throws(ServiceManagerError) in
            try connection.text(job, "Job", "JobType")
        }
    }

    // MARK: The scope

    /// The name of the scope for what this unit launches: `torpor-apps.scope` for `torpord.service`, and for an instance
    /// or a unit of another name `torpor-apps-NAME.scope`.
    public var scopeName: String {
        var name = Substring(unit.dropLast(".service".count))
        if name == "torpord" { return "torpor-apps.scope" }
        if name.hasPrefix("torpord@") { name = name.dropFirst("torpord@".count) }
        return "torpor-apps-" + name.map { $0 == "@" ? "-" : String($0) }.joined() + ".scope"
    }

    /// The cgroup of the scope, an absolute path; nil when there is no such scope now.
    public func scope() throws(ServiceManagerError) -> String? {
        try Self.group(of: scopeName, try ManagerConnection(isUser: isUser))
    }

    /// Makes the scope around a process, and returns its cgroup, an absolute path. It is in the slice
    /// of this unit, and ordered before it, so that at the machine's shutdown what is in it is left alone until this unit
    /// has stopped.
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
            // Who wants the apps stopped stops the service; what is launched into a scope that is stopping is killed.
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
                // An earlier one may be about to go.
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
