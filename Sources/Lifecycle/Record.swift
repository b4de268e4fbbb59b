// SPDX-License-Identifier: Apache-2.0

import WireText

/// Writes the fields of a record (the stored state of an app), little endian, into memory that the caller owns.
///
/// Records are append-only: a field never changes its place or meaning, and new fields come at the end. An older reader
/// ignores fields that it does not know. A newer reader uses defaults for fields that an older writer did not write.
public struct RecordWriter {
    @usableFromInline let memory: UnsafeMutableRawBufferPointer
    @usableFromInline var written = 0
    @usableFromInline var lacksRoom = false
    /// The number of bytes written.
    @inlinable public var count: Int { written }
    /// Whether a field did not fit: the record is incomplete.
    @inlinable public var isOverfull: Bool { lacksRoom }

    /// Writes to the beginning of `memory`.
    public init(_ memory: UnsafeMutableRawBufferPointer) { self.memory = memory }

    /// The number of bytes that still fit.
    @inlinable public var room: Int { memory.count - count }

    /// Writes an integer.
    @inlinable
    public mutating func put<Number: FixedWidthInteger>(_ number: Number) {
        let size = MemoryLayout<Number>.size
        guard room >= size else {
            lacksRoom = true
            return
        }
        memory.storeBytes(of: number.littleEndian, toByteOffset: count, as: Number.self)
        written += size
    }

    /// Writes a flag as one byte, 0 or 1.
    @inlinable
    public mutating func put(_ flag: Bool) { put(UInt8(flag ? 1 : 0)) }

    /// Writes text of at most 255 bytes. Text that does not fit is cut, so that `rest` bytes stay free for later
    /// fields.
    public mutating func put(_ text: String, leaving rest: Int = 0) {
        var text = text
        text.withUTF8 { bytes in
            let length = max(0, min(bytes.count, 255, room - 1 - rest))
            put(UInt8(length))
            guard !isOverfull else { return }
            UnsafeMutableRawBufferPointer(rebasing: memory[count...]).copyMemory(
                from: UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(bytes)[..<length])
            )
            written += length
        }
    }

    /// Writes a time, in nanoseconds.
    @inlinable
    public mutating func put(_ time: Duration) { put(time.nanoseconds) }

    /// Writes a time or nil.
    @inlinable
    public mutating func put(_ time: Duration?) { put(time?.nanoseconds ?? .min) }

    mutating func put<Value: RecordCoded>(_ value: Value) { put(value.recordCode) }

    mutating func put<Value: RecordCoded>(_ value: Value?) { put(value?.recordCode ?? .max) }

    /// Writes a deadline or nil.
    public mutating func put(_ deadline: Deadline?) {
        put(deadline?.kind)
        guard let deadline else { return }
        put(deadline.started)
        put(deadline.at)
    }
}

/// Reads the fields that a ``RecordWriter`` wrote. Every field past the end of the record reads as its default. A field
/// with a meaningless value makes the record invalid.
public struct RecordReader {
    private let memory: UnsafeRawBufferPointer
    private var position = 0
    /// Whether a field had a value that no writer of this format writes.
    public private(set) var isInvalid = false

    /// Reads from the beginning of `memory`.
    public init(_ memory: UnsafeRawBufferPointer) { self.memory = memory }

    /// Whether the next field is past the end.
    public var isAtEnd: Bool { position >= memory.count }

    /// Reads an integer.
    public mutating func take<Number: FixedWidthInteger>(_ type: Number.Type, or missing: Number = 0) -> Number {
        let size = MemoryLayout<Number>.size
        guard memory.count - position >= size else {
            position = memory.count
            return missing
        }
        defer { position += size }
        return Number(littleEndian: memory.loadUnaligned(fromByteOffset: position, as: Number.self))
    }

    /// Reads one byte as a flag.
    public mutating func takeFlag() -> Bool { take(UInt8.self) != 0 }

    /// Reads text.
    public mutating func takeText() -> String {
        let length = Int(take(UInt8.self))
        guard length <= memory.count - position else {
            isInvalid = true
            return ""
        }
        defer { position += length }
        return String(wire: memory[position..<(position + length)])
    }

    /// Reads a time.
    public mutating func takeTime() -> Duration { .nanoseconds(take(Int64.self)) }

    /// Reads a time or nil.
    public mutating func takeOptionalTime() -> Duration? {
        let value = take(Int64.self, or: .min)
        return value == .min ? nil : .nanoseconds(value)
    }

    mutating func take<Value: RecordCoded>(_ type: Value.Type, or missing: Value) -> Value {
        takeOptional(type) ?? missing
    }

