// SPDX-License-Identifier: Apache-2.0

/// Writes apps to records, and restores a coordinator from them.
extension Coordinator {
    /// Writes the app's state machine and those requests for the app that wait for other apps.
    public func encode(_ app: AppID, into record: inout RecordWriter) {
        nodes[app].machine.encode(into: &record)
        Self.encode(nodes[app].pendingStop, into: &record)
        Self.encode(nodes[app].pendingGoal, into: &record)
        record.put(UInt8(nodes[app].retry.map { $0 ? 2 : 1 } ?? 0))
        record.put(nodes[app].wasUp)
        record.put(UInt8(nodes[app].comesBack.map { $0 ? 2 : 1 } ?? 0))
        record.put(nodes[app].machine.rules.isOneshot)
        record.put(nodes[app].machine.rules.readiness)
    }

    /// Restores an app from its record; returns false, and changes nothing, if the record is invalid.
    public func restore(_ app: AppID, from record: inout RecordReader) -> Bool {
        guard let machine = AppMachine(rules: nodes[app].definition.rules, from: &record) else { return false }
        let stop = Self.request(from: &record)
        let goal = Self.request(from: &record)
        let retry = record.take(UInt8.self)
        let wasUp = record.takeFlag()
        let comesBack = record.take(UInt8.self)
        let isOneshot = record.takeFlag()
        let readiness = record.take(Readiness.self, or: nodes[app].definition.rules.readiness)
        guard !record.isInvalid else { return false }
        nodes[app].machine = machine
        nodes[app].nextRules = nil
        let isAsDefined = machine.rules.isOneshot == isOneshot && machine.rules.readiness == readiness
        if machine.isAlive, !isAsDefined {
            // The running incarnation was launched with an older definition. Keep the values in the record until that
            // incarnation has ended.
            nodes[app].machine.rules.isOneshot = isOneshot
            nodes[app].machine.rules.readiness = readiness
            nodes[app].nextRules = nodes[app].definition.rules
        }
        nodes[app].comesBack = comesBack == 0 ? nil : comesBack == 2
        nodes[app].pendingStop = stop
        nodes[app].pendingGoal = goal
        nodes[app].retry = retry == 0 ? nil : retry == 2
        nodes[app].wasUp = wasUp
        touch(app)
        return true
    }

    /// The size, in bytes, of the fields that ``encodeWait(_:into:)`` writes.
    public static let waitBytes = 1

    /// Writes what the app's launch waits for, beyond the apps that it requires.
    public func encodeWait(_ app: AppID, into record: inout RecordWriter) {
        record.put(UInt8((nodes[app].hasLaunchedRequirements ? 1 : 0) | (isFollowing(app) ? 2 : 0)))
    }

    /// Reads what the app's launch waits for. The next torpord does not know the removed apps themselves: it ends what
    /// is left of them.
    public func restoreWait(_ app: AppID, from record: inout RecordReader) {
        let flags = record.take(UInt8.self)
        nodes[app].hasLaunchedRequirements = flags & 1 != 0
        // An app that nothing has launched yet waits too: an event may launch it before they are gone.
        nodes[app].followsOrphans = flags & 2 != 0
        touch(app)
    }

    /// Adopts an app whose processes run but for which there is no record.
    public func adopt(_ app: AppID, in state: AppState, incarnation: UInt32, now: Duration) {
        nodes[app].machine = AppMachine(
            rules: nodes[app].definition.rules,
            found: state,
            incarnation: incarnation,
            now: now
        )
        nodes[app].wasUp = nodes[app].machine.isUp
        touch(app)
    }

    /// Moves the end of the ownership earlier by `time`, for which the machine has slept. CLOCK_MONOTONIC, on which the
    /// end is stored, does not count sleep.
    public func shortenOwnership(of app: AppID, by time: Duration) {
        guard let until = nodes[app].machine.ownedUntil else { return }
        nodes[app].machine.ownedUntil = until - time
        touch(app)
    }

    /// Ends the ownership of an app for which a new torpord has found no process.
    public func disownUnseen(_ app: AppID, now: Duration) {
        nodes[app].machine.disownUnseen(now: now)
        forgetWakes(of: app)
        touch(app)
    }

    /// Repeats a launch that may or may not have created a process, under a new incarnation number. Does nothing if
    /// the app is not being launched or has a process.
    public func repeatLaunch(_ app: AppID, now: Duration) -> [AppAction] {
        absorb(nodes[app].machine.repeatLaunch(), of: app, now: now)
        return finish(now: now)
    }

    /// Continues every app that waits for other apps. Call this once, after all apps are restored.
    ///
    /// If the earlier torpord died while it recorded a stop, the record of an app may have the stop, and those of apps
    /// that require it not yet (``takeUnrecorded()``): they stop too.
    public func carryOn(shuttingDown: Bool, now: Duration) -> [AppAction] {
        isShuttingDown = shuttingDown
        if !shuttingDown { _ = passOn(nodes.indices.filter { nodes[$0].pendingStop != nil }) }
        for app in nodes.indices { absorb([], of: app, now: now) }
        return finish(now: now)
    }

    private static func encode(_ request: Request?, into record: inout RecordWriter) {
        guard let request else { return record.put(UInt8(0)) }
        switch request {
        case .start(let background): record.put(UInt8(background ? 2 : 1))
        case .stop(let reason):
            record.put(UInt8(3))
            record.put(reason)
        case .restart: record.put(UInt8(4))
        case .foreground: record.put(UInt8(5))
        case .background: record.put(UInt8(6))
        case .suspend: record.put(UInt8(7))
        case .resume: record.put(UInt8(8))
        case .interrupt(let begin): record.put(UInt8(begin ? 9 : 10))
        case .forceQuit: record.put(UInt8(11))
        case .evict: record.put(UInt8(12))
        case .wake(let wake): record.put(UInt8(wake.foreground ? 17 : 13))
        case .reset: record.put(UInt8(14))
        case .forceSuspend: record.put(UInt8(16))
        // A request for a scene is never stored here: only the app's own transition waits, and that is stored as a
        // request for the foreground or a wake.
        case .scene: record.put(UInt8(0))
        // Requests of these kinds never wait for other apps.
        case .hold, .release, .mode, .cover, .own, .runUnowned, .disown, .standby: record.put(UInt8(0))
        }
    }

    private static func request(from record: inout RecordReader) -> Request? {
        switch record.take(UInt8.self) {
        case 0: return nil
        case 1: return .start(background: false)
        case 2: return .start(background: true)
        case 3: return .stop(record.take(TerminationReason.self, or: .stopped))
        case 4: return .restart
        case 5: return .foreground
        case 6: return .background
        case 7: return .suspend
        case 8: return .resume
        case 9: return .interrupt(begin: true)
        case 10: return .interrupt(begin: false)
        case 11: return .forceQuit
        case 12: return .evict
        case 13: return .wake(Wake())
        case 14: return .reset
        // Older versions recorded a foreground request with a URL as 15.
        case 15: return .foreground
        case 16: return .forceSuspend
        case 17: return .wake(Wake(foreground: true))
        default:
            record.refuse()
            return nil
        }
    }
}
