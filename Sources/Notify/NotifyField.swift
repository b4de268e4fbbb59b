// SPDX-License-Identifier: Apache-2.0

/// One assignment of a notification, of `sd_notify(3)` or of Torpor's own (docs/interfaces.md).
public enum NotifyField: Hashable, Sendable {
    /// `READY=1`: start-up, or a reload, is complete.
    case ready
    /// `RELOADING=1`: the app reloads its configuration; comes with `MONOTONIC_USEC`.
    case reloading
    /// `MONOTONIC_USEC=`: the time of the message, in microseconds of CLOCK_MONOTONIC.
    case monotonicUsec(UInt64)
    /// `STOPPING=1`: the app has begun to shut down.
    case stopping
    /// `STATUS=`: the app's status in one line.
    case status(String)
    /// `ERRNO=`: an errno that describes a failure.
    case errno(Int32)
    /// `BUSERROR=`: the D-Bus or Varlink name of a failure.
    case busError(String)
    /// `EXIT_STATUS=`: the coming exit status.
    case exitStatus(Int32)
    /// `MAINPID=`: the pid of the app's new main process.
    case mainPID(Int32)
    /// `WATCHDOG=1`: a heartbeat.
    case watchdogPing
    /// `WATCHDOG=trigger`: the app asks to be treated as hanging.
    case watchdogTrigger
    /// `WATCHDOG_USEC=`: a new watchdog timeout, in microseconds.
    case watchdogUsec(UInt64)
    /// `EXTEND_TIMEOUT_USEC=`: extends the timeout of the current state change, in microseconds from now.
    case extendTimeoutUsec(UInt64)
    /// `X_TORPOR_TASK_BEGIN=<name>`: a background task begins.
    case taskBegin(String)
    /// `X_TORPOR_TASK_END=<name>`: a background task ends.
    case taskEnd(String)
    /// `X_TORPOR_SNAPSHOT=1`: the app has new content while in the background.
    case showsNew
    /// `X_TORPOR_CONTAINER=<name> <digest>`: the container of the app runs. The signal that ends it, if its image names
    /// one, and the image's digest, if it has one.
    case containerRuns(stopSignal: Int32?, ImageDigest?)
    /// `X_TORPOR_DONE=<message>`: the app has handled a lifecycle message.
    case done(String)
    /// `FDSTORE=1`: store the descriptors of this datagram.
    case fdStore
    /// `FDSTOREREMOVE=1`: drop the stored descriptors named by `FDNAME`.
    case fdStoreRemove
    /// `FDNAME=`: the name of the descriptors, by systemd's rules.
    case fdName(String)
    /// `FDPOLL=0` (false): keep them even if their peer has closed.
    case fdPoll(Bool)
    /// `BARRIER=1`: close the accompanying descriptor once everything before it was handled.
    case barrier
    /// Anything else, unchanged.
    case unknown(key: String, value: String)
}

/// A parsed datagram: its fields in order, and a sentence for each line that could not be parsed.
public struct NotifyMessage: Hashable, Sendable {
    /// The maximum size of a datagram in bytes; systemd's limit is 4,096.
    public static let maximumLength = 65_536
    /// The maximum number of lines that are parsed.
    public static let maximumFields = 1_024
    /// Longer statuses, names and unknown values are truncated to this many bytes.
    public static let maximumText = 4_096

    /// The fields in order.
    public var fields: [NotifyField]
    /// What was wrong with it, a sentence each; the other fields are still valid.
    public var warnings: [String]

    /// Creates one from its parts.
    public init(fields: [NotifyField] = [], warnings: [String] = []) {
        self.fields = fields
        self.warnings = warnings
    }

    private static let heartbeat = Array("WATCHDOG=1".utf8)

    /// Parses a datagram. Never traps: what cannot be parsed becomes a warning.
    public init(parsing bytes: [UInt8]) {
        // By far the most frequent message.
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
    /// Whether it contains `READY=1`.
    public var ready: Bool { fields.contains(.ready) }
    /// Whether it contains `RELOADING=1`.
    public var reloading: Bool { fields.contains(.reloading) }
    /// Whether it contains `STOPPING=1`.
    public var stopping: Bool { fields.contains(.stopping) }
    /// Whether it contains `BARRIER=1`.
    public var barrier: Bool { fields.contains(.barrier) }
    /// Whether it contains `FDSTORE=1`.
    public var fdStore: Bool { fields.contains(.fdStore) }
    /// Whether it contains `FDSTOREREMOVE=1`.
    public var fdStoreRemove: Bool { fields.contains(.fdStoreRemove) }
    /// Whether it contains `WATCHDOG=1`.
    public var watchdogPing: Bool { fields.contains(.watchdogPing) }
    /// Whether it contains `WATCHDOG=trigger`.
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
    /// `FDPOLL`; true by default.
    public var fdPoll: Bool { first { if case .fdPoll(let value) = $0 { value } else { nil } } ?? true }

    /// The first occurrence of a key counts, as in systemd.
    private func first<Value>(_ pick: (NotifyField) -> Value?) -> Value? {
        for field in fields {
            if let value = pick(field) { return value }
        }
        return nil
    }
}
