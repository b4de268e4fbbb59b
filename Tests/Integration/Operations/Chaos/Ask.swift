// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Linux
import TorporAPI
import Varlink

/// A request on its way. Nothing waits for it: torpord may be killed at any moment of it.
final class Ask {
    enum Outcome {
        case answered(VerbResult)
        /// The connection ended before the answer: it may have been carried out or not.
        case broken(String)
        /// It was answered, but not with a result.
        case failed(String)
    }

    let app: String
    let verb: Verb
    let background: Bool
    private var socket: Descriptor?
    private var framer = MessageFramer()
    private var trouble = "nobody listened"

    init(_ verb: Verb, _ app: String, background: Bool, socket path: String) {
        self.app = app
        self.verb = verb
        self.background = background
        var request = VerbRequest(verb: verb, apps: [app])
        request.wait = false
        request.background = background
        let call = ManagerRequest.verb(request).call
        do throws(Errno) {
            let socket = try Sockets.connect(path: path, nonBlocking: true)
            let message = VarlinkCall(method: call.method, parameters: call.parameters).json.serialised() + [0]
            guard try Descriptor.write(socket.raw, message) == message.count else { return }
            self.socket = socket
        } catch {
            trouble = "\(error)"
        }
    }

    /// The outcome, if there is one by now.
    func outcome() -> Outcome? {
        guard let socket else { return .broken(trouble) }
        do {
            while let bytes = try Descriptor.read(socket.raw, maximum: 1 << 16) {
                if bytes.isEmpty { return .broken("the connection ended") }
                framer.append(bytes)
                if let message = try framer.next() { return try Self.read(message) }
            }
            return nil
        } catch {
            return .broken("\(error)")
        }
    }

    private static func read(_ message: ArraySlice<UInt8>) throws -> Outcome {
        let response = try VarlinkResponse(json: try JSON.parse(message))
        if let error = response.error { return .failed("\(error) \(response.parameters)") }
        guard let result = response.parameters["results"]?.arrayValue?.first else {
            return .failed("\(response.parameters)")
        }
        return .answered(try VerbResult(json: result))
    }
}
