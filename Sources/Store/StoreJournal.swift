// SPDX-License-Identifier: Apache-2.0

public import Linux
import WireText

/// A memory-mapped file with the events, reports and other changes that are not in the database yet. If torpord is
/// killed, the next torpord reads these changes from this file, so that no change is lost.
///
/// Layout, in native byte order. A header:
///
///      0   4  "TpJ1"
///      4   4  offset of the oldest frame, counted from the first frame ever written, modulo 2^32
///      8   4  offset of the next frame, likewise
///     16  36  boot id
///
/// From byte 64 on, a ring of frames, each contiguous and aligned to 8: 4 bytes length (all ones: continue at the
/// ring's start), 1 byte kind, 3 bytes unused, the fields. A frame becomes valid when the header's second offset is
/// moved past it, after the frame is complete. If the ring is full, the oldest frames are dropped. Their changes are
/// lost only if torpord is killed, because torpord still has them in memory.
public final class StoreJournal {
    /// The journal's file. torpor-keeper holds this descriptor for the next torpord.
    public let descriptor: Descriptor

    private static let magic: UInt32 = 0x314a_7054
    private static let headSize = 64
    private static let frameHead = 8
    private static let goOn = UInt32.max

    private let mapping: Mapping
    private let capacity: Int

    package enum Item: Equatable {
        case event(StoredEvent)
        case report(StoredReport)
        /// An app's row, reports and messages were removed.
        case removal(app: String)
        case change(MailChange)
    }

    /// Creates a new file, replacing any at `path`. Throws ENOSPC if the filesystem has no room for the file.
    ///
    /// - Parameter capacity: size of the ring in bytes, a power of two.
    public init(creating path: String, capacity: Int = 256 << 10, boot: String = ThisProcess.bootID) throws(Errno) {
        let draft = path + ".new"
        try? File.remove(draft)
        descriptor = try File.open(draft, [.readWrite, .create, .exclusive], mode: 0o600)
        do throws(Errno) {
            try File.allocate(descriptor.raw, size: UInt64(Self.headSize + capacity))
        } catch {
            try? File.remove(draft)
            throw error
        }
        mapping = try Mapping(descriptor: descriptor.raw, size: Self.headSize + capacity, writable: true)
        self.capacity = capacity
        for (i, byte) in boot.utf8.prefix(36).enumerated() { mapping.bytes[16 + i] = byte }
        mapping.publish(Self.magic, at: 0)
        try File.rename(draft, path)
    }

    /// Opens an earlier torpord's journal; nil if the file is invalid, damaged, or from another boot.
    public init?(_ descriptor: Descriptor, boot: String = ThisProcess.bootID) {
        self.descriptor = descriptor
        let size = (try? File.status(descriptor: descriptor.raw)).map { Int(clamping: $0.size) } ?? 0
        capacity = size - Self.headSize
        guard capacity >= 4096, capacity & (capacity - 1) == 0, capacity <= 1 << 30,
            let mapping = try? Mapping(descriptor: descriptor.raw, size: size, writable: true)
        else { return nil }
        self.mapping = mapping
        guard mapping.bytes.load(as: UInt32.self) == Self.magic,
            mapping.bytes[16..<52].prefix(while: { $0 != 0 }).elementsEqual(boot.utf8),
            begin % 8 == 0, end % 8 == 0, Int(end &- begin) <= capacity
        else { return nil }
        cutDamage()
    }

    /// The offset of the oldest frame, as in the header.
    private var begin: UInt32 { mapping.bytes.load(fromByteOffset: 4, as: UInt32.self) }
    /// The offset at which the next frame will begin, as in the header. A caller may keep this offset as a mark, which
    /// stands for all frames before it.
    var end: UInt32 { mapping.bytes.load(fromByteOffset: 8, as: UInt32.self) }

    private func place(_ offset: UInt32) -> Int { Self.headSize + Int(offset) & (capacity - 1) }

    /// Drops all frames before the mark, because their changes are in the database by now.
    func release(through mark: UInt32) {
        // A mark outside this range stands for frames that were already dropped.
        if Int(mark &- begin) <= Int(end &- begin) { mapping.publish(mark, at: 4) }
    }

    // MARK: Writing

    package func append(_ event: StoredEvent) {
        let texts = [event.app, event.kind, event.from, event.to, event.text, event.reason, event.details]
        append(kind: 1, [event.sequence, event.at, event.incarnation ?? .min], texts)
    }

    func append(_ report: StoredReport) {
        append(kind: 2, [report.incarnation, report.at], [report.app, report.json])
    }

