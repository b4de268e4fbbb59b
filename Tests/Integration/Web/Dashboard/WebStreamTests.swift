// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

@Suite("The dashboard's stream, its socket, and whose rights it has") struct WebStreamTests {
    @Test("tells a suspension within a second, while /proc says T; who comes back misses nothing")
    func live() throws {
        try withDaemon(WebTests.two) { daemon in
            try daemon.waitFor("other", "active")
            let pid = try #require(try daemon.summary("other").pid)
            let web = try WebFixture(daemon)
            let stream = try web.stream("one")
            try web.eventually("the snapshot") { stream.state(of: "other") == "active" }
            // The first snapshot may be older than what torpor-web knows of torpord; then that is told as it comes.
            try web.eventually("that torpord is there, and may be asked for changes") {
                let supervisor = stream.supervisors.last
                return supervisor?["connected"] == true && supervisor?["may_change"] == true
            }
            // torpor-web looks by itself every two seconds, counted from its last look: what is told sooner it has heard of.
            // A busy machine may take longer for one of these, but not for each.
            var quickest = Duration.seconds(10)
            for time in 0..<30 where quickest >= .seconds(1) {
                try daemon.done(time == 0 ? .background : .resume, "other")
                try web.eventually("the background") { stream.state(of: "other") == "background" }
                let began = Clock.monotonic()
                try daemon.done(.suspend, "other")
                try web.eventually("the suspension") { stream.state(of: "other") == "suspended" }
                quickest = min(quickest, Clock.monotonic() - began)
            }
            #expect(quickest < .seconds(1))
            try web.waitUntilStopped(pid)
            // The browser goes; two things happen; it comes back with the number of what it had last.
            let last = try #require(stream.messages.compactMap(\.id).last)
            kill(stream.pid, SIGKILL)
            try daemon.done(.resume, "other")
            try daemon.done(.suspend, "other")
            let next = try web.stream("two", ["-H", "Last-Event-ID: \(last)"])
            try web.eventually("the next snapshot") { next.messages.contains { $0.name == "snapshot" } }
            let missed = next.messages.prefix { $0.name != "snapshot" }
            let all = try daemon.events().filter { $0.sequence > last }.map(\.sequence)
            #expect(missed.compactMap(\.id) == all && all.count > 2)
            #expect(next.state(of: "other") == "suspended")
            web.end()
        }
    }

    @Test("gets over a torpord that is killed, and over many that come and go")
    func replaced() throws {
        try withDaemon(WebTests.two) { daemon in
            try daemon.waitFor("other", "active")
            let web = try WebFixture(daemon)
            let stream = try web.stream("one")
            try web.eventually("the snapshot") { stream.state(of: "other") == "active" }
            // The first snapshot may be older than what torpor-web knows of torpord; then that is told as it comes.
            var known: Int64?
            try web.eventually("which torpord it is") {
                known = stream.supervisors.compactMap { $0["instance"]?.intValue }.last
                return known != nil
            }
            let before = try #require(known)
            kill(try daemon.torpord(), SIGKILL)
            try web.eventually("it is said that torpord is gone, and that another is there") {
                let told = stream.messages.filter { $0.name == "supervisor" }.map(\.data)
                let gone = told.firstIndex { $0["connected"] == false }
                let back = told.lastIndex { ($0["instance"]?.intValue ?? 0) > before }
                return gone != nil && back != nil && gone! < back!
            }
            try daemon.waitUntilItAnswers()
            try daemon.done(.suspend, "other")
            try web.eventually("the suspension") { stream.state(of: "other") == "suspended" }
            #expect(try web.ask("/api/v1/apps").status == 200)
            // Many pages that go in the middle of it.
            let many = try (0..<20).map { try web.stream("many\($0)") }
            for one in many { kill(one.pid, SIGKILL) }
            #expect(try web.ask("/api/v1/apps").status == 200)
            web.end()
        }
    }

    @Test("says that torpord is away when there is none at all")
    func away() throws {
        let daemon = try Daemon(WebTests.two)
        try daemon.waitUntilItAnswers()
        let web = try WebFixture(daemon)
        try daemon.stopOnly()
        let gone = try web.ask("/api/v1/apps")
        #expect(gone.status == 503 && gone.error.contains("torpord does not answer"))
        let stream = try web.stream("one")
        try web.eventually("the snapshot") {
            stream.messages.first { $0.name == "snapshot" }?.data["supervisor"]?["connected"] == false
        }
        try daemon.startAgain()
        try web.eventually("it is back") {
            stream.state(of: "web") != nil && stream.text.contains("\"connected\":true")
        }
        web.end()
        try daemon.stop()
    }

