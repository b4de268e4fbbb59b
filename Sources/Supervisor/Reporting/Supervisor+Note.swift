// SPDX-License-Identifier: Apache-2.0

import Configuration
import EventLoop
import Lifecycle
import Linux
import Processes
import Recovery
import Store
import TorporAPI

/// The one way from what happened to those who want to know: the events of `torpor events`, the history of the store,
/// and the daemon's log with the fields of the journal.
extension Supervisor {
    /// Tells of something. `text` is a sentence without its subject, the app or the supervisor.
    ///
    /// - Parameters:
    ///   - level: how loud the log has it, where that is not as ever.
    ///   - fields: what the journal is told beside what every event has.
    func note(
        _ app: AppRuntime?,
        _ happening: Happening,
        from: String? = nil,
        to: String? = nil,
        text: String,
        reason: String? = nil,
        level: LogLevel? = nil,
        fields: @autoclosure () -> [(name: String, value: String)] = []
    ) {
        let incarnation = app.map { Int64(coordinator.machine($0.id).incarnation) }
        let record = events.append(
            EventRecord(
                at: Clock.realtimeMicroseconds(),
                app: app?.name,
                incarnation: incarnation,
                kind: happening.kind,
                from: from,
                to: to,
                text: text,
                reason: reason
            )
        )
        store.append(StoredEvent(record))
        counters.noted(happening, from: from, to: to, reason: reason)
        if happening == .launched { app?.counters.launches &+= 1 }
        recovery.nextEvent = UInt64(clamping: events.sequence)
        write(record, happening, app, level ?? happening.level, fields)
    }

    /// Tells of something that concerns no app alone.
    func note(_ happening: Happening, text: String, reason: String? = nil, level: LogLevel? = nil) {
        note(nil, happening, text: text, reason: reason, level: level)
    }

    private func write(
        _ record: EventRecord,
        _ happening: Happening,
        _ app: AppRuntime?,
        _ level: LogLevel,
        _ fields: () -> [(name: String, value: String)]
    ) {
        guard let app else {
            return log.write(record.text, level, common(record, happening, nil) + fields())
        }
        guard level >= log.level else { return }
        let level = hasRoom(app, level) ? level : .debug
        log.write(app.name + happening.link + record.text, level, common(record, happening, app) + fields())
    }

    private func common(
        _ record: EventRecord,
        _ happening: Happening,
        _ app: AppRuntime?
    ) -> [(name: String, value: String)] {
        var fields = [(name: "MESSAGE_ID", value: happening.rawValue), ("TORPOR_EVENT", happening.kind)]
        if let app {
            let machine = coordinator.machine(app.id)
            fields.append(("TORPOR_APP", app.name))
            if machine.incarnation > 0 { fields.append(("TORPOR_INCARNATION", "\(machine.incarnation)")) }
            if happening == .changing {
                fields.append(("TORPOR_STATE", machine.state.rawValue))
                fields.append(("TORPOR_TRANSITION", record.to ?? ""))
            } else {
                fields.append(("TORPOR_STATE", record.to ?? machine.state.rawValue))
            }
            // The journal adds what it knows of the process: its unit among others.
            if let tree = app.tree, !tree.mainHasEnded { fields.append(("OBJECT_PID", "\(tree.main.pid)")) }
        }
        if let from = record.from { fields.append(("TORPOR_PREVIOUS_STATE", from)) }
        if let reason = record.reason { fields.append(("TORPOR_REASON", reason)) }
        return fields
    }

    /// Whether there is room for one more entry of an app, else it is for those who look closely. One that is suspended
    /// and resumed every few seconds would fill the journal, or use up what it takes of a service in a time; all is in
    /// the history all the same.
    private func hasRoom(_ app: AppRuntime, _ level: LogLevel) -> Bool {
        guard level < .warning, level > .debug else { return true }
        switch app.room.take(now: loop.now) {
        case .granted: return true
        case .none: return false
        case .last:
            let minutes = LogRoom.window.components.seconds / 60
            let text =
                "does so much that the log leaves out what comes in these \(minutes) minutes, but no trouble: "
                + "‘torpor history \(app.name)’ has all of it"
            let fields = [
                (name: "MESSAGE_ID", value: Happening.chatty.rawValue), ("TORPOR_EVENT", Happening.chatty.kind),
                ("TORPOR_APP", app.name),
            ]
            log.write(app.name + Happening.chatty.link + text, Happening.chatty.level, fields)
            return false
        }
    }
}

/// How much an app may still be told of in the log, below warnings. Two words, since every app has one.
struct LogRoom {
    /// So many entries in ``window``: for a thousand apps that do nothing but change, a hundred a second, of the three
    /// hundred that journald takes of a service (RateLimitBurst= of journald.conf(5)).
    static let entries: UInt16 = 30
    static let window = Duration.seconds(300)

    enum Answer { case granted, last, none }

    /// Seconds of the loop's clock.
    private var began: UInt32 = 0
    private var used: UInt16 = 0

    /// Asks for one more; `last` is said once, for the first that has no room.
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
