// SPDX-License-Identifier: Apache-2.0

/// As much of X11 as it takes to ask the X server which process has a window: the X server knows that from the kernel
/// (X-Resource extension 1.2, QueryClientIds), while programs may write anything into `_NET_WM_PID`.
///
/// Bytes go in and out; what carries them is not known here.
public struct XConversation: Sendable {
    /// The X server refused, or sent what is no X11.
    public struct Invalid: Error, Hashable, Sendable, CustomStringConvertible {
        /// Half a sentence.
        public let description: String
    }

    private enum State: Sendable {
        case setup
        case extensionQuery
        case version(opcode: UInt8)
        case ready(opcode: UInt8)
    }

    /// The process of a window; nil if the X server does not know it: the program may run on another machine.
    public struct Answer: Hashable, Sendable {
        /// The window.
        public let window: UInt32
        /// The process.
        public let pid: Int32?
    }

    private var state = State.setup
    private var buffer: [UInt8] = []
    /// Where the next message in it begins.
    private var start = 0
    /// Windows to ask about when that is possible.
    private var waiting: [UInt32] = []
    /// Windows that were asked about, in their order.
    private var asked: [UInt32] = []

    private static let name = Array("X-Resource".utf8)
    /// Bytes of a reply; the longest here is the setup, with a list of visuals.
    private static let longest = 4 << 20
    private static let mostWaiting = 64
    /// LocalClientPIDMask of X-Resource.
    private static let processMask: UInt32 = 2

    /// Nothing was sent yet.
    public init() {}

    /// The first bytes to send.
    public func greeting(_ cookie: XCookie?) -> [UInt8] {
        let order: UInt8 = UInt16(1).littleEndian == 1 ? UInt8(ascii: "l") : UInt8(ascii: "B")
        let (name, data) = (cookie?.name ?? [], cookie?.data ?? [])
        return [order, 0] + Self.short(11) + Self.short(0) + Self.short(UInt16(name.count))
            + Self.short(UInt16(data.count))
            + [0, 0] + Self.padded(name) + Self.padded(data)
    }

    /// The bytes to send for this question; they may be sent later, by ``receive(_:)``.
    public mutating func ask(_ window: UInt32) -> [UInt8] {
        guard case .ready(let opcode) = state else {
            if waiting.count < Self.mostWaiting { waiting.append(window) }
            return []
        }
        asked.append(window)
        return [opcode, 4] + Self.short(4) + Self.long(1) + Self.long(window) + Self.long(Self.processMask)
    }

    /// Takes received bytes: returns answers, and bytes to send.
    public mutating func receive(_ bytes: some Collection<UInt8>) throws(Invalid) -> (answers: [Answer], send: [UInt8])
    {
        buffer.removeFirst(start)
        start = 0
        buffer += bytes
        var (answers, send): ([Answer], [UInt8]) = ([], [])
        while true {
            let size: Int
            if case .setup = state {
                guard buffer.count > start else { break }
                guard buffer[start] <= 2 else { throw Invalid(description: "does not speak X11") }
                guard buffer.count - start >= 8 else { break }
                size = 8 + 4 * Int(short(at: 6))
            } else {
                guard buffer.count - start >= 32 else { break }
                // Only replies and generic events are longer.
                let kind = buffer[start] & 0x7f
                size = 32 + (kind == 1 || kind == 35 ? 4 * Int(long(at: 4)) : 0)
            }
            guard size <= Self.longest else { throw Invalid(description: "sent a reply of \(size) bytes") }
            guard buffer.count - start >= size else { break }
            try handle(size, &answers, &send)
            start += size
        }
        return (answers, send)
    }

