// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import TestAddresses
import Testing
import TorporAPI

/// What is shown in an app's place while it comes to the foreground is gone when it is there, and delays nothing.
@Suite("Covers") struct CoverTests {
    /// Records what it is given, shows nothing, and ends when it is told.
    private static let viewer = """
        import os, signal, stat, sys
        here = os.path.dirname(os.path.abspath(__file__))
        log = os.open(here + "/covers", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        path = sys.argv[-1]
        with open(path, "rb") as picture:
            content = picture.read().hex()
        def over(*_):
            os.write(log, b"over\\n")
            os._exit(0)
        signal.signal(signal.SIGTERM, signal.SIG_IGN if "stubborn" in sys.argv else over)
        mode = stat.S_IMODE(os.stat(path).st_mode)
        os.write(log, ("%d %s %o %s\\n" % (os.getpid(), path, mode, content)).encode())
        while True:
            signal.pause()
        """

    /// Comes up when it is told.
    private static let slow = """
        from tp import *
        record("up")
        await_file("enough")
        notify("READY=1")
        wait()
        """

    private static func cover(_ words: String = "") -> String {
        "cover = [\"/usr/bin/python3\", \"-S\", \"@D/viewer.py\", \(words)\"%f\"]\ncover_after = \"10ms\"\n"
    }

    private static func toml(_ keys: String) -> String {
        """
        [apps.web]
        \(Scripts.python)"@D/app.py"]
        launch = "on-demand"
        ready = "notify"
        restart = "never"
        launch_deadline = "none"
        \(keys)

        """
    }

    private static let files = ["app.py": slow, "viewer.py": viewer]

    private struct Shown {
        let pid: Int32
        let path: String
        let mode: String
        let content: String
    }

    /// All that was shown, in its order.
    private static func shown(_ daemon: Daemon) -> [Shown] {
        let text = (try? File.readString(daemon.directory + "/covers")) ?? ""
        return text.split(separator: "\n").compactMap { line in
            let parts = line.split(separator: " ").map(String.init)
            guard parts.count == 4, let pid = Int32(parts[0]) else { return nil }
            return Shown(pid: pid, path: parts[1], mode: parts[2], content: parts[3])
        }
    }

    /// Waits until one more is shown.
    private static func waitForCover(_ daemon: Daemon, count: Int = 1) throws -> Shown {
        try daemon.eventually("a cover is shown") { shown(daemon).count >= count }
        return shown(daemon)[count - 1]
    }

    private static func waitUntilGone(_ shown: Shown, _ daemon: Daemon) throws {
        try daemon.eventually("the cover is gone") { !Truth.isAlive(shown.pid) && !File.exists(shown.path) }
    }

    private static func hex(_ bytes: [UInt8]) -> String { bytes.map { String(format: "%02x", $0) }.joined() }

    @Test("The launch image is shown until the app has become active, from a copy that nobody else can read")
    func launchImage() throws {
        let keys = Self.cover() + "launch_image = \"@D/launch.png\""
        try withDaemon(Self.toml(keys), files: Self.files) { daemon in
            try File.write(daemon.directory + "/launch.png", Pictured.png)
            _ = try daemon.verb(.start, "web") { $0.wait = false }
            let shown = try Self.waitForCover(daemon)
            #expect(shown.content == Self.hex(Pictured.png) && shown.path.hasSuffix(".png") && shown.mode == "400")
            #expect(Truth.isAlive(shown.pid))
            #expect(try daemon.summary("web").transition == "launching")
            try File.write(daemon.directory + "/enough", "")
            try daemon.waitFor("web", "active")
            try Self.waitUntilGone(shown, daemon)
            #expect(try File.readString(daemon.directory + "/covers").hasSuffix("over\n"))
            // One that goes elsewhere on its way has none either.
            try File.remove(daemon.directory + "/enough")
            try daemon.done(.stop, "web")
            _ = try daemon.verb(.start, "web") { $0.wait = false }
            let second = try Self.waitForCover(daemon, count: 2)
            try daemon.done(.stop, "web")
            try Self.waitUntilGone(second, daemon)
            // Into the background nobody sees it come.
            _ = try daemon.verb(.start, "web") { ($0.wait, $0.background) = (false, true) }
            try daemon.eventually("it is launched") { try daemon.summary("web").pid != nil }
            try File.write(daemon.directory + "/enough", "")
            try daemon.waitFor("web", "background")
            #expect(Self.shown(daemon).count == 2)
            #expect(try daemon.events("web").allSatisfy { !$0.text.hasPrefix("cover") })
        }
    }

