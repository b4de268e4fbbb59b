// SPDX-License-Identifier: Apache-2.0

import Linux
import Varlink

/// A connection to the app's socket that never blocks: it buffers outgoing data, and splits received data into replies.
final class LinkChannel {
    /// The connection was lost, or the data is not valid Varlink.
    struct Lost: Error {}

    let socket: Descriptor
    private let poller: Poller
    private let tag: UInt64
    private var framer = MessageFramer()
    private var outbound: [UInt8] = []
    private var waitsForRoom = false

    /// Connects. Throws EAGAIN if the accept queue of the service is full.
    init(path: String, poller: Poller, tag: UInt64) throws(Errno) {
        socket = try Sockets.connect(path: path, nonBlocking: true)
        self.poller = poller
        self.tag = tag
        try poller.add(socket.raw, .readable, tag: tag)
    }

    deinit { try? poller.remove(socket.raw) }

    func send(_ call: VarlinkCall) throws(Lost) {
        outbound += call.json.serialised()
        outbound.append(0)
        try flush()
    }

    /// Sends as much of the buffered data as the socket has room for.
    func flush() throws(Lost) {
        var sent = 0
        defer { outbound.removeFirst(sent) }
        while sent < outbound.count {
            do throws(Errno) {
                guard let count = try Sockets.send(socket.raw, Array(outbound[sent...])) else { break }
                sent += count
            } catch {
                throw Lost()
            }
        }
        let waits = sent < outbound.count
        if waits != waitsForRoom {
            waitsForRoom = waits
            try? poller.modify(socket.raw, waits ? [.readable, .writable] : .readable, tag: tag)
        }
    }

    /// Passes each complete reply to `body`, which returns whether it wants the next one.
    func receive(_ body: (VarlinkResponse) -> Bool) throws(Lost) {
        while true {
            while let response = try next() {
                guard body(response) else { return }
            }
            let bytes: [UInt8]?
            do throws(Errno) { bytes = try Descriptor.read(socket.raw, maximum: 1 << 14) } catch { throw Lost() }
            guard let bytes else { return }
            if bytes.isEmpty { throw Lost() }
            framer.append(bytes[...])
        }
    }

    private func next() throws(Lost) -> VarlinkResponse? {
        do {
            guard let message = try framer.next() else { return nil }
            return try VarlinkResponse(json: JSON.parse(message))
        } catch {
            throw Lost()
        }
    }
}

/// When to reconnect: at once, then after pauses that double.
struct Retry {
    private(set) var at: Duration = .zero
    private var pause = Duration.zero

    private static let first = Duration.milliseconds(2)
    private static let longest = Duration.milliseconds(500)

    mutating func failed(now: Duration) {
        at = now + pause
        pause = min(max(pause * 2, Self.first), Self.longest)
    }

    mutating func succeeded() { self = Retry() }
}
