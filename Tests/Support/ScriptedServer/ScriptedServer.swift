// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
package import Varlink

/// A service that does what a script says, one connection after the other; each ends when its part of the script does.
package final class ScriptedServer: @unchecked Sendable {
    /// The server's side of one connection.
    package struct Exchange {
        package let server: ScriptedServer
        fileprivate let socket: Descriptor
        fileprivate let received = Received()

        /// What the client has sent, and was not heard yet.
        fileprivate final class Received { var framer = MessageFramer() }

        /// The next call; it is also kept in `server.calls`.
        @discardableResult
        package func hear() throws -> VarlinkCall {
            while true {
                if let message = try received.framer.next() {
                    let call = try VarlinkCall(json: JSON.parse(message))
                    server.note(call)
                    return call
                }
                guard try Descriptor.wait(socket.raw, timeout: .seconds(60)),
                    let bytes = try Descriptor.read(socket.raw, maximum: 1 << 16), !bytes.isEmpty
                else { throw VarlinkClientError.disconnected }
                received.framer.append(bytes[...])
            }
        }

        package func say(_ parameters: JSON, continues: Bool = false, error: String? = nil) throws {
            let response = VarlinkResponse(parameters: parameters, continues: continues, error: error)
            try sayRaw(response.json.serialised() + [0])
        }

        /// Sends all bytes, also if the client reads them slowly.
        package func sayRaw(_ bytes: [UInt8]) throws {
            var rest = bytes[...]
            while !rest.isEmpty {
                let count = try Sockets.send(socket.raw, Array(rest), wait: true) ?? 0
                if count == 0 { usleep(1_000) }
                rest = rest.dropFirst(count)
            }
        }

        /// Waits until the client has gone.
        package func waitForClient() throws {
            while try Descriptor.wait(socket.raw, timeout: .seconds(60)) {
                guard let bytes = try? Descriptor.read(socket.raw, maximum: 1 << 16), !bytes.isEmpty else { return }
            }
        }
    }

    /// What happens on the server's thread.
    package enum Part: Sendable {
        case connection(@Sendable (Exchange) throws -> Void)
        /// Nobody listens at the socket any more; it stays where it is, or is removed.
        case vanish(removesSocket: Bool)
        /// Listens again.
        case listen
        case rest(Duration)
        /// Waits, as a rule for something that the client does.
        case wait(@Sendable () throws -> Void)
    }

    package let folder: String
    package let path: String
    private let lock = NSLock()
    private var heard: [VarlinkCall] = []
    private var problems: [String] = []
    private var listener: Descriptor?
    private let ended = DispatchSemaphore(value: 0)

    /// Listens, and goes through the script on a thread of its own.
    package init(_ script: [Part]) throws {
        var template = Array((NSTemporaryDirectory() + "tp-XXXXXX").utf8CString)
        guard mkdtemp(&template) != nil else { throw Errno.ioError }
        folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        path = folder + "/s"
        listener = try Sockets.listen(path: path)
        Thread.detachNewThread { [self] in
            for part in script {
                do { try perform(part) } catch { lock.withLock { problems.append("\(error)") } }
            }
            ended.signal()
        }
    }

    /// The calls so far.
    package var calls: [VarlinkCall] { lock.withLock { heard } }

    /// Waits for the end of the script, and gives what went wrong in it.
    package func finish() -> [String] {
        let isOver = ended.wait(timeout: .now() + 90) == .success
        try? FileManager.default.removeItem(atPath: folder)
        return lock.withLock { problems } + (isOver ? [] : ["the script did not come to its end"])
    }

    private func note(_ call: VarlinkCall) { lock.withLock { heard.append(call) } }

    private func perform(_ part: Part) throws {
        switch part {
        case .connection(let body):
            guard let listener, try Descriptor.wait(listener.raw, timeout: .seconds(60)),
                let socket = try Sockets.accept(listener.raw)
            else { throw VarlinkClientError.timedOut }
            try body(Exchange(server: self, socket: socket))
        case .vanish(let removesSocket):
            listener = nil
            if removesSocket { try File.remove(path) }
        case .listen: listener = try Sockets.listen(path: path)
        case .rest(let time): ThisProcess.sleep(time)
        case .wait(let body): try body()
        }
    }
}
