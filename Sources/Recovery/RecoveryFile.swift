// SPDX-License-Identifier: Apache-2.0

public import Linux
import WireText

/// What each torpord stores for the next one: a record for each app, in a mapped file in the runtime directory, which
/// is updated in place.
///
/// A file is used instead of anonymous memory, so that it can be found by its path even if the keeper has died too. The
/// runtime directory is on a tmpfs, so writing never waits for a disk, and nothing survives a reboot. The owner of the
/// file is the part of torpord that uses this class and defines what its values mean.
///
/// Layout, in the machine's byte order. One page of header:
///
///      0   8  "TORPREC1"
///      8   4  version of the records
///     12   4  bytes of a slot
///     16   4  number of slots
///     20   4  flags, for the owner
///     24   8  number of the newest event
///     32  36  boot id
///     72   4  pid of the keeper that launched the apps
///     76   4  a number for the owner
///     80   8  when process 1 started, in clock ticks after boot; 0 if unknown
///     88   4  another number for the owner; 0 from older versions
///     96   8  a third number for the owner; 0 from older versions
///    128   4  the record under way: 1 + the number of its slot, 0 if there is none
///    132   4  the bits of actions (as at 68) that its slot gets together with the record
///    136   …  the record
///
/// Then slots, each with
///
///      0  64  name of the app, NUL at its end; empty: the slot is free
///     64   4  whether there is a record: 0 or 1
///     68   4  actions that are not carried out yet (bits of the owner)
///     72   4  an amendment of the record: a byte of the owner, above the low 24 bits of the record's checksum. It
///             counts only together with the record that has this checksum; 0: there is none
///     80   …  the record: 4 bytes checksum, 4 bytes length, the bytes
///
/// A record is first written to the header. It becomes valid when the header names its slot, and is then copied to the
/// slot. So if the process is killed at any moment, either the old record or the new one is valid, and the next process
/// that opens the file completes the copy.
///
/// History of versions
///   1  each slot has two records, and 1 or 2 at 64 says which is valid; none is in the header. Not converted to 2.
///   2  as above
public final class RecoveryFile {
    /// The newest version of the records. A file with a newer version is refused.
    public static let version: UInt32 = 2
    /// The longest name of an app, in bytes.
    public static let longestName = 63

    private static let magic: UInt64 = 0x3143_4552_5052_4f54  // "TORPREC1"
    private static let headerSize = 4096
    private static let underWayOffset = 128
    private static let amendmentOffset = 72
    /// The bits of a record's checksum that its amendment has.
    private static let amendedSum: UInt32 = 0xff_ffff
    private static let recordsOffset = 80
    private static let recordHead = 8
    private static let mostSlots = 1 << 20

    /// The descriptor of the file. The keeper holds the file too.
    public private(set) var descriptor: Descriptor
    /// The number of slots.
    public private(set) var capacity: Int

    private var slotBytes: Int
    /// How many records a slot has, which depends on the version.
    private var copies: Int
    private var mapping: Mapping
    private var freeSlots: [Int] = []

    /// Why a file cannot be used.
    public enum Refusal: Error, Hashable, Sendable, CustomStringConvertible {
        /// The file is not a recovery file, or it is truncated or damaged.
        case unusable
        /// The file was written by a newer torpord.
        case newer(UInt32)
        /// The file was written before the last boot of the machine or container, so its processes are gone.
        case otherBoot
        /// A system call failed.
        case failed(Errno)

        /// A sentence without its subject.
        public var description: String {
            switch self {
            case .unusable: "is damaged"
            case .newer(let version):
                "was written by a newer torpord (its version is \(version), \(RecoveryFile.version) is the newest known)"
            case .otherBoot: "is from before the last boot"
            case .failed(let errno): "cannot be read (\(errno))"
            }
        }
    }

    /// Creates a new file, which replaces any file at `path`.
    ///
    /// - Parameters:
    ///   - recordBytes: the most bytes that a record will have.
    ///   - capacity: the number of apps that fit at first.
    /// - Throws: ENOSPC when there is no room, EINVAL when `recordBytes` is too large.
    public convenience init(creating path: String, recordBytes: Int, capacity: Int) throws(Errno) {
        try self.init(creating: path, recordBytes: recordBytes, capacity: capacity, version: Self.version)
    }

