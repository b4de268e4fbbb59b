// SPDX-License-Identifier: Apache-2.0

package import CommandLinePages
import Linux
package import Policies
package import TorporAPI
import TorporPolicyABI
import Varlink

/// Replays a recording to a policy under a virtual clock, which jumps from line to line. The policy sees the same views
/// as the recorded policies and is asked the same questions. It is also asked at the times that it requests itself. Its
/// advice has no effect, because the recording decides what happens next.
package final class Simulation {
    private let tool: PolicyTool
    private let library: TrustedLibrary
    private let reader: TraceReader
    private var host: HostProcess?
    /// When the policy wants to be asked again, on the virtual clock.
    private var asksAgainAt: Int64?
    private var isStarted = false
    private var rules = AdviceRules()

    /// The policy's description of itself.
    package private(set) var description: PolicyDescription
    /// The decisions of the simulated policy, in order.
    package private(set) var decisions: [SimulatedDecision] = []
    /// Advice of the simulated policy that asked for a state which the app already had.
    private(set) var idle: [SimulatedDecision] = []
    /// The advice of the recorded policies, in order.
    private(set) var recorded: [RecordedDecision] = []
    package private(set) var totals = Totals()

    package struct Totals {
        package var questions = 0
        package var events = 0
        package var rounds = 0
        package var asksAgain = 0
        package var repeated = 0
        package var interruptions = 0
        package var firstTime: Int64?
        package var lastTime: Int64 = 0
        package var policies: [PolicyTraceHeader.Policy] = []
        package var apps: Set<String> = []
    }

    /// How long to wait for an answer before the simulation fails. Whether an answer meets the policy's deadline is
    /// checked separately.
    private static let patience = Duration.seconds(10)
    /// The limits of torpord for the time until a policy is asked again, in microseconds.
    private static let shortestWait: Int64 = 100_000
    private static let longestWait: Int64 = 366 * 86_400_000_000

    package init(_ tool: PolicyTool, _ reader: TraceReader) throws(Failure) {
        self.tool = tool
        self.reader = reader
        do throws(PolicyFailure) {
            library = try LibraryTrust.openAnyway(tool.path)
            let host = try tool.start(library, reader.view)
            self.host = host
            description = host.description
        } catch {
            throw Failure(status: .failed, message: "\(error)")
        }
    }

    package func run() throws(Failure) {
        defer { host?.close() }
        reader.beforeRound = { [unowned self] time throws(Failure) in try self.passTime(until: time) }
        var instance: Int64?
        while let line = try reader.next() {
            switch line {
            case .header(let header):
                if let instance {
                    totals.interruptions += 1
                    // Another torpord wrote the lines from here on. That torpord started its policies again, so restart
                    // the simulated policy.
                    if instance != header.instance { try restart() }
                }
                instance = header.instance
                totals.policies = header.policies
            case .round(let round):
                try take(round)
            }
        }
        guard totals.rounds > 0 else { throw reader.failure("the recording ends before anything was recorded") }
    }

    private func restart() throws(Failure) {
        host?.close()
        do throws(PolicyFailure) {
            host = try tool.start(library, reader.view)
        } catch {
            throw reader.failure("\(error)")
        }
        asksAgainAt = nil
        isStarted = false
        rules = AdviceRules()
    }

    // MARK: A line

    private func take(_ round: PolicyTraceRound) throws(Failure) {
        let view = reader.view
        totals.rounds += 1
        totals.events += round.events.count
        totals.firstTime = totals.firstTime ?? round.realtime
        totals.lastTime = round.realtime
        for place in 0..<view.count where view.isPresent(place) { totals.apps.insert(view.name(place)) }
        if !isStarted {
            isStarted = true
            try ask([event(TORPOR_EVENT_STARTED)])
        }
        // First ask the policy at the times that it requested before this line.
        try passTime(until: round.at)
        let asked = round.events.compactMap { Self.event($0) }.filter(isAsked)
        for start in stride(from: 0, to: asked.count, by: HostMessages.mostEvents) {
            try ask(Array(asked[start..<min(asked.count, start + HostMessages.mostEvents)]))
        }
        note(round)
    }

    /// Asks the policy at each time that it has requested before the next line, with the view of that time.
    private func passTime(until next: Int64) throws(Failure) {
        let view = reader.view
        while isStarted, let at = asksAgainAt, at <= next {
            asksAgainAt = nil
            let passed = max(0, at - view.system.now)
            view.system.now += passed
            view.system.realtime += passed
            if wants(TORPOR_EVENT_TIMER.rawValue) { try ask([event(TORPOR_EVENT_TIMER)]) }
        }
    }

    private func wants(_ kind: UInt32) -> Bool { kind < 64 && description.events >> UInt64(kind) & 1 != 0 }

    /// Whether to ask the simulated policy about a recorded event. Events of kind STARTED and TIMER concern only the
    /// recorded policies.
    private func isAsked(_ event: torpor_policy_event) -> Bool {
        event.kind != TORPOR_EVENT_STARTED.rawValue && event.kind != TORPOR_EVENT_TIMER.rawValue && wants(event.kind)
    }

    private func event(_ kind: torpor_policy_event_kind) -> torpor_policy_event {
        var event = torpor_policy_event()
        event.size = UInt32(MemoryLayout<torpor_policy_event>.size)
        event.kind = kind.rawValue
        event.app = UInt32.max
        event.at = reader.view.system.now
        event.delay = Int64.min
        return event
    }

    private static func event(_ event: PolicyTraceRound.Event) -> torpor_policy_event? {
        guard let kind = PolicyWords.event(named: event.kind) else { return nil }
        return torpor_policy_event(
            size: UInt32(MemoryLayout<torpor_policy_event>.size),
            kind: kind,
            app: event.app.map { UInt32($0) } ?? UInt32.max,
            from: UInt32(event.from),
            to: UInt32(event.to),
            reason: UInt32(event.reason),
            at: event.at,
            delay: event.delay ?? Int64.min
        )
    }

    // MARK: A question

    private func ask(_ events: [torpor_policy_event]) throws(Failure) {
        guard let host, events.contains(where: { wants($0.kind) }) else { return }
        totals.questions += 1
        let answer: PolicyAnswer
        do throws(PolicyFailure) {
            answer = try host.ask(events, deadline: Self.patience)
        } catch {
            let words = events.map { PolicyWords.event($0.kind) }.joined(separator: ", ")
            throw reader.failure("asked about \(words), \(error)")
        }
        var order: [(value: UInt32, app: String, reason: String)] = []
        for advice in answer.advice {
            switch advice.kind {
            case TORPOR_ADVISE_ASK_AGAIN.rawValue: askAgain(advice.time)
            case TORPOR_ADVISE_ORDER.rawValue: order.append((advice.value, reader.name(advice.app), advice.reason))
            default: decide(advice, events[advice.event])
            }
        }
        if events.contains(where: { $0.kind == TORPOR_EVENT_EVICTION.rawValue }) { decide(order) }
    }

    private func askAgain(_ delay: Int64) {
        totals.asksAgain += 1
        let at = reader.view.system.now &+ max(Self.shortestWait, min(delay, Self.longestWait))
        if asksAgainAt.map({ $0 > at }) ?? true { asksAgainAt = at }
    }

    private func decide(_ advice: PolicyAdvice, _ event: torpor_policy_event) {
        let change = SimulatedChange(
            kind: PolicyWords.advice(advice.kind),
            app: reader.name(advice.app),
            value: advice.value,
            time: advice.time
        )
        switch rules.verdict(on: advice, to: event, in: reader.view) {
        case .idle: idle.append(decision(change, advice.reason, .same))
        case .repeated: totals.repeated += 1
        case .change: decisions.append(decision(change, advice.reason, .new))
        case .refused(let why):
            var refused = decision(change, advice.reason, .refused)
            refused.note = why
            decisions.append(refused)
        }
    }

    private func decide(_ order: [(value: UInt32, app: String, reason: String)]) {
        var seen: Set<String> = []
        let sorted = order.enumerated().sorted { ($0.element.value, $0.offset) < ($1.element.value, $1.offset) }
        let apps = sorted.map(\.element.app).filter { seen.insert($0).inserted }
        decisions.append(decision(SimulatedChange(order: apps), sorted.first?.element.reason ?? "", .new))
    }

    private func decision(
        _ change: SimulatedChange,
        _ reason: String,
        _ difference: SimulatedDecision.Difference
    ) -> SimulatedDecision {
        SimulatedDecision(
            at: reader.view.system.now,
            realtime: reader.view.system.realtime,
            line: reader.shownLine,
            change: change,
            reason: reason,
            difference: difference
        )
    }

    // MARK: What happened then

    private func note(_ round: PolicyTraceRound) {
        for (index, event) in round.events.enumerated() {
            let advice = round.advice.filter { $0.event == index }
            if event.kind == "eviction" {
                let order = advice.filter { $0.kind == "order" && $0.outcome == "taken" }.sorted { $0.value < $1.value }
                guard let first = order.first else { continue }
                let names = order.map { reader.name($0.app) }
                var seen: Set<String> = []
                note(round, SimulatedChange(order: names.filter { seen.insert($0).inserted }), first)
            }
            for advice in advice where advice.kind != "order" {
                let change = SimulatedChange(
                    kind: advice.kind,
                    app: reader.name(advice.app),
                    value: UInt32(advice.value),
                    time: advice.time
                )
                note(round, change, advice)
            }
        }
    }

    private func note(_ round: PolicyTraceRound, _ change: SimulatedChange, _ advice: PolicyTraceRound.Advice) {
        recorded.append(
            RecordedDecision(
                at: round.at,
                realtime: round.realtime,
                line: reader.line,
                change: change,
                policy: advice.policy,
                reason: advice.reason,
                outcome: advice.outcome,
                why: advice.why
            )
        )
    }
}

extension TraceReader {
    /// The name of the app in a place; a description if the place is empty.
    package func name(_ place: UInt32) -> String { name(place == UInt32.max ? nil : Int64(place)) }

    package func name(_ place: Int64?) -> String {
        guard let place else { return "no app" }
        let index = Int(place)
        return view.isPresent(index) ? view.name(index) : "place \(place)"
    }
}
