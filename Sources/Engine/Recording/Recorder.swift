// SPDX-License-Identifier: Apache-2.0

package import Configuration
import EventLoop
package import Lifecycle
import Linux
import Processes
import Recovery
package import Store
package import TorporAPI
package import Varlink

/// Records every event in one place: for `torpor events`, for the history in the store, and for torpord's log with
/// the fields of the journal.
public final class Recorder {
    private unowned(unsafe) let engine: Engine
    private let keepEvent: (StoredEvent) -> Void
    package let log: DaemonLog
    package let events: EventLog
    /// When torpord started, in microseconds since 1970.
    package let startedAt = Clock.realtimeMicroseconds()
    /// Counts of events, transitions and wakes since torpord started.
    package var counters = Counters()
    /// Stores the sequence number of the newest event, so that the next torpord continues the numbering.
    private let keepNumber: (UInt64) -> Void

    /// - Parameters:
    ///   - keepEvent: called with each event, to store it in the history.
    ///   - keepNumber: called with the sequence number of the newest event.
    package init(
        _ engine: Engine,
        _ log: DaemonLog,
        _ events: EventLog,
        keepEvent: @escaping (StoredEvent) -> Void,
        keepNumber: @escaping (UInt64) -> Void
    ) {
        self.engine = engine
        self.log = log
        self.events = events
        self.keepEvent = keepEvent
        self.keepNumber = keepNumber
    }

    /// The most bytes of text that an event of an app has. Texts come in part from apps, and clients read many events
    /// at a time.
    private static let longestText = 2 << 10

    /// Records an event. `text` is a sentence without its subject, which is the app or torpord.
    ///
    /// - Parameters:
    ///   - incarnation: the run of the app to which the event belongs; nil for its current or last one.
    ///   - level: the log level; nil for the usual level of the event.
    ///   - details: what programs learn from the event besides its text.
    ///   - fields: journal fields in addition to those of every event.
    package func note(
        _ app: AppRuntime?,
        _ kind: EventKind,
        incarnation: UInt32? = nil,
        from: String? = nil,
        to: String? = nil,
        text: String,
        reason: String? = nil,
        level: LogLevel? = nil,
        details: JSON = .emptyObject,
        fields: @autoclosure () -> [(name: String, value: String)] = []
    ) {
        let run = app.map { Int64(incarnation ?? engine.coordinator[$0.id].incarnation) }
        func bounded(_ text: String) -> String {
            app == nil ? text : Readable.bounded(text, to: Self.longestText)
        }
        var record = EventRecord(
            at: Clock.realtimeMicroseconds(),
            app: app?.name,
            incarnation: run,
            kind: kind.category,
            from: from,
            to: to,
            text: bounded(text),
            reason: reason.map(bounded),
            details: details
        )
        events.append(&record)
        keepEvent(StoredEvent(record))
        counters.noted(kind, from: from, to: to, reason: reason)
        if kind == .launched { app?.counters.launches &+= 1 }
        keepNumber(UInt64(clamping: events.sequence))
        write(record, kind, app, level ?? kind.level, fields)
    }

    private func write(
        _ record: EventRecord,
        _ kind: EventKind,
        _ app: AppRuntime?,
        _ level: LogLevel,
        _ fields: () -> [(name: String, value: String)]
    ) {
        guard let app else {
            return log.write(record.text, level, common(record, kind, nil) + fields())
        }
        guard level >= log.level else { return }
        let level = hasRoom(app, kind, level) ? level : .debug
        log.write(app.name + kind.link + record.text, level, common(record, kind, app) + fields())
    }

    private func common(
        _ record: EventRecord,
        _ kind: EventKind,
        _ app: AppRuntime?
    ) -> [(name: String, value: String)] {
        var fields = [(name: "MESSAGE_ID", value: kind.rawValue), ("TORPOR_EVENT", kind.category)]
        if let app {
            let state = engine.coordinator[app.id].state
            fields.append(("TORPOR_APP", app.name))
            if let run = record.incarnation, run > 0 { fields.append(("TORPOR_INCARNATION", "\(run)")) }
            if kind == .changing {
                fields.append(("TORPOR_STATE", state.rawValue))
                fields.append(("TORPOR_TRANSITION", record.to ?? ""))
            } else {
                fields.append(("TORPOR_STATE", record.to ?? state.rawValue))
            }
            // From OBJECT_PID, the journal derives further fields about the process, such as its unit.
            if let tree = app.run.tree, !tree.mainHasEnded { fields.append(("OBJECT_PID", "\(tree.main.pid)")) }
        }
        if let from = record.from { fields.append(("TORPOR_PREVIOUS_STATE", from)) }
        if let reason = record.reason { fields.append(("TORPOR_REASON", reason)) }
        return fields
    }

