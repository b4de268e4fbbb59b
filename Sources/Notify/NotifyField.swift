// SPDX-License-Identifier: Apache-2.0

/// One line of a notification datagram, either of `sd_notify(3)` or Torpor's own (docs/interfaces.md).
public enum NotifyField: Hashable, Sendable {
    /// `READY=1`: the app has started, or has completed a reload.
    case ready
    /// `RELOADING=1`: the app reloads its configuration; comes with `MONOTONIC_USEC`.
    case reloading
    /// `MONOTONIC_USEC=`: when the message was sent, in microseconds of CLOCK_MONOTONIC.
    case monotonicUsec(UInt64)
    /// `STOPPING=1`: the app has begun to shut down.
    case stopping
    /// `STATUS=`: the status of the app, in one line.
    case status(String)
    /// `ERRNO=`: the errno of a failure.
    case errno(Int32)
    /// `BUSERROR=`: the D-Bus or Varlink name of a failure.
    case busError(String)
    /// `EXIT_STATUS=`: the status with which the app is about to exit.
    case exitStatus(Int32)
    /// `MAINPID=`: the pid of the app's new main process.
    case mainPID(Int32)
    /// `WATCHDOG=1`: a heartbeat.
    case watchdogPing
    /// `WATCHDOG=trigger`: the app asks to be treated as if it had missed a heartbeat.
    case watchdogTrigger
    /// `WATCHDOG_USEC=`: a new watchdog interval, in microseconds.
    case watchdogUsec(UInt64)
    /// `EXTEND_TIMEOUT_USEC=`: extends the deadline of the current state change, in microseconds from now.
    case extendTimeoutUsec(UInt64)
    /// `X_TORPOR_TASK_BEGIN=<name>`: a background task begins.
    case taskBegin(String)
    /// `X_TORPOR_TASK_END=<name>`: a background task ends.
    case taskEnd(String)
    /// `X_TORPOR_SNAPSHOT=1`: the app shows something new while it is in the background.
    case showsNew
    /// `X_TORPOR_CONTAINER=<signal> <digest>`: the app's container runs. `stopSignal` is the signal that the image
    /// wants for stopping; the digest is that of the image. Each is nil if the datagram lacks it.
    case containerRuns(stopSignal: Int32?, ImageDigest?)
    /// `X_TORPOR_DONE=<message>`: the app has handled this lifecycle message.
    case done(String)
    /// `FDSTORE=1`: store the descriptors that came with this datagram.
    case fdStore
    /// `FDSTOREREMOVE=1`: drop the stored descriptors named by `FDNAME`.
    case fdStoreRemove
    /// `FDNAME=`: the name of the descriptors, which systemd's rules must allow.
    case fdName(String)
    /// `FDPOLL=0` (false): keep the descriptors even if their peer has closed.
    case fdPoll(Bool)
    /// `BARRIER=1`: close the descriptor that came with this datagram once all earlier datagrams were handled.
    case barrier
    /// Any other line, unchanged.
    case unknown(key: String, value: String)
}

/// A parsed datagram: its fields in order, and a warning for each line that could not be parsed.
public struct NotifyMessage: Hashable, Sendable {
    /// The largest datagram, in bytes; systemd's limit is 4,096.
    public static let maximumLength = 65_536
    /// The most lines that are parsed.
    public static let maximumFields = 1_024
    /// The most bytes of a status, name or unknown value; a longer text is truncated.
    public static let maximumText = 4_096

    /// The fields in the order of the datagram.
    public var fields: [NotifyField]
    /// What was wrong with the datagram, one sentence each. Lines that are not named here are valid.
    public var warnings: [String]

    /// Creates a message from its parts.
    public init(fields: [NotifyField] = [], warnings: [String] = []) {
        self.fields = fields
        self.warnings = warnings
    }

    private static let heartbeat = Array("WATCHDOG=1".utf8)

    /// Parses a datagram. It never traps: what cannot be parsed becomes a warning.
    public init(parsing bytes: [UInt8]) {
        // A heartbeat is by far the most frequent message, so it is not parsed.
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
    /// Whether the message contains `READY=1`.
    public var ready: Bool { fields.contains(.ready) }
    /// Whether the message contains `RELOADING=1`.
    public var reloading: Bool { fields.contains(.reloading) }
    /// Whether the message contains `STOPPING=1`.
    public var stopping: Bool { fields.contains(.stopping) }
    /// Whether the message contains `BARRIER=1`.
    public var barrier: Bool { fields.contains(.barrier) }
    /// Whether the message contains `FDSTORE=1`.
    public var fdStore: Bool { fields.contains(.fdStore) }
    /// Whether the message contains `FDSTOREREMOVE=1`.
    public var fdStoreRemove: Bool { fields.contains(.fdStoreRemove) }
    /// Whether the message contains `WATCHDOG=1`.
    public var watchdogPing: Bool { fields.contains(.watchdogPing) }
    /// Whether the message contains `WATCHDOG=trigger`.
    public var watchdogTrigger: Bool { fields.contains(.watchdogTrigger) }

    /// The value of `MONOTONIC_USEC`, in microseconds of CLOCK_MONOTONIC; nil if the message has none.
    public var monotonicUsec: UInt64? { first { if case .monotonicUsec(let value) = $0 { value } else { nil } } }
    /// The value of `STATUS`; nil if the message has none. An empty value clears the app's last status.
    public var status: String? { first { if case .status(let value) = $0 { value } else { nil } } }
    /// The value of `ERRNO`; nil if the message has none.
    public var errno: Int32? { first { if case .errno(let value) = $0 { value } else { nil } } }
    /// The value of `EXIT_STATUS`; nil if the message has none.
    public var exitStatus: Int32? { first { if case .exitStatus(let value) = $0 { value } else { nil } } }
    /// The value of `MAINPID`; nil if the message has none.
    public var mainPID: Int32? { first { if case .mainPID(let value) = $0 { value } else { nil } } }
    /// The value of `WATCHDOG_USEC`, in microseconds; nil if the message has none.
    public var watchdogUsec: UInt64? { first { if case .watchdogUsec(let value) = $0 { value } else { nil } } }
    /// The value of `EXTEND_TIMEOUT_USEC`, in microseconds; nil if the message has none.
    public var extendTimeoutUsec: UInt64? {
        first { if case .extendTimeoutUsec(let value) = $0 { value } else { nil } }
    }
    /// The value of `FDNAME`; nil if the message has none.
    public var fdName: String? { first { if case .fdName(let value) = $0 { value } else { nil } } }
    /// The value of `FDPOLL`; true if the message has none.
    public var fdPoll: Bool { first { if case .fdPoll(let value) = $0 { value } else { nil } } ?? true }

    /// The first value that `pick` finds. If a datagram has several fields with the same key, only the first of them
    /// has an effect, as in systemd.
    private func first<Value>(_ pick: (NotifyField) -> Value?) -> Value? {
        for field in fields {
            if let value = pick(field) { return value }
        }
        return nil
    }
}