    init(creating path: String, recordBytes: Int, capacity: Int, version: UInt32) throws(Errno) {
        let capacity = max(16, capacity)
        copies = Self.copies(in: version)
        let record = (Self.recordHead + recordBytes + 7) / 8 * 8
        slotBytes = Self.recordsOffset + copies * record
        guard slotBytes <= Self.mostSlotBytes(copies) else { throw .invalidArgument }
        self.capacity = capacity
        // Give the file its name only when it is complete, so that no process finds an incomplete file.
        let draft = path + ".new"
        try? File.remove(draft)
        descriptor = try File.open(draft, [.readWrite, .create, .exclusive], mode: 0o600)
        let size = Self.headerSize + capacity * slotBytes
        try File.allocate(descriptor.raw, size: UInt64(size))
        mapping = try Mapping(descriptor: descriptor.raw, size: size, writable: true)
        let bytes = mapping.bytes
        bytes.storeBytes(of: version, toByteOffset: 8, as: UInt32.self)
        bytes.storeBytes(of: UInt32(slotBytes), toByteOffset: 12, as: UInt32.self)
        bytes.storeBytes(of: UInt32(capacity), toByteOffset: 16, as: UInt32.self)
        bytes.storeBytes(of: 1, toByteOffset: 24, as: UInt64.self)
        for (i, byte) in ThisProcess.bootID.utf8.prefix(36).enumerated() { bytes[32 + i] = byte }
        bytes.storeBytes(of: Self.firstProcess, toByteOffset: 80, as: UInt64.self)
        bytes.storeBytes(of: Self.magic, toByteOffset: 0, as: UInt64.self)
        try File.rename(draft, path)
        freeSlots = Array((0..<capacity).reversed())
    }

    /// Opens a file of an earlier torpord; read-only unless `isWritable`.
    public init(
        _ descriptor: Descriptor,
        boot: String = ThisProcess.bootID,
        firstProcess: UInt64 = RecoveryFile.firstProcess,
        isWritable: Bool = true
    ) throws(Refusal) {
        self.descriptor = descriptor
        do throws(Errno) {
            let size = Int(clamping: try File.status(descriptor: descriptor.raw).size)
            guard size >= Self.headerSize else { throw .invalidArgument }
            mapping = try Mapping(descriptor: descriptor.raw, size: size, writable: isWritable)
        } catch {
            throw error == .invalidArgument ? .unusable : .failed(error)
        }
        let bytes = mapping.bytes
        guard bytes.load(fromByteOffset: 0, as: UInt64.self) == Self.magic else { throw .unusable }
        let version = bytes.load(fromByteOffset: 8, as: UInt32.self)
        guard version <= Self.version else { throw .newer(version) }
        copies = Self.copies(in: version)
        slotBytes = Int(bytes.load(fromByteOffset: 12, as: UInt32.self))
        capacity = Int(bytes.load(fromByteOffset: 16, as: UInt32.self))
        guard version > 0, slotBytes >= Self.recordsOffset + copies * Self.recordHead, slotBytes % 8 == 0,
            slotBytes <= Self.mostSlotBytes(copies), capacity <= Self.mostSlots,
            bytes.count >= Self.headerSize + capacity * slotBytes
        else { throw .unusable }
        let written = bytes[32..<68].prefix { $0 != 0 }
        guard written.elementsEqual(boot.utf8) else { throw .otherBoot }
        let first = bytes.load(fromByteOffset: 80, as: UInt64.self)
        guard first == 0 || firstProcess == 0 || first == firstProcess else { throw .otherBoot }
        if isWritable, let slot = slotUnderWay { finish(slot) }
        freeSlots = (0..<capacity).reversed().filter { bytes[offset(of: $0)] == 0 }
    }

    /// Continues in a new file with the same header and no apps yet, which replaces any file at `path`.
    ///
    /// - Parameters:
    ///   - recordBytes: the most bytes that a record will have.
    ///   - capacity: the number of apps that fit at first.
    /// - Throws: ENOSPC when there is no room, EINVAL when `recordBytes` is too large; then nothing changes.
    public func goOn(at path: String, recordBytes: Int, capacity: Int) throws(Errno) {
        let fresh = try RecoveryFile(creating: path, recordBytes: recordBytes, capacity: capacity)
        fresh.flags = flags
        fresh.keeper = keeper
        fresh.verdict = verdict
        fresh.person = person
        fresh.place = place
        fresh.nextEvent = nextEvent
        (descriptor, mapping, copies) = (fresh.descriptor, fresh.mapping, fresh.copies)
        (slotBytes, self.capacity, freeSlots) = (fresh.slotBytes, fresh.capacity, fresh.freeSlots)
    }

