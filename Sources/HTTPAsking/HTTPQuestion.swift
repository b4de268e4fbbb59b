// SPDX-License-Identifier: Apache-2.0

public import EventLoop
public import Linux
import TransferRules

/// One GET request to a server on this machine, run on the event loop, for example to check whether an app is ready. It
/// supports only the parts of HTTP that torpord needs. torpor-transfer, which downloads from other machines, follows
/// the same rules for responses.
///
/// Releasing the last reference cancels the request.
public final class HTTPQuestion {
    /// The target of the request.
    public struct Place: Hashable, Sendable, CustomStringConvertible {
        /// An IP address, or `localhost` for 127.0.0.1.
        public var host: String
        /// The TCP port.
        public var port: UInt16
        /// The path with the query, beginning with `/`.
        public var path: String

        /// Creates a target.
        public init(host: String, port: UInt16, path: String) { (self.host, self.port, self.path) = (host, port, path) }

        /// The target as a URL.
        public var description: String { "http://\(host):\(port)\(path)" }
    }

    /// The part of the response that is wanted.
    public enum Part: Hashable, Sendable {
        /// The status: do not wait for the rest.
        case status
        /// The status. The rest of the response is read and discarded until the server closes the connection, for at
        /// most 250 ms, so that no open connection remains that would count as use of the app.
        case statusAtEnd
        /// The whole response, with a body of at most `most` bytes.
        case body(most: Int)
    }

    /// A server's response.
    public struct Answer: Hashable, Sendable {
        /// The status code, from 200 to 999.
        public var status: Int
        /// The body of the response; empty if only the status was wanted.
        public var body: [UInt8]
    }

    /// Why there is no response. Each description continues a sentence that begins with the target.
    public enum Problem: Error, Hashable, Sendable, CustomStringConvertible {
        /// The connection failed or was lost.
        case connection(Errno)
        /// The response is not HTTP.
        case noHTTP
        /// The connection was closed before the end of the response.
        case cutShort
        /// The body exceeds this many bytes.
        case tooLong(Int)

        /// The rest of a sentence that begins with the target.
        public var description: String {
            switch self {
            case .connection(let error): ": \(error)"
            case .noHTTP: " does not answer in HTTP"
            case .cutShort: " closed the connection before the end of its answer"
            case .tooLong(let most): " gives more than \(most >> 20) MiB"
            }
        }
    }

    /// The most bytes of a response's head.
    public static let mostHead = 64 << 10
    /// The most bytes per read, so that other work on the loop gets its turn.
    private static let portion = 64 << 10
    /// How long the server may take to close the connection after its response.
    public static let patience = Duration.milliseconds(250)

    private let place: Place
    private let part: Part
    private let loop: EventLoop
    private let completion: (Result<Answer, Problem>) -> Void
    private var socket: Descriptor?
    private var source: IOSource?
    private var timer: TimerSource?
    private var head = ResponseHead()
    /// The incomplete line of the head, later the body.
    private var bytes: [UInt8] = []
    /// Whether the response is complete, and only the end of the connection is awaited.
    public private(set) var isClosing = false
    private var isOver = false

    /// Connects and sends the request.
    ///
    /// - Parameter completion: called once by the loop, in a later turn, unless the last reference to this object is
    ///   released before.
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
            // Reset the connection when it is closed: a socket in TIME-WAIT would count as use of the app.
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
            // The request is short enough for the send buffer of a new connection.
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
            // Some servers reset the connection once they have answered.
            return part == .statusAtEnd && isClosing ? answered() : finish(.failure(.connection(error)))
        }
        guard let some else { return }
        if some.isEmpty { return closed() }
        if part == .statusAtEnd, isClosing { return }
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
            if part == .status, head.status >= 200 { return answered() }
        }
        bytes = Array(rest)
        if head.size + (head.isComplete ? 0 : bytes.count) > Self.mostHead { finish(.failure(.noHTTP)) }
    }

    private func takeBody() {
        guard case .body(let most) = part else { return awaitClose() }
        // The request uses HTTP/1.0, so a correct server sends no chunked response.
        if head["transfer-encoding"] != nil { return finish(.failure(.noHTTP)) }
        let length = head.length
        guard bytes.count <= most, length ?? 0 <= most else { return finish(.failure(.tooLong(most))) }
        guard let length, bytes.count >= length, !isClosing else { return }
        awaitClose()
    }

    /// Waits until the server has closed the connection, because the app must not be suspended before that.
    private func awaitClose() {
        isClosing = true
        timer = try? loop.timer { [weak self] in self?.closed() }
        timer?.arm(after: Self.patience)
    }

    private func answered() { finish(.success(Answer(status: head.status, body: []))) }

    private func closed() {
        guard head.isComplete else { return finish(.failure(.noHTTP)) }
        if part == .statusAtEnd { return answered() }
        let length = head.length.map { Int(clamping: $0) } ?? bytes.count
        guard bytes.count >= length else { return finish(.failure(.cutShort)) }
        finish(.success(Answer(status: head.status, body: Array(bytes.prefix(length)))))
    }
}
