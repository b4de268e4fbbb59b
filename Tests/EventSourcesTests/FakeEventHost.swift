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
    private var boxes: [AppID: Mailbox] = [:]
    /// All that was put into mailboxes, by app, oldest first: there several may have become one.
    private(set) var drafts: [AppID: [MailDraft]] = [:]
    /// Apps whose mailboxes have no place.
    var full: Set<AppID> = []
    /// Runs when something is put into a mailbox.
    var onMail: ((AppRuntime) -> Void)?
    private(set) var delivered: [AppID] = []
    private(set) var retried: [AppID] = []
    private(set) var kept: [StoredSchedule.Key: StoredSchedule] = [:]
    private(set) var forgotten: [StoredSchedule.Key] = []
    /// What the keeper holds.
    private(set) var held: [String: [Int32]] = [:]

    private let time: ManualTime
    /// How long the machine has slept, so that the loop's clock stood still.
    var slept = Duration.zero
    /// By how much the clock on the wall was set.
    var set = Duration.zero
    var isBeforeFirstUnlock = false
    var isMemoryShort = false
    var isMemoryAwaited = false
    var isKeeperLost = false
    var socketAccounts = SocketAccounts()
    /// Apps of which the torpord before this one has left processes.
    var leftApps: Set<String> = []
    /// Whether apps that were removed before this torpord ran as the same user as all others.
    var areUsersSame = true
    var gpsdUser: UInt32?
    /// Nobody listens at this port.
    var gpsd = GPSAddress(address: "127.0.0.1", port: 1)
    var sessionSound: (any SoundSource)?
    let lookups: BackgroundWorker
    var runtimeDirectory = "/nonexistent"
    var inheritance = InheritedDescriptors()
    var isSuccessor = false
    private var lastMail: Int64 = 0

    /// 2027-01-15 08:00:00 UTC, which is when tests begin.
    static let beginning: Int64 = 1_800_000_000_000_000

    /// - Parameter shell: whose time the clocks go by.
    init(_ shell: FakeShell) {
        lookups = BackgroundWorker(shell.engine.loop, named: "lookups")
        time = shell.time
    }

    var clocks: ClockPair {
        let passed = time.now - .seconds(1_000) + slept
        return ClockPair(running: time.now + slept, wall: Self.beginning + (passed + set).microseconds)
    }

    func add(_ draft: MailDraft, for app: AppRuntime) throws(Mailbox.Refusal) {
        if full.contains(app.id) { throw .tooMany(0) }
        lastMail += 1
        _ = try boxes[app.id, default: Mailbox()].add(draft, id: lastMail, at: clocks.wall)
        drafts[app.id, default: []].append(draft)
        onMail?(app)
    }

    func isLeft(_ removed: String, ofUserOf app: AppRuntime) -> Bool { areUsersSame }

    /// It is being told to the app.
    func tell(_ id: Int64, to app: AppRuntime) { boxes[app.id]?.setInFlight(id, true) }

    func deliverMail(to app: AppRuntime) { delivered.append(app.id) }
    func retryMail(of app: AppRuntime) { retried.append(app.id) }
    func mail(for app: AppRuntime) -> [Mail] { boxes[app.id]?.items ?? [] }
    func acknowledged(_ id: Int64, by app: AppRuntime) { boxes[app.id]?.remove(id) }
    func keep(_ schedule: StoredSchedule) { kept[schedule.key] = schedule }

    func forget(_ schedule: StoredSchedule.Key) {
        kept[schedule] = nil
        forgotten.append(schedule)
    }

    func hold(_ name: String, _ descriptor: Int32) { held[name] = [descriptor] }

    func hold(_ name: String, _ descriptors: [Int32], replacing: Bool) {
        held[name] = (replacing ? [] : held[name] ?? []) + descriptors
    }

    func release(_ name: String) { held[name] = nil }
}
