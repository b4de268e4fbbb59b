// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

@Suite("The state in a stream of an app that ‘torpor move’ moves") struct MovedStateTests {
    /// Moves the app with `torpor move`, for which a script stands for ssh.
    private func move(
        _ from: StateScene.Node,
        _ to: StateScene.Node,
        at location: SourceLocation = #_sourceLocation
    ) throws {
        let script = from.daemon.directory + "/ssh"
        let words = "shift 2\nexec '\(Built.path("torpor"))' \"$@\" --socket '\(to.daemon.socket)'\n"
        try File.write(script, words)
        let (code, output) = try Spawn.run([
            Built.path("torpor"), "move", "shop", to.name, "--ssh", "sh \(script)", "--socket", from.daemon.socket,
        ])
        #expect(code == 0, "\(output)", sourceLocation: location)
        try to.daemon.waitFor("shop", "active")
    }

    @Test("goes along without a claim, and back again; the former owner is fenced")
    func moved() throws {
        try StateScene.with { scene in
            let (north, south) = (scene.north, scene.south)
            for node in [north, south] { try scene.gateway(node) }
            try scene.takeOver(north)
            try scene.save(north, "one")
            try File.write(north.daemon.directory + "/last", "the end")
            try move(north, south)
            #expect(south.daemon.records("shop").first == "got the end")
            try scene.waitUntilPushed(south)
            #expect(south.log.contains("shop: is claimed, since north has given it back"))
            let (code, output) = try scene.state(north, "push", "shop")
            #expect(code == 1 && output.contains("was claimed since by south"), "\(output)")
            try scene.save(south, "two")
            try scene.waitUntilPushed(south)
            // The former owner has a token of old, which is worth nothing.
            try move(south, north)
            #expect(north.daemon.records("shop").last == "got two")
            try scene.save(north, "three")
            try scene.waitUntilPushed(north)
            for node in [north, south] {
                #expect(!node.log.contains("not pushed"), "\(node.log)")
            }
            // It is owned without a word about the state, and nothing was moved: what the other machine has is kept.
            try north.daemon.done(.disown, "shop") { $0.stop = true }
            try south.daemon.done(.own, "shop")
            try scene.fixture.eventually("a word about it") { south.log.contains("was claimed since by north") }
            let row = try scene.row(south)
            #expect(row["node"] == "north" && row["released"] == true && row["ours"] == false, "\(row)")
        }
    }

    @Test("follows when the server is there again, also if the app has saved another since")
    func away() throws {
        try StateScene.with { scene in
            let (north, south) = (scene.north, scene.south)
            for node in [north, south] { try scene.gateway(node) }
            try scene.takeOver(north)
            try scene.save(north, "one")
            try scene.waitUntilPushed(north)
            try scene.stopServer()
            try File.write(north.daemon.directory + "/last", "the end")
            try move(north, south)
            try scene.save(south, "two")
            try scene.startServer()
            try scene.waitUntilPushed(south)
            #expect(try scene.row(south)["bytes"] == scene.row(north)["bytes"])
            let client = try scene.state(south, "list", "shop")
            #expect(client.output.contains("south"), "\(client)")
        }
    }

    @Test("is claimed by no machine that does not own the app, nor while its owner has not given it back")
    func kept() throws {
        try StateScene.with { scene in
            let (north, south) = (scene.north, scene.south)
            try scene.takeOver(north)
            try scene.save(north, "one")
            #expect(try scene.state(north, "push", "shop").code == 0)
            // South has the same state, and owns the app too, as after a mistake.
            let document = try Spawn.run([
                Built.path("torpor"), "state", "export", "shop", "--no-mail", "--socket", north.daemon.socket,
            ]).output
            let file = south.daemon.directory + "/exported"
            try File.write(file, document)
            let words = "state import shop --socket '\(south.daemon.socket)' <'\(file)'"
            let script = "'\(Built.path("torpor"))' \(words)"
            let given = try Spawn.run(["/bin/sh", "-c", script])
            #expect(given.code == 0, "\(given)")
            try scene.gateway(south)
            #expect(try scene.row(south)["node"] == "north")
            try south.daemon.done(.own, "shop")
            try south.daemon.waitFor("shop", "active")
            #expect(south.daemon.records("shop") == ["got one"])
            try scene.save(south, "two")
            // North gives it back: then south may have it. The gateway had looked before.
            try scene.gateway(north)
            #expect(try scene.row(south)["node"] == "north")
            try north.daemon.done(.disown, "shop") { $0.stop = true }
            try scene.waitUntilPushed(south)
            #expect(try scene.row(south)["node"] == "south")
        }
    }
}
