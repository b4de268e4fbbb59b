// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EngineHarness
import EventLoop
import Lifecycle
import Mailbox
import Testing

@testable import EventSources

@Suite("What apps are told of the machine") struct NotificationsTests {
    /// Apps that hear the topics, by signals.
    static func toml(_ topics: String, _ names: String...) -> String {
        let signals = [
            "didReceiveNotification", "significantTimeChange", "protectedDataWillBecomeUnavailable",
            "protectedDataDidBecomeAvailable",
        ]
        return names.map { name in
            """
            [apps.\(name)]
            exec = ["/bin/true"]
            launch = "on-demand"
            restart = "never"
            notifications = [\(topics)]
            signals = { \(signals.map { "\($0) = \"SIGUSR2\"" }.joined(separator: ", ")) }

            """
        }.joined()
    }

    private static let mail = MailDraft(
        topic: "power",
        message: Message.didReceiveNotification.rawValue,
        coalescing: .latest,
        sender: "torpord"
    )

    @Test("Those that live, asked for the topic, and have ears are told, and nobody is woken") func told() throws {
        let events = try FakeEvents(
            Self.toml("\"power\"", "asleep", "awake", "deaf", "gone") + Self.toml("\"screens\"", "other")
        )
        events.app("deaf").specification.signals = [:]
        for name in ["awake", "deaf", "other"] { try events.shell.start(name) }
        try events.putToSleep("asleep")
        events.wakes.notifications.tell(.power, Self.mail, "the machine's power")
        #expect(["asleep", "awake", "deaf", "gone", "other"].map { events.mail($0).count } == [1, 1, 0, 0, 0])
        #expect(events.state("asleep") == .suspended && events.state("gone") == .notRunning)
        #expect(events.host.delivered.sorted() == [events.app("asleep").id, events.app("awake").id].sorted())
        events.wakes.notifications.tell(.power, Self.mail, to: events.app("gone"), "the machine's power")
        events.wakes.notifications.tell(.power, Self.mail, to: events.app("awake"), "the machine's power")
        #expect(events.mail("gone") == [] && events.host.mail(for: events.app("awake")).first?.count == 2)
    }

    @Test("A delegate hears it without a signal") func delegate() throws {
        let events = try FakeEvents(Self.toml("\"power\"", "web"))
        events.app("web").specification.signals = [:]
        try events.shell.start("web")
        events.attend("web")
        events.wakes.notifications.tell(.power, Self.mail, "the machine's power")
        #expect(events.mail() == ["power: didReceiveNotification"])
    }

    @Test("A full mailbox of one app keeps no other from hearing of it") func full() throws {
        let events = try FakeEvents(Self.toml("\"power\"", "a", "b", "c"))
        for name in ["a", "b", "c"] { try events.shell.start(name) }
        events.host.full = [events.app("b").id]
        events.wakes.notifications.tell(.power, Self.mail, "the machine's power")
        #expect(["a", "b", "c"].map { events.mail($0).count } == [1, 0, 1])
    }

    // MARK: The session's lock

    private static let (locked, unlocked) = (
        "protected-data: protectedDataWillBecomeUnavailable", "protected-data: protectedDataDidBecomeAvailable"
    )

    private func protected(_ names: String...) throws -> FakeEvents {
        let events = try FakeEvents(Self.toml("\"protected-data\"", "a", "b"))
        for name in names { try events.shell.start(name) }
        return events
    }

    @Test("A lock that is over before the app heard of it is nothing, however often that happens") func cancelled()
        throws
    {
        let events = try protected("a")
        for _ in 0..<3 {
            events.wakes.notifications.tellLock(true, isFirst: false)
            #expect(events.mail("a") == [Self.locked] && events.mail("b") == [])
            events.wakes.notifications.tellLock(false, isFirst: false)
            #expect(events.mail("a") == [])
        }
        events.wakes.notifications.tellLock(false, isFirst: false)
        events.wakes.notifications.tellLock(true, isFirst: false)
        #expect(events.mail("a") == [], "nor is an end of it that another one follows")
    }

    @Test("What is being told is not taken back: what is so then is told after it") func inFlight() throws {
        let events = try protected("a")
        events.wakes.notifications.tellLock(true, isFirst: false)
        events.host.tell(1, to: events.app("a"))
        events.wakes.notifications.tellLock(false, isFirst: false)
        #expect(events.mail("a") == [Self.locked, Self.unlocked])
        events.wakes.notifications.tellLock(true, isFirst: false)
        #expect(events.mail("a") == [Self.locked], "it hears that now, and nothing came of the rest")
    }

    @Test("What is found at the start is told to those that know otherwise", arguments: [true, false])
    func first(_ isLocked: Bool) throws {
        let events = try protected("a", "b")
        try events.shell.request(.cover(begin: true), "a")
        events.wakes.notifications.tellLock(isLocked, isFirst: true)
        #expect(events.mail("a") == (isLocked ? [] : [Self.unlocked]))
        #expect(events.mail("b") == (isLocked ? [Self.locked] : []))
    }
}
