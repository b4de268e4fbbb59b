// SPDX-License-Identifier: Apache-2.0

import TransferProtocol

/// The unfinished transfers of all apps. Decides which transfer runs next, and when the others are retried. This
/// value has no I/O and no clock. Times are in microseconds since 1970.
///
/// The cost of an event does not grow with the number of waiting transfers: queued transfers are in lanes, one for
/// each app, server and kind, and each lane is ordered by priority.
public struct TransferQueue: Sendable {
    /// How many transfers may run at the same time.
    public struct Limits: Hashable, Sendable {
        /// The limit for all apps together. A user whose apps have no running transfer may exceed it with one.
        public var connections: Int
        /// The limit for one app.
        public var perApp: Int
        /// The limit for the apps of one user at one server.
        public var perServer: Int

        /// Creates limits from their values.
        public init(connections: Int, perApp: Int, perServer: Int) {
            (self.connections, self.perApp, self.perServer) = (connections, perApp, perServer)
        }
    }

    private struct Lane: Hashable {
        let app: String
        let server: String
        let kind: Transfer.Kind
    }

    private struct Place: Comparable {
        let priority: Int64
        let id: Int64
        /// A number that changes each time the transfer enters a lane, so that older entries of the transfer in lanes
        /// become invalid.
        let stamp: UInt64

        static func < (one: Place, other: Place) -> Bool {
            one.priority != other.priority ? one.priority > other.priority : one.id < other.id
        }
    }

    private struct Alarm: Comparable {
        let at: Int64
        let id: Int64

        static func < (one: Alarm, other: Alarm) -> Bool { (one.at, one.id) < (other.at, other.id) }
    }

    private var transfers: [Int64: Transfer] = [:]
    private var ofApp: [String: Set<Int64>] = [:]
    private var feedsOfApp: [String: Set<Int64>] = [:]
    private var sessions: [String: [String: Int]] = [:]
    /// For each app, the sessions whose end wakes or launches the app.
    private var heard: [String: Set<String>] = [:]
    private var lanes: [String: [Lane: Heap<Place>]] = [:]
    private var stamps: [Int64: UInt64] = [:]
    private var lastStamp: UInt64 = 0
    private var alarms = Heap<Alarm>()
    private var waiting: [Transfer.Cause: Set<Int64>] = [:]
    private var runningOfApp: [String: Int] = [:]
    /// For each server, the number of running transfers of each app.
    private var runningOfServer: [String: [String: Int]] = [:]
    private var runningIDs: Set<Int64> = []
    /// For each app, the value of a counter when one of its transfers was last chosen. Apps with lower values come
    /// first, so that apps take turns.
    private var turns: [String: UInt64] = [:]

    /// Creates an empty queue.
    public init() {}

    /// The number of transfers.
    public var count: Int { transfers.count }
    /// The number of running transfers.
    public var runningCount: Int { runningIDs.count }
    /// The running transfers, in the order in which they were requested.
    public var running: [Transfer] { runningIDs.sorted().compactMap { transfers[$0] } }

    /// The transfer with that number; nil if there is none.
    public subscript(id: Int64) -> Transfer? { transfers[id] }

    /// An app's transfers, in the order in which they were requested.
    public func transfers(of app: String) -> [Transfer] {
        (ofApp[app] ?? []).sorted().compactMap { transfers[$0] }
    }

    /// The numbers of an app's transfers.
    public func ids(of app: String) -> Set<Int64> { ofApp[app] ?? [] }

    /// The numbers of an app's subscriptions, oldest first.
    public func feeds(of app: String) -> [Int64] { (feedsOfApp[app] ?? []).sorted() }

    /// The number of an app's transfers, without its subscriptions.
    public func countAsked(of app: String) -> Int { count(of: app) - (feedsOfApp[app]?.count ?? 0) }

    /// The number of an app's transfers.
    public func count(of app: String) -> Int { ofApp[app]?.count ?? 0 }

    /// The numbers of an app's running transfers.
    public func running(of app: String) -> [Int64] { runningIDs.filter { transfers[$0]?.app == app }.sorted() }

    /// The transfers that wait for a cause, in the order in which they were requested.
    public func waiting(for cause: Transfer.Cause) -> [Transfer] {
        (waiting[cause] ?? []).sorted().compactMap { transfers[$0] }
    }

    /// Whether any transfer waits for this cause.
    public func isWaiting(for cause: Transfer.Cause) -> Bool { !(waiting[cause]?.isEmpty ?? true) }

    /// The apps with transfers, sorted by name.
    public var apps: [String] { ofApp.keys.sorted() }

    /// The number of unfinished transfers in a session of an app.
    public func count(of session: String, _ app: String) -> Int { sessions[app]?[session] ?? 0 }