    /// When process 1 started, in clock ticks after boot. It distinguishes the runs of a container, whose files survive
    /// a restart.
    public static let firstProcess = (try? ProcFS.stat(1))?.startTime ?? 0

    // MARK: The header

    /// A number whose meaning the owner of the file defines. torpord stores the exit status of its main app plus 1
    /// here, or 0 for none.
    public var verdict: UInt32 {
        get { mapping.bytes.load(fromByteOffset: 76, as: UInt32.self) }
        set { mapping.publish(newValue, at: 76) }
    }

    /// A second number whose meaning the owner of the file defines. torpord stores a user's number plus 1 here, or 0
    /// for no user.
    public var person: UInt32 {
        get { mapping.bytes.load(fromByteOffset: 88, as: UInt32.self) }
        set { mapping.publish(newValue, at: 88) }
    }

    /// A third number whose meaning the owner of the file defines. torpord stores a digest of the path below which all
    /// apps' cgroups are, or 0 if some may be elsewhere.
    public var place: UInt64 {
        get { mapping.bytes.load(fromByteOffset: 96, as: UInt64.self) }
        set { mapping.bytes.storeBytes(of: newValue, toByteOffset: 96, as: UInt64.self) }
    }

    /// Flags. The owner of the file defines them.
    public var flags: UInt32 {
        get { mapping.bytes.load(fromByteOffset: 20, as: UInt32.self) }
        set { mapping.publish(newValue, at: 20) }
    }

    /// The number of the newest event.
    public var nextEvent: UInt64 {
        get { mapping.bytes.load(fromByteOffset: 24, as: UInt64.self) }
        set { mapping.bytes.storeBytes(of: newValue, toByteOffset: 24, as: UInt64.self) }
    }

    /// The pid of the keeper that launched the recorded apps; 0 if unknown.
    public var keeper: Int32 {
        get { mapping.bytes.load(fromByteOffset: 72, as: Int32.self) }
        set { mapping.publish(UInt32(bitPattern: newValue), at: 72) }
    }

    // MARK: Slots

    /// An app's slot as an earlier torpord left it.
    public struct Entry {
        /// The number of the slot.
        public let slot: Int
        /// The app's name.
        public let name: String
        /// The actions that were not carried out, as bits that the owner of the file defines.
        public let undone: UInt32
        /// The app's record; nil if there is none or it is damaged. The bytes are valid until the slot is written
        /// again.
        public let record: UnsafeRawBufferPointer?
        /// The byte that ``RecoveryFile/amend(_:_:)`` has added to this record since it was written; nil if there is
        /// none.
        public let amendment: UInt8?
    }

    /// All slots in use.
    public var entries: [Entry] {
        (0..<capacity).compactMap { slot in
            let start = offset(of: slot)
            let name = mapping.bytes[start..<(start + Self.longestName)].prefix { $0 != 0 }
            guard !name.isEmpty else { return nil }
            return Entry(
                slot: slot,
                name: String(wire: name),
                undone: mapping.bytes.load(
                    fromByteOffset: slot == slotUnderWay ? Self.underWayOffset + 4 : start + 68,
                    as: UInt32.self
                ),
                record: record(in: slot),
                amendment: amendment(in: slot)
            )
        }
    }

    /// A consistent copy of a record, for a file to which another torpord is still writing; nil if there is no record
    /// or it is damaged.
    public func snapshot(_ slot: Int) -> [UInt8]? {
        // Retry: writing takes less than a microsecond, unless the writer is preempted in the middle.
        for attempt in 0..<2000 {
            guard let place = place(in: slot) else { return nil }
            let length = Int(mapping.bytes.load(fromByteOffset: place + 4, as: UInt32.self))
            if length <= recordBytes - Self.recordHead {
                let sum = mapping.bytes.load(fromByteOffset: place, as: UInt32.self)
                let copy = Array(mapping.bytes[(place + Self.recordHead)..<(place + Self.recordHead + length)])
                if copy.withUnsafeBytes({ Self.checksum($0) }) == sum { return copy }
            }
            if attempt > 100 { ThisProcess.sleep(.microseconds(50)) }
        }
        return nil
    }

