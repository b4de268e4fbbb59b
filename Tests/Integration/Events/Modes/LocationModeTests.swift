// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

@Suite(
    "The background mode location",
    .enabled(if: GPSFake.obstacle == nil, "gpsd is needed: make deps")
)
struct LocationModeTests {
    static let home = (latitude: 52.52, longitude: 13.405)
    /// 1,100 m north of it.
    static let away = (latitude: 52.53, longitude: 13.405)

    static func toml(_ gps: GPSFake, _ more: String) -> String {
        """
        gpsd = "127.0.0.1:\(gps.port)"
        [apps.guide]
        exec = ["/usr/bin/python3", "-S", "@D/guide.py"]
        restart = "never"
        event_time = "200ms"
        background_modes = ["location"]
        ready = "notify"
        signals = { didReceiveEvent = "SIGUSR1" }
        \(more)
        """
    }

    static let guide = ["guide.py": "import tp\ntp.on('SIGUSR1')\ntp.record('runs')\ntp.notify('READY=1')\ntp.wait()\n"]

    /// Three seconds here, three there.
    static let toAndFro = Array(repeating: home, count: 60) + Array(repeating: away, count: 60)

    @Test("Regions wake who sleeps when they are entered and left")
    func regions() throws {
        let gps = try GPSFake()
        let more = """
            launch = "background"
            location = { updates = "none" }
            [[apps.guide.regions]]
            name = "home"
            latitude = 52.52
            longitude = 13.405
            radius = 200
            settle = "100ms"
            [[apps.guide.regions]]
            name = "work"
            latitude = 52.53
            longitude = 13.405
            radius = 200
            settle = "100ms"
            on = "leave"
            wake = "none"
            """
        try withDaemon(Self.toml(gps, more), files: Self.guide) { daemon in
            try daemon.waitForRecord("guide", "runs")
            try daemon.done(.suspend, "guide")
            #expect(daemon.isStopped("guide"))
            try gps.start(Self.toAndFro)
            let left = try daemon.waitForEvent("guide", "woken by leaving the region home")
            #expect(left.reason == "location")
            // It sleeps again after its time, until the next crossing.
            try daemon.waitFor("guide", "suspended")
            try daemon.waitForEvent("guide", "woken by entering the region home")
            try daemon.eventually("it was told both") { daemon.records("guide").filter { $0 == "SIGUSR1" }.count >= 2 }
            let texts = try daemon.events("guide").map(\.text)
            #expect(!texts.contains { $0.contains("woken by") && $0.contains("region work") })
            // That is told when it runs.
            try daemon.waitForEvent("guide", "(region:work)")
            let checks = try Spawn.run([Built.path("torpor"), "--socket", daemon.socket, "doctor"]).output
            #expect(checks.contains("1 receiver, a position"))
        }
    }

    @Test(
        "Who listens where gpsd would be tells nobody where the machine is, and gpsd does when it comes",
        .enabled(if: Users.isRoot, "another user is needed, and only root can become one")
    )
    func impostor() throws {
        let gps = try GPSFake()
        let more = """
            launch = "on-demand"
            location = { updates = "none" }
            [[apps.guide.regions]]
            name = "home"
            latitude = 52.52
            longitude = 13.405
            radius = 200
            settle = "100ms"
            """
        let program = """
            import socket
            s = socket.create_server(("127.0.0.1", \(gps.port)))
            while True:
                c = s.accept()[0]
                try:
                    c.sendall(b'{"class":"VERSION","release":"false"}\\n')
                    for latitude in [52.52] * 40 + [52.53] * 40:
                        c.sendall(b'{"class":"TPV","mode":3,"lat":%f,"lon":13.405,"eph":1}\\n' % latitude)
                        c.settimeout(0.05)
                        try:
                            c.recv(100)
                        except TimeoutError:
                            pass
                except OSError:
                    pass
                print("left", flush=True)
            """
        try withDaemon(Self.toml(gps, more), files: Self.guide) { daemon in
            chmod(daemon.directory, 0o755)
            let output = daemon.directory + "/impostor.out"
            let pid = try Spawn.start(
                [
                    "/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "/usr/bin/python3", "-S",
                    "-c", program,
                ],
                environment: [:],
                output: output
            )
            try daemon.eventually("it is left") { (try? File.readString(output))?.contains("left") ?? false }
            try daemon.eventually("it is said") {
                try daemon.events().contains { $0.text.contains("user 65534 runs the server there") }
            }
            let checks = try Spawn.run([Built.path("torpor"), "--socket", daemon.socket, "doctor"]).output
            #expect(checks.contains("only root, the user gpsd and torpord's own user are trusted"), "\(checks)")
            #expect(try daemon.summary("guide").pid == nil)
            kill(pid, SIGKILL)
            var status: Int32 = 0
            waitpid(pid, &status, 0)
            try gps.start(Self.toAndFro)
            try daemon.waitForEvent("guide", "woken by")
        }
    }