    /// Whether the end of a session wakes or launches the app, because any current or former transfer of the session
    /// asked for that.
    public func wantsEvents(of session: String, _ app: String) -> Bool { heard[app]?.contains(session) ?? false }

    // MARK: Changes

    /// Adds a transfer.
    public mutating func add(_ transfer: Transfer) {
        transfers[transfer.id] = transfer
        ofApp[transfer.app, default: []].insert(transfer.id)
        if transfer.feed != nil { feedsOfApp[transfer.app, default: []].insert(transfer.id) }
        sessions[transfer.app, default: [:]][transfer.session, default: 0] += 1
        if transfer.events { heard[transfer.app, default: []].insert(transfer.session) }
        if let at = transfer.expiresAt { alarms.insert(Alarm(at: at, id: transfer.id)) }
        place(transfer)
    }

    /// Changes a transfer's data, but not its state.
    public mutating func update(_ id: Int64, _ change: (inout Transfer) -> Void) {
        guard var transfer = transfers[id] else { return }
        let state = transfer.state
        change(&transfer)
        transfer.state = state
        transfers[id] = transfer
    }

    /// Moves a transfer to another state.
    public mutating func set(_ id: Int64, _ state: Transfer.State) {
        guard var transfer = transfers[id] else { return }
        leave(transfer)
        transfer.state = state
        if state != .running { transfer.rate = nil }
        transfers[id] = transfer
        place(transfer)
    }

    /// Removes a transfer.
    @discardableResult
    public mutating func remove(_ id: Int64) -> Transfer? {
        guard let transfer = transfers.removeValue(forKey: id) else { return nil }
        leave(transfer)
        ofApp[transfer.app]?.remove(id)
        feedsOfApp[transfer.app]?.remove(id)
        let left = count(of: transfer.session, transfer.app) - 1
        sessions[transfer.app]?[transfer.session] = left == 0 ? nil : left
        if left == 0 { heard[transfer.app]?.remove(transfer.session) }
        if ofApp[transfer.app]?.isEmpty ?? false {
            ofApp[transfer.app] = nil
            feedsOfApp[transfer.app] = nil
            sessions[transfer.app] = nil
            heard[transfer.app] = nil
            lanes[transfer.app] = nil
            turns[transfer.app] = nil
        }
        return transfer
    }

    private mutating func leave(_ transfer: Transfer) {
        // The transfer's entry in its lane becomes invalid, since its stamp no longer matches.
        stamps[transfer.id] = nil
        if case .waiting(let cause, _) = transfer.state { waiting[cause]?.remove(transfer.id) }
        guard runningIDs.remove(transfer.id) != nil else { return }
        countRunning(transfer, -1)
    }

    private mutating func place(_ transfer: Transfer) {
        switch transfer.state {
        case .queued:
            lastStamp += 1
            stamps[transfer.id] = lastStamp
            let lane = Lane(
                app: transfer.app,
                server: transfer.server,
                kind: transfer.kind
            )
            lanes[transfer.app, default: [:]][lane, default: Heap()].insert(
                Place(priority: transfer.priority, id: transfer.id, stamp: lastStamp)
            )
        case .running:
            runningIDs.insert(transfer.id)
            countRunning(transfer, 1)
        case .waiting(let cause, let until):
            waiting[cause, default: []].insert(transfer.id)
            if let until { alarms.insert(Alarm(at: until, id: transfer.id)) }
        }
        // Alarms of transfers that were removed or no longer wait stay in the heap. If these are too many, remove them.
        if alarms.count > 4 * transfers.count + 64 { forgetOldAlarms() }
    }

    private mutating func forgetOldAlarms() {
        alarms = Heap()
        for transfer in transfers.values {
            if let at = transfer.expiresAt { alarms.insert(Alarm(at: at, id: transfer.id)) }
            if case .waiting(_, .some(let until)) = transfer.state {
                alarms.insert(Alarm(at: until, id: transfer.id))
            }
        }
    }

    private mutating func countRunning(_ transfer: Transfer, _ change: Int) {
        Self.count(&runningOfApp, transfer.app, change)
        Self.count(&runningOfServer[transfer.server, default: [:]], transfer.app, change)
        if runningOfServer[transfer.server]?.isEmpty ?? false { runningOfServer[transfer.server] = nil }
    }

    private static func count(_ counts: inout [String: Int], _ key: String, _ change: Int) {
        let count = counts[key, default: 0] + change
        counts[key] = count == 0 ? nil : count
    }

    // MARK: What is next

