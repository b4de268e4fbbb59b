// SPDX-License-Identifier: Apache-2.0

import EventLoop

/// The rules by which torpord asks torpor-desktop whether it still works, and decides from its silence that it does
/// not.
///
/// A helper that was stopped, or is in an endless loop, accepts commands but does not carry them out. So torpord sends
/// a question after each command, but only one question at a time. If the helper has something to watch (open alerts,
/// the focus, sound) and reports nothing, it is asked once in ``pause``. If it has nothing to watch and no question is
/// open, there is no deadline, so that torpord can sleep.
struct PulseRules {
    /// What to do when the deadline has passed.
    enum Step: Hashable {
        case ask(number: Int64)
        case giveUp
    }

    private enum State: Hashable {
        /// There is no helper.
        case none
        /// The helper was started at this time, and has not answered `hello`.
        case starting(since: Duration)
        case quiet
        /// The helper has not answered the question that was asked at this time. `isLast`: the question was asked for
        /// the second time.
        case asked(since: Duration, isLast: Bool)
    }

    private var state = State.none
    /// The number of the last question.
    private var number: Int64 = 0
    /// The number of the first question that was asked after the helper's last answer.
    private var firstNumber: Int64 = 0
    private var heardAt = Duration.zero
    /// Whether more commands were sent after the open question, so that another question must follow.
    private var hasMore = false
    /// Whether the helper has something to watch, so that it must be asked at intervals even if it gets no commands.
    var hasWatch = false

    /// If a question is not answered within this time, it is asked once more. If this second question is not answered
    /// within the same time, torpord kills the helper.
    static let patience = Duration.seconds(10)
    /// The time that a helper may take until its first answer. It is longer than ``patience``, because the helper's
    /// program has to be loaded.
    static let longestStart = Duration.seconds(60)
    /// The interval at which a helper that gets no commands is asked.
    static let pause = Duration.seconds(300)
    /// If a deadline turns out to have passed longer ago than this, torpord itself was stopped: so the helper gets a
    /// new deadline.
    static let lateness = Duration.seconds(3)

    /// When to call ``passed(at:)``; nil if there is nothing to wait for.
    var deadline: Duration? {
        switch state {
        case .none: nil
        case .starting(let since): since + Self.longestStart
        case .quiet: hasWatch ? heardAt + Self.pause : nil
        case .asked(let since, _): since + Self.patience
        }
    }

    /// Called when a helper was started or taken over: it must answer `hello` next.
    mutating func started(at now: Duration) { (state, hasMore) = (.starting(since: now), false) }

    /// Called when the helper is gone.
    mutating func stopped() { state = .none }

    /// Called when the helper has answered `hello`. Returns the number of a question to send; nil if none is needed.
    mutating func greeted(at now: Duration) -> Int64? {
        guard case .starting = state else { return nil }
        return answered(at: now)
    }

    /// Called when a command was sent. Returns the number of a question to send; nil if none is needed.
    mutating func commanded(at now: Duration) -> Int64? {
        switch state {
        case .none: return nil
        case .starting, .asked:
            hasMore = true
            return nil
        case .quiet: return ask(at: now, isLast: false)
        }
    }

    /// Called when the helper has answered the question with this number. Returns the number of another question to
    /// send; nil if none is needed.
    mutating func heard(_ number: Int64, at now: Duration) -> Int64? {
        guard case .asked = state, (firstNumber...self.number).contains(number) else { return nil }
        return answered(at: now)
    }

    /// Called when the helper has sent a report that is not an answer.
    mutating func reported(at now: Duration) { heardAt = now }

    /// Called when the deadline may have passed.
    mutating func passed(at now: Duration) -> Step? {
        guard let deadline, now >= deadline else { return nil }
        let isLate = now - deadline > Self.lateness
        switch state {
        case .none: return nil
        case .starting:
            guard isLate else { return .giveUp }
            state = .starting(since: now)
            return nil
        case .quiet: return ask(at: now, isLast: false).map { .ask(number: $0) }
        case .asked(_, let isLast):
            guard !isLast || isLate else { return .giveUp }
            return ask(at: now, isLast: true).map { .ask(number: $0) }
        }
    }

    private mutating func answered(at now: Duration) -> Int64? {
        (state, heardAt) = (.quiet, now)
        return hasMore ? ask(at: now, isLast: false) : nil
    }

    private mutating func ask(at now: Duration, isLast: Bool) -> Int64? {
        number += 1
        if !isLast { (firstNumber, hasMore) = (number, false) }
        state = .asked(since: now, isLast: isLast)
        return number
    }
}

/// Applies ``PulseRules`` to a helper.
final class HelperPulse {
    private let loop: EventLoop
    private var rules = PulseRules()
    private var timer: TimerSource?
    private let ask: (Int64) -> Void
    private let giveUp: () -> Void

    /// - Parameters:
    ///   - ask: sends a question with this number.
    ///   - giveUp: called when the helper does not answer.
    init(_ loop: EventLoop, ask: @escaping (Int64) -> Void, giveUp: @escaping () -> Void) {
        self.loop = loop
        self.ask = ask
        self.giveUp = giveUp
    }

    /// Whether the helper has something to watch, so that it must be asked at intervals even if it gets no commands.
    var hasWatch: Bool {
        get { rules.hasWatch }
        set {
            guard newValue != rules.hasWatch else { return }
            rules.hasWatch = newValue
            arm()
        }
    }

    func started() { change { $0.started(at: loop.now) } }
    func stopped() { change { $0.stopped() } }
    func greeted() { follow { $0.greeted(at: loop.now) } }
    func commanded() { follow { $0.commanded(at: loop.now) } }
    func heard(_ number: Int64) { follow { $0.heard(number, at: loop.now) } }
    func reported() { rules.reported(at: loop.now) }

    private func follow(_ change: (inout PulseRules) -> Int64?) {
        let number = change(&rules)
        if let number { ask(number) }
        arm()
    }

    private func change(_ change: (inout PulseRules) -> Void) {
        change(&rules)
        arm()
    }

    private func arm() {
        guard let deadline = rules.deadline else {
            timer?.disarm()
            return
        }
        if timer == nil { timer = try? loop.timer { [weak self] in self?.passed() } }
        if timer?.deadline != deadline { timer?.arm(at: deadline) }
    }

    private func passed() {
        timer?.disarm()
        switch rules.passed(at: loop.now) {
        case .ask(let number): ask(number)
        case .giveUp:
            rules.stopped()
            giveUp()
        case nil: break
        }
        arm()
    }
}
