// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
import ScriptedServer
import Testing
import Varlink

@Suite("A client whose service is replaced") struct PersistentClientTests {
    private let call = VarlinkCall(method: "org.example.test.Ask", more: true)

    @Test("asks again when the connection ends before the reply, and says so once for each loss")
    func asksAgain() throws {
        let server = try ScriptedServer([
            .connection { try $0.hear() },
            .connection { _ in },
            .connection {
                try $0.hear()
                try $0.say(["n": 3])
                try $0.hear()
            },
            .connection {
                try $0.hear()
                try $0.say(["n": 4])
            },
        ])
        let client = try PersistentVarlinkClient(path: server.path, patience: .seconds(30))
        var losses = 0
        client.onLoss = { losses += 1 }
        #expect(try client.call { call } == ["n": 3])
        #expect(losses == 1)
        #expect(try client.call { call } == ["n": 4])
        #expect(losses == 2)
        #expect(server.finish() == [])
        #expect(server.calls.count == 4)
    }

    @Test("gives no half of a message on, and goes on behind the last reply of a stream")
    func streams() throws {
        let server = try ScriptedServer([
            .connection {
                try $0.hear()
                try $0.say(["n": 1], continues: true)
                try $0.say(["n": 2], continues: true)
                try $0.sayRaw(Array(#"{"parameters":{"n":3},"continues":true}"#.utf8))
            },
            .connection {
                try $0.hear()
                try $0.say(["n": 3], continues: true)
                try $0.say(["n": 4])
            },
        ])
        let client = try PersistentVarlinkClient(path: server.path, patience: .seconds(30))
        var seen: [Int64] = []
        let last = try client.call {
            VarlinkCall(method: call.method, parameters: ["after": .int(seen.last ?? 0)], more: true)
        } onReply: {
            seen.append($0["n"]?.intValue ?? -1)
        }
        #expect(seen == [1, 2, 3] && last == ["n": 4])
        #expect(server.finish() == [])
        #expect(server.calls.map { $0.parameters["after"]?.intValue } == [0, 2])
    }

    @Test("calls sent ahead are answered in their order; what is not asked for is dropped")
    func sentAhead() throws {
        func call(_ name: String) -> VarlinkCall { VarlinkCall(method: "org.example.test.\(name)") }
        let server = try ScriptedServer([
            .connection {
                // All are there before the first is answered.
                for _ in 0..<3 { try $0.hear() }
                try $0.say(["n": 1])
                try $0.say([:], error: "org.example.test.Wrong")
                try $0.say(["n": 3])
                try $0.hear()
                try $0.say(["n": 4])
                for _ in 0..<3 { try $0.hear() }
                try $0.say(["n": 5])
                try $0.hear()
                try $0.say(["n": 6], continues: true)
                for number: Int64 in 7...9 { try $0.say(["n": .int(number)]) }
            }
        ])
        let client = try PersistentVarlinkClient(path: server.path, patience: .seconds(30))
        client.sendAhead([call("A"), call("B"), call("C")])
        #expect(try client.call { call("A") } == ["n": 1])
        #expect(throws: VarlinkClientError.service(name: "org.example.test.Wrong", parameters: .emptyObject)) {
            try client.call { call("B") }
        }
        #expect(try client.call { call("C") } == ["n": 3])
        #expect(try client.call { call("D") } == ["n": 4])
        client.sendAhead([call("A"), call("B"), call("C")])
        #expect(try client.call { call("A") } == ["n": 5])
        #expect(try client.call { call("D") } == ["n": 9])
        #expect(server.finish() == [])
        #expect(server.calls.map(\.member) == ["A", "B", "C", "D", "A", "B", "C", "D"])
    }

    @Test("calls sent ahead over a lost connection are sent again, each when it is made")
    func lostAhead() throws {
        func call(_ name: String) -> VarlinkCall { VarlinkCall(method: "org.example.test.\(name)") }
        let server = try ScriptedServer([
            .connection {
                try $0.hear()
                try $0.say(["n": 1])
            },
            .connection {
                try $0.hear()
                try $0.say(["n": 2])
            },
        ])
        let client = try PersistentVarlinkClient(path: server.path, patience: .seconds(30))
        client.sendAhead([call("A"), call("B")])
        #expect(try client.call { call("A") } == ["n": 1])
        #expect(try client.call { call("B") } == ["n": 2])
        #expect(server.finish() == [])
        #expect(server.calls.map(\.member) == ["A", "B"])
    }

    @Test("a call whose long reply ends in the middle is repeated once only")
    func longReplies() throws {
        let part = ScriptedServer.Part.connection {
            try $0.hear()
            for _ in 0..<20 { try $0.sayRaw(Array(repeating: UInt8(ascii: " "), count: 64 << 10)) }
        }
        let server = try ScriptedServer([
            part, part,
            .connection {
                try $0.hear()
                try $0.say(["n": 1])
            },
        ])
        let client = try PersistentVarlinkClient(path: server.path, patience: .seconds(30))
        do throws(VarlinkClientError) {
            _ = try client.call { call }
            Issue.record("the call was repeated twice")
        } catch {
            guard case .malformed = error else {
                Issue.record("\(error)")
                return
            }
        }
        #expect(server.calls.count == 2)
        // The next call is another one.
        #expect(try client.call { call } == ["n": 1])
        #expect(server.finish() == [])
    }

    @Test("a service that listens again within its patience is found, removed or refusing", arguments: [true, false])
    func vanishes(removesSocket: Bool) throws {
        let lost = DispatchSemaphore(value: 0)
        let server = try ScriptedServer([
            .connection { try $0.hear() },
            .vanish(removesSocket: removesSocket),
            .wait { lost.wait() },
            // It tries in vain, again and again.
            .rest(.milliseconds(50)),
            .listen,
            .connection {
                try $0.hear()
                try $0.say(["n": 1])
            },
        ])
        let client = try PersistentVarlinkClient(path: server.path, patience: .seconds(30))
        client.onLoss = { lost.signal() }
        #expect(try client.call { call } == ["n": 1])
        #expect(server.finish() == [])
    }

    @Test("a service that does not come back is given up after its patience, and said to be gone")
    func gone() throws {
        let server = try ScriptedServer([.connection { try $0.hear() }, .vanish(removesSocket: true)])
        let client = try PersistentVarlinkClient(path: server.path, patience: .seconds(5))
        let began = Clock.monotonic()
        do throws(VarlinkClientError) {
            _ = try client.call { call }
            Issue.record("nobody could answer")
        } catch {
            guard case .gone(server.path, _, "No such file or directory") = error else {
                Issue.record("\(error)")
                return
            }
        }
        #expect(Clock.monotonic() - began >= .milliseconds(4_990))
        #expect(server.finish() == [])
    }

    @Test("a service that ends every connection is given up as well")
    func endsAll() throws {
        let server = try ScriptedServer(
            Array(repeating: .connection { _ in }, count: 6) + [.vanish(removesSocket: false)]
        )
        let client = try PersistentVarlinkClient(path: server.path, patience: .seconds(8))
        #expect(throws: VarlinkClientError.self) { try client.call { call } }
        #expect(server.finish() == [])
    }

    @Test("a call waits in the backlog while nobody accepts, and is answered by whoever does")
    func backlog() throws {
        let lost = DispatchSemaphore(value: 0)
        let server = try ScriptedServer([
            .connection { try $0.hear() },
            .wait { lost.wait() },
            // It connects and asks.
            .rest(.milliseconds(50)),
            .connection {
                try $0.hear()
                try $0.say(["n": 1])
            },
        ])
        let client = try PersistentVarlinkClient(path: server.path, patience: .seconds(30))
        client.onLoss = { lost.signal() }
        #expect(try client.call { call } == ["n": 1])
        #expect(server.finish() == [])
    }

    @Test("one that takes the call and says nothing is not waited for longer than the patience")
    func silent() throws {
        let server = try ScriptedServer([
            .connection {
                try $0.hear()
                try $0.waitForClient()
            }
        ])
        var client: PersistentVarlinkClient? = try PersistentVarlinkClient(
            path: server.path,
            patience: .milliseconds(200)
        )
        #expect(throws: VarlinkClientError.timedOut) { try client?.call { call } }
        client = nil
        #expect(server.finish() == [])
    }

    @Test("the patience is for the first reply: the next one of a stream may take its time")
    func slowStream() throws {
        let patience = Duration.seconds(5)
        let silent = try ScriptedServer([
            .connection {
                try $0.hear()
                try $0.waitForClient()
            }
        ])
        let call = call
        let path = silent.path
        let server = try ScriptedServer([
            .connection {
                try $0.hear()
                try $0.say(["n": 1], continues: true)
                // One that is more patient gives up a service that says nothing.
                let control = try PersistentVarlinkClient(path: path, patience: patience + .milliseconds(500))
                do { _ = try control.call { call } } catch VarlinkClientError.timedOut {}
                try $0.say(["n": 2])
            }
        ])
        let client = try PersistentVarlinkClient(path: server.path, patience: patience)
        #expect(try client.call { call } == ["n": 2])
        #expect(server.finish() == [])
        #expect(silent.finish() == [])
    }

    @Test("a deadline ends it, whether it waits for a reply or for a service")
    func deadline() throws {
        for isThere in [true, false] {
            let server = try ScriptedServer([
                .connection {
                    try $0.hear()
                    try $0.say(["n": 1], continues: true)
                    if isThere { try $0.waitForClient() }
                },
                .vanish(removesSocket: false),
            ])
            let patience = Duration.seconds(30)
            var client: PersistentVarlinkClient? = try PersistentVarlinkClient(path: server.path, patience: patience)
            let began = Clock.monotonic()
            #expect(throws: VarlinkClientError.self) {
                try client?.call(deadline: began + .milliseconds(300)) { call }
            }
            let waited = Clock.monotonic() - began
            #expect(waited >= .milliseconds(280) && waited < patience)
            client = nil
            #expect(server.finish() == [])
        }
    }

