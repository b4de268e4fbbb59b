// SPDX-License-Identifier: Apache-2.0

import Engine
import EventSources
import Lifecycle
import Linux
import Processes

/// An app with processes, which is to be measured.
struct MeasuredApp {
    let id: AppID
    let tree: ProcessTree
    /// The time at which all processes of the app were stopped (CLOCK_MONOTONIC); nil if they are not stopped.
    let suspendedSince: Duration?
    /// When the app last worked on didEnterBackground (CLOCK_MONOTONIC); nil if that is unknown.
    var saving: ClosedRange<Duration>?
}

/// The kinds of data that policies need: the bits TORPOR_NEEDS_… of the policy interface.
struct MeasurementNeeds: OptionSet {
    let rawValue: UInt64

    init(rawValue: UInt64) { self.rawValue = rawValue }

    static let memory = MeasurementNeeds(rawValue: 1 << 0)
    static let processor = MeasurementNeeds(rawValue: 1 << 1)
    static let connections = MeasurementNeeds(rawValue: 1 << 2)
    static let system = MeasurementNeeds(rawValue: 1 << 3)
}

/// A measurement of one incarnation (run) of an app. All times are on CLOCK_MONOTONIC.
struct AppMeasurement {
    /// The time of the measurement. If the app has a cgroup, its memory and number of processes may be up to 5 s older;
    /// up to 30 s if the app has used no processor time, and up to a minute if it is suspended.
    var measuredAt: Duration
    /// The last usage that was read.
    var usage: Usage
    /// The processor time that this incarnation has used; it never decreases. In contrast, the time in `usage`
    /// decreases when a process ends and its parent does not wait for it.
    var processorTime: Duration
    /// The app's use of processor time between the last two measurements that are at least 200 ms apart, in thousandths
    /// of one processor; nil until there are two such measurements.
    var processorPermille: UInt32?
    /// The number of open TCP connections, including those in other network namespaces, and of clients' connections to
    /// the app's Unix sockets, without those between the app's own processes; nil if no policy needs the number, or if
    /// a process of the app cannot be read.
    var connections: Int?
    /// The last time at which the app opened a connection, data moved on one of its connections, a connection to one of
    /// its listening ports was closed, or clients' connections to its Unix sockets were seen to come or go; nil if no
    /// such time is known.
    var lastTraffic: Duration?
    /// Whether the app has a listening socket, TCP or Unix, in torpord's network namespace. False until that is known.
    var listens = false
}

/// Measures apps and the machine in rounds. Each round is done in steps of about a millisecond, because measuring a
/// thousand busy apps takes tens of milliseconds, which would block the event loop.
///
/// How much is read depends on the app. A suspended app is read at most once a minute. If an app has a cgroup, its
/// processor time is read from one small file (10 µs). Its processes and their memory (40 µs) are read at most every 5
/// s, or every 30 s if the processor time has not changed. For all apps without a cgroup together, /proc is read once
/// (20 µs per app). For connections see ``ConnectionLedger``.
struct Measurements {
    /// The measurement of the machine in the last round that needed one.
    private(set) var system: SystemMeasurement?
    /// How long data about the processes of an app in a cgroup remains valid if the app uses processor time.
    private let busyLook: Duration
    private let clock: () -> Duration
    private var entries: [AppID: Entry] = [:]
    private var ledger = ConnectionLedger()
    private var round: Round?

    /// - Parameter clock: returns the time of a measurement, on CLOCK_MONOTONIC.
    init(busyLook: Duration = .seconds(5), clock: @escaping () -> Duration = Clock.monotonic) {
        self.busyLook = busyLook
        self.clock = clock
    }

    /// The last measurement of an app; nil if this incarnation was not measured yet.
    func measurement(of id: AppID, _ tree: ProcessTree) -> AppMeasurement? {
        entries[id].flatMap { $0.leader == tree.leader ? $0.measurement : nil }
    }

