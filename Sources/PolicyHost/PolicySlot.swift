// SPDX-License-Identifier: Apache-2.0

import EventLoop
import Linux
public import Policies
import TorporPolicyABI

/// A policy's place in the chain: its state, and the runtime that asks it.
public final class PolicySlot {
    /// The policy's configuration.
    public let settings: PolicySettings
    /// The policy's state.
    public internal(set) var state: PolicyState = .loading
    /// The policy's description of itself; nil before the policy was first loaded.
    public internal(set) var description: PolicyDescription?
    /// The policy's counters.
    public internal(set) var statistics = PolicyStatistics()
    /// The policy's last failure, in a sentence.
    public internal(set) var lastFailure: String?
    /// The process ID of the policy's process; nil if it has none.
    public var pid: Int32? { runtime?.pid }
    /// When the policy is reloaded (monotonic clock); nil if no reload is due.
    public internal(set) var retryAt: Duration?
    /// When the policy wants to be asked again (monotonic clock); nil if it has not requested that.
    public internal(set) var asksAgainAt: Duration?

    var runtime: (any PolicyRuntime)?
    /// The file of the library that was last loaded, as it was then.
    var file: PolicyFile?
    var ledger = FailureLedger()
    /// Timers for reloading the policy and for asking it again.
    var retryTimer: TimerSource?
    var askTimer: TimerSource?
    /// Increases each time the policy is loaded: distinguishes the current runtime from earlier ones.
    var generation = 0

    /// The policy's deadline in nanoseconds, to compare with the time that an answer took.
    let deadlineNanoseconds: Int64

    init(_ settings: PolicySettings) {
        self.settings = settings
        let microseconds = settings.deadline.microseconds
        deadlineNanoseconds = microseconds.multipliedReportingOverflow(by: 1000).overflow ? .max : microseconds * 1000
    }

    /// Whether the policy is asked about events of this kind.
    public func wants(_ kind: UInt32) -> Bool {
        guard state == .ready, let description, kind < 64 else { return false }
        return description.events >> UInt64(kind) & 1 != 0
    }

    func close() {
        generation += 1
        runtime?.close()
        runtime = nil
        retryTimer = nil
        retryAt = nil
        askTimer = nil
        asksAgainAt = nil
    }
}

/// Asks a policy questions, whether it runs in this process or in its own.
protocol PolicyRuntime: AnyObject {
    /// The process ID of the policy's process; nil if the policy runs in this process.
    var pid: Int32? { get }
    /// Asks a question. `completion` is called exactly once, at once or later, but never after ``close()``. Only one
    /// question may be asked at a time. If the callback comes at once, the caller checks whether the answer was in
    /// time.
    func ask(
        _ events: [torpor_policy_event],
        limit: Int,
        _ completion: @escaping (Result<PolicyAnswer, PolicyFailure>) -> Void
    )
    /// Ends the policy.
    func close()
}

/// A policy in this process.
final class LibraryRuntime: PolicyRuntime {
    private let library: PolicyLibrary
    private let view: PolicyView
    private let guarding: (Bool) -> Void

    var pid: Int32? { nil }

    /// `guarding` is called with true before the policy's code runs, and with false after it.
    init(_ library: PolicyLibrary, _ view: PolicyView, guarding: @escaping (Bool) -> Void) {
        self.library = library
        self.view = view
        self.guarding = guarding
    }

    func ask(
        _ events: [torpor_policy_event],
        limit: Int,
        _ completion: @escaping (Result<PolicyAnswer, PolicyFailure>) -> Void
    ) {
        guarding(true)
        let result = Result { () throws(PolicyFailure) in
            try events.withUnsafeBufferPointer { events throws(PolicyFailure) in
                try library.ask(events, of: view, limit: limit)
            }
        }
        guarding(false)
        completion(result)
    }

    func close() {}
}