    /// Reserves a slot for an app that has none. If the file is full, makes it larger.
    ///
    /// - Throws: ENOSPC when growing fails, EINVAL for a name that is empty or too long.
    public func add(_ name: String) throws(Errno) -> Int {
        guard !name.isEmpty, name.utf8.count <= Self.longestName else { throw .invalidArgument }
        if freeSlots.isEmpty { try grow() }
        guard let slot = freeSlots.popLast() else { throw .noSpace }
        let start = offset(of: slot)
        mapping.publish(0, at: start + 64)
        mapping.publish(0, at: start + 68)
        // Write the first byte last: until then, the slot counts as free.
        let bytes = Array(name.utf8)
        for i in (0...Self.longestName).reversed() { mapping.bytes[start + i] = i < bytes.count ? bytes[i] : 0 }
        return slot
    }

    /// Frees a slot.
    public func remove(_ slot: Int) {
        mapping.bytes[offset(of: slot)] = 0
        freeSlots.append(slot)
    }

    /// Writes an app's record without blocking; `body` fills the memory from its start and returns how many bytes it
    /// used.
    public func write(_ slot: Int, undone: UInt32, _ body: (UnsafeMutableRawBufferPointer) -> Int) {
        let start = offset(of: slot)
        let current = mapping.bytes.load(fromByteOffset: start + 64, as: UInt32.self)
        let next: UInt32 = current == 1 ? 2 : 1
        let at =
            copies == 1 ? Self.underWayOffset + 8 : start + Self.recordsOffset + Int(next - 1) * recordBytes
        let room = recordBytes - Self.recordHead
        let memory = UnsafeMutableRawBufferPointer(
            rebasing: mapping.bytes[(at + Self.recordHead)..<(at + recordBytes)]
        )
        let used = min(room, max(0, body(memory)))
        mapping.bytes.storeBytes(of: UInt32(used), toByteOffset: at + 4, as: UInt32.self)
        let sum = Self.checksum(UnsafeRawBufferPointer(rebasing: memory[..<used]))
        mapping.bytes.storeBytes(of: sum, toByteOffset: at, as: UInt32.self)
        // Set the new actions before the record becomes valid, so that they count with the old record too.
        let before = mapping.bytes.load(fromByteOffset: start + 68, as: UInt32.self)
        if copies == 1 {
            mapping.publish(before | undone, at: Self.underWayOffset + 4)
            mapping.publish(UInt32(slot + 1), at: Self.underWayOffset)
            return finish(slot)
        }
        if before | undone != before { mapping.publish(before | undone, at: start + 68) }
        mapping.publish(next, at: start + 64)
    }

    /// Replaces the bits of undone actions.
    public func setUndone(_ slot: Int, _ undone: UInt32) {
        mapping.publish(undone, at: offset(of: slot) + 68)
    }

    /// Adds a byte, which must not be 0, to the slot's record, in a hundredth of the time that writing the record
    /// takes. It replaces the byte that was added before, and ends when the record is written again. Returns false if
    /// the slot has no record.
    public func amend(_ slot: Int, _ byte: UInt8) -> Bool {
        guard let place = place(in: slot) else { return false }
        let sum = mapping.bytes.load(fromByteOffset: place, as: UInt32.self)
        mapping.publish(UInt32(byte) << 24 | sum & Self.amendedSum, at: offset(of: slot) + Self.amendmentOffset)
        return true
    }

    // MARK: -

    private var recordBytes: Int { (slotBytes - Self.recordsOffset) / copies }

    /// In version 2, one record has to fit into the header.
    private static func mostSlotBytes(_ copies: Int) -> Int { copies == 2 ? 1 << 16 : headerSize - underWayOffset }

    private static func copies(in version: UInt32) -> Int { version == 1 ? 2 : 1 }

