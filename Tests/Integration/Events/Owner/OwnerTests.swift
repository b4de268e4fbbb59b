// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import TestAddresses
import Testing
import TorporAPI
import Varlink

@Suite("Apps that one of several machines owns") struct OwnerTests {
    static func app(_ keys: String = "", launch: String = "foreground") -> String {
        """
        [apps.web]
        exec = ["/usr/bin/python3", "-S", "@D/app.py"]
        owner = "external"
        launch = "\(launch)"
        background_time = "200ms"
        \(keys)

        """
    }

    private static func state(_ daemon: Daemon) throws -> String {
        let summary = try daemon.summary("web")
        return "\(summary.state) \(summary.owner ?? "-")"
    }

    @Test("a start launches none, and neither does a person, an event or a dependent, before it is owned")
    func notOwned() throws {
        let other = Apps.sleeper("other", "launch = \"on-demand\"\nrequires = [\"web\"]")
        let toml =
            Self.app("topics = { news = \"all\" }\n[[apps.web.paths]]\nexists = \"@D/app.py\"\n") + other
            + Apps.sleeper("last")
        try withDaemon(toml, files: ["app.py": NotifyApps.obedient]) { daemon in
            try daemon.waitFor("last", "active")
            #expect(try daemon.events("web").contains { $0.text.contains("this machine does not own it") })
            for verb in [Verb.start, .foreground, .restart, .background, .resume] {
                let result = try daemon.verb(verb, "web")
                #expect(!result.ok && result.message?.contains("is not owned by this machine") == true, "\(result)")
            }
            #expect(try !daemon.verb(.start, "other").ok)
            #expect(try daemon.post("news", "x") { $0.urgent = true }.outcome == "held-back")
            #expect(try Self.state(daemon) == "not-running none")
            #expect(daemon.processes(of: "web").isEmpty)
            #expect(try daemon.summary("web").incarnation == nil)

            try daemon.done(.own, "web")
            #expect(try Self.state(daemon) == "active here")
            #expect(try daemon.events("web").contains { $0.kind == "owner" && $0.reason == "owned" })
            // A renewal is no event.
            try daemon.done(.own, "web") { $0.forMilliseconds = 600_000 }
            #expect(try daemon.events("web").count { $0.reason == "owned" } == 1)
            #expect(try (1...600_000).contains(daemon.summary("web").ownedMilliseconds ?? 0))

            let metrics = try daemon.call(.metrics).description
            #expect(metrics.contains("torpor_app_owned"))
            try daemon.done(.disown, "web")
            #expect(try Self.state(daemon) == "suspended none")
            let pid = try daemon.process(of: "web")
            #expect(Truth.isStopped(pid))
            #expect(try daemon.events("web").contains { $0.to == "background" })
            try daemon.done(.own, "web")
            #expect(try Self.state(daemon) == "active here" && daemon.process(of: "web") == pid)
            try daemon.done(.disown, "web") { $0.stop = true }
            #expect(try Self.state(daemon) == "not-running none")
            try daemon.done(.start, "web") { $0.force = true }
            #expect(try Self.state(daemon) == "active forced")
        }
    }

    @Test("an owner that does not renew is suspended, and that is an event")
    func expires() throws {
        try withDaemon(Self.app(), files: ["app.py": NotifyApps.obedient]) { daemon in
            try daemon.done(.own, "web") { $0.forMilliseconds = 300 }
            try daemon.waitFor("web", "suspended")
            #expect(try Self.state(daemon) == "suspended none")
            let event = try #require(try daemon.events("web").first { $0.reason == "ownership-expired" })
            #expect(event.kind == "owner" && event.text.contains("was not repeated in time"))
        }
    }

    @Test(
        "what owns an app survives torpord, its keeper, both and an upgrade, and so does a standby",
        arguments: [Loss.killed, .keeper, .both, .upgraded]
    )
    func survives(loss: Loss) throws {
        try withRecovery(Self.app(launch: "on-demand"), files: ["app.py": NotifyApps.obedient]) { daemon in
            try daemon.done(.start, "web") { $0.standby = true }
            #expect(try Self.state(daemon) == "suspended none")
            try daemon.lose(loss)
            #expect(try Self.state(daemon) == "suspended none")
            #expect(try !daemon.verb(.foreground, "web").ok)
            try daemon.done(.own, "web") { $0.forMilliseconds = 600_000 }
            try daemon.lose(loss)
            #expect(try daemon.summary("web").owner == "here")
            #expect(try (1...600_000).contains(daemon.summary("web").ownedMilliseconds ?? 0))
            try daemon.done(.foreground, "web")
        }
    }

