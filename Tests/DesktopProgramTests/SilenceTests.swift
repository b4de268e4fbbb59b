// SPDX-License-Identifier: Apache-2.0

import DesktopProtocol
import Foundation
import Linux
import Testing
import Varlink

/// torpor-desktop with notification servers that hang: each alert is shown once, as it is when the server goes on.
@Suite(.enabled(if: Obstacle.bus == nil, "python3-dbusmock and dbus are needed: make deps"))
struct SilenceTests {
    private static let problem = "the notification server mock-notify 1.0 does not answer"

    private func alert(_ id: Int64, _ title: String) -> DesktopAlert {
        var alert = ServerTests.alert(id)
        alert.title = title
        return alert
    }

    /// What the server has shown: the titles, each with the number that it replaced.
    private func shown(_ server: Helper) throws -> [String] {
        let list = try server.run("ret = [one['summary'] + ' ' + str(one['replaces']) for one in shown]")
        return (list.arrayValue ?? []).compactMap(\.stringValue)
    }

    private func stop(_ server: Helper) { kill(server.pid, SIGSTOP) }
    private func goOn(_ server: Helper) { kill(server.pid, SIGCONT) }

    @Test func `a server that hangs has one request an alert, and goes on with what is open then`() throws {
        let bench = try Bench()
        let server = try Helper(bench, "server", "body actions")
        try bench.show(alert(1, "one"))
        stop(server)
        try bench.say(.show(alert(2, "two")))
        try bench.say(.close(id: 2))
        try bench.say(.show(alert(3, "three")))
        try bench.say(.show(alert(3, "three, later")))
        try bench.say(.show(alert(4, "four")))
        try bench.say(.show(alert(4, "four")))
        try bench.hear(.server(nil))
        try bench.hear(.unseen(problem: Self.problem))
        for id in 3...4 { try bench.hear(.failed(id: Int64(id), reason: Self.problem)) }
        // The server gets nothing more: of these, one is closed again and another changes.
        for id in 5...7 { try bench.say(.show(alert(Int64(id), "\(id)"))) }
        for id in 5...7 { try bench.hear(.failed(id: Int64(id), reason: Self.problem)) }
        try bench.say(.close(id: 5))
        try bench.say(.show(alert(6, "six")))
        let greeting = try bench.greet()
        #expect(greeting.ids == [1, 2, 3, 4, 5, 6, 7] && greeting.server == nil)
        try bench.hear(.unseen(problem: Self.problem))
        #expect(!bench.reports.contains { if case .failed(id: 2, _) = $0 { true } else { false } })
        goOn(server)
        try bench.hear(.unseen(problem: nil))
        try bench.hear { report in if case .server(.some) = report { () } else { nil } }
        for id in [6, 7] { try bench.hear(shown: Int64(id)) }
        try bench.eventually("the closed one is removed") { (try? server.run("ret = closed")) == [2] }
        #expect(
            try shown(server).sorted() == ["7 0", "four 0", "one 0", "six 0", "three 0", "three, later 3", "two 0"]
        )
        // What is on the screen is what a click answers.
        try server.run("emit('ActionInvoked', 'us', 3, 'later')")
        try bench.hear(.answered(id: 3, action: "later", token: nil))
    }

    @Test func `a server that hangs from the beginning is asked nothing before it has said what it can do`() throws {
        let bench = try Bench(starts: false)
        let server = try Helper(bench, "server", "body actions")
        stop(server)
        try bench.start()
        try bench.say(.show(alert(1, "one")))
        let problem = "the notification server does not answer"
        try bench.hear(.unseen(problem: problem))
        try bench.hear(.failed(id: 1, reason: problem))
        goOn(server)
        try bench.hear(.unseen(problem: nil))
        try bench.hear(shown: 1)
        #expect(try server.run("ret = [one['actions'] for one in shown]").arrayValue?.first?.arrayValue?.count == 6)
        #expect(try shown(server) == ["one 0"])
    }

    @Test func `a server that takes the name of one that hangs shows what is open, and the other closes it`() throws {
        let bench = try Bench()
        let first = try Helper(bench, "server", "body")
        try bench.show(alert(1, "one"))
        stop(first)
        try bench.say(.show(alert(2, "two")))
        try bench.hear(.failed(id: 2, reason: Self.problem))
        let second = try Helper(bench, "server")
        try second.run("start('body', takes=True)")
        let places = try [1, 2].map { id in try #require(try bench.hear(shown: id)) }
        #expect(places.map(\.number) == [1, 2])
        #expect(try bench.greet().server != nil)
        try bench.hear(.unseen(problem: nil))
        goOn(first)
        try bench.eventually("the other closes it") { (try? first.run("ret = closed")) == [2] }
        #expect(try shown(first) == ["one 0", "two 0"])
        #expect(try shown(second) == ["one 0", "two 0"])
        #expect(try second.run("ret = closed").arrayValue?.isEmpty == true)
    }

    @Test func `a server that ends while it hangs is forgotten, with its requests`() throws {
        let bench = try Bench()
        let first = try Helper(bench, "server", "body")
        try bench.show(alert(1, "one"))
        stop(first)
        for id in 2...3 { try bench.say(.show(alert(Int64(id), "\(id)"))) }
        try bench.say(.close(id: 2))
        try bench.hear(.failed(id: 3, reason: Self.problem))
        first.end()
        try bench.hear(.unseen(problem: "there is no notification server in the session"))
        let second = try Helper(bench, "server", "body")
        for id in [1, 3] { try bench.hear(shown: Int64(id)) }
        #expect(bench.reports.last { if case .unseen = $0 { true } else { false } } == .unseen(problem: nil))
        #expect(try shown(second) == ["one 0", "3 0"])
    }

    @Test func `a server that never answers one request gets the others`() throws {
        let bench = try Bench()
        let server = try Helper(bench, "server", "body")
        try server.run("lose('one')")
        try bench.say(.show(alert(1, "one")))
        try bench.hear(.failed(id: 1, reason: Self.problem))
        try bench.hear(.unseen(problem: nil))
        try bench.show(alert(2, "two"))
        #expect(try shown(server) == ["two 0"])
        try bench.say(.close(id: 1))
        try bench.hear(.closed(id: 1, .closed))
    }

    @Test func `many alerts are shown, some at a time`() throws {
        let bench = try Bench()
        let server = try Helper(bench, "server", "body")
        for id in 1...100 { try bench.say(.show(alert(Int64(id), "\(id)"))) }
        for id in 1...100 { try bench.hear(shown: Int64(id)) }
        #expect(try shown(server) == (1...100).map { "\($0) 0" })
    }

    @Test func `what is on its way to the screen when torpord ends is taken off too`() throws {
        let bench = try Bench()
        let server = try Helper(bench, "server", "body")
        try bench.show(alert(1, "one"))
        try bench.say(.show(alert(2, "two")))
        // The request was sent, and may be answered or not.
        try bench.say(.ping(number: 1))
        try bench.hear(.pong(number: 1))
        bench.hangUp()
        try bench.eventually("both are removed") { (try? server.run("ret = sorted(closed)")) == [1, 2] }
        #expect(bench.program?.reap() == 0)
    }

    @Test func `it says that it works`() throws {
        let bench = try Bench(hasBus: false)
        try bench.say(.ping(number: 7))
        try bench.hear(.pong(number: 7))
    }
}
