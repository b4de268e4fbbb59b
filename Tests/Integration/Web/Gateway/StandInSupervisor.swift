// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Varlink

/// What a gateway sees of a supervisor: it takes what is posted, of as many clients as there are, and says for each app
/// what a test wants it to say.
final class StandInSupervisor: @unchecked Sendable {
    enum Answer: Sendable {
        case taken
        case error(String)
        /// Nothing is said, and the connection ends.
        case silence
        /// Nothing is said until the answer is another one.
        case held
    }

    private let path: String
    private let lock = NSLock()
    private var posts: [JSON] = []
    private var answers: [String: Answer] = [:]
    private var delay: Duration = .zero
    private var listener: Descriptor?
    private var clients: [Descriptor] = []

    /// A descriptor on its way to the thread that uses it.
    private struct Held: @unchecked Sendable {
        let descriptor: Descriptor
    }

    init(path: String) { self.path = path }

    /// Begins to listen.
    func listen() throws {
        let held = Held(descriptor: try Sockets.listen(path: path))
        lock.lock()
        listener = held.descriptor
        lock.unlock()
        Thread.detachNewThread { [self] in
            while isCurrent(held.descriptor) {
                guard (try? Descriptor.wait(held.descriptor.raw, timeout: .milliseconds(100))) == true,
                    isCurrent(held.descriptor), let client = try? Sockets.accept(held.descriptor.raw)
                else { continue }
                take(Held(descriptor: client), from: held)
            }
        }
    }

    private func take(_ client: Held, from held: Held) {
        lock.lock()
        let isTaken = listener === held.descriptor
        if isTaken { clients.append(client.descriptor) }
        lock.unlock()
        if isTaken { Thread.detachNewThread { [self] in serve(client.descriptor) } }
    }

    private func isCurrent(_ other: Descriptor) -> Bool {
        lock.lock()
        defer { lock.unlock() }
        return listener === other
    }

    /// Is gone, with its connections.
    func end() {
        lock.withLock {
            listener = nil
            for client in clients {
                try? Sockets.shutdownReading(client.raw)
                try? Sockets.shutdownWriting(client.raw)
            }
            clients = []
        }
        try? File.remove(path)
    }

    private func serve(_ client: Descriptor) {
        var framer = MessageFramer()
        while let ready = try? Descriptor.wait(client.raw, timeout: .seconds(60)), ready,
            let bytes = try? Descriptor.read(client.raw, maximum: 1 << 16), !bytes.isEmpty
        {
            framer.append(bytes)
            while let message = try? framer.next() {
                guard let call = try? VarlinkCall(json: JSON.parse(message)) else { return }
                let app = call.parameters["app"]?.stringValue ?? ""
                let (first, id, pause) = lock.withLock {
                    posts.append(call.parameters)
                    return (answers[app] ?? .taken, posts.count, delay)
                }
                ThisProcess.sleep(pause)
                var answer = first
                while case .held = answer {
                    usleep(1_000)
                    answer = lock.withLock { listener == nil ? .silence : answers[app] ?? .taken }
                }
                let response: VarlinkResponse
                switch answer {
                case .taken:
                    response = VarlinkResponse(parameters: [
                        "id": .int(Int64(id)), "change": "added", "outcome": "waits",
                    ])
                case .error(let name):
                    let parameters: JSON = [
                        "app": .string(app), "name": .string(app), "message": .string("\(app) does not"),
                    ]
                    response = VarlinkResponse(parameters: parameters, error: "io.torpor.Manager." + name)
                case .silence, .held:
                    try? Sockets.shutdownWriting(client.raw)
                    return
                }
                guard (try? Sockets.send(client.raw, response.json.serialised() + [0], wait: true)) != nil else {
                    return
                }
            }
        }
    }

    /// From now on it says that to what is for the app.
    func answer(_ app: String, _ answer: Answer) { lock.withLock { answers[app] = answer } }

    /// From now on it takes so long for each.
    func take(_ time: Duration) { lock.withLock { delay = time } }

    /// All that was posted for an app, also what was not taken.
    func posts(_ app: String) -> [JSON] { lock.withLock { posts.filter { $0["app"] == .string(app) } } }
}
