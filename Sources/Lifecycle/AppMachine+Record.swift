// SPDX-License-Identifier: Apache-2.0

/// Writes an app's state machine to a record and reads it back. The record does not contain the app's rules, because
/// they are in the configuration.
extension AppMachine {
    /// The most restart times that a record stores; it stores the newest ones.
    public static let recordedLedger = 32

    /// The number of bytes that the restart times must leave free for the record fields that follow them.
    private static let reservedBytes = 184 + laterBytes + wakeBytes + Coordinator.waitBytes + 31

    /// Writes the app's state machine to a record.
    public func encode(into record: inout RecordWriter) {
        record.put(goal)
        record.put(UInt32(truncatingIfNeeded: goalGeneration))
        record.put(incarnation)
        record.put(UInt32(clamping: interruptions))
        record.put(UInt32(clamping: restarts))
        record.put(unstable.attempt)
        record.put(failed)
        record.put(isDone)
        record.put(lastEnding)
        record.put(launchReason)
        record.put(launchInForeground)
        encodePhase(into: &record)
        record.put(edgeDeadline)
        record.put(watchdogDeadline)
        record.put(grant)
        record.put(watchdogInterval)
        record.put(tracedSince)
        record.put(runningSince)
        record.put(ranFor)
        record.put(suspendedSince)
        record.put(lastGap)
        record.put(jitter.record)
        // Each restart time is stored as milliseconds before the newest one, in four bytes.
        let kept = ledger.suffix(min(Self.recordedLedger, max(1, (record.room - Self.reservedBytes) / 4)))
        record.put(UInt8(kept.count))
        guard let newest = kept.last else { return }
        record.put(newest)
        for time in kept.dropLast() { record.put(UInt32(clamping: (newest - time).nanoseconds / 1_000_000)) }
    }

    /// Reads an app's state machine from a record and gives it `rules`; nil if the record is invalid.
    public init?(rules: AppRules, from record: inout RecordReader) {
        self.init(rules: rules)
        goal = record.take(Goal.self, or: .notRunning)
        goalGeneration = Int(record.take(UInt32.self))
        incarnation = record.take(UInt32.self)
        interruptions = Int(record.take(UInt32.self))
        restarts = Int(record.take(UInt32.self))
        unstable.attempt = record.take(UInt32.self)
        failed = record.takeFlag()
        isDone = record.takeFlag()
        lastEnding = record.takeOptional(TerminationReason.self)
        launchReason = record.take(LaunchReason.self, or: .user)
        launchInForeground = record.takeFlag()
        phase = Phase(from: &record)
        edgeDeadline = record.takeDeadline()
        watchdogDeadline = record.takeDeadline()
        grant = record.takeDeadline()
        watchdogInterval = record.takeOptionalTime()
        tracedSince = record.takeOptionalTime()
        runningSince = record.takeOptionalTime()
        ranFor = record.takeTime()
        suspendedSince = record.takeOptionalTime()
        lastGap = record.takeTime()
        jitter = JitterSource(seed: record.take(UInt64.self))
        let count = Int(record.take(UInt8.self))
        if count > 0 {
            let newest = record.takeTime()
            for _ in 1..<count { ledger.append(newest - .milliseconds(Int64(record.take(UInt32.self)))) }
            ledger.append(newest)
        }
        if record.isInvalid { return nil }
    }

    /// A state machine for an app whose processes were found running although the app has no record.
    public init(rules: AppRules, found state: AppState, incarnation: UInt32, now: Duration) {
        self.init(rules: rules)
        self.incarnation = incarnation
        let isSuspended = state == .suspended
        phase = .running(Running(state: state))
        goal = Goal(rawValue: state.rawValue) ?? .background
        launchInForeground = state == .active || state == .inactive
        if isSuspended { suspendedSince = now } else { runningSince = now }
        if !isSuspended { armWatchdog(now: now) }
        if state == .background { grant = Deadline(.backgroundTime, rules.backgroundTime, now: now) }
    }

