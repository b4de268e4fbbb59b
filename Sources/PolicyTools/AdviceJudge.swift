// SPDX-License-Identifier: Apache-2.0

import Policies
import TorporPolicyABI

/// Finds advice that no supervisor could ever follow: an error of the policy.
struct AdviceJudge {
    /// How many pieces of advice were checked.
    private(set) var pieces = 0
    /// Invalid advice with its count, in the order of the first occurrence.
    private(set) var faults: [Finding] = []
    /// Advice that is valid but useless, with its count, in the order of the first occurrence.
    private(set) var remarks: [Finding] = []

    /// A problem with advice.
    struct Finding {
        let sentence: String
        /// The first occurrence.
        let example: String?
        /// How often the problem occurred.
        var count: Int

        var text: String {
            let more = [count == 1 ? nil : "\(count) times", example.map { count == 1 ? $0 : "first \($0)" }]
            let details = more.compactMap { $0 }.joined(separator: ", ")
            return details.isEmpty ? sentence : "\(sentence) (\(details))"
        }
    }

    private static let sample = 256
    private let asksAboutTimers: Bool

    init(wants: UInt64) { asksAboutTimers = wants >> UInt64(TORPOR_EVENT_TIMER.rawValue) & 1 != 0 }

    /// Checks a policy's answer to these events with this view.
    mutating func judge(_ answer: PolicyAnswer, to events: [torpor_policy_event], in view: PolicyView) {
        let limit = PolicyAnswer.limit(events: events.count, apps: view.count)
        if answer.advice.count > limit {
            fault(
                "more advice than torpord takes",
                "\(answer.advice.count) pieces to a question with \(view.count) apps"
            )
        }
        // A flood counts as one fault. Judge only the first pieces of the advice, which show what it is about.
        for advice in answer.advice.prefix(answer.advice.count > limit ? min(limit, Self.sample) : limit) {
            pieces += 1
            judge(advice, to: events[advice.event], in: view)
        }
    }

    private mutating func judge(_ advice: PolicyAdvice, to event: torpor_policy_event, in view: PolicyView) {
        let kind = torpor_policy_advice_kind(rawValue: advice.kind)
        let word = PolicyWords.advice(advice.kind)
        guard (TORPOR_ADVISE_GOAL.rawValue...TORPOR_ADVISE_ASK_AGAIN.rawValue).contains(advice.kind) else {
            return fault("advice of a kind that does not exist", "number \(advice.kind)")
        }
        if kind == TORPOR_ADVISE_ASK_AGAIN {
            if !asksAboutTimers { remark("it asks to be asked again, but its events lack TORPOR_EVENT_TIMER") }
            if advice.time < 0 { remark("it asks to be asked again at a time in the past") }
            return
        }
        if advice.app == UInt32.max {
            fault("\(word) about no app")
        } else if !view.isPresent(Int(advice.app)) {
            // Even the app of the event may be gone when the question is asked: a policy must check that its app
            // exists.
            fault("\(word) about a place where there is no app", "place \(advice.app) of \(view.count)")
        }
        switch kind {
        case TORPOR_ADVISE_GOAL where advice.value == TORPOR_STATE_INACTIVE.rawValue:
            fault("goal inactive, which apps only pass through")
        case TORPOR_ADVISE_GOAL where advice.value >= UInt32(TORPOR_STATE_COUNT),
            TORPOR_ADVISE_PROFILE where advice.value >= UInt32(TORPOR_STATE_COUNT):
            fault("\(word) with a state that does not exist", "number \(advice.value)")
        case TORPOR_ADVISE_GRANT, TORPOR_ADVISE_RESTART:
            if advice.time < 0 { fault("\(word) with a negative time") }
            if kind == TORPOR_ADVISE_GRANT, advice.time == 0 { remark("grant with a time of 0: it ends at once") }
        case TORPOR_ADVISE_DELAY:
            if advice.time <= 0 { fault("delay with a time of 0 or less") }
        default: break
        }
        if let wanted = Self.question(of: advice.kind), event.kind != wanted.rawValue {
            fault(
                "\(word), which answers the event \(PolicyWords.event(wanted.rawValue)), "
                    + "to the event \(PolicyWords.event(event.kind))"
            )
        } else if kind != TORPOR_ADVISE_ORDER, Self.question(of: advice.kind) != nil, advice.app != event.app {
            fault("\(word) about another app than the event")
        }
        judge(advice.reason, word)
    }

    private mutating func judge(_ reason: String, _ word: String) {
        if reason.isEmpty {
            remark("\(word) without a reason: people see it in ‘torpor events’")
        } else if reason.utf8.count >= Self.longReason {
            remark("\(word) with a reason of 200 bytes, the limit: a longer one is cut off")
        } else if reason.unicodeScalars.contains("\u{FFFD}") {
            remark("\(word) with a reason that is not one line of UTF-8: invalid characters are replaced")
        }
    }

    /// A reason of at least this many bytes may have been cut off within a character, so that its invalid end is not
    /// the policy's mistake.
    private static let longReason = 197

    /// The only kind of event that this kind of advice can answer; nil if the advice can answer several kinds.
    private static func question(of kind: UInt32) -> torpor_policy_event_kind? {
        switch torpor_policy_advice_kind(rawValue: kind) {
        case TORPOR_ADVISE_ORDER: TORPOR_EVENT_EVICTION
        case TORPOR_ADVISE_ADMIT, TORPOR_ADVISE_DELAY, TORPOR_ADVISE_REFUSE: TORPOR_EVENT_LAUNCH
        case TORPOR_ADVISE_RESTART, TORPOR_ADVISE_GIVE_UP: TORPOR_EVENT_ENDED
        default: nil
        }
    }

    private mutating func fault(_ sentence: String, _ example: String? = nil) {
        Self.count(sentence, example, &faults)
    }

    private mutating func remark(_ sentence: String) { Self.count(sentence, nil, &remarks) }

    private static func count(_ sentence: String, _ example: String?, _ list: inout [Finding]) {
        if let index = list.firstIndex(where: { $0.sentence == sentence }) {
            list[index].count += 1
        } else {
            list.append(Finding(sentence: sentence, example: example, count: 1))
        }
    }
}
