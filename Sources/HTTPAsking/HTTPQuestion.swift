// SPDX-License-Identifier: Apache-2.0

public import EventLoop
public import Linux
import TransferRules

/// One GET to a server of this machine's, asked on the loop: whether an app is ready, what it shows. For files of other
/// machines there is torpor-transfer, with libcurl, as the app's user; torpord itself needs no more of HTTP than this, and
/// judges what comes back by the same rules.
///
/// It ends with its last reference.
public final class HTTPQuestion {
    /// Where it goes to.
    public struct Place: Hashable, Sendable, CustomStringConvertible {
        /// An address; `localhost` is 127.0.0.1.
        public var host: String
        /// Of TCP.
        public var port: UInt16
        /// With its query, beginning with `/`.
        public var path: String

        /// A place.
        public init(host: String, port: UInt16, path: String) { (self.host, self.port, self.path) = (host, port, path) }

        /// As a URL.
        public var description: String { "http://\(host):\(port)\(path)" }
    }

    /// What is wanted of the answer.
    public enum Part: Hashable, Sendable {
        /// Its status: the rest is not waited for.
        case status
        /// All of it, with a body of at most so many bytes.
        case body(most: Int)
    }

    /// What a server said.
    public struct Answer: Hashable, Sendable {
        /// 200 to 999.
        public var status: Int
        /// Empty where only the status was wanted.
        public var body: [UInt8]
    }

    /// Why there is no answer. Each follows on the place in a sentence.
    public enum Problem: Error, Hashable, Sendable, CustomStringConvertible {
        /// The connection could not be made, or was lost.
        case connection(Errno)
        /// What came is no answer of HTTP.
        case noHTTP
        /// The connection was closed before all of it had come.
        case cutShort
        /// The body has more bytes than so many.
        case tooLong(Int)

        /// What follows on the place.
        public var description: String {
            switch self {
            case .connection(let error): ": \(error)"
            case .noHTTP: " does not answer in HTTP"
            case .cutShort: " closed the connection before the end of its answer"
            case .tooLong(let most): " gives more than \(most >> 20) MiB"
            }
        }
    }

    /// Bytes that the head of an answer may have.
    public static let mostHead = 64 << 10
    /// Read at a time: others have their turn in between.
    private static let portion = 64 << 10
    /// So long a server has to close the connection after its answer.
    private static let patience = Duration.milliseconds(250)

    private let place: Place
    private let part: Part
    private let loop: EventLoop
    private let completion: (Result<Answer, Problem>) -> Void
    private var socket: Descriptor?
    private var source: IOSource?
    private var timer: TimerSource?
    private var head = ResponseHead()
    /// Of the head: the line that is not whole yet. Then the body.
    private var bytes: [UInt8] = []
    private var isClosing = false
    private var isOver = false

    /// Asks.
    ///
    /// - Parameter completion: called once by the loop, in a later turn, and not after the last reference is gone.
    public init(
        _ place: Place,
        for part: Part,
        on loop: EventLoop,
        _ completion: @escaping (Result<Answer, Problem>) -> Void
    ) {
        (self.place, self.part, self.loop, self.completion) = (place, part, loop, completion)
        do throws(Errno) {
            let address = place.host == "localhost" ? "127.0.0.1" : place.host
            let socket = try Sockets.connectTCP(address: address, port: place.port)
            // That torpord looked is no use of the app: nothing of the connection stays behind for those who count.
            if part != .status { try Sockets.resetOnClose(socket.raw) }
            source = try loop.watch(socket.raw, .writable) { [weak self] _ in self?.ask() }
            self.socket = socket
        } catch {
            loop.later { [weak self] in self?.finish(.failure(.connection(error))) }
        }
    }

    deinit { stop() }

    private func finish(_ result: Result<Answer, Problem>) {
        guard !isOver else { return }
        stop()
        completion(result)
    }

    private func stop() {
        isOver = true
        timer?.cancel()
        timer = nil
        source?.cancel()
        source = nil
        socket = nil
    }

    private func ask() {
        guard let socket else { return }
        if let error = Sockets.pendingError(socket.raw) { return finish(.failure(.connection(error))) }
        source?.cancel()
        let request =
            "GET \(place.path) HTTP/1.0\r\nHost: \(place.host):\(place.port)\r\nUser-Agent: torpor\r\n"
            + "Connection: close\r\n\r\n"
        do throws(Errno) {
            // A request this short fits into the buffer of a fresh connection.
            _ = try Descriptor.write(socket.raw, Array(request.utf8))
            source = try loop.watch(socket.raw, .readable, priority: part == .status ? .normal : .last) {
                [weak self] _ in self?.read()
            }
        } catch {
            finish(.failure(.connection(error)))
        }
    }

    private func read() {
        guard let socket else { return }
        let some: [UInt8]?
        do throws(Errno) { some = try Descriptor.read(socket.raw, maximum: Self.portion) } catch {
            return finish(.failure(.connection(error)))
        }
        guard let some else { return }
        if some.isEmpty { return closed() }
        bytes += some
        if !head.isComplete { takeHead() }
        if !isOver, head.isComplete { takeBody() }
    }

    private func takeHead() {
        var rest = bytes[...]
        while !head.isComplete, let end = rest.firstIndex(of: 0x0a) {
            let isFirst = head.size == 0
            head.take(rest[...end])
            rest = rest[(end + 1)...]
            if isFirst && head.status == 0 { return finish(.failure(.noHTTP)) }
            if part == .status, head.status >= 200 {
                return finish(.success(Answer(status: head.status, body: [])))
            }
        }
        bytes = Array(rest)
        if head.size + (head.isComplete ? 0 : bytes.count) > Self.mostHead { finish(.failure(.noHTTP)) }
    }

    private func takeBody() {
        guard case .body(let most) = part else { return }
        // To a request of HTTP/1.0 nothing comes in chunks.
        if head["transfer-encoding"] != nil { return finish(.failure(.noHTTP)) }
        let length = head.length
        guard bytes.count <= most, length ?? 0 <= most else { return finish(.failure(.tooLong(most))) }
        guard let length, bytes.count >= length, !isClosing else { return }
        isClosing = true
        // It closes the connection now, as it was asked to: the app is not to fall asleep with that before it.
        timer = try? loop.timer { [weak self] in self?.closed() }
        timer?.arm(after: Self.patience)
    }

    private func closed() {
        guard head.isComplete else { return finish(.failure(.noHTTP)) }
        let length = head.length.map { Int(clamping: $0) } ?? bytes.count
        guard bytes.count >= length else { return finish(.failure(.cutShort)) }
        finish(.success(Answer(status: head.status, body: Array(bytes.prefix(length)))))
    }
}