    /// Begins a round of measuring, and abandons an unfinished one. `apps`: all apps that have processes; data of other
    /// apps is dropped. This call measures the machine, which takes 0.2 ms; the calls of ``step(for:)`` that follow
    /// measure the apps.
    mutating func begin(_ apps: [MeasuredApp], _ needs: MeasurementNeeds) {
        if needs.contains(.system) { system = SystemMeasurement(after: system) }
        ledger.abandon()
        round = nil
        let ids = Set(apps.map(\.id))
        if entries.keys.contains(where: { !ids.contains($0) }) { entries = entries.filter { ids.contains($0.key) } }
        guard !needs.isDisjoint(with: [.memory, .processor, .connections]), !apps.isEmpty else { return }
        round = Round(needsConnections: needs.contains(.connections), rest: apps[...])
    }

    /// Continues the round of measuring for about `time`, or to its end if `time` is nil. Returns whether the round
    /// is over.
    mutating func step(for time: Duration? = .milliseconds(1)) -> Bool {
        guard var current = round.take() else { return true }
        let isOver = step(&current, until: time.map { Clock.monotonic() + $0 })
        if !isOver { round = current }
        return isOver
    }

    mutating func measure(_ apps: [MeasuredApp], _ needs: MeasurementNeeds) {
        begin(apps, needs)
        _ = step(for: nil)
    }

    // MARK: A round

    /// Whether an app's descriptors are being searched for sockets.
    var isSearching: Bool { round?.search != nil }

    private struct Round {
        let needsConnections: Bool
        var hasConnections = false
        /// Apps that were not measured in this round yet.
        var rest: ArraySlice<MeasuredApp>
        /// Apps without a cgroup; they are measured after /proc was read.
        var withoutCgroup: [MeasuredApp] = []
        var reading: SnapshotReading?
        /// The search through an app's file descriptors for sockets; nil if none is in progress.
        var search: Search?
        /// Whether every app that may have gained a connection was searched.
        var isComplete = true
    }

    private struct Search {
        let app: MeasuredApp
        let search: SocketSearch
        /// When the search began. The app's processor time then was `processorTime`.
        let begunAt: Duration
        let processorTime: Duration
    }

    private struct Entry {
        /// The first process of the incarnation, which identifies it.
        let leader: Identity
        var measurement: AppMeasurement
        /// The time at which the app's processor time was last read. Its value then is `rawTime`.
        var readAt: Duration
        var rawTime: Duration
        /// The time at which the app's processes were last read. The app's processor time then is `timeAtLook`.
        var lookedAt: Duration
        var timeAtLook: Duration
        /// The start of the time span for which `processorPermille` is computed. The app's processor time at that start
        /// is `shareTime`.
        var shareSince: Duration
        var shareTime: Duration
        var claim = ConnectionClaim()

        init(_ leader: Identity, _ usage: Usage, _ now: Duration) {
            self.leader = leader
            measurement = AppMeasurement(measuredAt: now, usage: usage, processorTime: usage.processorTime)
            (readAt, lookedAt, shareSince) = (now, now, now)
            (rawTime, timeAtLook, shareTime) = (usage.processorTime, usage.processorTime, usage.processorTime)
        }

        mutating func take(_ usage: Usage, _ now: Duration) {
            take(usage.processorTime)
            measurement.usage = usage
            (lookedAt, timeAtLook) = (now, usage.processorTime)
        }

        mutating func take(_ time: Duration) {
            measurement.processorTime += max(.zero, time - rawTime)
            rawTime = time
        }

        /// Updates `processorPermille`, whether or not the app was read again.
        mutating func reckon(_ now: Duration) {
            measurement.measuredAt = now
            let span = now - shareSince
            guard span >= Measurements.shortestSpan else { return }
            let used = measurement.processorTime - shareTime
            measurement.processorPermille = UInt32(clamping: used.microseconds * 1000 / span.microseconds)
            shareSince = now
            shareTime = measurement.processorTime
        }
    }

    /// The shortest time span for which `processorPermille` is computed. It must not be shorter, because for apps
    /// without a cgroup, processor time advances in steps of 10 ms.
    private static let shortestSpan = Duration.milliseconds(200)
    private static let idleLook = Duration.seconds(30)
    private static let suspendedLook = Duration.seconds(60)

