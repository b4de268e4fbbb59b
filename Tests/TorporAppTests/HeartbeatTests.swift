// SPDX-License-Identifier: Apache-2.0

import AppConnection
import Foundation
import Linux
import Testing

@testable import TorporApp

@Suite(.ownProcess) struct HeartbeatTests {
    /// What comes at a socket, a datagram each, until there are that many, at most for 10 s.
    private func said(
        _ variables: [String: String],
        count: Int,
        _ body: @Sendable (TorporApp) async throws -> Void = { _ in }
    ) async throws -> [String] {
        var template = Array((NSTemporaryDirectory() + "tn-XXXXXX").utf8CString)
        guard mkdtemp(&template) != nil else { throw Errno.ioError }
        let folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let socket = try Sockets.bindDatagram(path: folder + "/notify")
        let variables = variables.merging(["NOTIFY_SOCKET": folder + "/notify"]) { $1 }
        let app = try TorporApp(
            environment: AppEnvironment { variables[$0] },
            isDelegate: false,
            takesSignals: false
        )
        let heartbeats = app.startHeartbeats()
        try await body(app)
        var texts: [String] = []
        let end = Clock.monotonic() + .seconds(60)
        while texts.count < count, Clock.monotonic() < end {
            guard let message = try Sockets.receive(socket.raw, maximum: 4096) else {
                try await Task.sleep(for: .milliseconds(1))
                continue
            }
            texts.append(String(decoding: message.bytes, as: UTF8.self))
        }
        heartbeats?.cancel()
        await heartbeats?.value
        return texts
    }

    @Test func heartbeatsComeTwiceAsOftenAsTheyAreDue() async throws {
        let began = Clock.monotonic()
        let variables = ["WATCHDOG_USEC": "40000", "WATCHDOG_PID": "\(ThisProcess.pid)"]
        #expect(try await said(variables, count: 4) == Array(repeating: "WATCHDOG=1", count: 4))
        // The first at once, the others after 20 ms each.
        #expect(Clock.monotonic() - began >= .milliseconds(60))
    }

    @Test func nobodySendsTheHeartbeatsOfAnotherProcess() async throws {
        let texts = try await said(["WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"], count: 1) { app in
            // By then as many of another process's would have come.
            let own = ["WATCHDOG_USEC": "1000", "WATCHDOG_PID": "\(ThisProcess.pid)"]
            let heartbeats = try await said(own, count: 20)
            #expect(heartbeats.count == 20)
            app.say(status: "42 notes\nREADY=1")
        }
        #expect(texts == ["STATUS=42 notes"])
    }

    @Test func whatIsSaidIsWaitedForUntilItWasHandled() async throws {
        let socket = "@tp-settle-\(ThisProcess.pid)"
        let receiver = try Sockets.bindDatagram(path: socket)
        // Nobody reads: the time is up.
        #expect(try !NotifySpeech.settle(socket, timeout: .milliseconds(50)))
        let message = try #require(try Sockets.receive(receiver.raw, maximum: 4096))
        #expect(message.bytes == Array("BARRIER=1".utf8))
        #expect(message.descriptors.count == 1)
    }
}
