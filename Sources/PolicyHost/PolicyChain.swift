// SPDX-License-Identifier: Apache-2.0

public import EventLoop
import Linux
public import Policies
public import TorporPolicyABI

/// The supervisor's side of the policy chain.
public protocol PolicyChainDelegate: AnyObject {
    /// Called before a question, to bring the view up to date. `needs` has the `TORPOR_NEEDS_…` bits of the policies
    /// that are asked. Call `ready`, at once or later, when the view is up to date; afterwards the view must not
    /// change until the next call.
    func policiesWillBeAsked(_ events: [torpor_policy_event], needs: UInt64, _ ready: @escaping () -> Void)
    /// Applies a piece of advice as far as the rules allow.
    func take(_ decision: PolicyDecision) -> CounselOutcome
    /// Called after all policies were asked about these events, and each piece of advice was applied, refused or only
    /// reported.
    func policiesAnswered(_ events: [torpor_policy_event], _ decisions: [(PolicyDecision, CounselOutcome)])
    /// A policy's state changed; `sentence` describes the change, `isTrouble` means an error.
    func policy(_ slot: PolicySlot, changed sentence: String, isTrouble: Bool)
    /// A policy's process wrote a line to standard error: a safe text of at most ``PolicyLines/limit`` bytes. At most
    /// ``HostOutput/most`` lines of each process come in a second.
    func policy(_ slot: PolicySlot, wrote line: String)
    /// Called when the set of policies that are asked has changed, or the set of events that they are asked about.
    func policiesChanged()
}

/// The policies in the order of the configuration. The chain asks them about events, one question at a time, and
/// passes their advice to the delegate. A policy that fails is skipped at once and retried later.
///
/// Events are queued until the event loop has nothing more urgent to do, so that policies never delay the handling of
/// an exit or a deadline. Each policy in turn is asked about all queued events together.
public final class PolicyChain {
    /// The maximum number of queued events. If there are more, most of them are replaced by one event that tells
    /// policies to examine all apps.
    static let queueLimit = 4096
    /// If some task waited for memory for at least this share of the last 10 s, in hundredths of a percent, the
    /// machine counts as stalled.
    public static let stallShare: UInt32 = 100
    /// The minimum time before a policy is asked again, if it has requested that or delays a launch.
    public static let shortestWait = Duration.milliseconds(100)

    /// The supervisor, which updates the view and applies advice.
    public weak var delegate: (any PolicyChainDelegate)?
    /// The policies, in the order in which they are asked.
    public private(set) var slots: [PolicySlot] = []
    /// Whether events are collected and reported for a recording, even if no policy asked for them.
    public var isRecorded = false

    let loop: EventLoop
    let view: PolicyView
    let hosts: any PolicyHostLauncher
    let guarding: (String, Bool) -> Void
    let machineStalls: () -> Bool
    /// The file of each library that was opened in this process, by path. If another file is at the path now, or the
    /// file's content was changed, dlopen(3) would return the old library again, so the library is refused.
    var openedHere: [String: OpenedLibrary] = [:]
    private var queue: [Entry] = []
    private var round: Round?
    private var isScheduled = false
    private var isLookDue = false
    private var isClosed = false

    struct Entry {
        var event: torpor_policy_event
        /// The only policy to ask about the event; nil for all.
        var only: PolicySlot?
        /// Gets the policies' advice about the event, which is then not applied; nil if the advice must be applied.
        var completion: (([PolicyDecision]) -> Void)?
    }

    /// A round: a set of events that all policies are asked about, one policy after the other.
    private final class Round {
        let entries: [Entry]
        var decided: UInt64 = 0
        /// The index of the next policy to ask.
        var next = 0
        /// The indices of the events that the current policy was asked about.
        var indices: [Int] = []
        var decisions: [(index: Int, slot: PolicySlot, decision: PolicyDecision)] = []
        /// For each event and each ``Matter`` (what advice decides about an app, such as its goal), the first policy
        /// that gave advice. Used only if there are several policies.
        var first: [MatterOfEntry: PolicySlot] = [:]

        init(_ entries: [Entry]) { self.entries = entries }
    }

    private struct MatterOfEntry: Hashable {
        let index: Int
        let matter: Matter
    }

