// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

@Suite("Transfers go on when those who see to them are lost", .serialized)
struct TransferLossTests {
    @Test(
        "It goes on where it was when torpord's keeper or what transfers is lost",
        arguments: [nil, Loss.keeper, .both]
    )
    func lost(loss: Loss?) throws {
        try TransferScene.run(losing: true) { scene in
            let daemon = scene.daemon
            try daemon.done(.start, "web")
            let id = try scene.get("slow", ", sha256='\(Self.sum)'")
            try scene.waitForHalf(id)
            let before = try #require(scene.helpers.first)
            try daemon.done(.suspend, "web")
            if let loss { try daemon.lose(loss) } else { kill(before, SIGKILL) }
            try daemon.eventually("another one goes on") {
                let helpers = scene.helpers
                return !helpers.contains(before) && helpers.count == 1 && scene.requests.count == 2
            }
            #expect(scene.requests.last?.hasSuffix("bytes=\(1 << 19)-") == true, "\(scene.requests)")
            try scene.go()
            try scene.expectDone("slow")
            try daemon.eventually("nothing is kept of it") { try scene.infos.isEmpty && scene.parts.isEmpty }
            #expect(try scene.told().count == 1)
        }
    }

    @Test(
        "What transfers outlives torpord: nothing is asked for twice",
        arguments: [Loss.killed, .upgraded],
        [true, false]
    )
    func outlives(loss: Loss, isUpload: Bool) throws {
        try TransferScene.run(losing: true) { scene in
            let daemon = scene.daemon
            try begin(scene, isUpload: isUpload)
            let before = scene.helpers
            try #require(before.count == 1)
            try daemon.lose(loss)
            try daemon.eventually("the next one knows it") { try scene.infos.first?.state == "running" }
            #expect(scene.helpers == before, "it is another process")
            try scene.go()
            try expectDone(scene, isUpload: isUpload)
            #expect(scene.requests.count == 1, "\(scene.requests)")
            try daemon.eventually("nothing is kept of it") { try scene.infos.isEmpty && scene.parts.isEmpty }
            try daemon.eventually("its process goes when it has nothing to do") { scene.helpers.isEmpty }
            #expect(try scene.told().count == 1)
        }
    }

    @Test("What ends while there is no torpord is told by the next", arguments: [true, false])
    func away(isUpload: Bool) throws {
        try TransferScene.run(losing: true) { scene in
            let daemon = scene.daemon
            try begin(scene, isUpload: isUpload)
            let before = scene.helpers
            try daemon.lose(.killed) {
                try scene.go()
                try daemon.eventually("it ends") {
                    isUpload
                        ? scene.parts.contains { $0.hasSuffix(".done") } : File.exists(scene.state + "/slow")
                }
            }
            // It goes when it has nothing to do, and another one never comes.
            #expect(before.count == 1 && Set(scene.helpers).isSubset(of: before), "it is another process")
            try expectDone(scene, isUpload: isUpload)
            #expect(scene.requests.count == 1, "\(scene.requests)")
            try daemon.eventually("nothing is kept of it") { try scene.infos.isEmpty && scene.parts.isEmpty }
            #expect(try scene.told().count == 1)
        }
    }

    /// Has a file sent or fetched, as far as the server lets it.
    private func begin(_ scene: TransferScene, isUpload: Bool) throws {
        try scene.daemon.done(.start, "web")
        guard isUpload else { return try scene.waitForHalf(try scene.get("slow")) }
        try TransferServer.data.write(to: URL(fileURLWithPath: scene.state + "/out"))
        try scene.daemon.ask(
            "d.call('StartTransfer', direction='upload', url='\(scene.base)slow', file='\(scene.state)/out')"
        )
        try scene.daemon.eventually("it is sent") { scene.requests == ["PUT /slow -"] }
    }

    private func expectDone(_ scene: TransferScene, isUpload: Bool) throws {
        guard isUpload else { return try scene.expectDone("slow") }
        try scene.daemon.eventually("it is told") { try scene.told().count == 1 }
        #expect(try scene.told()[0]["error"]?.isNull == true && scene.told()[0]["status"] == 201)
        let file = URL(fileURLWithPath: scene.daemon.directory + "/put.slow")
        #expect(try Data(contentsOf: file) == TransferServer.data)
    }

    @Test("A process that is found and does not answer holds up nothing for good", arguments: [true, false])
    func found(isQuit: Bool) throws {
        try TransferScene.run(losing: true) { scene in
            let daemon = scene.daemon
            try daemon.done(.start, "web")
            try scene.waitForHalf(try scene.get("slow"))
            let before = try #require(scene.helpers.first)
            // It is stopped: it could not say that it is there.
            kill(before, SIGSTOP)
            try daemon.lose(.killed)
            if isQuit {
                try daemon.done(.kill, "web")
                try daemon.eventually("it has nothing to do any more") { scene.helpers.isEmpty }
                try daemon.eventually("nothing is kept of it") { try scene.infos.isEmpty && scene.parts.isEmpty }
            } else {
                kill(before, SIGKILL)
                try daemon.eventually("another one goes on") { scene.requests.count == 2 }
                try scene.go()
                try scene.expectDone("slow")
            }
        }
    }

    /// Of what the server gives.
    private static let sum: String = {
        let path = NSTemporaryDirectory() + "/transfer-data"
        try? TransferServer.data.write(to: URL(fileURLWithPath: path))
        defer { try? FileManager.default.removeItem(atPath: path) }
        return (try? Spawn.run(["/usr/bin/sha256sum", path]).output.prefix(64)).map(String.init) ?? ""
    }()
}
