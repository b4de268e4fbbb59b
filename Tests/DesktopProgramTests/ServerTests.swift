// SPDX-License-Identifier: Apache-2.0

import DesktopProtocol
import Foundation
import Linux
import Testing
import Varlink

/// torpor-desktop with notification servers that a test controls.
@Suite(.enabled(if: Obstacle.bus == nil, "python3-dbusmock and dbus are needed: make deps"))
struct ServerTests {
    static func alert(_ id: Int64 = 1) -> DesktopAlert {
        var alert = DesktopAlert(id: id, app: "Notes", title: "Milk <b>&")
        alert.body = "for <Ada> & co"
        alert.actions = [.init(id: "later", label: "Later"), .init(id: "done", label: "Done")]
        alert.entry = "io.torpor.notes"
        alert.icon = "/usr/share/a b.png"
        alert.sound = "bell"
        return alert
    }

    private func first(_ server: Helper, _ number: Int = 0) throws -> JSON {
        try server.run("ret = shown[\(number)]")
    }

    @Test func `a server with everything gets everything`() throws {
        let bench = try Bench()
        let server = try Helper(bench, "server", "body body-markup actions sound")
        try bench.show(Self.alert())
        let shown = try first(server)
        #expect(shown["app"]?.stringValue == "Notes")
        #expect(shown["summary"]?.stringValue == "Milk <b>&")
        #expect(shown["body"]?.stringValue == "for &lt;Ada&gt; &amp; co")
        #expect(shown["actions"] == ["default", "Open", "later", "Later", "done", "Done"])
        #expect(
            shown["hints"] == [
                "desktop-entry": "io.torpor.notes", "image-path": "file:///usr/share/a%20b.png", "sound-name": "bell",
                "urgency": 1,
            ]
        )
        #expect(shown["timeout"]?.intValue == -1 && shown["replaces"]?.intValue == 0)
        let greeting = try bench.greet()
        #expect(greeting.ids == [1])
        #expect(greeting.server?.name == "mock-notify 1.0")
        #expect(greeting.server?.capabilities == ["body", "body-markup", "actions", "sound"])
    }

    @Test func `a server without actions, markup and sound gets none`() throws {
        let bench = try Bench()
        let server = try Helper(bench, "server", "body")
        try bench.show(Self.alert())
        let shown = try first(server)
        #expect(shown["body"]?.stringValue == "for <Ada> & co")
        #expect(shown["actions"] == [])
        #expect(shown["hints"]?["sound-name"] == nil)
    }

    @Test func `the same alert again replaces the first, without sound`() throws {
        let bench = try Bench()
        let server = try Helper(bench, "server", "body sound")
        try bench.show(Self.alert())
        var again = Self.alert()
        again.title = "Bread"
        again.urgency = .critical
        try bench.show(again)
        let shown = try first(server, 1)
        #expect(shown["replaces"]?.intValue == 1 && shown["number"]?.intValue == 1)
        #expect(shown["summary"]?.stringValue == "Bread" && shown["timeout"]?.intValue == 0)
        #expect(shown["hints"]?["urgency"]?.intValue == 2 && shown["hints"]?["suppress-sound"]?.boolValue == true)
    }

    @Test func `what a person does is reported until a torpord acknowledges it`() throws {
        let bench = try Bench()
        let server = try Helper(bench, "server", "body actions")
        for id in 1...4 { try bench.show(Self.alert(Int64(id))) }
        // Ones of other programs, and an action that the alert does not have.
        try server.run("emit('ActionInvoked', 'us', 99, 'default'); emit('NotificationClosed', 'uu', 98, 2)")
        try server.run("emit('ActionInvoked', 'us', 1, 'explode')")
        try server.run("emit('ActivationToken', 'us', 1, 'token'); emit('ActionInvoked', 'us', 1, 'later')")
        try bench.hear(.answered(id: 1, action: "later", token: "token"))
        try bench.eventually("it is removed") { (try? server.run("ret = closed")) == [1] }
        try server.run("emit('ActionInvoked', 'us', 2, 'default')")
        try bench.hear(.answered(id: 2, action: "default", token: nil))
        try server.run("emit('NotificationClosed', 'uu', 3, 1)")
        try bench.hear(.closed(id: 3, .expired))
        try server.run("emit('NotificationClosed', 'uu', 4, 2)")
        try bench.hear(.closed(id: 4, .dismissed))
        #expect(bench.reports.count { if case .answered = $0 { true } else { false } } == 2)
        // Another torpord.
        #expect(try bench.greet().ids == [1, 2, 3, 4])
        try bench.hear(.answered(id: 1, action: "later", token: "token"))
        try bench.hear(.answered(id: 2, action: "default", token: nil))
        try bench.hear(.closed(id: 3, .expired))
        try bench.hear(.closed(id: 4, .dismissed))
        // One that asks before it has read this gets the answer instead.
        try bench.say(.show(Self.alert(2)))
        try bench.hear(.answered(id: 2, action: "default", token: nil))
        #expect(try server.run("ret = len(shown)").intValue == 4)
        for id in 1...4 { try bench.say(.acknowledge(id: Int64(id))) }
        #expect(try bench.greet().ids == [])
        // A repeated alert has the same number.
        try bench.show(Self.alert(2))
    }

    @Test func `signals of strangers are ignored`() throws {
        let bench = try Bench()
        let server = try Helper(bench, "server", "body actions")
        try bench.show(Self.alert())
        try server.run("as_stranger('ActionInvoked', 'us', 1, 'default')")
        try server.run("as_stranger('NotificationClosed', 'uu', 1, 2)")
        try server.run("emit('NotificationClosed', 'uu', 1, 1)")
        try bench.hear(.closed(id: 1, .expired))
        #expect(!bench.reports.contains(.answered(id: 1, action: "default", token: nil)))
        #expect(!bench.reports.contains(.closed(id: 1, .dismissed)))
    }

    @Test func `torpord closes an alert, also while it is on its way to the screen`() throws {
        let bench = try Bench()
        let server = try Helper(bench, "server", "body")
        try bench.show(Self.alert())
        try bench.say(.close(id: 1))
        try bench.hear(.closed(id: 1, .closed))
        try bench.eventually("it is removed") { (try? server.run("ret = closed")) == [1] }
        try bench.say(.show(Self.alert(2)))
        try bench.say(.close(id: 2))
        try bench.say(.close(id: 77))
        try bench.hear(.closed(id: 2, .closed))
        try bench.eventually("it is removed") { (try? server.run("ret = closed")) == [1, 2] }
    }

    @Test func `open alerts are shown again by the next server, without sound`() throws {
        let bench = try Bench()
        let server = try Helper(bench, "server", "body sound")
        try bench.show(Self.alert(1))
        try bench.show(Self.alert(2))
        try bench.say(.close(id: 2))
        try server.run("stop()")
        try bench.hear(.server(nil))
        try bench.say(.show(Self.alert(3)))
        // The bus knows no server that it could start.
        try bench.hear { report in if case .failed(id: 3, _) = report { () } else { nil } }
        try server.run("del shown[:]; start('body sound actions')")
        try bench.hear { report in
            if case .server(.some(let server)) = report {
                server.capabilities == ["body", "sound", "actions"]
            } else {
                nil
            }
        }
        try bench.hear(shown: 1)
        try bench.hear(shown: 3)
        let (old, new) = (try first(server, 0), try first(server, 1))
        #expect(old["hints"]?["suppress-sound"]?.boolValue == true && old["hints"]?["sound-name"] == nil)
        #expect(new["hints"]?["sound-name"]?.stringValue == "bell")
        #expect(try server.run("ret = len(shown)").intValue == 2)
    }

    @Test func `another helper replaces what the first has shown, on the same server only`() throws {
        let bench = try Bench()
        let server = try Helper(bench, "server", "body sound")
        try bench.show(Self.alert(2))
        let place = try #require(try bench.show(Self.alert(1)))
        #expect(place.number == 2)
        bench.program?.kill()
        bench.program?.reap()
        try bench.start()
        var again = Self.alert(1)
        again.place = place
        #expect(try bench.show(again) == place)
        let shown = try first(server, 2)
        #expect(shown["replaces"]?.intValue == 2 && shown["hints"]?["suppress-sound"]?.boolValue == true)
        // What it has not shown itself, it closes too.
        try bench.say(.close(id: 1))
        try bench.eventually("it is removed") { (try? server.run("ret = closed")) == [2] }
        // Another server has numbers of its own.
        var other = Self.alert(3)
        other.place = ScreenPlace(server: place.server + "0", number: 1)
        try bench.show(other)
        #expect(try first(server, 3)["replaces"]?.intValue == 0)
    }

    @Test func `what is shown is taken off the screen when torpord ends`() throws {
        let bench = try Bench()
        let server = try Helper(bench, "server", "body")
        for id in 1...3 { try bench.show(Self.alert(Int64(id))) }
        try bench.say(.close(id: 2))
        try bench.eventually("it is removed") { (try? server.run("ret = closed")) == [2] }
        bench.hangUp()
        try bench.eventually("the others are removed") { (try? server.run("ret = sorted(closed)")) == [1, 2, 3] }
        #expect(bench.program?.reap() == 0)
    }

    @Test func `a server that ends is started again for what is open, again and again if it does not stay`() throws {
        let bench = try Bench(hasBus: false)
        try File.makeDirectory(bench.directory + "/services", mode: 0o755)
        let started = bench.directory + "/started"
        try File.write(
            bench.directory + "/services/n.service",
            "[D-BUS Service]\nName=org.freedesktop.Notifications\nExec=/bin/sh -c \"echo x >>\(started); exit 1\"\n"
        )
        try bench.startBus()
        let server = try Helper(bench, "server", "body")
        try bench.show(Self.alert())
        try server.run("stop()")
        try bench.hear(.server(nil))
        try bench.eventually("it is started twice") { (try? File.readString(started))?.utf8.count ?? 0 >= 4 }
        try bench.hear(.unseen(problem: "there is no notification server in the session"))
        try server.run("del shown[:]; start('body')")
        try bench.hear(shown: 1)
        // Nothing is open: nobody needs a server.
        try server.run("emit('NotificationClosed', 'uu', shown[0]['number'], 2)")
        try bench.hear(.closed(id: 1, .dismissed))
        let count = try File.readString(started).utf8.count
        try server.run("stop()")
        try bench.hear(.server(nil))
        try server.run("start('body')")
        try bench.hear { report in if case .server(.some) = report { () } else { nil } }
        #expect(try File.readString(started).utf8.count == count)
    }

    @Test func `the bus may come late, go and return`() throws {
        let bench = try Bench(hasBus: false)
        try bench.say(.show(Self.alert(1)))
        try bench.say(.badge(entry: "io.torpor.notes", count: 3))
        #expect(try bench.greet().ids == [1])
        try bench.startBus()
        var server = try Helper(bench, "server", "body")
        try bench.hear(shown: 1)
        bench.stopBus()
        try bench.hear(.server(nil))
        server.end()
        try bench.startBus()
        server = try Helper(bench, "server")
        try server.run("follow_badges(); start('body')")
        try bench.hear(shown: 1)
        #expect(try first(server)["hints"]?["suppress-sound"]?.boolValue == true)
    }

    @Test func `an alert that comes before the bus has answered is shown, and no failure`() throws {
        let bench = try Bench(starts: false)
        _ = try Helper(bench, "server", "body")
        for _ in 0..<5 {
            try bench.start()
            try bench.show(Self.alert())
        }
        #expect(!bench.reports.contains { if case .failed = $0 { true } else { false } })
    }

    @Test func `the bus starts a server that is installed`() throws {
        let bench = try Bench(hasBus: false)
        try File.makeDirectory(bench.directory + "/services", mode: 0o755)
        try File.write(
            bench.directory + "/services/n.service",
            "[D-BUS Service]\nName=org.freedesktop.Notifications\nExec=/bin/sh -c \"echo x >>\(bench.directory)/started; exit 1\"\n"
        )
        try bench.startBus()
        try bench.say(.show(Self.alert()))
        try bench.eventually("it is started") { File.exists(bench.directory + "/started") }
        try bench.hear { report in if case .failed(id: 1, _) = report { () } else { nil } }
        let server = try Helper(bench, "server", "body")
        try bench.hear(shown: 1)
        #expect(try server.run("ret = len(shown)").intValue == 1)
    }

    @Test func `a server that refuses is asked again`() throws {
        let bench = try Bench()
        let server = try Helper(bench, "server")
        try server.run("start('body', failing=True)")
        try bench.say(.show(Self.alert()))
        try bench.hear(.failed(id: 1, reason: "there are too many"))
        try server.run(
            "server.methods[NAME].pop('Notify'); server.AddMethod(NAME, 'Notify', 'susssasa{sv}i', 'u', notify)"
        )
        try bench.hear(shown: 1)
    }

    @Test func `badges reach docks, and those that come later`() throws {
        let bench = try Bench()
        let server = try Helper(bench, "server")
        try server.run("follow_badges()")
        try bench.say(.badge(entry: "io.torpor.notes", count: 3))
        try bench.say(.badge(entry: "no/entry", count: 3))
        let set: JSON = ["application://io.torpor.notes.desktop", ["count": 3, "count-visible": true]]
        try bench.eventually("the badge") { (try? server.run("ret = updates")) == [set] }
        try server.run("dock.request_name('com.canonical.Unity')")
        try bench.eventually("the badge, again") { (try? server.run("ret = updates")) == [set, set] }
        try bench.say(.badge(entry: "io.torpor.notes", count: 0))
        try bench.eventually("no badge") {
            (try? server.run("ret = updates[-1]"))
                == ["application://io.torpor.notes.desktop", ["count": 0, "count-visible": false]]
        }
    }

    @Test func `no more than 256 alerts are open`() throws {
        let bench = try Bench(hasBus: false)
        for id in 1...257 { try bench.say(.show(Self.alert(Int64(id)))) }
        try bench.hear { report in if case .failed(id: 257, _) = report { () } else { nil } }
        #expect(try bench.greet().ids == (1...256).map { Int64($0) })
    }

    @Test func `that nobody sees alerts is reported until it changes, and to the next torpord`() throws {
        let bench = try Bench(hasBus: false)
        let problem = try bench.hear { report in
            if case .unseen(.some(let problem)) = report { problem } else { nil }
        }
        #expect(problem == "the session's bus cannot be used: no bus answers at \(bench.address)")
        _ = try bench.greet()
        try bench.hear(.unseen(problem: problem))
        try bench.startBus()
        let noServer = DesktopReport.unseen(problem: "there is no notification server in the session")
        try bench.hear(noServer)
        let server = try Helper(bench, "server", "body")
        try bench.hear(.unseen(problem: nil))
        try server.run("stop()")
        try bench.hear(noServer)
        bench.stopBus()
        try bench.hear { report in
            if case .unseen(.some(let problem)) = report, problem.hasPrefix("the session's bus") { () } else { nil }
        }
    }

    @Test func `a server that the bus can start is there`() throws {
        let bench = try Bench(hasBus: false)
        try File.makeDirectory(bench.directory + "/services", mode: 0o755)
        try File.write(
            bench.directory + "/services/n.service",
            "[D-BUS Service]\nName=org.freedesktop.Notifications\nExec=/bin/false\n"
        )
        try bench.hear { report in if case .unseen(.some) = report { () } else { nil } }
        try bench.startBus()
        try bench.hear(.unseen(problem: nil))
    }

    @Test func `a bus that returns at the same address, in another folder or late, has what comes later shown`() throws
    {
        let bench = try Bench()
        let first = try Helper(bench, "server", "body")
        try bench.show(Self.alert(1))
        bench.stopBus()
        first.end()
        try bench.hear(.server(nil))
        // The session has ended, and the next one has a folder of its own.
        try FileManager.default.moveItem(atPath: bench.session, toPath: bench.directory + "/old")
        try File.makeDirectory(bench.session, mode: 0o700)
        try bench.startBus()
        let second = try Helper(bench, "server", "body")
        try bench.show(Self.alert(2))
        bench.stopBus()
        second.end()
        try bench.hear(.server(nil))
        // The socket is there before the bus listens on it.
        let late = try Helper(bench, "late", bench.session + "/bus", bench.directory + "/bus.conf")
        try bench.hear { report in if case .unseen(.some) = report { () } else { nil } }
        try late.run("begin()")
        let third = try Helper(bench, "server", "body")
        try bench.show(Self.alert(3))
        #expect(try third.run("ret = len(shown)").intValue ?? 0 >= 1)
        try late.run("end()")
    }
}