    /// Creates a chain without policies.
    ///
    /// - Parameters:
    ///   - view: the data that policies see; the delegate updates it.
    ///   - hosts: starts the processes of isolated policies.
    ///   - guarding: called with a policy's name and true before code of a policy runs in this process, and with
    ///     false after it.
    ///   - machineStalls: whether tasks of the machine wait for memory. In that case, a late answer is not the
    ///     policy's fault.
    public init(
        loop: EventLoop,
        view: PolicyView,
        hosts: any PolicyHostLauncher,
        guarding: @escaping (String, Bool) -> Void = { _, _ in },
        machineStalls: @escaping () -> Bool = { false }
    ) {
        self.loop = loop
        self.view = view
        self.hosts = hosts
        self.guarding = guarding
        self.machineStalls = machineStalls
    }

    // MARK: Who is asked

    /// Applies a new configuration. If only a policy's place in the order has changed, the policy is not restarted. A
    /// policy whose name is in `keepingOut` stays in quarantine, with the failure given there.
    public func configure(_ settings: [PolicySettings], keepingOut: [String: String] = [:]) {
        var old: [String: PolicySlot] = [:]
        for slot in slots { old[slot.settings.name] = slot }
        slots = settings.map { settings in
            guard let slot = old[settings.name], slot.settings == settings else { return PolicySlot(settings) }
            old[settings.name] = nil
            return slot
        }
        for slot in old.values { close(slot) }
        delegate?.policiesChanged()
        for slot in slots where slot.state == .loading && slot.runtime == nil && slot.generation == 0 {
            if let reason = keepingOut[slot.settings.name] {
                slot.state = .quarantined(reason)
                slot.lastFailure = reason
                delegate?.policy(slot, changed: "is quarantined: \(reason)", isTrouble: true)
                delegate?.policiesChanged()
            } else {
                load(slot)
            }
        }
    }

    /// Reloads a policy's library, whatever the policy's state.
    ///
    /// - Returns: false if there is no policy with that name.
    public func reload(_ name: String) -> Bool {
        guard let slot = slots.first(where: { $0.settings.name == name }) else { return false }
        close(slot)
        slot.ledger.forget()
        slot.lastFailure = nil
        load(slot)
        return true
    }

    /// Whether a policy, or a recording, wants events of this kind.
    public func wants(_ kind: torpor_policy_event_kind) -> Bool {
        isRecorded || slots.contains { $0.wants(kind.rawValue) }
    }

    /// Whether some policy that decides, and not only advises, is asked about events of this kind.
    public func isGoverned(_ kind: torpor_policy_event_kind) -> Bool {
        slots.contains { $0.wants(kind.rawValue) && !$0.settings.onlyAdvises }
    }

    /// The name of the first policy that decides, and not only advises, and is asked about events of this kind.
    public func governor(of kind: torpor_policy_event_kind) -> String? {
        slots.first { $0.wants(kind.rawValue) && !$0.settings.onlyAdvises }?.settings.name
    }

    /// Closes all policies.
    public func close() {
        isClosed = true
        for slot in slots { slot.close() }
        slots = []
    }

    /// Closes a policy's process. If the chain waits for that policy's answer, it asks the next policy instead.
    func close(_ slot: PolicySlot) {
        slot.close()
        guard waitingFor === slot else { return }
        waitingFor = nil
        loop.later { [weak self] in
            guard let self, self.waitingFor == nil else { return }
            self.askNext()
        }
    }

    // MARK: What they are asked

    /// Queues an event; policies are asked about it as soon as the event loop has nothing more urgent to do.
    public func post(_ event: torpor_policy_event) {
        guard isRecorded || slots.contains(where: { $0.wants(event.kind) }) else { return }
        if queue.count >= Self.queueLimit { shorten() }
        enqueue(Entry(event: event))
    }

    /// Asks the policies about an event. Their advice is not applied but passed to `completion`, in order; the list
    /// may be empty.
    public func ask(_ event: torpor_policy_event, _ completion: @escaping ([PolicyDecision]) -> Void) {
        enqueue(Entry(event: event, completion: completion))
    }

    /// Makes the delegate update the view, as before a question, without asking any policy. A recording calls this to
    /// get new measurements when no event has occurred.
    public func look() {
        guard !isClosed else { return }
        isLookDue = true
        schedule()
    }

