// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

@Suite("Cancelling very many transfers") struct CancelAllTests {
    @Test("All are cancelled and told, and others are answered in between")
    func slices() throws {
        try TransferScene.run(app: "mailbox_limit = 1000\n") { scene in
            let daemon = scene.daemon
            try daemon.done(.start, "web")
            let count = 300
            let began = """
                record("began %d" % len([
                    d.call("StartTransfer", direction="download", url="\(scene.base)slow%d" % i, file="slow%d" % i)
                    for i in range(\(count))
                ]))
                """
            try daemon.ask(began)
            #expect(try scene.infos.count == count)
            func message(_ request: ManagerRequest) -> [UInt8] {
                var bytes = request.call.json.serialised()
                bytes.append(0)
                return bytes
            }
            // All the questions are with torpord before it has done anything: whatever this machine is doing, some of
            // them are answered while the transfers are cancelled.
            let status = message(.status(app: "web"))
            let canceller = try Sockets.connect(path: daemon.socket)
            let other = try Sockets.connect(path: daemon.socket)
            try Descriptor.writeAll(canceller.raw, message(.cancelTransfers(CancelTransfersRequest(apps: ["web"]))))
            let questions = 20
            try Descriptor.writeAll(other.raw, (0..<questions).flatMap { _ in status })
            var answers: [UInt8] = []
            while answers.count(where: { $0 == 0 }) < questions {
                try #require(try Descriptor.wait(other.raw, timeout: .seconds(60)))
                answers += try #require(try Descriptor.read(other.raw, maximum: 1 << 16))
            }
            let left = answers.split(separator: 0).compactMap { bytes in
                (try? JSON.parse(Array(bytes)))?["parameters"]?["status"]?["transfers"]?.intValue
            }
            #expect(left.count == questions && left.contains { $0 > 0 && $0 < count }, "\(left)")
            var reply: [UInt8] = []
            while reply.last != 0 {
                try #require(try Descriptor.wait(canceller.raw, timeout: .seconds(60)))
                reply += try #require(try Descriptor.read(canceller.raw, maximum: 1 << 16))
            }
            let ids = (try? JSON.parse(Array(reply.dropLast())))?["parameters"]?["ids"]?.arrayValue
            #expect(ids?.count == count)
            #expect(try scene.infos.allSatisfy { $0.state == "cancelled" })
            try daemon.eventually("all are told") { try scene.told().count == count }
        }
    }
}
