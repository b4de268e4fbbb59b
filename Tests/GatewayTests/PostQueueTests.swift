// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
import ScriptedServer
import Testing
import Varlink

@testable import Gateway

@Suite("What waits for the supervisor") struct PostQueueTests {
    private let push = Push(app: "web", topic: "news", payload: ["a": 1], wakes: true, sender: "http:ci")

    @Test("is posted as the supervisor takes it")
    func post() throws {
        let server = try ScriptedServer([
            .connection { talk in
                try talk.hear()
                try talk.say(["id": 7, "change": "added", "outcome": "woken"])
            }
        ])
        let queue = try PostQueue(socket: server.path, limit: 1, connections: 1)
        #expect(queue.post(push) == .taken(["id": 7, "change": "added", "outcome": "woken"]))
        #expect(server.finish() == [])
        let call = try #require(server.calls.first)
        #expect(call.method == "io.torpor.Manager.Post")
        #expect(call.parameters["app"] == "web" && call.parameters["topic"] == "news")
        #expect(call.parameters["payload"] == ["a": 1] && call.parameters["sender"] == "http:ci")
        #expect(call.parameters["remote"] == true && call.parameters["urgent"] == true)
    }

    @Test("is posted again with the same token when the reply is lost")
    func lostReply() throws {
        let server = try ScriptedServer([
            .connection { talk in try talk.hear() },
            .connection { talk in
                try talk.hear()
                try talk.say(["id": 1, "change": "repeated", "outcome": "waits"])
            },
        ])
        let queue = try PostQueue(socket: server.path, limit: 1, connections: 1)
        guard case .taken = queue.post(push) else {
            Issue.record("it was not taken")
            return
        }
        #expect(server.finish() == [])
        let tokens = server.calls.map { $0.parameters["token"]?.stringValue }
        #expect(tokens.count == 2 && tokens[0] == tokens[1] && tokens[0] != nil)
    }

    @Test("what became of it tells whether it may be tried again")
    func outcomes() throws {
        let errors = ["UnknownApp", "MailboxFull", "NotSubscribed", "Failed", "NotPermitted", "NotOwned"]
        let server = try ScriptedServer([
            .connection { talk in
                for error in errors {
                    try talk.hear()
                    try talk.say(["message": "no", "name": "web"], error: "io.torpor.Manager." + error)
                }
            }
        ])
        let queue = try PostQueue(socket: server.path, limit: 1, connections: 1)
        let outcomes = errors.map { _ in queue.post(push) }
        #expect(server.finish() == [])
        #expect(outcomes.map { HTTPAnswer($0).status } == [404, 429, 422, 503, 503, 503])
        #expect(outcomes.map(\.isTemporary) == [false, true, false, true, true, true])
    }

    @Test("without a supervisor nothing is taken, and that is said at once")
    func nobody() throws {
        let queue = try PostQueue(socket: "/nowhere/socket", limit: 1, connections: 1)
        let outcome = queue.post(push)
        guard case .unavailable = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(HTTPAnswer(outcome).headers["Retry-After"] != nil)
    }

    @Test("is no more than its bound, and what is beyond is turned away")
    func bounded() throws {
        let go = DispatchSemaphore(value: 0)
        let heard = DispatchSemaphore(value: 0)
        let server = try ScriptedServer([
            .connection { talk in
                for number in 0..<3 {
                    try talk.hear()
                    heard.signal()
                    if number == 0 { go.wait() }
                    try talk.say(["id": .int(Int64(number)), "change": "added"])
                }
            }
        ])
        let queue = try PostQueue(socket: server.path, limit: 2, connections: 1)
        let done = DispatchSemaphore(value: 0)
        #expect(queue.submit(.post(push)) { _ in done.signal() })
        #expect(heard.wait(timeout: .now() + 60) == .success)
        #expect(queue.submit(.post(push)) { _ in done.signal() })
        #expect(queue.submit(.post(push)) { _ in done.signal() })
        #expect(!queue.submit(.post(push)) { _ in Issue.record("it was posted all the same") })
        #expect(!queue.waitUntilEmpty(until: Clock.monotonic()))
        go.signal()
        for _ in 0..<3 { #expect(done.wait(timeout: .now() + 60) == .success) }
        #expect(queue.waitUntilEmpty(until: Clock.monotonic() + .seconds(60)))
        #expect(server.finish() == [])
    }
}
