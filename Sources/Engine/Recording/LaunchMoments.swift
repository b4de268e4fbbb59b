// SPDX-License-Identifier: Apache-2.0

import EventLoop
package import Lifecycle
import Linux
package import TorporAPI

/// The milestones of a launch, as stored in the recovery file: microseconds since the launch began; 0 for none.
package struct LaunchMoments {
    private var planned: UInt32 = 0
    private var executed: UInt32 = 0
    private var contact: UInt32 = 0
    private var ready: UInt32 = 0

    /// The size of the milestones in a record, in bytes.
    package static let recordBytes = 16

    package init() {}

    package init(of timeline: Timeline) {
        timeline.eachMilestone { moment, time in
            let time = max(1, UInt32(clamping: time.microseconds))
            switch moment {
            case .planned: planned = time
            case .executed: executed = time
            case .contact: contact = time
            case .ready: ready = time
            default: break
            }
        }
    }

    /// The milestones that the launch reached, each with the time since the launch began.
    var moments: [(Moment, Duration)] {
        [(Moment.planned, planned), (.executed, executed), (.contact, contact), (.ready, ready)]
            .filter { $0.1 > 0 }.map { ($0.0, .microseconds(Int64($0.1))) }
    }

    package func encode(into record: inout RecordWriter) {
        for time in [planned, executed, contact, ready] { record.put(time) }
    }

    /// Reads milestones from a record. A record of an older version of torpord contains none.
    package init(from record: inout RecordReader) {
        planned = record.take(UInt32.self)
        executed = record.take(UInt32.self)
        contact = record.take(UInt32.self)
        ready = record.take(UInt32.self)
    }
}

extension LaunchTimes {
    /// The times of a launch, in milliseconds; nil if the launch has reached no milestone yet.
    package init?(_ timeline: Timeline) {
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
    /// Converts a timeline entry to the form that termination reports use.
    package init(_ entry: Timeline.Entry) {
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
