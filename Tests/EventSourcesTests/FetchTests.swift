// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EngineHarness
import EventLoop
import KernelFiles
import Lifecycle
import Linux
import Mailbox
import Schedules
import Store
import Testing

@testable import EventSources

@Suite("The fetch mode") struct FetchTests {
    static let toml = """
        [apps.mail]
        exec = ["/bin/true"]
        launch = "on-demand"
        restart = "never"
        ready = "delegate"
        background_modes = ["fetch"]
        fetch_interval = "20min"
        """

    /// One whose app has a delegate, which takes what waits.
    private func attended(_ toml: String = Self.toml, remembered: [StoredSchedule] = []) throws -> FakeEvents {
        let events = try FakeEvents(toml, remembered: remembered)
        events.attend("mail")
        return events
    }

    /// The app was told to look, and has taken that out of its mailbox; whether it was.
    private func isAsked(_ events: FakeEvents) -> Bool {
        let mail = events.app("mail")
        let asked = events.host.mail(for: mail).filter { $0.draft.message == Message.performFetch.rawValue }
        for one in asked { events.host.acknowledged(one.id, by: mail) }
        return !asked.isEmpty
    }

    /// It is asked after exactly so many seconds.
    private func expectAsked(
        _ events: FakeEvents,
        after seconds: Int,
        _ where: SourceLocation = #_sourceLocation
    ) throws {
        try events.pass(.seconds(seconds - 1))
        #expect(!isAsked(events), "too early", sourceLocation: `where`)
        try events.pass(.seconds(1))
        #expect(isAsked(events), "not in time", sourceLocation: `where`)
    }

    private func answer(_ events: FakeEvents, _ result: FetchResult?) {
        events.wakes.timers.fetched(events.app("mail"), result)
    }

    @Test("An app is launched in the background to look, when its interval is over") func comes() throws {
        let events = try attended()
        try expectAsked(events, after: 1_200)
        #expect(events.state("mail") == .background && events.wakeCount("mail") == 1)
        #expect(events.told("woken by its turn to look for new content", of: "mail").count == 1)
    }

    @Test(
        "The answer decides when it is its turn again",
        arguments: [
            (FetchResult.newData, 1_200), (.noData, 1_800), (.failed, 2_400),
        ]
    )
    func answers(_ result: FetchResult, _ seconds: Int) throws {
        let events = try attended()
        try expectAsked(events, after: 1_200)
        answer(events, result)
        let told = events.told("looked for new content", of: "mail")
        #expect(told == ["looked for new content: \(result.rawValue); again in \(Quantity.text(.seconds(seconds)))"])
        try events.shell.suspend("mail")
        try expectAsked(events, after: seconds)
    }

    @Test("An app that has not answered is not asked again, and one that was not asked has nothing to say")
    func unasked() throws {
        let events = try attended()
        answer(events, .noData)
        #expect(events.told("looked for", of: "mail").isEmpty)
        try expectAsked(events, after: 1_200)
        try events.pass(.seconds(86_400))
        #expect(!isAsked(events))
        answer(events, .newData)
        answer(events, .noData)
        #expect(events.told("looked for", of: "mail").count == 1)
    }

    @Test(
        "An app that ends or sleeps before it has answered has failed, and waits twice as long each time",
        arguments: [true, false]
    )
    func endsUnanswered(_ sleeps: Bool) throws {
        let events = try attended()
        for (count, wait) in [1_200, 2_400, 4_800].enumerated() {
            try expectAsked(events, after: wait)
            if sleeps { try events.shell.suspend("mail") } else { try events.shell.request(.stop(.evicted), "mail") }
            #expect(events.told("looked for new content: failed", of: "mail").count == count + 1)
        }
    }

    @Test("An app that is awake in the background may look from three quarters of its interval on") func opportunity()
        throws
    {
        let events = try attended()
        try expectAsked(events, after: 1_200)
        answer(events, .noData)
        try events.shell.suspend("mail")
        // Its interval is 1800 s now.
        try events.pass(.seconds(1_300))
        events.happen(for: "mail")
        try events.pass(.zero)
        #expect(!isAsked(events))
        try events.pass(.seconds(49))
        try events.shell.suspend("mail")
        try events.pass(.seconds(1))
        events.happen(for: "mail")
        try events.pass(.zero)
        #expect(isAsked(events))
    }

