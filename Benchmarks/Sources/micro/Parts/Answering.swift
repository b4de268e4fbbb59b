// SPDX-License-Identifier: Apache-2.0

import EventLoop
import Glibc
import TorporAPI
import Varlink
import VarlinkServer

extension Part {
    static let varlinkStatus = Part(
        name: "varlink-status",
        what: "a request for one app's status is read from a connection, and its answer is in the client's hands"
    ) {
        let status = AppStatus(summary: summary(of: 1))
        return try serving(.status(app: "worker@1")) { $0.send(Replies.status(status)) }
    }

    static let varlinkList = Part(
        name: "varlink-list",
        what: "a request for a list of a hundred apps, likewise",
        counts: (few: 20, many: 100)
    ) {
        let summaries = (0..<100).map { summary(of: $0) }
        return try serving(.list) { $0.sendText { writer in Replies.append(list: summaries, to: &writer) } }
    }

    private static func summary(of number: Int) -> AppSummary {
        AppSummary(
            name: "worker@\(number)",
            state: "active",
            goal: "active",
            pid: 100_000 + Int32(number),
            incarnation: 1,
            uptime: 123.5,
            memoryBytes: 4_194_304,
            cpuSeconds: 0.25,
            status: "waiting for work"
        )
    }

    /// A server like torpord's, and a client connected to it.
    private static func serving(
        _ request: ManagerRequest,
        _ answer: @escaping (Reply) -> Void
    ) throws -> (_ count: Int) throws -> Void {
        let loop = try EventLoop()
        let path = Scratch.path("varlink")
        let information = VarlinkServiceInfo(vendor: "Torpor", product: "micro", version: "1", url: "")
        let interface = VarlinkInterface(name: ManagerInterface.name, description: ManagerInterface.description)
        let server = try VarlinkServer(loop: loop, path: path, info: information, interfaces: [interface])
        server.handler = { _, _, reply in answer(reply) }
        let client = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        guard connectSocket(client, path) else { throw WentWrong("cannot connect to \(path)") }
        let request = request.call.json.serialised() + [0]
        var buffer = [UInt8](repeating: 0, count: 1 << 18)
        return { count in
            for _ in 0..<count {
                guard write(client, request, request.count) == request.count else { throw WentWrong("cannot ask") }
                var received = 0
                while received == 0 || buffer[received - 1] != 0 {
                    try loop.runOnce(timeout: .zero)
                    let more = buffer.withUnsafeMutableBytes { bytes in
                        let flags = Int32(MSG_DONTWAIT)
                        return recv(client, bytes.baseAddress! + received, bytes.count - received, flags)
                    }
                    if more > 0 { received += more }
                }
                guard received > 100 else { throw WentWrong("the answer has \(received) bytes") }
            }
            withExtendedLifetime(server) {}
        }
    }
}