    @Test("half requests keep nobody out, and end no stream")
    func halfRequests() throws {
        try withDaemon(WebTests.two) { daemon in
            try daemon.waitFor("other", "active")
            let web = try WebFixture(daemon)
            let stream = try web.stream("one")
            try web.eventually("the snapshot") { stream.state(of: "other") == "active" }
            // More than all the connections that it may have, some without a byte, some in the middle of a header.
            let halves = try (0..<300).map { number in
                let peer = try Peer(port: web.port)
                if number % 2 == 0 { try peer.send("GET /api/v1/apps HTTP/1.1\r\nHost: 127.0.0.1:\(web.port)\r\nX: ") }
                return peer
            }
            #expect(try web.ask("/api/v1/apps").status == 200)
            try daemon.done(.suspend, "other")
            try web.eventually("the suspension") { stream.state(of: "other") == "suspended" }
            withExtendedLifetime(halves) {}
            web.end()
        }
    }

    @Test("at a Unix socket the permissions of the socket are the access")
    func unixSocket() throws {
        try withDaemon(WebTests.two) { daemon in
            let socket = daemon.directory + "/web.sock"
            let web = try WebFixture(daemon, unix: socket)
            #expect(try File.status(socket).mode == 0o660)
            let words = ["--unix-socket", socket]
            let apps = try web.ask("http://anything/api/v1/apps", words, token: .some(nil))
            #expect(apps.status == 200 && apps.json["apps"]?.arrayValue?.count == 2)
            try daemon.waitFor("other", "active")
            #expect(try web.ask("http://anything/api/v1/apps/other/suspend", words + ["-X", "POST"]).status == 403)
            let path = "http://anything/api/v1/apps/other/suspend"
            #expect(try web.post(path, "", words, token: .some(nil)).status == 200)
            web.end()
        }
    }

    @Test("with --read-only nothing is changed, and the page is told so")
    func readOnly() throws {
        try withDaemon(WebTests.two) { daemon in
            try daemon.waitFor("other", "active")
            let web = try WebFixture(daemon, ["--read-only"])
            let refused = try web.post("/api/v1/apps/other/stop")
            #expect(refused.status == 403 && refused.error.contains("--read-only"))
            let stream = try web.stream("one")
            try web.eventually("the snapshot") { stream.text.contains("\"may_change\":false") }
            #expect(try daemon.summary("other").state == "active")
            web.end()
        }
    }

    @Test("a user who may only look is refused with torpord's sentence")
    func reader() throws {
        guard Users.isRoot, let nobody = Users.group("nogroup") else {
            print("skipped: only root can be somebody else")
            return
        }
        // Behind the head of the harness, which is [supervisor].
        let daemon = try Daemon("readers = [\"nogroup\"]\n" + WebTests.two)
        try daemon.waitUntilItAnswers()
        try daemon.waitFor("other", "active")
        let wrapper = ["/usr/bin/setpriv", "--reuid=65534", "--regid=\(nobody)", "--clear-groups", "--"]
        let web = try WebFixture(daemon, wrapper: wrapper)
        let stream = try web.stream("one")
        try web.eventually("the snapshot") { stream.text.contains("\"may_change\":false") }
        let refused = try web.post("/api/v1/apps/other/stop")
        #expect(refused.status == 403)
        #expect(refused.error.contains("may not change apps of this supervisor"), "\(refused.body)")
        #expect(try daemon.summary("other").state == "active")
        // What the configuration gives him is his at once, and he is told so.
        try daemon.apply("readers = [\"nogroup\"]\noperators = [\"nogroup\"]\n" + WebTests.two)
        try web.eventually("he is told") { stream.text.contains("\"may_change\":true") }
        #expect(try web.post("/api/v1/apps/other/stop").status == 200)
        #expect(try daemon.summary("other").state == "not-running")
        web.end()
        try daemon.stop()
    }

    @Test("does not start with what cannot be right")
    func options() throws {
        let program = Built.path("torpor-web")
        let remote = try Spawn.run([program, "--listen", "0.0.0.0:1"])
        #expect(remote.code == 2 && remote.output.contains("--token-file"))
        let folder = try Daemon.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try File.write(folder + "/t", "short\n")
        let short = try Spawn.run([program, "--token-file", folder + "/t"])
        #expect(short.code == 1 && short.output.contains("could be guessed"))
        #expect(try Spawn.run([program, "--what"]).code == 2)
        #expect(try Spawn.run([program, "--version"]).output.hasPrefix("torpor-web "))
        #expect(try Spawn.run([program, "--help"]).output.hasPrefix("Usage: torpor-web"))
    }
}

extension Daemon {
    /// Ends it, and leaves what else was started.
    fileprivate func stopOnly() throws {
        kill(pid, SIGTERM)
        try waitForEnd()
    }
}