    private mutating func handle(_ size: Int, _ answers: inout [Answer], _ send: inout [UInt8]) throws(Invalid) {
        let kind = buffer[start]
        if case .setup = state {
            guard kind == 1 else { throw Invalid(description: "refuses: the cookie of XAUTHORITY is not its own") }
            state = .extensionQuery
            send += [98, 0] + Self.short(UInt16(2 + (Self.name.count + 3) / 4)) + Self.short(UInt16(Self.name.count))
            send += [0, 0] + Self.padded(Self.name)
            return
        }
        // An event, which nothing here has asked for.
        guard kind == 0 || kind == 1 else { return }
        switch state {
        case .setup: break
        case .extensionQuery:
            guard kind == 1, buffer[start + 8] == 1 else { throw Invalid(description: "has no extension X-Resource") }
            state = .version(opcode: buffer[start + 9])
            send += [buffer[start + 9], 0] + Self.short(2) + [1, 2, 0, 0]
        case .version(let opcode):
            guard kind == 1, (short(at: 8), short(at: 10)) >= (1, 2) else {
                throw Invalid(description: "has an extension X-Resource before 1.2")
            }
            state = .ready(opcode: opcode)
            for window in waiting { send += ask(window) }
            waiting = []
        case .ready:
            guard !asked.isEmpty else { throw Invalid(description: "answers what was not asked") }
            // An error: the window is gone.
            answers.append(Answer(window: asked.removeFirst(), pid: kind == 1 ? process(size) : nil))
        }
    }

    /// The process in an answer to QueryClientIds.
    private func process(_ size: Int) -> Int32? {
        var place = 32
        for _ in 0..<min(long(at: 8), 16) {
            guard place + 12 <= size else { return nil }
            let (mask, length) = (long(at: place + 4), Int(long(at: place + 8)))
            if mask == Self.processMask, length >= 4, place + 16 <= size {
                return Int32(exactly: long(at: place + 12)).flatMap { $0 > 0 ? $0 : nil }
            }
            guard length <= size else { return nil }
            place += 12 + length
        }
        return nil
    }

    private func short(at place: Int) -> UInt16 {
        buffer.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: start + place, as: UInt16.self) }
    }

    private func long(at place: Int) -> UInt32 {
        buffer.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: start + place, as: UInt32.self) }
    }

    private static func short(_ number: UInt16) -> [UInt8] { withUnsafeBytes(of: number) { Array($0) } }

    private static func long(_ number: UInt32) -> [UInt8] { withUnsafeBytes(of: number) { Array($0) } }

    private static func padded(_ bytes: [UInt8]) -> [UInt8] {
        bytes + [UInt8](repeating: 0, count: (4 - bytes.count % 4) % 4)
    }
}

/// What a program shows the X server to be let in.
public struct XCookie: Hashable, Sendable {
    let name: [UInt8]
    let data: [UInt8]

    /// Finds the cookie for a display in a file of xauth(1): entries of a family and four counted texts, all numbers
    /// with the high byte first.
    public init?(display: Int, in file: [UInt8]) {
        var rest = file[...]
        func text() -> [UInt8]? {
            guard let length = Self.number(&rest), rest.count >= Int(length) else { return nil }
            defer { rest = rest.dropFirst(Int(length)) }
            return Array(rest.prefix(Int(length)))
        }
        while let family = Self.number(&rest) {
            guard text() != nil, let number = text(), let name = text(), let data = text() else { return nil }
            // FamilyLocal and FamilyWild: the display is on this machine.
            guard family == 256 || family == 65535, number.isEmpty || number == Array("\(display)".utf8) else {
                continue
            }
            guard name == Array("MIT-MAGIC-COOKIE-1".utf8) else { continue }
            (self.name, self.data) = (name, data)
            return
        }
        return nil
    }

    private static func number(_ rest: inout ArraySlice<UInt8>) -> UInt16? {
        guard let high = rest.popFirst(), let low = rest.popFirst() else { return nil }
        return UInt16(high) << 8 | UInt16(low)
    }

    /// The number of a display on this machine, such as `:1.0`; nil for one that is elsewhere.
    public static func display(_ text: String) -> Int? {
        let name = text.hasPrefix("unix:") ? text.dropFirst(4) : text[...]
        guard name.hasPrefix(":") else { return nil }
        let number = name.dropFirst().prefix { $0 != "." }
        return Int(number).flatMap { (0...65535).contains($0) ? $0 : nil }
    }
}