    @Test("a renewal owns nothing, and an app that ends while it is disowned is no failure")
    func renewal() throws {
        let stubborn = "ready = \"notify\"\nlaunch_deadline = \"none\"\n"
        try withDaemon(Self.app(stubborn), files: ["app.py": NotifyApps.obedient]) { daemon in
            let refused = try daemon.verb(.own, "web") { $0.renew = true }
            #expect(!refused.ok && refused.message?.contains("nothing to renew") == true, "\(refused)")
            try daemon.done(.own, "web") { $0.wait = false }
            try daemon.eventually("it is being launched") { try daemon.summary("web").pid != nil }
            // It never says that it is ready, so it could not be suspended.
            try daemon.done(.disown, "web")
            #expect(try Self.state(daemon) == "not-running none")
            #expect(try daemon.events("web").contains { $0.kind == "exit" && $0.reason == "evicted" })
        }
    }

    @Test("an app that requires it ends with it and comes back with it")
    func dependent() throws {
        let other = Apps.sleeper("other", "requires = [\"web\"]")
        try withDaemon(Self.app() + other, files: ["app.py": NotifyApps.obedient]) { daemon in
            try daemon.done(.own, "web")
            try daemon.waitFor("other", "active")
            try daemon.done(.disown, "web") { $0.stop = true }
            #expect(try daemon.summary("other").state == "not-running" && daemon.summary("other").stranded != true)
            try daemon.done(.own, "web")
            try daemon.waitFor("other", "active")
        }
    }

    @Test("who gave up before the stored state was read owns nothing")
    func forsaken() throws {
        let disk = try HangingDisk()
        defer { disk.remove() }
        try disk.hang()
        let daemon = try Daemon(Self.app(), files: ["app.py": NotifyApps.obedient], environment: disk.environment)
        try daemon.waitUntilItAnswers()
        try daemon.eventually("the disk hangs") { disk.waits }
        let client = try Client(daemon, "own", "web")
        try daemon.eventually("it has asked") { client.waitsForReply }
        kill(client.pid, SIGKILL)
        try client.finish(daemon)
        try disk.answer()
        // This one waits for the disk too, and comes after the other.
        #expect(try !daemon.verb(.own, "web") { $0.renew = true }.ok)
        #expect(try Self.state(daemon) == "not-running none")
        try daemon.stop()
    }

    @Test("what ended together with everything else is owned by nobody, if its time does not say otherwise")
    func lostWithAll() throws {
        try withRecovery(Self.app(), files: ["app.py": NotifyApps.obedient]) { daemon in
            for isTimed in [false, true] {
                try daemon.done(.own, "web") { $0.forMilliseconds = isTimed ? 600_000 : nil }
                let pid = try daemon.process(of: "web")
                try daemon.lose(.both) {
                    kill(pid, SIGKILL)
                    try daemon.eventually("the app is gone too") { !Truth.isAlive(pid) }
                }
                try daemon.eventually("it is known who owns it") {
                    try Self.state(daemon) == (isTimed ? "active here" : "not-running none")
                }
            }
            // Its time is over when the next torpord comes.
            let pid = try daemon.process(of: "web")
            try daemon.done(.own, "web") { $0.forMilliseconds = 300 }
            try daemon.lose(.both) {
                kill(pid, SIGKILL)
                usleep(400_000)
            }
            try daemon.eventually("it is not launched") { try Self.state(daemon) == "not-running none" }
            #expect(try daemon.events("web").last { $0.kind == "owner" }?.reason == "ownership-expired")
        }
    }

    @Test("what was left running is owned still, and what has ended meanwhile is not")
    func left() throws {
        let toml = "on_exit = \"leave\"\n" + Self.app()
        let daemon = try Daemon(toml, files: ["app.py": NotifyApps.obedient], nested: true)
        try daemon.waitUntilItAnswers()
        try daemon.done(.own, "web")
        let pid = try daemon.process(of: "web")
        for isGone in [false, true] {
            kill(try daemon.livingKeeper(), SIGTERM)
            try daemon.eventually("keeper and torpord are gone") {
                let look = Census(folder: daemon.directory).look()
                return look.keepers.isEmpty && look.torpords.isEmpty
            }
            if isGone { kill(pid, SIGKILL) }
            try daemon.startAgain()
            try daemon.waitUntilItAnswers()
            try daemon.eventually("it is known who owns it") {
                try Self.state(daemon) == (isGone ? "not-running none" : "active here")
            }
        }
        try daemon.configure(Self.app())
        try daemon.apply()
        try daemon.endEverything()
    }

    @Test("a new start of the supervisor owns nothing, whatever the app was asked for before")
    func newStart() throws {
        let daemon = try Daemon(Self.app(), files: ["app.py": NotifyApps.obedient])
        try daemon.waitUntilItAnswers()
        try daemon.done(.own, "web")
        try daemon.done(.background, "web")
        try daemon.stop()
        try daemon.startAgain()
        try daemon.waitUntilItAnswers()
        #expect(try Self.state(daemon) == "not-running none")
        try daemon.done(.own, "web")
        #expect(try Self.state(daemon) == "background here")
        try daemon.stop()
    }

