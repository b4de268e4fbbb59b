// SPDX-License-Identifier: Apache-2.0

/// One assignment of a notification, as `sd_notify(3)` names them, and Torpor's own (docs/interfaces.md).
public enum NotifyField: Hashable, Sendable {
    /// `READY=1`: start-up, or a reload, is complete.
    case ready
    /// `RELOADING=1`: the configuration is being read again; `MONOTONIC_USEC` stands beside it.
    case reloading
    /// `MONOTONIC_USEC=`: CLOCK_MONOTONIC when the message was made, in microseconds.
    case monotonicUsec(UInt64)
    /// `STOPPING=1`: the app has begun to shut down.
    case stopping
    /// `STATUS=`: one line that says how the app is.
    case status(String)
    /// `ERRNO=`: the errno of a failure.
    case errno(Int32)
    /// `BUSERROR=`: the D-Bus or Varlink name of a failure.
    case busError(String)
    /// `EXIT_STATUS=`: the exit status to come.
    case exitStatus(Int32)
    /// `MAINPID=`: another process of the app is the main one now.
    case mainPID(Int32)
    /// `WATCHDOG=1`: a heartbeat.
    case watchdogPing
    /// `WATCHDOG=trigger`: the app asks to be treated as one that hangs.
    case watchdogTrigger
    /// `WATCHDOG_USEC=`: the new interval of the watchdog, in microseconds.
    case watchdogUsec(UInt64)
    /// `EXTEND_TIMEOUT_USEC=`: more time for the edge in flight, in microseconds from now.
    case extendTimeoutUsec(UInt64)
    /// `X_TORPOR_TASK_BEGIN=<name>`: a background task begins.
    case taskBegin(String)
    /// `X_TORPOR_TASK_END=<name>`: a background task is over.
    case taskEnd(String)
    /// `X_TORPOR_SNAPSHOT=1`: the app shows something new in the background.
    case showsNew
    /// `X_TORPOR_DONE=<message>`: a lifecycle message is answered.
    case done(String)
    /// `FDSTORE=1`: keep the descriptors that come with this datagram.
    case fdStore
    /// `FDSTOREREMOVE=1`: drop the kept descriptors named by `FDNAME`.
    case fdStoreRemove
    /// `FDNAME=`: the name of the descriptors; valid as systemd has it.
    case fdName(String)
    /// `FDPOLL=0` (false): keep them even when their other side has closed.
    case fdPoll(Bool)
    /// `BARRIER=1`: close the descriptor that came along once everything before it was handled.
    case barrier
    /// Anything else, kept as it came.
    case unknown(key: String, value: String)
}

/// A datagram of an app, read: its fields in order, and a sentence for each line that could not be.
public struct NotifyMessage: Hashable, Sendable {
    /// The largest datagram that is read, in bytes; systemd's own limit is 4,096.
    public static let maximumLength = 65_536
    /// More lines than this in one datagram are left unread.
    public static let maximumFields = 1_024
    /// A status, a name or an unknown value longer than this is cut, in bytes.
    public static let maximumText = 4_096

    /// What the datagram said, in order.
    public var fields: [NotifyField]
    /// What was wrong with it, a sentence each; the rest of the datagram counts all the same.
    public var warnings: [String]

    /// A message made by hand.
    public init(fields: [NotifyField] = [], warnings: [String] = []) {
        self.fields = fields
        self.warnings = warnings
    }

    private static let heartbeat = Array("WATCHDOG=1".utf8)

    /// Reads a datagram. Never traps: what cannot be read becomes a warning.
    public init(parsing bytes: [UInt8]) {
        // By far the most frequent of all.
        if bytes == Self.heartbeat {
            self.init(fields: [.watchdogPing], warnings: [])
            return
        }
        var reader = NotifyReader()
        reader.read(bytes)
        self.init(fields: reader.fields, warnings: reader.warnings)
    }
}

extension NotifyMessage {
    /// `READY=1` is in it.
    public var ready: Bool { fields.contains(.ready) }
    /// `RELOADING=1` is in it.
    public var reloading: Bool { fields.contains(.reloading) }
    /// `STOPPING=1` is in it.
    public var stopping: Bool { fields.contains(.stopping) }
    /// `BARRIER=1` is in it.
    public var barrier: Bool { fields.contains(.barrier) }
    /// `FDSTORE=1` is in it.
    public var fdStore: Bool { fields.contains(.fdStore) }
    /// `FDSTOREREMOVE=1` is in it.
    public var fdStoreRemove: Bool { fields.contains(.fdStoreRemove) }
    /// `WATCHDOG=1` is in it.
    public var watchdogPing: Bool { fields.contains(.watchdogPing) }
    /// `WATCHDOG=trigger` is in it.
    public var watchdogTrigger: Bool { fields.contains(.watchdogTrigger) }

    /// `MONOTONIC_USEC`, microseconds of CLOCK_MONOTONIC.
    public var monotonicUsec: UInt64? { first { if case .monotonicUsec(let value) = $0 { value } else { nil } } }
    /// `STATUS`; an empty one clears the last.
    public var status: String? { first { if case .status(let value) = $0 { value } else { nil } } }
    /// `ERRNO`.
    public var errno: Int32? { first { if case .errno(let value) = $0 { value } else { nil } } }
    /// `EXIT_STATUS`.
    public var exitStatus: Int32? { first { if case .exitStatus(let value) = $0 { value } else { nil } } }
    /// `MAINPID`.
    public var mainPID: Int32? { first { if case .mainPID(let value) = $0 { value } else { nil } } }
    /// `WATCHDOG_USEC`, microseconds.
    public var watchdogUsec: UInt64? { first { if case .watchdogUsec(let value) = $0 { value } else { nil } } }
    /// `EXTEND_TIMEOUT_USEC`, microseconds.
    public var extendTimeoutUsec: UInt64? {
        first { if case .extendTimeoutUsec(let value) = $0 { value } else { nil } }
    }
    /// `FDNAME`.
    public var fdName: String? { first { if case .fdName(let value) = $0 { value } else { nil } } }
    /// `FDPOLL`: false only if it was switched off.
    public var fdPoll: Bool { first { if case .fdPoll(let value) = $0 { value } else { nil } } ?? true }

    /// As systemd does: of a key that comes twice the first counts.
    private func first<Value>(_ pick: (NotifyField) -> Value?) -> Value? {
        for field in fields {
            if let value = pick(field) { return value }
        }
        return nil
    }
}
