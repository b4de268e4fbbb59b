// SPDX-License-Identifier: Apache-2.0

public import Policies
public import TorporPolicyABI

/// A piece of advice that is about to be applied.
public struct PolicyDecision: Sendable {
    /// The name, in the configuration, of the policy that gives the advice.
    public let policy: String
    /// The event that the advice answers.
    public let event: torpor_policy_event
    /// The policy's advice.
    public let advice: PolicyAdvice
    /// Whether the advice is only reported and not followed, since the policy's mode is `advise`.
    public let onlyAdvises: Bool
    /// The name of an earlier policy in the chain, whose advice in the same matter applies instead; nil if there is
    /// none.
    public let overruledBy: String?
}

/// The outcome of a piece of advice.
public enum CounselOutcome: Hashable, Sendable {
    /// The advice changed something.
    case taken
    /// The advice changed nothing, since it asked for the current state.
    case idle
    /// The advice is not followed, for this reason (a sentence without a subject).
    case refused(String)
    /// The advice is not followed, since the policy changed its mind too often.
    case damped
    /// The advice would change something, but is only reported.
    case told
}

/// What a piece of advice decides about an app, such as its goal or its restart. If several policies advise about one
/// app in the same matter, only the first advice is followed.
struct Matter: Hashable, Sendable {
    let app: UInt32
    let subject: Subject

    enum Subject: Hashable, Sendable {
        case goal, grant, order, admission, restart, profile
    }

    /// The matter of `advice`; nil if the advice cannot conflict with other advice.
    init?(_ advice: PolicyAdvice) {
        app = advice.app
        switch advice.kind {
        case TORPOR_ADVISE_GOAL.rawValue: subject = .goal
        case TORPOR_ADVISE_GRANT.rawValue: subject = .grant
        case TORPOR_ADVISE_ORDER.rawValue: subject = .order
        case TORPOR_ADVISE_ADMIT.rawValue, TORPOR_ADVISE_DELAY.rawValue, TORPOR_ADVISE_REFUSE.rawValue:
            subject = .admission
        case TORPOR_ADVISE_RESTART.rawValue, TORPOR_ADVISE_GIVE_UP.rawValue: subject = .restart
        case TORPOR_ADVISE_PROFILE.rawValue: subject = .profile
        default: return nil
        }
    }
}
