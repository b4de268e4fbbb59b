import Policies
import PolicyHost
import TorporPolicyABI

/// Whoever records what policies are asked, and what they advise.
final class PolicyTraceFeed {
    func tell(_ events: [torpor_policy_event], _ counsels: [(Counsel, CounselOutcome)], _ view: PolicyView) {}
}