    /// The next transfer to run; nil if there is none. The caller must then set its state to running.
    ///
    /// Apps in the foreground come first, then those of users with fewer running transfers; apps that are equal in this
    /// take turns. Within an app, transfers of higher priority come first, then earlier requests.
    ///
    /// A transfer may last for days, since its server or its own torpor-transfer process determines how fast it is. So
    /// no user's transfers may keep those of another user waiting: one transfer of each user may run even if all places
    /// are taken, and places at a server are counted per user. Where each app has a user of its own, this must not undo
    /// the limit: at most twice as many transfers run in all.
    ///
    /// - Parameters:
    ///   - isInForeground: whether an app is in the foreground.
    ///   - user: the user that an app runs as.
    ///   - mayRun: whether a transfer of this app and kind may run now.
    public mutating func next(
        _ limits: Limits,
        isInForeground: (String) -> Bool,
        user: (String) -> String,
        mayRun: (_ app: String, _ kind: Transfer.Kind) -> Bool
    ) -> Transfer? {
        guard runningIDs.count < limits.connections * 2 else { return nil }
        let isFull = runningIDs.count >= limits.connections
        var runningOfUser: [String: Int] = [:]
        for (app, count) in runningOfApp { runningOfUser[user(app), default: 0] += count }
        let order = lanes.keys.map { app in
            (
                isBehind: !isInForeground(app), running: runningOfUser[user(app), default: 0],
                turn: turns[app, default: 0], app: app
            )
        }.sorted { one, other in
            if one.isBehind != other.isBehind { return other.isBehind }
            if one.running != other.running { return one.running < other.running }
            return one.turn != other.turn ? one.turn < other.turn : one.app < other.app
        }
        for (_, running, _, app) in order where runningOfApp[app, default: 0] < limits.perApp {
            guard !isFull || running == 0, let id = first(of: app, limits, user, mayRun) else { continue }
            lastStamp += 1
            turns[app] = lastStamp
            return transfers[id]
        }
        return nil
    }

    private mutating func first(
        of app: String,
        _ limits: Limits,
        _ user: (String) -> String,
        _ mayRun: (String, Transfer.Kind) -> Bool
    ) -> Int64? {
        let owner = user(app)
        var best: Place?
        for lane in Array((lanes[app] ?? [:]).keys) {
            while let place = lanes[app]?[lane]?.first, stamps[place.id] != place.stamp {
                _ = lanes[app]?[lane]?.popFirst()
            }
            guard let place = lanes[app]?[lane]?.first else {
                lanes[app]?[lane] = nil
                continue
            }
            let running = (runningOfServer[lane.server] ?? [:]).reduce(0) { sum, entry in
                user(entry.key) == owner ? sum + entry.value : sum
            }
            guard running < limits.perServer, mayRun(app, lane.kind) else { continue }
            if best.map({ place < $0 }) ?? true { best = place }
        }
        return best?.id
    }

    /// The number of alarms (times at which a transfer's wait ends or the transfer expires), including outdated ones,
    /// which are not removed at once.
    var alarmCount: Int { alarms.count }

    /// When the next transfer is due, in microseconds since 1970; nil for never.
    public var nextAlarm: Int64? { alarms.first?.at }

    /// Queues the transfers whose wait is over, and returns their numbers. Also returns the numbers of expired
    /// transfers, which the caller must end.
    public mutating func due(at now: Int64) -> (queued: [Int64], expired: [Int64]) {
        var queued: [Int64] = []
        // A set, because one transfer may have several alarms: those of earlier waits are not removed.
        var expired: Set<Int64> = []
        while let alarm = alarms.first, alarm.at <= now {
            _ = alarms.popFirst()
            guard let transfer = transfers[alarm.id] else { continue }
            if let at = transfer.expiresAt, at <= now {
                expired.insert(alarm.id)
            } else if case .waiting(_, .some(let until)) = transfer.state, until <= now {
                set(alarm.id, .queued)
                queued.append(alarm.id)
            }
        }
        return (queued, expired.sorted())
    }
}

/// The delay between a failed attempt and the next one.
public enum RetryDelay {
    /// The longest delay in seconds if the server has sent no Retry-After.
    public static let longest: Int64 = 600
    /// The longest delay that a server may ask for, in seconds.
    public static let longestAsked: Int64 = 3600

    /// Returns the delay in microseconds. It doubles from 1 s up to 600 s, varies by ±10 %, and is at least as long
    /// as the server asks for.
    ///
    /// - Parameters:
    ///   - failures: how many attempts failed since bytes last arrived, including the latest.
    ///   - asked: the server's Retry-After in seconds; nil if it sent none.
    ///   - chance: a random number from 0 to 1.
    public static func microseconds(failures: Int64, asked: Int64?, chance: Double) -> Int64 {
        let seconds = failures > 10 ? longest : min(longest, Int64(1) << max(0, failures - 1))
        let delay = Int64(Double(seconds) * 1_000_000 * (0.9 + 0.2 * min(1, max(0, chance))))
        return max(delay, min(max(0, asked ?? 0), longestAsked) * 1_000_000)
    }
}