    /// Whether an app may write one more log entry. If not, the entry becomes a debug entry. Without this limit, an
    /// app that is suspended and resumed every few seconds, or whose transfers fail all the time, would fill up the
    /// journal, or use up the journal's rate limit for torpord. Problems have a limit for each kind, so that those of
    /// one kind do not hide another. The history has every event in any case.
    private func hasRoom(_ app: AppRuntime, _ kind: EventKind, _ level: LogLevel) -> Bool {
        guard level > .debug else { return true }
        let isProblem = level >= .warning
        let now = engine.loop.now
        let answer = isProblem ? app.problemRooms[kind, default: LogRoom()].take(now: now) : app.room.take(now: now)
        switch answer {
        case .granted: return true
        case .none: return false
        case .last:
            let minutes = LogRoom.window.components.seconds / 60
            let what = isProblem ? "problems of the kind \(kind.category)" : "events"
            let rest = isProblem ? "more of them" : "all but problems"
            let text =
                "has so many \(what) that the log leaves out \(rest) for these \(minutes) minutes: "
                + "‘torpor history \(app.name)’ has all of them"
            let fields = [
                (name: "MESSAGE_ID", value: EventKind.chatty.rawValue), ("TORPOR_EVENT", EventKind.chatty.category),
                ("TORPOR_APP", app.name),
            ]
            log.write(app.name + EventKind.chatty.link + text, EventKind.chatty.level, fields)
            return false
        }
    }

    // MARK: Numbers

    /// Measures how long apps take for transitions. Call this whenever the lifecycle core may have begun or ended a
    /// transition.
    package func countTransitions(_ outputs: [AppAction]) {
        for output in outputs {
            let app = engine.apps[output.app]
            let transition = engine.coordinator[output.app].transition
            guard transition != app.counted else { continue }
            let now = Clock.monotonic()
            if let counted = app.counted { counters.finished(counted, after: now - app.countedSince) }
            (app.counted, app.countedSince) = (transition, now)
        }
    }

    // MARK: Timelines

    /// Adds a moment to the timeline of the app's incarnation.
    package func trace(_ app: AppRuntime, _ moment: Moment) {
        guard let began = app.run.launchedAt else { return }
        app.run.timeline.add(moment, at: engine.loop.now - began)
    }

    /// Adds the moment when the app became ready. Call this after an event that may have made it ready.
    package func traceReady(_ app: AppRuntime, after event: AppEvent) {
        switch event {
        case .ready, .launched, .answered: break
        default: return
        }
        guard app.run.timeline.time(of: .ready) == nil, app.run.timeline.time(of: .executed) != nil else { return }
        let machine = engine.machine(app.id)
        if machine.isAlive, machine.transition != .launching, machine.transition != .terminating { trace(app, .ready) }
    }

    /// Adds the app's answer to a message to the timeline, whether in time or late.
    package func traceAnswer(_ app: AppRuntime, _ message: Message, _ answer: Moment.Answer = .done) {
        trace(app, .answered(message, answer))
        guard answer != .pending, let missed = app.run.missed, missed.message == message, missed.answeredAt == nil
        else {
            return
        }
        missed.answeredAt = engine.loop.now
    }

    /// Restores what an earlier torpord stored: the milestones of the launch, and when the app last entered each
    /// state.
    package func restoreTimeline(_ app: AppRuntime, launch: LaunchMoments, states: StateTimes) {
        guard let began = app.run.launchedAt else { return }
        app.run.timeline = Timeline()
        var moments: [(Moment, Duration)] = launch.moments
        for (state, time) in states.all where time >= began && state != .notRunning {
            moments.append((.entered(state), time - began))
        }
        for (moment, time) in moments.sorted(by: { $0.1 < $1.1 }) { app.run.timeline.add(moment, at: time) }
        trace(app, .supervisorReplaced)
    }
}

/// Limits one app's log entries: those below the level of warnings, or the problems of one kind. Every app has such a
/// limit, so it takes only 8 bytes.
struct LogRoom {
    /// Entries per ``window``. A thousand apps that only change states then write 100 per second; journald accepts
    /// 300 per second from a service (RateLimitBurst= in journald.conf(5)).
    static let entries: UInt16 = 30
    static let window = Duration.seconds(300)

    enum Answer { case granted, last, none }

    /// When the window began, in seconds on the clock of the event loop.
    private var began: UInt32 = 0
    private var used: UInt16 = 0

    /// Counts one more log entry and returns whether it may be written. The first entry that is refused in a window
    /// gets the answer `last`, all later ones `none`.
    mutating func take(now: Duration) -> Answer {
        let now = UInt32(clamping: now.components.seconds)
        if used == 0 || now &- began >= UInt32(Self.window.components.seconds) {
            began = now
            used = 0
        }
        guard used < Self.entries else {
            guard used == Self.entries else { return .none }
            used += 1
            return .last
        }
        used += 1
        return .granted
    }
}

extension StoredEvent {
    /// Converts an event to the row that the store saves.
    package init(_ record: EventRecord) {
        self.init(at: record.at, app: record.app, kind: record.kind, text: record.text)
        sequence = record.sequence
        incarnation = record.incarnation
        from = record.from
        to = record.to
        reason = record.reason
        // Most events have no details.
        if case .object(let object) = record.details, object.members.isEmpty { return }
        details = record.details.description
    }
}
