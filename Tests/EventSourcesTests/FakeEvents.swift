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
import Varlink

@testable import EventSources

/// Hears for events, without which nothing would let go of them: what one test has open would be open for the next.
final class Ear: LifecycleObserver {
    private weak var wakes: Wakes?

    init(_ wakes: Wakes) { self.wakes = wakes }

    func ended(_ app: AppRuntime, _ ending: Ending) { wakes?.ended(app, ending) }
    func touched(_ apps: [AppRuntime]) { wakes?.touched(apps) }
    func forget(_ app: AppRuntime) { wakes?.forget(app) }
}

/// Apps without processes, and what wakes them.
struct FakeEvents {
    let shell: FakeShell
    let host: FakeEventHost
    let wakes: Wakes
    /// The machine's power, load and sound.
    let kernel: KernelFiles

    /// - Parameters:
    ///   - toml: the configuration of the apps.
    ///   - remembered: what the supervisor before this one kept of timers; nil while that has not been read.
    ///   - process: what is looked at where an app's process is; nil for none.
    ///   - prepare: runs before anything begins.
    init(
        _ toml: String,
        remembered: [StoredSchedule]? = [],
        process: Int32? = Self.process,
        prepare: (FakeEventHost, FakeShell) throws -> Void = { _, _ in }
    ) throws {
        shell = try FakeShell(toml: toml)
        shell.hands.process = process
        host = FakeEventHost(shell)
        kernel = try KernelFiles()
        try prepare(host, shell)
        wakes = Wakes(shell.engine, shell.recorder, host)
        wakes.kernelFiles = kernel.root
        // None of the machine's services is on this bus: what they say there is no part of a test.
        wakes.busAddress = "unix:path=\(kernel.root)/bus"
        shell.engine.add(Ear(wakes))
        wakes.takeOver()
        wakes.begin()
        wakes.timers.begin()
        if let remembered { remember(remembered) }
    }

    /// A process that is no app's: whoever runs these tests.
    static let process = ThisProcess.parent
    /// Whether it can stand for that of an app, which is never the first of a machine.
    static let hasProcess = process > 1

    /// What the supervisor before this one kept of timers is there.
    func remember(_ schedules: [StoredSchedule]) {
        wakes.timers.remember(Dictionary(schedules.map { ($0.key, $0) }) { $1 })
    }

    func app(_ name: String) -> AppRuntime { shell.app(name) }
    func machine(_ name: String) -> AppMachine { shell.engine.machine(app(name).id) }
    func state(_ name: String) -> AppState { shell.state(name) }

    /// Lets so much time pass, on every clock.
    func pass(_ time: Duration) throws { try shell.pass(time) }

    /// Sets the wall clock, as a person or NTP does.
    func setClock(by time: Duration) {
        host.set += time
        wakes.wallClock.clockRang()
    }

    /// The machine sleeps for so long, in which the loop's clock stands still.
    func sleep(_ time: Duration) {
        host.slept += time
        wakes.wallClock.clockRang()
    }

    /// Turns the loop until it is so, at most 30 s.
    func wait(_ sentence: Comment, until isSo: () -> Bool) throws {
        let end = Clock.monotonic() + .seconds(30)
        while !isSo() {
            try #require(Clock.monotonic() < end, "in 30 s it was not so: \(sentence)")
            _ = try shell.engine.loop.runOnce(timeout: .milliseconds(10))
        }
    }

    // MARK: Apps

    /// Has apps asleep: launched, and suspended.
    func putToSleep(_ names: String...) throws {
        for name in names {
            if !machine(name).isAlive { try shell.start(name) }
            try shell.suspend(name)
            try #require(state(name) == .suspended)
        }
    }

    /// From now on apps answer what they are told, and a delegate hears what this one is told.
    func attend(_ name: String) {
        shell.hands.onAction = { [unowned engine = shell.engine] app, action in
            guard case .tell(let message) = action else { return }
            if message == .willFinishLaunching { engine.deliver(.delegate(attached: true), to: app.id) }
            engine.deliver(.answered(message), to: app.id)
        }
        shell.engine.deliver(.delegate(attached: true), to: app(name).id)
    }

    /// Another configuration is in force, in which these words of an app are others.
    func configure(_ name: String, _ change: (inout AppSpecification) -> Void) {
        change(&app(name).specification)
        wakes.configure()
    }

    /// The app leaves the configuration, and is ended for it.
    func leave(_ name: String) throws {
        let others = shell.engine.apps.filter { $0.name != name }
        let changes = others.map { AppChange(AppDefinition($0.specification)) }
        shell.engine.perform(try shell.engine.coordinator.reconfigure(changes, now: shell.time.now))
        shell.engine.settle()
    }

    // MARK: Events

    /// Something happens for an app; what becomes of it in words.
    @discardableResult
    func happen(
        _ source: WakeSource = .timer,
        for name: String = "web",
        wake: Wake? = Wake(),
        mail: MailDraft? = nil
    ) -> String {
        let event = WakeEvent(source, "nightly", "its \(source.rawValue)", wake: wake, mail: mail, at: shell.time.now)
        return wakes.tell(event, for: app(name)).words
    }

    /// What waits for the app: `topic: message`, the first first.
    func mail(_ name: String = "web") -> [String] {
        host.mail(for: app(name)).map { "\($0.draft.topic): \($0.draft.message)" }
    }

    /// The payload of the last thing that waits for the app.
    func payload(_ name: String = "web") -> JSON? { host.mail(for: app(name)).last?.draft.payload }

    /// How often events woke the app.
    func wakeCount(_ name: String = "web") -> Int { Int(app(name).counters.wakes) }

    /// What was told of an app's wakes with these words in it.
    func told(_ words: String, of name: String = "web") -> [String] {
        shell.told(of: name).filter { $0.hasPrefix("wake: ") && $0.contains(words) }.map { String($0.dropFirst(6)) }
    }
}

extension WakeOutcome {
    /// `runs`, `woken`, or why not.
    var words: String {
        switch self {
        case .runs: "runs"
        case .woken: "woken"
        case .heldBack(let why, _): why
        }
    }
}

extension MailDraft {
    /// Something that an app may be told.
    static func note(_ topic: String = "news", _ coalescing: Coalescing = .all) -> MailDraft {
        MailDraft(
            topic: topic,
            message: Message.didReceiveEvent.rawValue,
            payload: .emptyObject,
            coalescing: coalescing,
            sender: "test"
        )
    }
}
