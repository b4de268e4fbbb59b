// SPDX-License-Identifier: Apache-2.0

import WireText

/// Writes the fields of a record, little endian, into memory that somebody else owns.
///
/// Records are append-only: a field never changes its place or meaning, new ones come at the end. So an older reader
/// ignores what it does not know, and a newer one finds the end where an older writer stopped (``RecordReader``).
public struct RecordWriter {
    @usableFromInline let memory: UnsafeMutableRawBufferPointer
    @usableFromInline var written = 0
    @usableFromInline var lacksRoom = false
    /// How many bytes were written.
    @inlinable public var count: Int { written }
    /// Whether a field had no room: the record is not whole.
    @inlinable public var isOverfull: Bool { lacksRoom }

    /// Writes to the beginning of `memory`.
    public init(_ memory: UnsafeMutableRawBufferPointer) { self.memory = memory }

    /// How many bytes more there is room for.
    @inlinable public var room: Int { memory.count - count }

    /// An integer.
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

    /// One byte, 0 or 1.
    @inlinable
    public mutating func put(_ flag: Bool) { put(UInt8(flag ? 1 : 0)) }

    /// Text of at most 255 bytes, cut where there is no room for more; `rest` bytes of room are left.
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

    /// A time, in nanoseconds.
    @inlinable
    public mutating func put(_ time: Duration) { put(time.nanoseconds) }

    /// A time that may be none.
    @inlinable
    public mutating func put(_ time: Duration?) { put(time?.nanoseconds ?? .min) }

    mutating func put<Value: RecordCoded>(_ value: Value) { put(value.recordCode) }

    mutating func put<Value: RecordCoded>(_ value: Value?) { put(value?.recordCode ?? .max) }

    /// A deadline.
    public mutating func put(_ deadline: Deadline?) {
        put(deadline?.kind)
        guard let deadline else { return }
        put(deadline.started)
        put(deadline.at)
    }
}

/// Reads what a ``RecordWriter`` wrote. Past the end every field reads as its default; a value that means nothing makes
/// the record invalid.
public struct RecordReader {
    private let memory: UnsafeRawBufferPointer
    private var position = 0
    /// Whether something was read that no writer of this format wrote.
    public private(set) var isInvalid = false

    /// Reads from the beginning of `memory`.
    public init(_ memory: UnsafeRawBufferPointer) { self.memory = memory }

    /// Whether the next field is past the end.
    public var isAtEnd: Bool { position >= memory.count }

    /// An integer.
    public mutating func take<Number: FixedWidthInteger>(_ type: Number.Type, or missing: Number = 0) -> Number {
        let size = MemoryLayout<Number>.size
        guard memory.count - position >= size else {
            position = memory.count
            return missing
        }
        defer { position += size }
        return Number(littleEndian: memory.loadUnaligned(fromByteOffset: position, as: Number.self))
    }

    /// One byte.
    public mutating func takeFlag() -> Bool { take(UInt8.self) != 0 }

    /// Text.
    public mutating func takeText() -> String {
        let length = Int(take(UInt8.self))
        guard length <= memory.count - position else {
            isInvalid = true
            return ""
        }
        defer { position += length }
        return String(wire: memory[position..<(position + length)])
    }

    /// A time.
    public mutating func takeTime() -> Duration { .nanoseconds(take(Int64.self)) }

    /// A time that may be none.
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

    /// A deadline.
    public mutating func takeDeadline() -> Deadline? {
        guard let kind = takeOptional(DeadlineKind.self) else { return nil }
        return Deadline(kind: kind, started: takeTime(), at: takeTime())
    }

    mutating func refuse() { isInvalid = true }
}

/// A value that records hold as its place in a list. The lists are append-only: a place never changes, and that of a
/// value which is gone stays empty (nil).
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
    /// Rounded down; bounded by ±292 years.
    @usableFromInline var nanoseconds: Int64 {
        let parts = components
        let (product, overflow) = parts.seconds.multipliedReportingOverflow(by: 1_000_000_000)
        if overflow { return parts.seconds < 0 ? .min + 1 : .max }
        return product &+ parts.attoseconds / 1_000_000_000
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
        .backgroundTime, .task,
    ]
}

extension Message: RecordCoded {
    /// Its number in records, from 0, which never changes.
    public var number: UInt8 { recordCode }

    /// The message of a number; nil where there is none.
    public init?(number: UInt8) { self.init(recordCode: number) }

    static let recordOrder: [Message?] = [
        .willFinishLaunching, .restoreState, .didFinishLaunching, .openURL, .didBecomeActive, .willResignActive,
        .didEnterBackground, .willEnterForeground, .resumed, .willTerminate, .didReceiveMemoryWarning, .taskExpiring,
        .settingsDidChange, .identityDidChange, .significantTimeChange, nil, .performFetch, .didReceiveEvent,
        .didReceiveNotification, .didReceiveRemoteNotification, nil,
        .protectedDataWillBecomeUnavailable, .protectedDataDidBecomeAvailable, .handleEventsForBackgroundTransfer,
        .transferDidFinish, .transferNeedsLogin, .sceneWillConnect, .sceneDidBecomeActive, .sceneWillResignActive,
        .sceneDidEnterBackground, .sceneWillEnterForeground, .sceneDidDisconnect, .didDiscardScenes,
    ]
}

extension TerminationReason: RecordCoded {
    /// Its number in records and for policies, from 0, which never changes.
    public var number: UInt8 { recordCode }

    static let recordOrder: [TerminationReason?] = [
        .exitSuccess, .exitFailure, .signal, .coreDump, .launchDeadline, .backgroundDeadline, .watchdog, .taskExpired,
        .lockWhileSuspending, .oomKill, .unknown, .dependencyFailed, .replaced, .memoryLimit, .unresponsive, nil,
        .wakeStorm, nil, nil, .evicted, .stopped, .exitsOnSuspend, .shutdown, .forceQuit,
        .launchFailed,
    ]
}