    private func encodePhase(into record: inout RecordWriter) {
        switch phase {
        case .notRunning(let rest):
            record.put(UInt8(0))
            record.put(rest)
        case .launching(let launching):
            record.put(UInt8(1))
            record.put(launching.hasProcess)
            record.put(launching.isReady)
        case .running(let running):
            record.put(UInt8(2))
            record.put(running.state)
            record.put(UInt8(clamping: running.stoppedAgain))
            record.put(running.edge?.transition)
            guard let edge = running.edge else { return }
            record.put(UInt8(Self.edges.firstIndex(of: edge.steps) ?? 0))
            record.put(UInt8(edge.index))
            record.put(edge.awaiting)
        case .terminating(let terminating):
            record.put(UInt8(3))
            record.put(terminating.reason)
            record.put(terminating.state)
            record.put(terminating.interrupted)
            encode(terminating.cause, into: &record)
            record.put(terminating.stage)
            record.put(terminating.hasProcess)
            record.put(terminating.relaunch?.reason)
            record.put(terminating.relaunch?.foreground ?? false)
            record.put(terminating.stoppedBy)
        }
    }

    private func encode(_ cause: ExitCause?, into record: inout RecordWriter) {
        switch cause {
        case nil:
            record.put(UInt8(0))
            record.put(Int32(0))
        case .exited(let code):
            record.put(UInt8(1))
            record.put(code)
        case .signaled(let signal, let coreDumped):
            record.put(UInt8(coreDumped ? 3 : 2))
            record.put(signal)
        case .outOfMemory:
            record.put(UInt8(4))
            record.put(Int32(0))
        case .memoryLimit:
            record.put(UInt8(4))
            record.put(Int32(1))
        case .unknown:
            record.put(UInt8(5))
            record.put(Int32(0))
        }
    }
}

extension AppMachine.Phase {
    fileprivate init(from record: inout RecordReader) {
        switch record.take(UInt8.self) {
        case 0:
            self = .notRunning(record.take(AppMachine.Rest.self, or: .resting))
        case 1:
            self = .launching(AppMachine.Launching(hasProcess: record.takeFlag(), isReady: record.takeFlag()))
        case 2:
            var running = AppMachine.Running(state: record.take(AppState.self, or: .background))
            running.stoppedAgain = Int(record.take(UInt8.self))
            if let transition = record.takeOptional(Transition.self) {
                let steps = Int(record.take(UInt8.self))
                let index = Int(record.take(UInt8.self))
                guard steps < AppMachine.edges.count, index <= AppMachine.edges[steps].count else {
                    record.refuse()
                    self = .notRunning(.resting)
                    return
                }
                var edge = AppMachine.Edge(transition: transition, steps: AppMachine.edges[steps], index: index)
                edge.awaiting = record.takeOptional(Message.self)
                running.edge = edge
            }
            self = .running(running)
        case 3:
            let reason = record.takeOptional(TerminationReason.self)
            var terminating = AppMachine.Terminating(
                reason: reason,
                state: record.take(AppState.self, or: .background),
                interrupted: record.takeOptional(Transition.self),
                stage: .signaled,
                hasProcess: true
            )
            terminating.cause = Self.cause(from: &record)
            terminating.stage = record.take(AppMachine.Terminating.Stage.self, or: .signaled)
            terminating.hasProcess = record.takeFlag()
            let relaunch = record.takeOptional(LaunchReason.self)
            let foreground = record.takeFlag()
            terminating.relaunch = relaunch.map { AppMachine.Relaunch(foreground: foreground, reason: $0) }
            terminating.stoppedBy = record.takeOptional(TerminationReason.self)
            self = .terminating(terminating)
        default:
            record.refuse()
            self = .notRunning(.resting)
        }
    }

    private static func cause(from record: inout RecordReader) -> ExitCause? {
        let kind = record.take(UInt8.self)
        let number = record.take(Int32.self)
        switch kind {
        case 0: return nil
        case 1: return .exited(code: number)
        case 2, 3: return .signaled(number, coreDumped: kind == 3)
        // Kind 4 is a SIGKILL for lack of memory; number 1 means the app's own memory limit. Older versions, which do
        // not know this limit, ignore the number.
        case 4: return number == 1 ? .memoryLimit : .outOfMemory
        case 5: return .unknown
        default:
            record.refuse()
            return nil
        }
    }
}

extension AppMachine.Rest: RecordCoded {
    static let recordOrder: [AppMachine.Rest?] = [.resting, .delayed, .waiting]
}

extension AppMachine.Terminating.Stage: RecordCoded {
    static let recordOrder: [AppMachine.Terminating.Stage?] = [.asked, .signaled, .announced, .killed, .cleaning]
}
