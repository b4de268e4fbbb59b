// SPDX-License-Identifier: Apache-2.0

public import Policies
public import TorporPolicyABI

/// A piece of advice on its way to be taken.
public struct PolicyDecision: Sendable {
    /// The policy that gives it, by its name in the configuration.
    public let policy: String
    /// What it answers.
    public let event: torpor_policy_event
    /// What it says.
    public let advice: PolicyAdvice
    /// Whether it is only told, and not taken.
    public let onlyAdvises: Bool
    /// The policy before it in the chain that has said something else in the same matter.
    public let overruledBy: String?
}

/// What became of a piece of advice.
public enum CounselOutcome: Hashable, Sendable {
    /// It changed something.
    case taken
    /// It is so already.
    case idle
    /// It is not taken, for this reason (a sentence without a subject).
    case refused(String)
    /// The policy changed its mind too often.
    case damped
    /// It would change something, and is told and not taken.
    case told
}

/// What two pieces of advice have to agree on: of those in one matter about one app the first counts.
struct Matter: Hashable, Sendable {
    let app: UInt32
    let subject: Subject

    enum Subject: Hashable, Sendable {
        case goal, grant, order, admission, restart, profile
    }

    /// nil for what nobody else has a say in.
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