    private mutating func step(_ round: inout Round, until deadline: Duration?) -> Bool {
        func isLate() -> Bool { deadline.map { Clock.monotonic() >= $0 } ?? false }
        if round.needsConnections, !round.hasConnections {
            guard ledger.open(until: deadline, claims: entries.values.lazy.map(\.claim)) else { return false }
            round.hasConnections = true
            if isLate() { return false }
        }
        while true {
            if let search = round.search {
                guard search.search.read(until: deadline) else { return false }
                round.search = nil
                finish(search)
            } else if let app = round.rest.popFirst() {
                measure(app, &round)
            } else if !round.withoutCgroup.isEmpty {
                if round.reading == nil { round.reading = SnapshotReading() }
                guard round.reading?.read(until: deadline) ?? true else { return false }
                round.rest = round.withoutCgroup[...]
                round.withoutCgroup = []
            } else {
                if round.needsConnections { ledger.close(isComplete: round.isComplete) }
                return true
            }
            if isLate() { return false }
        }
    }

    private mutating func measure(_ app: MeasuredApp, _ round: inout Round) {
        let tree = app.tree
        let now = clock()
        var entry = entries[app.id].flatMap { $0.leader == tree.leader ? $0 : nil }
        let standsStill = app.suspendedSince.flatMap { since in entry.map { $0.readAt >= since } } ?? false
        let time = standsStill ? entry?.rawTime : tree.processorTime()
        var decision = ConnectionLedger.Decision.needless
        if round.needsConnections {
            let claim = entry?.claim ?? ConnectionClaim()
            // Do not search for a suspended app's connections in another network namespace: such a search takes long,
            // and no policy needs its result.
            decision =
                standsStill && claim.elsewhere != nil
                ? .needless : ledger.decide(claim, processorTime: time, now)
        }
        var members: [Identity] = []
        if decision == .search || isDue(entry, time, standsStill: standsStill, now) {
            let look: (usage: Usage, members: [Identity])
            if tree.cgroupPath != nil {
                look = tree.look(processorTime: standsStill ? nil : time)
            } else if let reading = round.reading {
                look = tree.look(in: reading.snapshot)
            } else {
                return round.withoutCgroup.append(app)
            }
            members = look.members
            if entry == nil { entry = Entry(tree.leader, look.usage, now) }
            entry?.take(look.usage, now)
        } else if let time {
            entry?.take(time)
        }
        guard var entry else { return }
        if !standsStill { entry.readAt = now }
        entry.reckon(now)
        switch decision {
        case .search:
            let isWhole = entry.measurement.usage.processes <= members.count
            round.search = Search(
                app: app,
                search: SocketSearch(members, isWhole: isWhole),
                begunAt: now,
                processorTime: entry.rawTime
            )
        case .later:
            entry.claim.isOwed = true
            round.isComplete = false
            fallthrough
        case .needless:
            if round.needsConnections {
                ledger.count(entry.claim, saving: app.saving, into: &entry.measurement)
            } else {
                entry.measurement.connections = nil
            }
        }
        entries[app.id] = entry
    }

    /// Whether an app's processes must be read. `time`: the app's processor time, precise to the microsecond; nil if it
    /// is not known.
    private func isDue(_ entry: Entry?, _ time: Duration?, standsStill: Bool, _ now: Duration) -> Bool {
        guard let entry, let time else { return true }
        let isIdle = time == entry.timeAtLook
        return now - entry.lookedAt >= (standsStill ? Self.suspendedLook : isIdle ? Self.idleLook : busyLook)
    }

    private mutating func finish(_ found: Search) {
        let (app, search) = (found.app, found.search)
        guard var entry = entries[app.id], entry.leader == app.tree.leader else { return }
        // Only now: a round may be abandoned during a search, and what that has found with it.
        entry.claim.searchedAt = found.begunAt
        entry.claim.atProcessorTime = found.processorTime
        entry.claim.isOwed = false
        entry.claim.sockets = Array(search.sockets)
        entry.claim.isWhole = search.isWhole
        entry.claim.elsewhere = search.elsewhere.map { found in
            ConnectionClaim.Elsewhere(
                count: found.reduce(0) { $0 + $1.open.intersection(search.sockets).count },
                lastClosed: found.compactMap { $0.lastClosed(at: search.sockets) }.max()
            )
        }
        entry.claim.cost = search.cost
        ledger.claim(entry.claim.sockets)
        ledger.count(entry.claim, saving: app.saving, into: &entry.measurement)
        entries[app.id] = entry
    }
}