    @Test("What the app showed last is shown where it comes back to that, and its launch image where it does not")
    func snapshot() throws {
        let shot: [UInt8] = Pictured.png + [7]
        let keys =
            Self.cover() + """
                launch_image = "@D/launch.png"
                snapshot = { file = "@D/shot.png" }
                transition_deadline = "1h"
                launch_deadline = "none"
                """
        var files = Delegates.files(
            "willEnterForeground=hold, restoreState=hold, didFinishLaunching=finish",
            before: """
                def finish(message):
                    return None if os.path.exists(HERE + "/slow") else "done"
                """
        )
        files["viewer.py"] = Self.viewer
        try withDaemon(Delegates.head + keys, files: files) { daemon in
            try File.write(daemon.directory + "/launch.png", Pictured.png)
            try File.write(daemon.directory + "/shot.png", shot)
            try daemon.done(.start, "web") { $0.background = true }
            try daemon.eventually("its snapshot is there") { try daemon.status("web").snapshot != nil }
            // Asleep, and slow to come back.
            try daemon.done(.suspend, "web")
            _ = try daemon.verb(.foreground, "web") { $0.wait = false }
            let back = try Self.waitForCover(daemon)
            #expect(back.content == Self.hex(shot))
            #expect(try daemon.summary("web").transition == "entering-foreground")
            let message = try daemon.waitForMessage("willEnterForeground")
            try daemon.ask("d.answer(\(try #require(message.id)))")
            try daemon.waitFor("web", "active")
            try Self.waitUntilGone(back, daemon)
            // Gone, with its state, which it is given back.
            try daemon.done(.suspend, "web")
            try daemon.plant("one")
            kill(try #require(daemon.processes(of: "web").first), SIGKILL)
            try daemon.waitFor("web", "not-running")
            _ = try daemon.verb(.start, "web") { $0.wait = false }
            let restored = try Self.waitForCover(daemon, count: 2)
            #expect(restored.content == Self.hex(shot))
            let offer = try daemon.waitForMessage("restoreState")
            try daemon.ask("d.answer(\(try #require(offer.id)))")
            try daemon.waitFor("web", "active")
            try Self.waitUntilGone(restored, daemon)
            // Begun anew it shows none of what it was.
            try daemon.done(.stop, "web")
            try File.write(daemon.directory + "/slow", "")
            _ = try daemon.verb(.start, "web") { $0.wait = false }
            #expect(try Self.waitForCover(daemon, count: 3).content == Self.hex(Pictured.png))
            let launched = try daemon.waitForMessage("didFinishLaunching", count: 3)
            try daemon.ask("d.answer(\(try #require(launched.id)))")
            try daemon.waitFor("web", "active")
        }
    }

    @Test("A cover that fails, does not end or outlives its torpord costs nothing")
    func failing() throws {
        let keys = Self.cover("\"stubborn\", ") + "launch_image = \"@D/launch.png\""
        try withDaemon(Self.toml(keys), files: Self.files) { daemon in
            func told(_ text: String) throws {
                try daemon.eventually("it is told: \(text)") {
                    try daemon.events("web").contains { $0.text.hasPrefix("cover") && $0.text.contains(text) }
                }
            }
            func launch() throws {
                try? File.remove(daemon.directory + "/enough")
                try daemon.done(.stop, "web")
                _ = try daemon.verb(.start, "web") { $0.wait = false }
            }
            // There is no picture, or none that is one.
            try launch()
            try told("launch.png: it cannot be read")
            try File.write(daemon.directory + "/launch.png", "some text")
            try launch()
            try told("launch.png: it is not a picture")
            try File.write(daemon.directory + "/launch.png", Pictured.png)
            // Told to end, it does not.
            try launch()
            let stubborn = try Self.waitForCover(daemon)
            try File.write(daemon.directory + "/enough", "")
            try daemon.waitFor("web", "active")
            try Self.waitUntilGone(stubborn, daemon)
            // The one that ran it is gone.
            try launch()
            let left = try Self.waitForCover(daemon, count: 2)
            try daemon.killTorpord()
            try daemon.waitUntilItAnswers()
            try Self.waitUntilGone(left, daemon)
            try File.write(daemon.directory + "/enough", "")
            try daemon.waitFor("web", "active")
            // It cannot be run, or fails.
            for (command, why) in [("/no/such/viewer", "/no/such/viewer"), ("/bin/false", "failed with exit status 1")]
            {
                let cover = "cover = [\"\(command)\", \"%f\"]\ncover_after = \"0s\"\nlaunch_image = \"@D/launch.png\""
                try daemon.apply(Self.toml(cover).replacingOccurrences(of: "@D", with: daemon.directory))
                try launch()
                try told(why)
                try File.write(daemon.directory + "/enough", "")
                try daemon.waitFor("web", "active")
            }
        }
    }

    @Test(
        "Its command is its user's, who can read the picture",
        .enabled(if: Users.isRoot, "only root has other users")
    )
    func user() throws {
        let keys = """
            user = "nobody"
            launch_image = "@D/launch.png"
            cover_after = "0s"
            cover = ["/bin/sh", "-c", "id -u; wc -c <\\"$0\\"; exec sleep 1000", "%f"]
            """
        let toml = """
            [apps.web]
            exec = ["/bin/sleep", "1000"]
            launch = "on-demand"
            ready = "notify"
            launch_deadline = "none"
            \(keys)

            """
        try withDaemon(toml) { daemon in
            try File.write(daemon.directory + "/launch.png", Pictured.png)
            _ = try daemon.verb(.start, "web") { $0.wait = false }
            try daemon.eventually("it has read its picture") {
                let log = (try? File.readString(daemon.directory + "/l/web.log")) ?? ""
                return log.contains("65534") && log.contains("\(Pictured.png.count)")
            }
        }
    }
}
