// SPDX-License-Identifier: Apache-2.0

/// Fields added after the first version of records. They come last, since fields keep their places.
extension AppMachine {
    /// The most bytes that these fields take.
    public static let laterBytes = 56

    /// Writes these fields.
    public func encodeLater(into record: inout RecordWriter) {
        var flags: UInt8 = hasDelegate ? 1 : 0
        if isCovered { flags |= 2 }
        if isPrepared { flags |= 4 }
        if grantIsOver { flags |= 8 }
        if isForced { flags |= 16 }
        // Bit 32 is retired: it meant that a URL waits to be opened.
        if backgroundTime != nil { flags |= 64 }
        if comesBack { flags |= 128 }
        record.put(flags)
        var awaiting: Message?
        if case .launching(let launching) = phase { awaiting = launching.awaiting }
        record.put(awaiting)
        guard let time = backgroundTime?.value else { return }
        record.put(time.lastToken)
        record.put(time.used)
        record.put(time.budgetUsed)
        record.put(time.budgetBegan)
        record.put(time.clock)
        record.put(time.lockedSince)
        record.put(time.lockRetry)
    }

    /// Restores these fields, after the machine itself was read.
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
    /// The bytes that these fields take.
    public static let wakeBytes = 20

    /// Writes these fields.
    public func encodeWake(into record: inout RecordWriter) {
        record.put(sleepsAgain)
        record.put(wokenFor)
        record.put(modes.rawValue)
        // Older versions read the whole byte as `declinesSnapshot`: any flag then means yes, which does the least harm.
        record.put(UInt8((declinesSnapshot ? 1 : 0) | (settlesIn ? 2 : 0) | (rules.hasScenes ? 4 : 0)))
        record.put(backgroundTime?.value.snapshotDue)
    }

    /// Restores these fields.
    public mutating func restoreWake(from record: inout RecordReader) {
        sleepsAgain = record.takeFlag()
        wokenFor = record.takeOptionalTime()
        let modes = BackgroundModes(rawValue: record.take(UInt16.self))
        if !modes.isEmpty { changeBackgroundTime { $0.modes = modes } }
        let flags = record.take(UInt8.self)
        declinesSnapshot = flags & 1 != 0
        settlesIn = flags & 2 != 0
        // The definition may be newer than the incarnation.
        if isAlive { rules.hasScenes = flags & 4 != 0 }
        if let due = record.takeOptionalTime() { changeBackgroundTime { $0.snapshotDue = due } }
    }
}

extension Coordinator {
    /// Writes the app's record fields for wake events and snapshots.
    public func encodeWake(_ app: AppID, into record: inout RecordWriter) {
        nodes[app].machine.encodeWake(into: &record)
    }

    /// Restores them.
    public func restoreWake(_ app: AppID, from record: inout RecordReader) {
        nodes[app].machine.restoreWake(from: &record)
        let rules = nodes[app].definition.rules
        if nodes[app].machine.rules.hasScenes != rules.hasScenes { nodes[app].nextRules = rules }
    }

    /// Writes the record fields that came after the first version.
    public func encodeLater(_ app: AppID, into record: inout RecordWriter) {
        nodes[app].machine.encodeLater(into: &record)
    }

    /// Restores them.
    public func restoreLater(_ app: AppID, from record: inout RecordReader) {
        nodes[app].machine.restoreLater(from: &record)
        touch(app)
    }

    /// Gives the tasks of an app that was out of reach at least `time` from now, with a new warning before it is
    /// over.
    public func grantTasks(_ app: AppID, _ time: Duration, now: Duration) {
        nodes[app].machine.grantTasks(time, now: now)
        touch(app)
    }

    /// Restores tasks and holds, which are stored outside the record.
    public func restore(_ app: AppID, tasks: [BackgroundTask], holds: [Hold]) {
        nodes[app].machine.restore(tasks: tasks, holds: holds)
        touch(app)
    }
}

/// Background tasks, by app.
extension Coordinator {
    /// Begins a task; returns its token and the actions that follow.
    ///
    /// - Throws: ``RequestError`` when the app is not running, or has no time for it.
    public func beginTask(
        _ name: String,
        of app: AppID,
        now: Duration
    ) throws(RequestError) -> (token: UInt32, actions: [AppAction]) {
        let (token, actions) = try nodes[app].machine.beginTask(name, now: now)
        absorb(actions, of: app, now: now)
        return (token, finish(now: now))
    }

    /// Ends a task; nil if no task has that token.
    public func endTask(_ token: UInt32, of app: AppID, now: Duration) -> [AppAction]? {
        guard let actions = nodes[app].machine.endTask(token, now: now) else { return nil }
        absorb(actions, of: app, now: now)
        return finish(now: now)
    }
}
