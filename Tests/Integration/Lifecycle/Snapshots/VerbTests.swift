// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

@Suite("torpor snapshot") struct SnapshotVerbTests {
    private func torpor(_ daemon: Daemon, _ words: String...) throws -> (code: Int32, output: String) {
        try Spawn.run([Built.path("torpor"), "snapshot", "--socket", daemon.socket] + words)
    }

    private static let toml = """
        [apps.web]
        exec = ["/bin/sleep", "1000"]
        snapshot = ["/bin/printf", 'grün\\033[31m\\nrot']
        [apps.kiosk]
        exec = ["/bin/sleep", "1000"]
        snapshot = { file = "@D/shown.png" }

        """

    private func with(_ body: (Daemon) throws -> Void) throws {
        try withDaemon(Self.toml) { daemon in
            try File.replace(daemon.directory + "/shown.png", Pictured.png)
            for app in ["web", "kiosk"] {
                try daemon.waitFor(app, "active")
                try daemon.done(.suspend, app)
                try daemon.eventually("there is one") { try daemon.snapshot(app) != nil }
            }
            try body(daemon)
        }
    }

    @Test("writes a text or a picture as it is, into a pipe or a file, or tells of it in JSON")
    func writes() throws {
        try with { daemon in
            #expect(try torpor(daemon, "web").output == "grün\u{1b}[31m\nrot")
            let file = daemon.directory + "/out.png"
            let saved = try torpor(daemon, "kiosk", "-o", file)
            #expect(saved.code == 0 && saved.output.isEmpty)
            #expect(try File.read(file) == Pictured.png)
            let json = try JSON.parse(try torpor(daemon, "kiosk", "--json").output)
            let info = try SnapshotInfo(json: json)
            #expect(info.kind == .png && info.bytes == Int64(Pictured.png.count) && info.incarnation == 1)
            let status = try Spawn.run([Built.path("torpor"), "status", "kiosk", "--socket", daemon.socket]).output
            #expect(status.contains("snapshot: png, "), "\(status)")
            #expect(try torpor(daemon, "kiosk", "-o", "/no/folder/x.png").code == 1)
            #expect(try torpor(daemon, "web", "--save", "x").code == 2)
            #expect(try torpor(daemon).code == 2)
            #expect(try torpor(daemon, "nobody").code == 4)
        }
    }

    @Test(
        "shows a text on a terminal without what would change that, and of a picture how to save it",
        .enabled(if: Screen.isThere)
    )
    func terminal() throws {
        try with { daemon in
            let screen = try Screen(daemon, columns: 160)
            try screen.waitFor("kiosk")
            try screen.press("q")
            let torpor = Built.path("torpor")
            try screen.type("clear; \(torpor) snapshot web")
            try screen.waitFor("grün\u{fffd}[31m")
            try screen.waitFor("rot")
            try screen.type("clear; \(torpor) snapshot kiosk")
            try screen.waitFor("save it with ‘torpor snapshot kiosk -o FILE’")
            screen.close()
        }
    }

    @Test("of an app that has none says so; a script of an app gives it one")
    func gives() throws {
        let script = """
            import subprocess
            from tp import *
            await_file("go")
            text = subprocess.run([TORPOR, "snapshot", "--save", "-", "--json"], input=b"mine", capture_output=True)
            record("gave %d %s" % (text.returncode, text.stdout.decode().split()))
            wait()
            """
        let files = ["app.py": "TORPOR = '\(Built.path("torpor"))'\n" + script]
        try withDaemon("[apps.web]\nexec = [\"/usr/bin/python3\", \"@D/app.py\"]\n", files: files) { daemon in
            try daemon.waitFor("web", "active")
            let none = try torpor(daemon, "web")
            #expect(none.code == 1 && none.output.contains("web has no snapshot: it saves none"), "\(none)")
            #expect(try torpor(daemon, "web", "--json").output.hasPrefix("null\n"))
            #expect(try torpor(daemon, "web", "--json").code == 1)
            try daemon.done(.background, "web")
            try File.write(daemon.directory + "/go", "")
            try daemon.waitForRecord("web", "gave 0 ['{', '\"bytes\":', '4', '}']")
            #expect(try daemon.snapshotText() == "mine")
        }
    }
}