    @Test("An app without a delegate is told by its signal, and its interval stays") func signal() throws {
        let toml = Self.toml.replacing("ready = \"delegate\"", with: "signals = { performFetch = \"SIGUSR1\" }")
        let events = try FakeEvents(toml)
        for _ in 0..<3 { try expectAsked(events, after: 1_200) }
        answer(events, .noData)
        try expectAsked(events, after: 1_200)
        #expect(events.told("looked for", of: "mail").isEmpty)
    }

    @Test("An app without ears is woken all the same") func withoutEars() throws {
        let events = try FakeEvents(Self.toml.replacing("ready = \"delegate\"", with: ""))
        try events.pass(.seconds(1_200))
        #expect(!isAsked(events) && events.wakeCount("mail") == 1)
    }

    // MARK: What it costs

    /// What the machine has no strength for.
    enum Weakness: CaseIterable {
        case memory, battery, load

        func begin(_ events: FakeEvents, _ isWeak: Bool = true) throws {
            switch self {
            case .memory: events.host.isMemoryShort = isWeak
            case .battery:
                try events.kernel.write("/sys/class/power_supply/BAT0/type", "Battery\n")
                try events.kernel.write("/sys/class/power_supply/BAT0/status", "Discharging\n")
                try events.kernel.write("/sys/class/power_supply/BAT0/capacity", isWeak ? "19\n" : "20\n")
            case .load:
                let load = Double(2 * ThisProcess.processorCount) - (isWeak ? 0 : 0.01)
                try events.kernel.write("/proc/loadavg", "\(load) 0.00 0.00 1/1 1\n")
            }
        }

        var words: String {
            switch self {
            case .memory: "memory is short"
            case .battery: "the battery has 19 % left"
            case .load: "the machine is busy"
            }
        }
    }

    @Test(
        "While the machine is weak it is put off, which is said once, and comes when that is over",
        arguments: Weakness.allCases
    )
    func weakness(_ weakness: Weakness) throws {
        let events = try attended()
        try weakness.begin(events)
        try events.pass(.seconds(1_200 + 3_600))
        #expect(!isAsked(events) && events.state("mail") == .notRunning)
        let told = events.told("looks for new content later", of: "mail")
        #expect(told.count == 1 && told.first?.contains(weakness.words) == true)
        try weakness.begin(events, false)
        try events.pass(.seconds(1_800))
        #expect(isAsked(events))
    }

    @Test("A battery that is being charged is no weakness") func charging() throws {
        let events = try attended()
        try Weakness.battery.begin(events)
        try events.kernel.write("/sys/class/power_supply/BAT0/status", "Charging\n")
        try expectAsked(events, after: 1_200)
    }

    // MARK: What lasts

    @Test("What was learned outlives torpord, and a shorter fetch_interval takes nothing of it away") func learned()
        throws
    {
        let events = try attended()
        try expectAsked(events, after: 1_200)
        answer(events, .noData)
        try events.pass(.seconds(600))
        let kept = Array(events.host.kept.values)
        let next = try FakeEvents(Self.toml, remembered: kept) { _, shell in try shell.pass(.seconds(1_800)) }
        next.attend("mail")
        next.configure("mail") { $0.fetchInterval = .seconds(60) }
        try expectAsked(next, after: 1_200)
    }

    @Test("An app that leaves the mode is asked no more, and forgotten") func leavesMode() throws {
        let events = try attended()
        events.configure("mail") { $0.backgroundModes = [] }
        #expect(events.host.forgotten == [StoredSchedule.Key(app: "mail", name: "fetch")])
        #expect(events.wakes.timers.fetchers.isEmpty)
        try events.pass(.seconds(86_400))
        #expect(!isAsked(events))
    }

    @Test("An app that may not be woken is asked when its turn comes again, and told once") func heldBack() throws {
        let events = try attended()
        try events.shell.start("mail")
        try events.shell.request(.stop(.stopped), "mail")
        try events.pass(.seconds(3_600))
        let waiting = events.host.mail(for: events.app("mail"))
        #expect(waiting.count == 1 && waiting.first?.count == 3)
        #expect(events.told("is not woken by its turn", of: "mail").count == 3)
        #expect(events.told("looked for", of: "mail").isEmpty, "it did not look")
    }
}