    func appendRemoval(of app: String) { append(kind: 3, [], [app]) }

    func append(_ change: MailChange) {
        switch change {
        case .mail(let mail):
            let texts = [
                mail.app, mail.topic, mail.message, mail.payload, mail.coalescing, mail.key, mail.sender, mail.wake,
            ]
            append(kind: 4, [mail.id, mail.count, mail.firstAt, mail.lastAt], texts)
            // Write the delivery state into a frame of its own. An older torpord does not know such frames and skips
            // them, but still reads the message.
            if mail.standing != MailStanding() { append(.standing(mail.standing, of: mail.id, app: mail.app)) }
        case .mailRemoval(let id, let app): append(kind: 5, [id], [app])
        case .standing(let standing, let id, let app):
            append(kind: 10, [id, standing.attempts, standing.run ?? .min], [app, standing.chain])
        case .unhandled(let unhandled):
            let mail = unhandled.mail
            let numbers = [
                mail.id, mail.count, mail.firstAt, mail.lastAt, mail.standing.attempts, unhandled.at,
                unhandled.run ?? .min,
            ]
            let texts = [
                mail.app, mail.topic, mail.message, mail.payload, mail.coalescing, mail.key, mail.sender, unhandled.why,
                mail.standing.chain,
            ]
            append(kind: 11, numbers, texts)
        case .unhandledRemoval(let id, let app): append(kind: 12, [id], [app])
        case .rows(let changes): append(changes)
        }
    }

    func append(kind: UInt8, _ numbers: [Int64], _ texts: [String?]) {
        let length = texts.reduce(numbers.count * 8) { $0 + 4 + ($1?.utf8.count ?? 0) }
        let size = (Self.frameHead + length + 7) & ~7
        guard size <= capacity / 2 else { return }
        let room = capacity - Int(end) & (capacity - 1)
        if size > room {
            free(room)
            mapping.bytes.storeBytes(of: Self.goOn, toByteOffset: place(end), as: UInt32.self)
            mapping.publish(end &+ UInt32(room), at: 8)
        }
        free(size)
        var place = self.place(end)
        mapping.bytes.storeBytes(of: UInt32(length), toByteOffset: place, as: UInt32.self)
        mapping.bytes[place + 4] = kind
        place += Self.frameHead
        for number in numbers {
            mapping.bytes.storeBytes(of: number, toByteOffset: place, as: Int64.self)
            place += 8
        }
        for text in texts {
            guard var text else {
                mapping.bytes.storeBytes(of: UInt32.max, toByteOffset: place, as: UInt32.self)
                place += 4
                continue
            }
            text.withUTF8 { bytes in
                mapping.bytes.storeBytes(of: UInt32(bytes.count), toByteOffset: place, as: UInt32.self)
                UnsafeMutableRawBufferPointer(rebasing: mapping.bytes[(place + 4)...])
                    .copyMemory(from: UnsafeRawBufferPointer(bytes))
                place += 4 + bytes.count
            }
        }
        mapping.publish(end &+ UInt32(size), at: 8)
    }

    /// Drops the oldest frames until there is room for `size` bytes.
    private func free(_ size: Int) {
        while Int(end &- begin) + size > capacity {
            guard let frame = frame(at: begin) else { return mapping.publish(end, at: 4) }
            mapping.publish(frame.next, at: 4)
        }
    }

    // MARK: Reading

    /// Drops a damaged frame and all frames after it. Otherwise frames that are appended later would be lost, because a
    /// reader stops at the first damaged frame.
    private func cutDamage() {
        var offset = begin
        while offset != end {
            guard let frame = frame(at: offset), Int(frame.next &- begin) <= Int(end &- begin) else {
                return mapping.publish(offset, at: 8)
            }
            offset = frame.next
        }
    }

    /// All items, the oldest first, up to the first damaged frame.
    package func items() -> [Item] {
        var items: [Item] = []
        var offset = begin
        while offset != end, let frame = frame(at: offset) {
            offset = frame.next
            guard Int(offset &- begin) <= Int(end &- begin) else { break }
            if let fields = frame.fields, let item = Self.item(kind: frame.kind, fields) { items.append(item) }
        }
        return items
    }

