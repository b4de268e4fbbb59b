// SPDX-License-Identifier: Apache-2.0

import EventLoop
import Lifecycle
import Linux
import TorporAPI

/// The timelines of incarnations: for their reports, and for how long their launches took.
extension Supervisor {
    /// Notes a moment in the life of an app's incarnation.
    func trace(_ app: AppRuntime, _ moment: Moment) {
        guard let began = app.launchedAt else { return }
        app.timeline.add(moment, at: loop.now - began)
    }

    /// After something that may have made the app ready.
    func traceReady(_ app: AppRuntime, after event: AppEvent) {
        switch event {
        case .ready, .launched, .answered: break
        default: return
        }
        guard app.timeline.time(of: .ready) == nil, app.timeline.time(of: .executed) != nil else { return }
        let machine = coordinator.machine(app.id)
        if machine.isAlive, machine.transition != .launching, machine.transition != .terminating { trace(app, .ready) }
    }

    /// The app has answered a message, in time or not.
    func traceAnswer(_ app: AppRuntime, _ message: Message, _ answer: Moment.Answer = .done) {
        trace(app, .answered(message, answer))
        guard answer != .pending, let missed = app.missed, missed.message == message, missed.answeredAt == nil else {
            return
        }
        missed.answeredAt = loop.now
    }

    /// What an earlier torpord knew of the timeline: how the launch went, and when the app last came into each state.
    func restoreTimeline(_ app: AppRuntime, launch: LaunchMoments, states: StateTimes) {
        guard let began = app.launchedAt else { return }
        app.timeline = Timeline()
        var moments: [(Moment, Duration)] = launch.moments
        for (state, time) in states.all where time >= began && state != .notRunning {
            moments.append((.entered(state), time - began))
        }
        for (moment, time) in moments.sorted(by: { $0.1 < $1.1 }) { app.timeline.add(moment, at: time) }
        trace(app, .supervisorReplaced)
    }
}

/// The milestones of a launch as the recovery file has them: microseconds since it began, 0 for none.
struct LaunchMoments {
    private var planned: UInt32 = 0
    private var executed: UInt32 = 0
    private var contact: UInt32 = 0
    private var ready: UInt32 = 0

    /// Bytes of a record.
    static let recordBytes = 16

    init() {}

    init(of timeline: Timeline) {
        func code(_ moment: Moment) -> UInt32 {
            timeline.time(of: moment).map { max(1, UInt32(clamping: $0.microseconds)) } ?? 0
        }
        planned = code(.planned)
        executed = code(.executed)
        contact = code(.contact)
        ready = code(.ready)
    }

    /// Those that there were, and when after the launch began.
    var moments: [(Moment, Duration)] {
        [(Moment.planned, planned), (.executed, executed), (.contact, contact), (.ready, ready)]
            .filter { $0.1 > 0 }.map { ($0.0, .microseconds(Int64($0.1))) }
    }

    func encode(into record: inout RecordWriter) {
        for time in [planned, executed, contact, ready] { record.put(time) }
    }

    /// Of a record that may have been written by one that did not know of them: then there are none.
    init(from record: inout RecordReader) {
        planned = record.take(UInt32.self)
        executed = record.take(UInt32.self)
        contact = record.take(UInt32.self)
        ready = record.take(UInt32.self)
    }
}

extension LaunchTimes {
    /// How the launch of an incarnation went; nil before anything is known of it.
    init?(_ timeline: Timeline) {
        func milliseconds(_ time: Duration?) -> Double? { time.map { Double($0.microseconds) / 1000 } }
        self.init()
        planned = milliseconds(timeline.time(of: .planned))
        executed = milliseconds(timeline.time(of: .executed))
        contact = milliseconds(timeline.time(of: .contact))
        message = milliseconds(timeline.firstMessage)
        ready = milliseconds(timeline.time(of: .ready))
        if executed == nil, planned == nil { return nil }
    }
}

extension TimelineEntry {
    /// As reports have it.
    init(_ entry: Timeline.Entry) {
        switch entry {
        case .gap(let count): self.init(after: nil, kind: "gap", name: "\(count)")
        case .moment(let moment, let time):
            let (kind, name) = Self.words(moment)
            self.init(after: Double(time.microseconds) / 1_000_000, kind: kind, name: name)
        }
    }

    private static func words(_ moment: Moment) -> (String, String?) {
        switch moment {
        case .planned: ("launch", "fork")
        case .executed: ("launch", "exec")
        case .contact: ("launch", "contact")
        case .ready: ("launch", "ready")
        case .entered(let state): ("state", state.rawValue)
        case .began(let transition): ("transition", transition.rawValue)
        case .told(let message): ("message", message.rawValue)
        case .answered(let message, .done): ("answer", message.rawValue)
        case .answered(let message, .failed): ("failed-answer", message.rawValue)
        case .answered(let message, .pending): ("pending-answer", message.rawValue)
        case .missed(let deadline): ("missed", deadline.rawValue)
        case .signalled(let number): ("signal", Signal.name(number))
        case .taskBegan(let token): ("task-begin", "\(token)")
        case .taskEnded(let token): ("task-end", "\(token)")
        case .saidStopping: ("stopping", nil)
        case .supervisorReplaced: ("supervisor", nil)
        case .mainChanged: ("main", nil)
        case .exited: ("exit", nil)
        }
    }
}
