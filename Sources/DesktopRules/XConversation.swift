// SPDX-License-Identifier: Apache-2.0

/// The part of X11 that asks the X server which process owns a window (X-Resource extension 1.2, QueryClientIds). The
/// X server knows that from the kernel, whereas programs may write any number into `_NET_WM_PID`.
///
/// This type only encodes and decodes; its caller sends and receives the bytes.
public struct XConversation: Sendable {
    /// The error if the X server refuses the connection or sends bytes that are not X11.
    public struct Invalid: Error, Hashable, Sendable, CustomStringConvertible {
        /// The end of a sentence whose subject is the X server.
        public let description: String
    }

    private enum State: Sendable {
        case setup
        case extensionQuery
        case version(opcode: UInt8)
        case ready(opcode: UInt8)
    }

    /// The reply about one window. `pid` is nil if the X server does not know the process, for example because the
    /// program runs on another machine.
    public struct Answer: Hashable, Sendable {
        /// The window's id.
        public let window: UInt32
        /// The process that owns the window.
        public let pid: Int32?
    }

    private var state = State.setup
    private var buffer: [UInt8] = []
    /// The index in the buffer at which the next message begins.
    private var start = 0
    /// Windows to ask about once the connection is set up.
    private var waiting: [UInt32] = []
    /// Windows whose replies are pending, in the order of the requests.
    private var asked: [UInt32] = []

    private static let name = Array("X-Resource".utf8)
    /// The longest reply in bytes. The longest expected reply is the connection setup, which lists all visuals.
    private static let longest = 4 << 20
    private static let mostWaiting = 64
    /// LocalClientPIDMask of X-Resource.
    private static let processMask: UInt32 = 2

    /// Creates a conversation that has sent nothing.
    public init() {}

    /// Returns the bytes that open the connection, to be sent first.
    public func greeting(_ cookie: XCookie?) -> [UInt8] {
        let order: UInt8 = UInt16(1).littleEndian == 1 ? UInt8(ascii: "l") : UInt8(ascii: "B")
        let (name, data) = (cookie?.name ?? [], cookie?.data ?? [])
        return [order, 0] + Self.short(11) + Self.short(0) + Self.short(UInt16(name.count))
            + Self.short(UInt16(data.count))
            + [0, 0] + Self.padded(name) + Self.padded(data)
    }

    /// Returns the bytes to send for a question. Before the setup is complete, the result is empty, and ``receive(_:)``
    /// returns the bytes later.
    public mutating func ask(_ window: UInt32) -> [UInt8] {
        guard case .ready(let opcode) = state else {
            if waiting.count < Self.mostWaiting { waiting.append(window) }
            return []
        }
        asked.append(window)
        return [opcode, 4] + Self.short(4) + Self.long(1) + Self.long(window) + Self.long(Self.processMask)
    }

    /// Handles received bytes. Returns answers, and bytes to send.
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
                // Replies and generic events may be longer than 32 bytes; other messages are not.
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
        // Ignore events: none were requested.
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
            // The kind 0 is an error: the window no longer exists.
            answers.append(Answer(window: asked.removeFirst(), pid: kind == 1 ? process(size) : nil))
        }
    }

    /// The process in a reply to QueryClientIds; nil if it has none.
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

/// The secret by which a program authenticates to the X server.
public struct XCookie: Hashable, Sendable {
    let name: [UInt8]
    let data: [UInt8]

    /// Finds the cookie for a display in a file of xauth(1). An entry is a family and four strings, each with its
    /// length in front; numbers are big-endian.
    public init?(display: Int, in file: [UInt8]) {
        var rest = file[...]
        func text() -> [UInt8]? {
            guard let length = Self.number(&rest), rest.count >= Int(length) else { return nil }
            defer { rest = rest.dropFirst(Int(length)) }
            return Array(rest.prefix(Int(length)))
        }
        while let family = Self.number(&rest) {
            guard text() != nil, let number = text(), let name = text(), let data = text() else { return nil }
            // The families FamilyLocal and FamilyWild are for displays on this machine.
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

    /// The number of a display on this machine, such as 1 for `:1.0`; nil for a display on another machine.
    public static func display(_ text: String) -> Int? {
        let name = text.hasPrefix("unix:") ? text.dropFirst(4) : text[...]
        guard name.hasPrefix(":") else { return nil }
        let number = name.dropFirst().prefix { $0 != "." }
        return Int(number).flatMap { (0...65535).contains($0) ? $0 : nil }
    }
}