    private func enqueue(_ entry: Entry) {
        guard !isClosed else { return }
        queue.append(entry)
        schedule()
    }

    private func schedule() {
        guard !isScheduled, round == nil else { return }
        isScheduled = true
        loop.later { [weak self] in
            self?.isScheduled = false
            self?.begin()
        }
    }

    /// Shortens a full queue: one event that tells policies to examine all apps replaces the others, except launches,
    /// evictions and events of ``ask(_:_:)``, which need an answer.
    private func shorten() {
        let kept = [TORPOR_EVENT_LAUNCH, TORPOR_EVENT_EVICTION].map(\.rawValue)
        queue.removeAll { !kept.contains($0.event.kind) && $0.completion == nil }
        queue.append(Entry(event: Self.event(TORPOR_EVENT_APPS, at: loop.now)))
    }

    /// An event of this kind that concerns no app.
    public static func event(_ kind: torpor_policy_event_kind, at time: Duration) -> torpor_policy_event {
        torpor_policy_event(
            size: UInt32(MemoryLayout<torpor_policy_event>.size),
            kind: kind.rawValue,
            app: UInt32.max,
            from: 0,
            to: 0,
            reason: 0,
            at: time.microseconds,
            delay: Int64.min
        )
    }

    // MARK: A round

    private func begin() {
        guard round == nil, !queue.isEmpty || isLookDue, !isClosed else { return }
        isLookDue = false
        let count = min(queue.count, PolicyLibrary.eventLimit)
        let round: Round
        if count == queue.count {
            round = Round(queue)
            queue = []
        } else {
            round = Round(Array(queue[..<count]))
            queue.removeFirst(count)
        }
        // A recording contains all measurements, since it is for policies that may need any of them.
        var needs: UInt64 = isRecorded ? .max : 0
        for slot in slots where round.entries.contains(where: { isAsked(slot, $0) }) {
            needs |= slot.description?.needs ?? 0
        }
        self.round = round
        guard let delegate else { return askNext() }
        delegate.policiesWillBeAsked(round.entries.map(\.event), needs: needs) { [weak self] in self?.askNext() }
    }

    private func isAsked(_ slot: PolicySlot, _ entry: Entry) -> Bool {
        slot.wants(entry.event.kind) && (entry.only == nil || entry.only === slot)
    }

    private func askNext() {
        while let round, round.next < slots.count {
            let slot = slots[round.next]
            round.next += 1
            guard let runtime = slot.runtime else { continue }
            round.indices.removeAll(keepingCapacity: true)
            var events: [torpor_policy_event] = []
            for index in round.entries.indices
            where round.decided >> UInt64(index) & 1 == 0 && isAsked(slot, round.entries[index]) {
                round.indices.append(index)
                events.append(round.entries[index].event)
            }
            guard !events.isEmpty else { continue }
            var isOver = false
            var isReturned = false
            slot.statistics.questions += 1
            let generation = slot.generation
            let start = Clock.monotonicNanoseconds()
            runtime.ask(events, limit: PolicyAnswer.limit(events: events.count, apps: view.count)) {
                [weak self, weak slot] result in
                let time = Clock.monotonicNanoseconds() - start
                isOver = true
                guard let self, let slot, generation == slot.generation else { return }
                self.waitingFor = nil
                self.take(result, of: slot, nanoseconds: time)
                if isReturned { self.askNext() }
            }
            guard isOver else {
                // The policy did not answer at once. Its answer, or its failure, is reported to the closure above
                // later, unless the policy is closed first (``close(_:)``).
                isReturned = true
                waitingFor = slot
                return
            }
        }
        if round != nil { end() }
    }

    /// The policy whose answer the chain waits for; nil while it waits for none. A policy in this process answers at
    /// once.
    private weak var waitingFor: PolicySlot?

