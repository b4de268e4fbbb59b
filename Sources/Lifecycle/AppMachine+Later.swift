// SPDX-License-Identifier: Apache-2.0

/// Record fields added after the first version. They are written after the fields of the first version, because a field
/// must never change its place in the record.
extension AppMachine {
    /// The maximum size, in bytes, of the fields that ``encodeLater(into:)`` writes.
    public static let laterBytes = 56

    /// Writes the record fields added after the first version.
    public func encodeLater(into record: inout RecordWriter) {
        var flags: UInt8 = hasDelegate ? 1 : 0
        if isCovered { flags |= 2 }
        if isPrepared { flags |= 4 }
        if grantIsOver { flags |= 8 }
        if isForced { flags |= 16 }
        // Do not reuse bit 32: in records of older versions it means that a URL waits to be opened.
        let time = backgroundTime?.value
        if time?.isRecorded ?? false { flags |= 64 }
        if comesBack { flags |= 128 }
        record.put(flags)
        var awaiting: Message?
        if case .launching(let launching) = phase { awaiting = launching.awaiting }
        record.put(awaiting)
        guard let time, time.isRecorded else { return }
        record.put(time.lastToken)
        record.put(time.used)
        record.put(time.budgetUsed)
        record.put(time.budgetBegan)
        record.put(time.clock)
        record.put(time.lockedSince)
        record.put(time.lockRetry)
    }

    /// Reads the record fields added after the first version. Call this after ``AppMachine/init(rules:from:)``.
    public mutating func restoreLater(from record: inout RecordReader) {
        let flags = record.take(UInt8.self)
        hasDelegate = flags & 1 != 0
        isCovered = flags & 2 != 0
        isPrepared = flags & 4 != 0
        grantIsOver = flags & 8 != 0
        isForced = flags & 16 != 0
        comesBack = flags & 128 != 0
        let awaiting = record.takeOptional(Message.self)
        if case .launching(var launching) = phase {
            launching.awaiting = awaiting
            phase = .launching(launching)
        }
        guard flags & 64 != 0 else { return }
        var time = BackgroundTime()
        time.lastToken = record.take(UInt32.self)
        time.used = record.takeTime()
        time.budgetUsed = record.takeTime()
        time.budgetBegan = record.takeOptionalTime()
        time.clock = record.takeOptionalTime()
        time.lockedSince = record.takeOptionalTime()
        time.lockRetry = record.takeOptionalTime()
        backgroundTime = time.isEmpty ? nil : Shared(time)
    }
}

/// Record fields for wake events and snapshots.
extension AppMachine {
    /// The size, in bytes, of the fields that ``encodeWake(into:)`` writes.
    public static let wakeBytes = 29

    /// Writes the record fields for wake events and snapshots.
    public func encodeWake(into record: inout RecordWriter) {
        record.put(sleepsAgain)
        record.put(wokenFor)
        record.put(modes.rawValue)
        // Older versions read this byte as one flag, `declinesSnapshot`. If any bit is set, they skip one snapshot,
        // which does no harm.
        record.put(UInt8((declinesSnapshot ? 1 : 0) | (settlesIn ? 2 : 0) | (rules.hasScenes ? 4 : 0) | unsavedFlags))
        record.put(backgroundTime?.value.snapshotDue)
        record.put(ownership.rawValue)
        record.put(ownedUntil)
    }

    private var unsavedFlags: Int { (isUnsaved ? 8 : 0) | (isToldOnlyAtLaunch ? 16 : 0) }

    /// Reads the record fields for wake events and snapshots.
    public mutating func restoreWake(from record: inout RecordReader) {
        sleepsAgain = record.takeFlag()
        wokenFor = record.takeOptionalTime()
        let modes = BackgroundModes(rawValue: record.take(UInt16.self))
        if !modes.isEmpty { changeBackgroundTime { $0.modes = modes } }
        let flags = record.take(UInt8.self)
        declinesSnapshot = flags & 1 != 0
        settlesIn = flags & 2 != 0
        isUnsaved = flags & 8 != 0
        isToldOnlyAtLaunch = flags & 16 != 0
        // The running incarnation may have been launched with an older definition, so the record says whether it has
        // scenes.
        if isAlive { rules.hasScenes = flags & 4 != 0 }
        if let due = record.takeOptionalTime() { changeBackgroundTime { $0.snapshotDue = due } }
        ownership = Ownership(rawValue: record.take(UInt8.self)) ?? .none
        ownedUntil = record.takeOptionalTime()
    }
}

extension Coordinator {
    /// Writes the app's record fields for wake events and snapshots.
    public func encodeWake(_ app: AppID, into record: inout RecordWriter) {
        nodes[app].machine.encodeWake(into: &record)
    }

    /// Reads the app's record fields for wake events and snapshots.
    public func restoreWake(_ app: AppID, from record: inout RecordReader) {
        nodes[app].machine.restoreWake(from: &record)
        let rules = nodes[app].definition.rules
        if nodes[app].machine.rules.hasScenes != rules.hasScenes { nodes[app].nextRules = rules }
    }

    /// Writes the record fields that came after the first version.
    public func encodeLater(_ app: AppID, into record: inout RecordWriter) {
        nodes[app].machine.encodeLater(into: &record)
    }

    /// Reads the record fields that came after the first version.
    public func restoreLater(_ app: AppID, from record: inout RecordReader) {
        nodes[app].machine.restoreLater(from: &record)
        touch(app)
    }

    /// Extends the time of the app's background tasks to at least `time` from now, but gives back no more than the time
    /// `since` then, when the torpord before this one ended (nil: not known, no limit): otherwise each replacement would
    /// lengthen them. Called after torpord was replaced, so that no task expires before the app has reconnected. The app
    /// gets a new warning before this time is over.
    public func grantTasks(_ app: AppID, _ time: Duration, since: Duration?, now: Duration) {
        nodes[app].machine.grantTasks(time, since: since, now: now)
        touch(app)
    }

    /// Restores tasks and holds, which are stored outside the record because records have no room for names.
    public func restore(_ app: AppID, tasks: [BackgroundTask], holds: [Hold]) {
        nodes[app].machine.restore(tasks: tasks, holds: holds)
        touch(app)
    }
}

extension Coordinator {
    /// Begins a background task; returns the task's token and the actions that follow.
    ///
    /// - Throws: ``RequestError`` when the app is not running, the name is invalid, or it may begin no more tasks.
    public func beginTask(
        _ name: String,
        of app: AppID,
        now: Duration
    ) throws(RequestError) -> (token: UInt32, actions: [AppAction]) {
        let (token, actions) = try nodes[app].machine.beginTask(name, now: now)
        absorb(actions, of: app, now: now)
        return (token, finish(now: now))
    }

    /// Ends a background task; returns nil if no task of the app has that token.
    public func endTask(_ token: UInt32, of app: AppID, now: Duration) -> [AppAction]? {
        guard let actions = nodes[app].machine.endTask(token, now: now) else { return nil }
        absorb(actions, of: app, now: now)
        return finish(now: now)
    }
}
