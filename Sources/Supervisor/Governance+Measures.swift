import Lifecycle
import Linux
import Processes
import TorporPolicyABI

/// What is measured for policies, and what they can have done to processes.
extension Governance {
    func measure(_ needs: UInt64) {}

    /// What was done, for the event; empty when there is nothing to say.
    func apply(_ state: Goal, to tree: ProcessTree, of app: AppRuntime) -> String { "" }
}