    private func frame(at offset: UInt32) -> (kind: UInt8, fields: UnsafeRawBufferPointer?, next: UInt32)? {
        let place = self.place(offset)
        let room = Self.headSize + capacity - place
        let length = mapping.bytes.load(fromByteOffset: place, as: UInt32.self)
        if length == Self.goOn { return (0, nil, offset &+ UInt32(room)) }
        guard room >= Self.frameHead, Int(length) <= room - Self.frameHead else { return nil }
        let start = place + Self.frameHead
        let fields = UnsafeRawBufferPointer(rebasing: mapping.bytes[start..<(start + Int(length))])
        return (mapping.bytes[place + 4], fields, offset &+ UInt32((Self.frameHead + Int(length) + 7) & ~7))
    }

    private static func item(kind: UInt8, _ fields: UnsafeRawBufferPointer) -> Item? {
        var reader = Reader(fields: fields)
        switch kind {
        case 1:
            let sequence = reader.number()
            let at = reader.number()
            let incarnation = reader.number()
            let texts = (0..<7).map { _ in reader.text() }
            guard !reader.isShort, let kind = texts[1], let text = texts[4] else { return nil }
            var event = StoredEvent(at: at, app: texts[0], kind: kind, text: text)
            event.sequence = sequence
            event.incarnation = incarnation == .min ? nil : incarnation
            event.from = texts[2]
            event.to = texts[3]
            event.reason = texts[5]
            event.details = texts[6]
            return .event(event)
        case 2:
            let incarnation = reader.number()
            let at = reader.number()
            guard let app = reader.text(), let json = reader.text(), !reader.isShort else { return nil }
            return .report(StoredReport(app: app, incarnation: incarnation, at: at, json: json))
        case 3:
            guard let app = reader.text(), !reader.isShort else { return nil }
            return .removal(app: app)
        default: return change(kind: kind, &reader).map { .change($0) }
        }
    }

    /// Decodes the fields that queued and unhandled messages have in common.
    private static func mail(_ numbers: [Int64], _ texts: [String?]) -> StoredMail? {
        guard let app = texts[0], let topic = texts[1], let message = texts[2], let payload = texts[3],
            let coalescing = texts[4], let sender = texts[6]
        else { return nil }
        var mail = StoredMail(
            id: numbers[0],
            app: app,
            topic: topic,
            message: message,
            payload: payload,
            coalescing: coalescing,
            sender: sender,
            at: numbers[2]
        )
        mail.key = texts[5]
        mail.count = numbers[1]
        mail.lastAt = numbers[3]
        return mail
    }

    private static func change(kind: UInt8, _ reader: inout Reader) -> MailChange? {
        switch kind {
        case 4:
            let numbers = (0..<4).map { _ in reader.number() }
            let texts = (0..<8).map { _ in reader.text() }
            guard !reader.isShort, var mail = mail(numbers, texts) else { return nil }
            mail.wake = texts[7]
            return .mail(mail)
        case 10:
            let id = reader.number()
            var standing = MailStanding()
            standing.attempts = reader.number()
            let run = reader.number()
            standing.run = run == .min ? nil : run
            guard let app = reader.text() else { return nil }
            standing.chain = reader.text()
            return reader.isShort ? nil : .standing(standing, of: id, app: app)
        case 11:
            let numbers = (0..<7).map { _ in reader.number() }
            let texts = (0..<9).map { _ in reader.text() }
            guard !reader.isShort, var mail = mail(numbers, texts), let why = texts[7] else { return nil }
            mail.standing.attempts = numbers[4]
            mail.standing.chain = texts[8]
            let run = numbers[6]
            return .unhandled(StoredUnhandled(mail: mail, why: why, at: numbers[5], run: run == .min ? nil : run))
        case 12:
            let id = reader.number()
            guard let app = reader.text(), !reader.isShort else { return nil }
            return .unhandledRemoval(id, app: app)
        case 5:
            let id = reader.number()
            guard let app = reader.text(), !reader.isShort else { return nil }
            return .mailRemoval(id, app: app)
        default: return rows(kind: kind, &reader)
        }
    }

    struct Reader {
        let fields: UnsafeRawBufferPointer
        var place = 0
        var isShort = false

        mutating func number() -> Int64 {
            guard fields.count - place >= 8 else {
                isShort = true
                return 0
            }
            defer { place += 8 }
            return fields.loadUnaligned(fromByteOffset: place, as: Int64.self)
        }

        mutating func text() -> String? {
            guard fields.count - place >= 4 else {
                isShort = true
                return nil
            }
            let count = fields.loadUnaligned(fromByteOffset: place, as: UInt32.self)
            place += 4
            if count == .max { return nil }
            guard fields.count - place >= Int(count) else {
                isShort = true
                return nil
            }
            defer { place += Int(count) }
            return String(wire: fields[place..<(place + Int(count))])
        }
    }
}
