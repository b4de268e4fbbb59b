// SPDX-License-Identifier: Apache-2.0

public import Linux
import WireText

/// Identifies a process of this boot by pid and start time, because a pid alone may be reused.
public struct Identity: Hashable, Sendable {
    /// The pid.
    public let pid: Int32
    /// Start time in clock ticks since boot (`/proc/PID/stat`).
    public let startTime: UInt64

    /// Creates an identity from known values.
    public init(pid: Int32, startTime: UInt64) {
        self.pid = pid
        self.startTime = startTime
    }

    /// The identity of the process that has this pid now. Throws ESRCH or ENOENT if there is none.
    public init(of pid: Int32) throws(Errno) { self.init(try ProcFS.stat(pid)) }

    init(_ stat: ProcessStat) { self.init(pid: stat.pid, startTime: stat.startTime) }

    /// Opens a pidfd for exactly this process. Throws ESRCH if the process has ended, even if its pid was reused: this
    /// function checks the start time after it has opened the pidfd.
    public func open() throws(Errno) -> Descriptor {
        let descriptor = try Pidfd.open(pid)
        do throws(Errno) {
            if try ProcFS.stat(pid).startTime == startTime { return descriptor }
        } catch {
            if !error.isGone { throw error }
        }
        throw .noSuchProcess
    }
}

/// A tag in a process's initial environment that says which app the process belongs to: `TORPOR_APP` and
/// `TORPOR_INCARNATION`. `TORPOR_MANAGER_SOCKET` in the same environment identifies the supervisor.
public struct AppTag: Hashable, Sendable {
    /// The name of the app.
    public let app: String
    /// The number of the app's incarnation.
    public let incarnation: UInt32

    /// The incarnation number of a companion: a process that torpor-keeper launches beside an app, and that keeps
    /// running when torpord ends.
    public static let companion: UInt32 = 0

    /// Creates a tag from its parts.
    public init(app: String, incarnation: UInt32) {
        self.app = app
        self.incarnation = incarnation
    }

    /// The tag of a process. It is nil if the process has none, if its environment cannot be read, or if its
    /// supervisor has another control socket than `manager`.
    public init?(of pid: Int32, manager: String? = nil) {
        var isHelper = false
        self.init(of: pid, manager: manager, isHelper: &isHelper)
    }

    /// The environment variable that marks commands that torpord runs for an app (hooks, probes). These commands also
    /// have the app's tag.
    public static let helperVariable = "TORPOR_HELPER"

    /// The tag of a process. Sets `isHelper` to true for a command that torpord runs for the app, and for the command's
    /// children.
    init?(of pid: Int32, manager: String?, isHelper: inout Bool) {
        guard let tag = try? Self.read(of: pid, manager: manager, isHelper: &isHelper) else { return nil }
        self = tag
    }

    /// The tag of a process; nil if it has none. Throws if the process's environment cannot be read.
    static func read(of pid: Int32, manager: String?, isHelper: inout Bool) throws(Errno) -> AppTag? {
        let bytes = try File.read("/proc/\(pid)/environ", limit: 1 << 22)
        var app: String?
        var incarnation: UInt32?
        var itsManager: String?
        // Not by split(): a torpord that starts reads the environments of all processes, and few have a tag.
        var rest = bytes[...]
        while let first = rest.first {
            let entry = rest.prefix { $0 != 0 }
            rest = rest.dropFirst(entry.count + 1)
            guard first == Self.prefix[0], entry.starts(with: Self.prefix) else { continue }
            let text = String(wire: entry)
            if text.hasPrefix("TORPOR_APP=") { app = String(text.dropFirst(11)) }
            if text.hasPrefix("TORPOR_INCARNATION=") { incarnation = UInt32(text.dropFirst(19)) }
            if text.hasPrefix(Self.helperVariable + "=") { isHelper = true }
            if text.hasPrefix("TORPOR_MANAGER_SOCKET=") { itsManager = String(text.dropFirst(22)) }
        }
        guard let app, let incarnation, manager == nil || manager == itsManager else { return nil }
        return AppTag(app: app, incarnation: incarnation)
    }

    private static let prefix = Array("TORPOR_".utf8)
}

extension Errno {
    /// Whether the error may only mean that torpord or the machine is short of descriptors or memory.
    package var isShortage: Bool {
        self == .tooManyOpenFiles || self == .tooManyOpenFilesInSystem || self == .noMemory || self == .ioError
    }
}
