// SPDX-License-Identifier: Apache-2.0

public import Policies
public import TorporPolicyABI

/// A piece of advice that is about to be applied.
public struct PolicyDecision: Sendable {
    /// The policy that gives it, by its name in the configuration.
    public let policy: String
    /// The event that it answers.
    public let event: torpor_policy_event
    /// The advice itself.
    public let advice: PolicyAdvice
    /// Whether it is only reported, not followed.
    public let onlyAdvises: Bool
    /// The earlier policy of the chain whose different advice in the same matter counts.
    public let overruledBy: String?
}

/// The outcome of a piece of advice.
public enum CounselOutcome: Hashable, Sendable {
    /// It changed something.
    case taken
    /// It is already so.
    case idle
    /// It is not followed, for this reason (a sentence without a subject).
    case refused(String)
    /// The policy changed its mind too often.
    case damped
    /// It would change something, but is only reported.
    case told
}

/// The subject in which advice can conflict: only the first advice about one app in one matter counts.
struct Matter: Hashable, Sendable {
    let app: UInt32
    let subject: Subject

    enum Subject: Hashable, Sendable {
        case goal, grant, order, admission, restart, profile
    }

    /// nil for advice that cannot conflict.
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