    /// The slot whose record is in the header; nil if that record is incomplete or there is none.
    private var slotUnderWay: Int? {
        let slot = Int(mapping.bytes.load(fromByteOffset: Self.underWayOffset, as: UInt32.self)) - 1
        guard copies == 1, slot >= 0, slot < capacity, checked(Self.underWayOffset + 8) != nil else { return nil }
        return slot
    }

    /// Copies the record from the header to its slot. An interrupted copy must be repeated.
    private func finish(_ slot: Int) {
        let start = offset(of: slot)
        let from = Self.underWayOffset
        let length = Int(mapping.bytes.load(fromByteOffset: from + 12, as: UInt32.self))
        UnsafeMutableRawBufferPointer(rebasing: mapping.bytes[(start + Self.recordsOffset)...]).copyMemory(
            from: UnsafeRawBufferPointer(rebasing: mapping.bytes[(from + 8)..<(from + 8 + Self.recordHead + length)])
        )
        mapping.publish(mapping.bytes.load(fromByteOffset: from + 4, as: UInt32.self), at: start + 68)
        mapping.publish(1, at: start + 64)
        mapping.publish(0, at: from)
    }

    private func offset(of slot: Int) -> Int { Self.headerSize + slot * slotBytes }

    private func record(in slot: Int) -> UnsafeRawBufferPointer? {
        if slot == slotUnderWay { return checked(Self.underWayOffset + 8) }
        return place(in: slot).flatMap { checked($0) }
    }

    private func amendment(in slot: Int) -> UInt8? {
        guard let place = slot == slotUnderWay ? Self.underWayOffset + 8 : place(in: slot) else { return nil }
        let stored = mapping.bytes.load(fromByteOffset: offset(of: slot) + Self.amendmentOffset, as: UInt32.self)
        // An older torpord writes records without looking at the amendments of those before.
        let sum = mapping.bytes.load(fromByteOffset: place, as: UInt32.self)
        guard stored >> 24 != 0, stored & Self.amendedSum == sum & Self.amendedSum else { return nil }
        return UInt8(stored >> 24)
    }

    /// The offset of the slot's record in the file; nil if the slot has no record.
    private func place(in slot: Int) -> Int? {
        let start = offset(of: slot)
        let current = mapping.bytes.load(fromByteOffset: start + 64, as: UInt32.self)
        guard current > 0, current <= copies else { return nil }
        return start + Self.recordsOffset + Int(current - 1) * recordBytes
    }

    /// The bytes of the record at an offset; nil if the record is damaged.
    private func checked(_ at: Int) -> UnsafeRawBufferPointer? {
        let length = Int(mapping.bytes.load(fromByteOffset: at + 4, as: UInt32.self))
        guard length <= recordBytes - Self.recordHead else { return nil }
        let bytes = UnsafeRawBufferPointer(
            rebasing: mapping.bytes[(at + Self.recordHead)..<(at + Self.recordHead + length)]
        )
        return Self.checksum(bytes) == mapping.bytes.load(fromByteOffset: at, as: UInt32.self) ? bytes : nil
    }

    private func grow() throws(Errno) {
        let more = min(Self.mostSlots, capacity * 2)
        let size = Self.headerSize + more * slotBytes
        try File.allocate(descriptor.raw, size: UInt64(size))
        let larger = try Mapping(descriptor: descriptor.raw, size: size, writable: true)
        mapping = larger
        // The file grows with zeros, so the new slots are free. They count once this number is written.
        mapping.publish(UInt32(more), at: 16)
        freeSlots = Array((capacity..<more).reversed())
        capacity = more
    }

    /// The checksum of a record. It processes eight bytes per step, so that it takes less time than writing the record.
    static func checksum(_ bytes: UnsafeRawBufferPointer) -> UInt32 {
        var sum: UInt64 = 0x9e37_79b9_7f4a_7c15 ^ UInt64(bytes.count)
        var at = 0
        while at + 8 <= bytes.count {
            sum = (sum ^ bytes.loadUnaligned(fromByteOffset: at, as: UInt64.self)) &* 0xff51_afd7_ed55_8ccd
            sum ^= sum >> 32
            at += 8
        }
        while at < bytes.count {
            sum = (sum ^ UInt64(bytes[at])) &* 0xff51_afd7_ed55_8ccd
            sum ^= sum >> 32
            at += 1
        }
        return UInt32(truncatingIfNeeded: sum ^ (sum >> 29))
    }
}
