// SPDX-License-Identifier: Apache-2.0

import EventLoop
import KeeperProtocol
import Linux

/// The socket to torpor-keeper, with a queue of messages to send. Messages that arrive while a function blocks for one
/// certain answer are stored in a backlog.
final class KeeperChannel {
    /// A received message with its descriptors.
    struct Received {
        var id: UInt32
        var message: KeeperMessage
        var descriptors: [Descriptor]
    }

    let socket: Descriptor
    var source: IOSource?
    var onBlocked: (() -> Void)?
    /// Whether the kernel refused the first queued message although the socket had room: too many descriptors are in
    /// flight, or memory is short. epoll does not report the end of that.
    private(set) var isShort = false
    /// Sends a message with descriptors; returns false if the socket has no room. Tests replace it.
    var transmit = { (socket: Int32, bytes: [UInt8], descriptors: [Int32]) throws(Errno) -> Bool in
        try Sockets.send(socket, bytes, descriptors: descriptors) != nil
    }
    private(set) var backlog: [Received] = []
    private var outbox: [(bytes: [UInt8], descriptors: [Descriptor])] = []
    private(set) var lastId: UInt32 = 0
    private let buffer = Mapping(size: KeeperProtocol.replyLimit)
    /// Retries messages that the kernel refused although the socket had room.
    private var retryTimer: TimerSource?
    private var isRetryArmed = false
    private static let retryDelay = Duration.milliseconds(10)
    private static let patience = Duration.seconds(10)

    init(socket: Descriptor) { self.socket = socket }

    var isBlocked: Bool { !outbox.isEmpty }

    static func isName(_ name: String) -> Bool {
        !name.isEmpty && name.utf8.count <= KeeperProtocol.heldNameLimit && !name.utf8.contains(0)
    }

    /// The id for the next request; never 0, which is for messages without an answer.
    func nextId() -> UInt32 {
        lastId = lastId == .max ? 1 : lastId + 1
        return lastId
    }

    /// Sends a message at once, or queues it until the socket has room. Either way, the caller may close the
    /// descriptors when this function returns.
    func send(_ bytes: [UInt8], descriptors: [Int32] = []) throws(Errno) {
        if outbox.isEmpty, try sendNow(bytes, descriptors) { return }
        var kept: [Descriptor] = []
        for descriptor in descriptors { kept.append(try Descriptor.duplicate(descriptor)) }
        outbox.append((bytes, kept))
        onBlocked?()
    }

    /// Sends queued messages as long as the socket has room.
    func flush() throws(Errno) {
        var sent = 0
        defer { outbox.removeFirst(sent) }
        while sent < outbox.count, try sendNow(outbox[sent].bytes, outbox[sent].descriptors.map(\.raw)) {
            // The next message may ask the keeper to close its own last.
            outbox[sent].descriptors = []
            sent += 1
        }
    }

    /// Blocks until all queued messages are sent, or the keeper is gone, but not after `end` (CLOCK_MONOTONIC).
    func flush(until end: Duration) {
        while isBlocked, Clock.monotonic() < end {
            if isShort {
                // The socket has room all the time.
                ThisProcess.sleep(Self.retryDelay)
            } else {
                _ = try? Descriptor.wait(socket.raw, writable: true, timeout: Self.retryDelay)
            }
            guard (try? flush()) != nil else { return }
        }
    }

    private func sendNow(_ bytes: [UInt8], _ descriptors: [Int32]) throws(Errno) -> Bool {
        isShort = false
        do throws(Errno) {
            return try transmit(socket.raw, bytes, descriptors)
        } catch {
            // Too many descriptors are in flight: try again when the keeper has received some of them. Or the kernel has
            // no memory for the message, which does not mean that the keeper is gone.
            guard error == .tooManyReferences || error == .noBufferSpace || error == .noMemory else { throw error }
            isShort = true
            return false
        }
    }

    /// Makes the event loop report room in the socket if messages are queued. If the kernel has refused one for lack of
    /// memory, calls `retry` later instead: epoll would report at once that the socket has room, and the loop would do
    /// nothing but retry.
    func updateEvents(_ loop: EventLoop, retry: @escaping () -> Void) {
        let waitsForRoom = isBlocked && !(isShort && armRetry(loop, retry))
        source?.setEvents(waitsForRoom ? [.readable, .writable] : .readable)
    }

    /// Returns false if there is no timer.
    private func armRetry(_ loop: EventLoop, _ retry: @escaping () -> Void) -> Bool {
        if isRetryArmed { return true }
        if retryTimer == nil {
            retryTimer = try? loop.timer { [weak self] in
                self?.isRetryArmed = false
                retry()
            }
        }
        guard let retryTimer else { return false }
        retryTimer.arm(after: Self.retryDelay)
        isRetryArmed = true
        return true
    }

    /// Sends the greeting and returns the keeper's answer. Throws EPROTONOSUPPORT if the keeper speaks no version that
    /// torpord knows.
    func greet() throws(Errno) -> (welcome: KeeperMessage.Welcome, descriptors: [Descriptor]) {
        var version = KeeperProtocol.version
        var answer = try ask(.hello(version: version))
        // After an upgrade of torpord alone, the keeper may be older and refuse the newest versions.
        while case .refused = answer.message, version > KeeperProtocol.oldestVersion {
            version -= 1
            answer = try ask(.hello(version: version))
        }
        let versions = KeeperProtocol.oldestVersion...KeeperProtocol.version
        guard case .welcome(let welcome) = answer.message, versions.contains(welcome.version),
            answer.descriptors.count == 2
        else { throw .protocolNotSupported }
        return (welcome, answer.descriptors)
    }

    private func ask(_ request: KeeperRequest) throws(Errno) -> Received {
        let id = nextId()
        try send(request.encoded(id: id))
        return try wait(for: id)
    }

    /// The next message; nil if there is none. Throws EPIPE when the keeper has closed the socket.
    func receive() throws(Errno) -> Received? {
        guard let raw = try Sockets.receiveMessage(socket.raw, into: buffer.bytes) else { return nil }
        if raw.bytes.isEmpty { throw .brokenPipe }
        guard let decoded = KeeperMessage.decode(raw.bytes) else {
            return Received(id: 0, message: .unknown(type: 0), descriptors: raw.descriptors)
        }
        return Received(id: decoded.id, message: decoded.message, descriptors: raw.descriptors)
    }

    /// Blocks until the next message arrives; throws ETIMEDOUT after 10 s.
    func waitForNext() throws(Errno) -> Received {
        let deadline = Clock.monotonic() + Self.patience
        while true {
            if let received = try receive() { return received }
            try flush()
            let step = min(deadline - Clock.monotonic(), isBlocked ? .milliseconds(10) : Self.patience)
            if step <= .zero { throw .timedOut }
            _ = try Descriptor.wait(socket.raw, timeout: step)
        }
    }

    /// Blocks until the answer with `id` arrives. Other messages are added to the backlog.
    func wait(for id: UInt32) throws(Errno) -> Received {
        while true {
            let received = try waitForNext()
            if received.id == id { return received }
            backlog.append(received)
        }
    }

    func takeBacklog() -> [Received] {
        defer { backlog = [] }
        return backlog
    }

    func close() {
        source?.cancel()
        source = nil
        retryTimer?.cancel()
        retryTimer = nil
        outbox = []
        socket.close()
    }
}

extension Errno {
    /// ETOOMANYREFS: more descriptors are in flight than this user may have open.
    fileprivate static var tooManyReferences: Errno { Errno(rawValue: 109) }
}