    private func take(_ result: Result<PolicyAnswer, PolicyFailure>, of slot: PolicySlot, nanoseconds: Int64) {
        slot.statistics.latency.add(nanoseconds: nanoseconds)
        switch result {
        case .failure(let failure): failed(slot, failure)
        case .success(let answer):
            // A policy in this process blocks the event loop while it answers, so its time is checked only now.
            if !slot.settings.isIsolated, nanoseconds > slot.deadlineNanoseconds, !machineStalls() {
                return failed(slot, .late(slot.settings.deadline))
            }
            guard let round else { return }
            for (position, index) in round.indices.enumerated()
            where answer.hasDecided(position) && !slot.settings.onlyAdvises {
                round.decided |= 1 << UInt64(index)
            }
            for advice in answer.advice where advice.event < round.indices.count {
                take(advice, of: slot, round, round.indices[advice.event])
            }
        }
    }

    private func take(_ advice: PolicyAdvice, of slot: PolicySlot, _ round: Round, _ index: Int) {
        if advice.kind == TORPOR_ADVISE_ASK_AGAIN.rawValue { return askAgain(slot, after: .microseconds(advice.time)) }
        var overruledBy: String?
        if slots.count > 1, let matter = Matter(advice) {
            let key = MatterOfEntry(index: index, matter: matter)
            if let first = round.first[key], first !== slot {
                overruledBy = first.settings.name
            } else if !slot.settings.onlyAdvises {
                round.first[key] = slot
            }
        }
        let decision = PolicyDecision(
            policy: slot.settings.name,
            event: round.entries[index].event,
            advice: advice,
            onlyAdvises: slot.settings.onlyAdvises,
            overruledBy: overruledBy
        )
        round.decisions.append((index, slot, decision))
    }

    private func end() {
        guard let ended = round else { return }
        round = nil
        var outcomes: [(PolicyDecision, CounselOutcome)] = []
        for (index, slot, decision) in ended.decisions where ended.entries[index].completion == nil {
            outcomes.append((decision, outcome(of: decision, slot)))
        }
        for (index, entry) in ended.entries.enumerated() {
            guard let completion = entry.completion else { continue }
            let decisions = ended.decisions.filter { $0.index == index }.map(\.decision)
            outcomes += decisions.map { decision in
                if let other = decision.overruledBy { return (decision, Self.overruled(by: other)) }
                return (decision, decision.onlyAdvises ? .told : .taken)
            }
            completion(decisions.filter { $0.overruledBy == nil })
        }
        delegate?.policiesAnswered(ended.entries.map(\.event), outcomes)
        if !queue.isEmpty || isLookDue { schedule() }
    }

    private func outcome(of decision: PolicyDecision, _ slot: PolicySlot) -> CounselOutcome {
        // Ignore advice of a policy that was removed before its advice could be applied.
        guard slots.contains(where: { $0 === slot }) else { return .idle }
        if let other = decision.overruledBy {
            slot.statistics.overruled += 1
            return Self.overruled(by: other)
        }
        let outcome = delegate?.take(decision) ?? .idle
        switch outcome {
        case .taken: slot.statistics.taken += 1
        case .idle: slot.statistics.idle += 1
        case .refused: slot.statistics.refused += 1
        case .damped: slot.statistics.damped += 1
        case .told: slot.statistics.told += 1
        }
        return outcome
    }

    private static func overruled(by other: String) -> CounselOutcome {
        .refused("\(other) advised first in this matter")
    }

    // MARK: Asking again

    private func askAgain(_ slot: PolicySlot, after delay: Duration) {
        let at = loop.now + max(Self.shortestWait, min(delay, .seconds(366 * 86_400)))
        if let earlier = slot.asksAgainAt, earlier <= at { return }
        slot.asksAgainAt = at
        if slot.askTimer == nil {
            slot.askTimer = try? loop.timer { [weak self, weak slot] in
                guard let self, let slot else { return }
                slot.asksAgainAt = nil
                self.postAlone(TORPOR_EVENT_TIMER, to: slot)
            }
        }
        slot.askTimer?.arm(at: at)
    }

    /// Asks, without waiting any longer, all policies that have requested to be asked again at a later time.
    public func askThoseWhoWait() {
        for slot in slots where slot.asksAgainAt != nil {
            slot.askTimer?.disarm()
            slot.asksAgainAt = nil
            postAlone(TORPOR_EVENT_TIMER, to: slot)
        }
    }

    func postAlone(_ kind: torpor_policy_event_kind, to slot: PolicySlot) {
        guard slot.wants(kind.rawValue) else { return }
        enqueue(Entry(event: Self.event(kind, at: loop.now), only: slot))
    }
}
