// SPDX-License-Identifier: Apache-2.0

public import Linux
import WireText

/// One process of this boot: a number alone is given to another process one day, number and start time are not.
public struct Identity: Hashable, Sendable {
    /// The number.
    public let pid: Int32
    /// When it started, clock ticks since boot (`/proc/PID/stat`).
    public let startTime: UInt64

    /// An identity that was read somewhere.
    public init(pid: Int32, startTime: UInt64) {
        self.pid = pid
        self.startTime = startTime
    }

    /// The process that has this number now.
    public init(of pid: Int32) throws(Errno) { self.init(try ProcFS.stat(pid)) }

    init(_ stat: ProcessStat) { self.init(pid: stat.pid, startTime: stat.startTime) }

    /// A pidfd for exactly this process. ESRCH when it is gone, also when its number is another's by now: the number
    /// is opened first and looked at afterwards, so that both mean the same process.
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

/// What marks a process as an app's: `TORPOR_APP` and `TORPOR_INCARNATION` in the environment it was started with.
/// `TORPOR_MANAGER_SOCKET` says which supervisor's.
public struct AppTag: Hashable, Sendable {
    /// The app.
    public let app: String
    /// The incarnation.
    public let incarnation: UInt32

    /// The number of no run, under which the keeper launches what works for an app beside it and outlives torpord.
    public static let companion: UInt32 = 0

    /// A tag.
    public init(app: String, incarnation: UInt32) {
        self.app = app
        self.incarnation = incarnation
    }

    /// The tag of a process; nil when it has none, its environment cannot be read, or it is another supervisor's than
    /// the one whose control socket is at `manager`.
    public init?(of pid: Int32, manager: String? = nil) {
        var isHelper = false
        self.init(of: pid, manager: manager, isHelper: &isHelper)
    }

    /// The variable that a command which runs for an app has beside the app's own: a hook, a probe.
    public static let helperVariable = "TORPOR_HELPER"

    /// Also tells whether it is a command that runs for the app, or was started by one.
    init?(of pid: Int32, manager: String?, isHelper: inout Bool) {
        guard let tag = try? Self.read(of: pid, manager: manager, isHelper: &isHelper) else { return nil }
        self = tag
    }

    /// The same, with the reason why the environment cannot be read.
    static func read(of pid: Int32, manager: String?, isHelper: inout Bool) throws(Errno) -> AppTag? {
        let bytes = try File.read("/proc/\(pid)/environ", limit: 1 << 22)
        var app: String?
        var incarnation: UInt32?
        var itsManager: String?
        for entry in bytes.split(separator: 0) where entry.starts(with: Self.prefix) {
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
    /// It says nothing of what was asked about: torpord, or the machine, is short of descriptors or memory.
    package var isShortage: Bool {
        self == .tooManyOpenFiles || self == .tooManyOpenFilesInSystem || self == .noMemory || self == .ioError
    }
}
