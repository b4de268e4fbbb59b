// SPDX-License-Identifier: Apache-2.0

import Engine
import EventLoop
import Linux
import Policies
import PolicyHost
import Processes
package import TorporAPI
import TorporPolicyABI
import Varlink
package import VarlinkServer

/// The clients that record the questions to policies and their advice.
final class PolicyTraceFeed {
    /// The most clients at a time. There is a limit because every line is sent to each of them.
    static let limit = 8

    private(set) var recorders: [PolicyRecorder] = []

    func add(_ recorder: PolicyRecorder) { recorders.append(recorder) }

    func remove(_ recorder: PolicyRecorder) { recorders.removeAll { $0 === recorder } }

    /// Sends all clients the questions of a finished round and the policies' advice. `view`: the data about apps that
    /// the policies have read.
    func tell(_ events: [torpor_policy_event], _ decisions: [(PolicyDecision, CounselOutcome)], _ view: PolicyView) {
        for recorder in recorders { recorder.tell(events, decisions) }
    }
}

/// A client that records the questions to policies. It gets a line for each round of questions, and at intervals a line
/// with a snapshot of the data that policies read. While the client does not read, lines of rounds are queued up to the
/// server's limit, and snapshots are skipped.
final class PolicyRecorder {
    private unowned let policyManager: PolicyManager
    private let reply: Reply
    private let every: Duration
    private var snapshot = PolicySnapshot()
    private var timer: TimerSource?
    private var endTimer: TimerSource?

    init(_ policyManager: PolicyManager, _ request: RecordRequest, _ reply: Reply) {
        self.policyManager = policyManager
        self.reply = reply
        every = .milliseconds(request.everyMilliseconds ?? 1000)
        let loop = policyManager.supervisor.loop
        timer = try? loop.timer { [weak self] in self?.look() }
        guard let time = request.forMilliseconds else { return }
        endTimer = try? loop.timer { [weak self] in self?.finish() }
        endTimer?.arm(after: .milliseconds(min(time, 1 << 40)))
    }

    /// Requests a snapshot now, and then one at each interval.
    func look() {
        timer?.arm(after: every)
        policyManager.chain.look()
    }

    func tell(_ events: [torpor_policy_event], _ decisions: [(PolicyDecision, CounselOutcome)]) {
        if !events.isEmpty || !reply.isUnread { write(events, decisions) }
    }

    private func write(_ events: [torpor_policy_event], _ decisions: [(PolicyDecision, CounselOutcome)]) {
        guard !reply.isClosed else { return }
        let view = policyManager.view
        var round = PolicyTraceRound(at: view.system.now, realtime: view.system.realtime)
        round.events = events.map { PolicyTraceRound.Event($0) }
        round.apps = snapshot.takeChanges(of: view).map { PolicyTraceRound.App($0) }
        round.system = Self.fields(snapshot.takeSystemChanges(of: view))
        round.advice = decisions.map { PolicyTraceRound.Advice($0, $1, of: events) }
        reply.send(Replies.record(round.json), continues: true)
    }

    /// Called when the time for which the client wanted to record is over.
    private func finish() {
        policyManager.stopRecording(self)
        reply.send(Replies.record(nil))
    }

    fileprivate static func fields(_ values: [PolicyChange.Value]) -> JSONObject {
        JSONObject(
            members: values.map { value in
                let numbers = value.numbers.map { JSON.optional($0) }
                return JSONObject.Member(
                    name: value.field.name,
                    value: value.field.count == 1 ? numbers[0] : .array(numbers)
                )
            }
        )
    }
}

extension PolicyManager {
    /// Begins to send the client the questions to policies and their advice.
    package func record(_ request: RecordRequest, _ reply: Reply) {
        guard trace.recorders.count < PolicyTraceFeed.limit else {
            return reply.fail(
                "\(PolicyTraceFeed.limit) clients record already, which is the most: end one of them"
            )
        }
        let header = PolicyTraceHeader(
            torpor: Supervisor.version,
            abi: Int64(TORPOR_POLICY_ABI),
            instance: Int64(supervisor.keeper.instance),
            everyMilliseconds: request.everyMilliseconds ?? 1000,
            policies: chain.slots.map { slot in
                PolicyTraceHeader.Policy(
                    name: slot.settings.name,
                    path: slot.settings.path,
                    mode: slot.settings.onlyAdvises ? "advise" : "decide",
                    version: slot.description?.version
                )
            }
        )
        reply.send(Replies.record(header.json), continues: true)
        guard reply.more else { return }
        let recorder = PolicyRecorder(self, request, reply)
        reply.onClosed = { [weak self, weak recorder, reply] in
            let reason = reply.isUnread ? "it did not read what it was sent" : "it disconnected"
            self?.supervisor.log.info("a client no longer records what policies are asked: \(reason)")
            if let recorder { self?.stopRecording(recorder) }
        }
        trace.add(recorder)
        chain.isRecorded = true
        policiesChanged()
        recorder.look()
    }

    func stopRecording(_ recorder: PolicyRecorder) {
        trace.remove(recorder)
        guard trace.recorders.isEmpty else { return }
        chain.isRecorded = false
        policiesChanged()
    }
}

extension PolicyTraceRound.Event {
    fileprivate init(_ event: torpor_policy_event) {
        self.init(
            kind: PolicyWords.event(event.kind),
            app: event.app == UInt32.max ? nil : Int64(event.app),
            from: Int64(event.from),
            to: Int64(event.to),
            reason: Int64(event.reason),
            at: event.at,
            delay: event.delay == Int64.min ? nil : event.delay
        )
    }
}

extension PolicyTraceRound.App {
    fileprivate init(_ change: PolicyChange) {
        self.init(
            place: Int64(change.place),
            name: change.identity?.name,
            tags: change.identity?.tags ?? [],
            fields: PolicyRecorder.fields(change.values)
        )
    }
}

extension PolicyTraceRound.Advice {
    fileprivate init(_ decision: PolicyDecision, _ outcome: CounselOutcome, of events: [torpor_policy_event]) {
        let advice = decision.advice
        self.init(
            policy: decision.policy,
            event: Int64(events.firstIndex { Self.isSame($0, decision.event) } ?? 0),
            kind: PolicyWords.advice(advice.kind),
            app: advice.app == UInt32.max ? nil : Int64(advice.app),
            value: Int64(advice.value),
            time: advice.time,
            reason: advice.reason,
            outcome: outcome.word
        )
        if case .refused(let why) = outcome { self.why = why }
    }

    private static func isSame(_ one: torpor_policy_event, _ other: torpor_policy_event) -> Bool {
        one.kind == other.kind && one.app == other.app && one.from == other.from && one.to == other.to
            && one.reason == other.reason && one.at == other.at && one.delay == other.delay
    }
}

extension CounselOutcome {
    fileprivate var word: String {
        switch self {
        case .taken: "taken"
        case .idle: "idle"
        case .refused: "refused"
        case .damped: "damped"
        case .told: "told"
        }
    }
}