    mutating func takeOptional<Value: RecordCoded>(_ type: Value.Type) -> Value? {
        let code = take(UInt8.self, or: .max)
        if code == .max { return nil }
        guard let value = Value(recordCode: code) else {
            isInvalid = true
            return nil
        }
        return value
    }

    /// Reads a deadline or nil.
    public mutating func takeDeadline() -> Deadline? {
        guard let kind = takeOptional(DeadlineKind.self) else { return nil }
        return Deadline(kind: kind, started: takeTime(), at: takeTime())
    }

    mutating func refuse() { isInvalid = true }
}

/// A value that records store as its index in a list. The list is append-only: an index never changes, and the place
/// of a removed value stays empty (nil).
protocol RecordCoded: Equatable {
    static var recordOrder: [Self?] { get }
}

extension RecordCoded {
    var recordCode: UInt8 {
        guard let index = Self.recordOrder.firstIndex(of: self) else { preconditionFailure("\(self) has no place") }
        return UInt8(index)
    }

    init?(recordCode: UInt8) {
        guard Int(recordCode) < Self.recordOrder.count, let value = Self.recordOrder[Int(recordCode)] else {
            return nil
        }
        self = value
    }
}

extension Duration {
    /// The duration in nanoseconds, rounded toward zero and limited to ±292 years.
    @usableFromInline var nanoseconds: Int64 {
        // `components` takes ten times as long as this division.
        max(.min + 1, Int64(clamping: attoseconds / 1_000_000_000))
    }
}

extension AppState: RecordCoded {
    static let recordOrder: [AppState?] = [.notRunning, .inactive, .active, .background, .suspended]
}

extension Goal: RecordCoded {
    static let recordOrder: [Goal?] = [.notRunning, .inactive, .active, .background, .suspended]
}

extension Transition: RecordCoded {
    static let recordOrder: [Transition?] = [
        .launching, .activating, .deactivating, .enteringBackground, .enteringForeground, .suspending, .resuming,
        .terminating,
    ]
}

extension Readiness: RecordCoded {
    static let recordOrder: [Readiness?] = [.exec, .notify, .probe, .delegate]
}

extension LaunchReason: RecordCoded {
    static let recordOrder: [LaunchReason?] = [.user, .boot, .restart, .dependency, .event, .policy]
}

extension DeadlineKind: RecordCoded {
    static let recordOrder: [DeadlineKind?] = [
        .launch, .transition, .background, .suspend, .willTerminate, .grace, .kill, .restart, .watchdog,
        .backgroundTime, .task, .message,
    ]
}

extension Message: RecordCoded {
    /// The number of the message in records, from 0. No version of torpord changes it.
    public var number: UInt8 { recordCode }

    /// The message with that number; nil if there is none.
    public init?(number: UInt8) { self.init(recordCode: number) }

    static let recordOrder: [Message?] = [
        .willFinishLaunching, .restoreState, .didFinishLaunching, .openURL, .didBecomeActive, .willResignActive,
        .didEnterBackground, .willEnterForeground, .resumed, .willTerminate, .didReceiveMemoryWarning, .taskExpiring,
        .settingsDidChange, .identityDidChange, .significantTimeChange, nil, .performFetch, .didReceiveEvent,
        .didReceiveNotification, .didReceiveRemoteNotification, nil,
        .protectedDataWillBecomeUnavailable, .protectedDataDidBecomeAvailable, .handleEventsForBackgroundTransfer,
        .transferDidFinish, .transferNeedsLogin, .sceneWillConnect, .sceneDidBecomeActive, .sceneWillResignActive,
        .sceneDidEnterBackground, .sceneWillEnterForeground, .sceneDidDisconnect, .didDiscardScenes,
        .didReceiveLocalNotification, .refresh, .willContinueActivity, .continueActivity, .didFailToContinueActivity,
        .activityWasContinued,
    ]
}

extension TerminationReason: RecordCoded {
    /// The number of the termination reason in records and for policies, from 0. No version of torpord changes it.
    public var number: UInt8 { recordCode }

    static let recordOrder: [TerminationReason?] = [
        .exitSuccess, .exitFailure, .signal, .coreDump, .launchDeadline, .backgroundDeadline, .watchdog, .taskExpired,
        .lockWhileSuspending, .oomKill, .unknown, .dependencyFailed, .replaced, .memoryLimit, .unresponsive, nil,
        .wakeStorm, nil, nil, .evicted, .stopped, .exitsOnSuspend, .shutdown, .forceQuit,
        .launchFailed, .permissionChanged, .gpuInBackground, .protectedDataOpen,
        .noPurposeString,
    ]
}
