// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EngineHarness
import EventLoop
import Lifecycle
import Linux
import Mailbox
import Schedules
import Store

@testable import EventSources

/// What events need of the other rooms, as tests want it to be, and what was asked of them.
final class FakeEventHost: EventHost {
    /// What was put into mailboxes, by app.
    private(set) var mail: [AppID: [Mail]] = [:]
    /// Apps whose mailboxes have no place.
    var full: Set<AppID> = []
    private(set) var delivered: [AppID] = []
    private(set) var retried: [AppID] = []
    private(set) var kept: [StoredSchedule.Key: StoredSchedule] = [:]
    /// What the keeper holds.
    private(set) var held: [String: [Int32]] = [:]

    var clocks: ClockPair
    var isBeforeFirstUnlock = false
    var isMemoryShort = false
    var isMemoryAwaited = false
    var isKeeperLost = false
    var socketAccounts = SocketAccounts()
    var gpsdUser: UInt32?
    var gpsd = GPSAddress.usual
    let lookups: SideWork
    var runtimeDirectory = "/nonexistent"
    var inheritance = Inheritance()
    var isSuccessor = false
    private var lastMail: Int64 = 0

    /// - Parameter shell: whose time the clocks begin with.
    init(_ shell: FakeShell) {
        lookups = SideWork(shell.engine.loop, named: "lookups")
        clocks = ClockPair(running: shell.time.now, wall: 1_800_000_000_000_000)
    }

    func add(_ draft: MailDraft, for app: AppRuntime) throws(Mailbox.Refusal) {
        if full.contains(app.id) { throw .tooMany(0) }
        lastMail += 1
        mail[app.id, default: []].append(Mail(id: lastMail, draft: draft, firstAt: clocks.wall, lastAt: clocks.wall))
    }

    func deliverMail(to app: AppRuntime) { delivered.append(app.id) }
    func retryMail(of app: AppRuntime) { retried.append(app.id) }
    func mail(for app: AppRuntime) -> [Mail] { mail[app.id] ?? [] }
    func acknowledged(_ id: Int64, by app: AppRuntime) { mail[app.id]?.removeAll { $0.id == id } }
    func keep(_ schedule: StoredSchedule) { kept[schedule.key] = schedule }
    func forget(_ schedule: StoredSchedule.Key) { kept[schedule] = nil }
    func hold(_ name: String, _ descriptor: Int32) { held[name] = [descriptor] }

    func hold(_ name: String, _ descriptors: [Int32], replacing: Bool) {
        held[name] = (replacing ? [] : held[name] ?? []) + descriptors
    }

    func release(_ name: String) { held[name] = nil }
}

/// Apps without processes, and what wakes them.
struct FakeEvents {
    let shell: FakeShell
    let host: FakeEventHost
    let wakes: Wakes

    /// - Parameter toml: the configuration of the apps.
    init(_ toml: String) throws {
        shell = try FakeShell(toml: toml)
        host = FakeEventHost(shell)
        wakes = Wakes(shell.engine, shell.recorder, host)
        shell.engine.add(wakes)
        wakes.takeOver()
        wakes.begin()
    }

    /// Lets so much time pass, on every clock.
    func pass(_ time: Duration) throws {
        host.clocks.running += time
        host.clocks.wall += time.microseconds
        try shell.pass(time)
    }

    /// Sets the wall clock, as a person or NTP does.
    func setClock(by time: Duration) { host.clocks.wall += time.microseconds }
}