    @Test(
        "a standby does not take connections: its socket is closed while it has no process, and deaf while it has one"
    )
    func sockets() throws {
        let port = try TestAddress.port()
        let toml = """
            [apps.web]
            \(SocketServer.exec)
            owner = "external"
            launch = "on-demand"
            background_time = "100ms"
            [[apps.web.sockets]]
            name = "http"
            stream = "127.0.0.1:\(port)"

            """
        try withDaemon(toml, files: SocketServer.files) { daemon in
            func answer(_ seconds: Double = 10) -> String {
                let code = """
                    import socket
                    try:
                        s = socket.create_connection(("127.0.0.1", \(port)), timeout=\(seconds))
                        s.send(b"x"); s.settimeout(10); s.recv(100); print("answered")
                    except ConnectionRefusedError: print("refused")
                    except TimeoutError: print("nothing")
                    """
                return (try? Spawn.run(["/usr/bin/python3", "-c", code]).output.trimmed) ?? "failed"
            }
            #expect(answer() == "refused")
            try daemon.done(.start, "web") { $0.standby = true }
            #expect(answer(0.3) == "nothing")
            #expect(try daemon.summary("web").state == "suspended")
            try daemon.done(.own, "web")
            #expect(answer() == "answered")
            try daemon.done(.disown, "web")
            #expect(answer(0.3) == "nothing")
            try daemon.done(.stop, "web")
            #expect(answer() == "refused")
            #expect(try daemon.status("web").notWokenBy.contains { $0.contains("is not owned by this machine") })
        }
    }

    /// What a client that follows the owners of apps was told.
    private final class Told: @unchecked Sendable {
        private let lock = NSLock()
        private var replies: [JSON] = []

        init(_ client: VarlinkClient) {
            nonisolated(unsafe) let client = client
            Thread.detachNewThread { [self] in
                _ = try? client.callMore(ManagerRequest.owners.call) { reply in
                    // Without the digest of an imported state.
                    let apps = (reply["apps"]?.arrayValue ?? []).map { app -> JSON in
                        ["app": app["app"] ?? .null, "owner": app["owner"] ?? .null, "saved": app["saved"] ?? .null]
                    }
                    let plain: JSON = ["apps": .array(apps), "whole": reply["whole"] ?? .null]
                    lock.withLock { replies.append(plain) }
                }
            }
        }

        func has(_ reply: JSON) -> Bool { lock.withLock { replies.contains(reply) } }
    }

    @Test("who follows the owners is told each change, and a post for the owner is refused elsewhere")
    func followed() throws {
        let toml = Self.app("topics = { news = \"all\" }", launch: "on-demand") + Apps.sleeper("other")
        try withDaemon(toml, files: ["app.py": NotifyApps.obedient]) { daemon in
            func reply(_ owner: String, saved: Bool = false, whole: Bool = false) -> JSON {
                ["apps": [["app": "web", "owner": .string(owner), "saved": .bool(saved)]], "whole": .bool(whole)]
            }
            let told = Told(try daemon.connect())
            try daemon.eventually("all") { told.has(reply("none", saved: true, whole: true)) }
            let refused = try daemon.refusal("news") { $0.owned = true }
            #expect(refused?.name == "NotOwned" && refused?.message.contains("is not owned") == true)
            try daemon.done(.own, "web")
            try daemon.eventually("the owner") { told.has(reply("here")) }
            #expect(try daemon.post("news") { $0.owned = true }.change == "added")
            _ = try daemon.call(.importState(ImportStateRequest(app: "web", offset: 0, bytes: 1, data: [1])))
            try daemon.eventually("a state") { told.has(reply("here", saved: true)) }
            try daemon.done(.disown, "web")
            try daemon.eventually("no owner") { told.has(reply("none")) }
            try daemon.done(.start, "web") { $0.force = true }
            try daemon.eventually("a person's run") { told.has(reply("forced")) }
            #expect(try daemon.refusal("news") { $0.owned = true }?.name == "NotOwned")
            try daemon.done(.stop, "web")
            // An app that needs no owner any more is not among them.
            let path = daemon.directory + "/torpor.toml"
            try File.write(path, try File.readString(path).replacingOccurrences(of: "owner = \"external\"", with: ""))
            _ = try daemon.call(.apply(ApplyRequest()))
            try daemon.eventually("none") { told.has(["apps": [], "whole": true]) }
            #expect(try daemon.post("news") { $0.owned = true }.change == "added")
        }
    }
}

extension String {
    fileprivate var trimmed: String { trimmingCharacters(in: .whitespacesAndNewlines) }
}