    @Test("an error of the service, and a call that must not be repeated, are not asked again")
    func once() throws {
        let server = try ScriptedServer([
            .connection {
                try $0.hear()
                try $0.say(["message": "no"], error: "org.example.test.No")
                try $0.hear()
            },
            .connection {
                try $0.hear()
                try $0.say(["n": 1])
            },
        ])
        let client = try PersistentVarlinkClient(path: server.path, patience: .seconds(30))
        #expect(throws: VarlinkClientError.service(name: "org.example.test.No", parameters: ["message": "no"])) {
            try client.call { call }
        }
        #expect(throws: VarlinkClientError.disconnected) { try client.call(repeats: false) { call } }
        #expect(try client.call { call } == ["n": 1])
        #expect(server.finish() == [])
        #expect(server.calls.count == 3)
    }

    @Test("the end of a connection can be waited for, and the next call makes a new one")
    func waitForEnd() throws {
        let answered = DispatchSemaphore(value: 0)
        let server = try ScriptedServer([
            .connection {
                try $0.hear()
                try $0.say(["n": 1])
                answered.wait()
            },
            .connection {
                try $0.hear()
                try $0.say(["n": 2])
                try $0.waitForClient()
            },
        ])
        var client: PersistentVarlinkClient? = try PersistentVarlinkClient(path: server.path, patience: .seconds(30))
        #expect(try client?.call { call } == ["n": 1])
        answered.signal()
        #expect(client?.waitForEnd(timeout: .seconds(60)) == true)
        #expect(try client?.call { call } == ["n": 2])
        #expect(client?.waitForEnd(timeout: .milliseconds(100)) == false)
        client = nil
        #expect(server.finish() == [])
    }

    @Test("where nobody listens the first connection fails at once")
    func nobody() {
        let patience = Duration.seconds(30)
        let began = Clock.monotonic()
        #expect(throws: VarlinkClientError.self) {
            try PersistentVarlinkClient(path: "/tmp/tp-nobody/s", patience: patience)
        }
        #expect(Clock.monotonic() - began < patience)
    }

    @Test("A call that no service takes is refused at once, and not repeated")
    func tooLong() throws {
        let server = try ScriptedServer([.connection { _ in }])
        let client = try PersistentVarlinkClient(path: server.path, patience: .seconds(600))
        let text = String(repeating: "x", count: MessageFramer.callLimit)
        do throws(VarlinkClientError) {
            _ = try client.call { VarlinkCall(method: call.method, parameters: ["text": .string(text)]) }
            Issue.record("it was answered")
        } catch {
            guard case .tooLong(let bytes, MessageFramer.callLimit) = error else {
                Issue.record("\(error)")
                return
            }
            client.disconnect()
            _ = server.finish()
            #expect(bytes > MessageFramer.callLimit && "\(error)".contains("a service takes 1048576"))
        }
    }
}