    @Test("A significant change launches an app, also one that was force-quit, unless the configuration is against it")
    func significant() throws {
        let gps = try GPSFake()
        let more = """
            launch = "on-demand"
            location = { updates = "significant", interval = "1s" }
            [apps.quit]
            exec = ["/bin/sleep", "1000"]
            background_modes = ["location"]
            location = { updates = "significant", interval = "1s" }
            [apps.refuses]
            exec = ["/bin/sleep", "1000"]
            background_modes = ["location"]
            location = { updates = "significant", interval = "1s" }
            wake_after_force_quit = []
            """
        try withDaemon(Self.toml(gps, more), files: Self.guide) { daemon in
            try daemon.waitFor("quit", "active")
            try daemon.waitFor("refuses", "active")
            try daemon.done(.kill, "quit")
            try daemon.done(.kill, "refuses")
            #expect(try daemon.status("quit").forceQuit == "no event launches it again except location")
            #expect(try daemon.status("refuses").forceQuit == "no event launches it again")
            try gps.start(Self.toAndFro)
            let woken = try daemon.waitForEvent("guide", "woken by a change of position by")
            #expect(woken.text.contains("by 111") && woken.text.contains(" m after"), "\(woken.text)")
            try daemon.waitForRecord("guide", "runs")
            try daemon.waitForRecord("guide", "SIGUSR1")
            try daemon.waitForEvent("quit", "woken by a change of position by")
            #expect(try daemon.summary("quit").state == "background")
            try daemon.waitForEvent("refuses", "is not woken by a change of position")
            #expect(try daemon.summary("refuses").pid == nil)
        }
    }

    @Test(
        "Positions that come again and again wake an app and hold it in the background until they end",
        arguments: [true, false]
    )
    func continuous(gpsdGoes: Bool) throws {
        let gps = try GPSFake()
        try withDaemon(Self.toml(gps, #"launch = "background""#), files: Self.guide) { daemon in
            try daemon.waitForRecord("guide", "runs")
            try daemon.done(.suspend, "guide")
            try gps.start([Self.home])
            try daemon.waitForEvent("guide", "woken by the start of positions")
            try daemon.eventually("it is held") { try daemon.summary("guide").holds == ["the mode location"] }
            try daemon.eventually("it is told again and again") {
                daemon.records("guide").filter { $0 == "SIGUSR1" }.count >= 10
            }
            // Its time for the event is long over.
            #expect(!daemon.isStopped("guide"))
            let refused = try daemon.verb(.suspend, "guide")
            #expect(!refused.ok && (refused.message?.contains("is held by the mode location") ?? false))
            // The next torpord goes on with it.
            let before = try daemon.torpord()
            kill(before, SIGKILL)
            try daemon.eventually("another torpord runs") { (try? daemon.torpord()).map { $0 != before } ?? false }
            try daemon.waitUntilItAnswers()
            #expect(try daemon.summary("guide").holds == ["the mode location"])
            if gpsdGoes { gps.stop() } else { gps.pause() }
            try daemon.eventually("it sleeps when there was none for a while") {
                try daemon.summary("guide").state == "suspended"
            }
            #expect(daemon.isStopped("guide"))
            let checks = try Spawn.run([Built.path("torpor"), "--socket", daemon.socket, "doctor"]).output
            #expect(checks.contains(gpsdGoes ? "does not answer as it should" : "1 receiver, no position"), "\(checks)")
        }
    }

    @Test("A delegate is told where the machine is, once for all that came while it slept")
    func told() throws {
        let gps = try GPSFake()
        let toml =
            "gpsd = \"127.0.0.1:\(gps.port)\"\n" + Delegates.head
                + """
                background_modes = ["location"]
                location = { updates = "significant", interval = "0s", wake = "none" }
                [apps.other]
                exec = ["/bin/sleep", "1000"]
                background_modes = ["location"]
                location = { updates = "significant", interval = "0s" }
                event_time = "100ms"
                """
        try withDaemon(toml, files: Delegates.files()) { daemon in
            try daemon.done(.start, "web")
            try daemon.done(.suspend, "web")
            try daemon.waitFor("other", "active")
            try daemon.done(.suspend, "other")
            try gps.start(Self.toAndFro)
            try daemon.eventually("several changes came") {
                try daemon.events("other").filter { $0.text.contains("woken by a change of position") }.count >= 2
            }
            #expect(daemon.isStopped("web"))
            try daemon.done(.resume, "web")
            let heard = try daemon.waitForMessage("didReceiveEvent")
            let parameters = heard.parameters
            #expect(parameters["topic"]?.stringValue == "location")
            let latitude = parameters["payload"]?["latitude"]?.doubleValue ?? 0
            #expect(abs(latitude - 52.525) < 0.006)
            #expect((parameters["payload"]?["accuracy"]?.doubleValue ?? 0) > 0)
        }
    }
}
