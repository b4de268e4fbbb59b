// SPDX-License-Identifier: Apache-2.0

import EventLoop
import Linux
public import Policies
import TorporPolicyABI

/// A policy's place in the chain: its state, and the runtime that asks it.
public final class PolicySlot {
    /// What the configuration says of it.
    public let settings: PolicySettings
    /// How it is doing.
    public internal(set) var state: PolicyState = .loading
    /// The policy's description of itself; nil before it was first loaded.
    public internal(set) var description: PolicyDescription?
    /// Its counters.
    public internal(set) var statistics = PolicyStatistics()
    /// The last failure, in a sentence.
    public internal(set) var lastFailure: String?
    /// The process ID; nil if it has no process.
    public var pid: Int32? { runtime?.pid }
    /// When it is loaded again (monotonic clock).
    public internal(set) var retryAt: Duration?
    /// When it wants to be asked again (monotonic clock).
    public internal(set) var asksAgainAt: Duration?

    var runtime: (any PolicyRuntime)?
    var ledger = FailureLedger()
    /// Timers for loading it again and for asking it again.
    var retryTimer: TimerSource?
    var askTimer: TimerSource?
    /// Distinguishes the current runtime from one that was replaced.
    var generation = 0

    /// Its deadline in nanoseconds, to compare with the time of answers.
    let deadlineNanoseconds: Int64

    init(_ settings: PolicySettings) {
        self.settings = settings
        let microseconds = settings.deadline.microseconds
        deadlineNanoseconds = microseconds.multipliedReportingOverflow(by: 1000).overflow ? .max : microseconds * 1000
    }

    /// Whether it is asked about events of that kind.
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

/// Asks a policy: in this process, or in its own.
protocol PolicyRuntime: AnyObject {
    /// The process ID; nil for this process.
    var pid: Int32? { get }
    /// Asks a question and calls back once, at once or later; never after ``close()``. One question at a time. If the
    /// answer comes at once, the caller checks whether it was in time.
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

    /// `guarding` is called when a question begins and when it ends: in between, the policy's code runs.
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
