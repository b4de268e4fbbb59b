// SPDX-License-Identifier: Apache-2.0

import EventLoop
import Linux
public import Policies
import TorporPolicyABI

/// A policy's place in the chain: how it is doing, and what asks it.
public final class PolicySlot {
    /// What the configuration says of it.
    public let settings: PolicySettings
    /// How it is doing.
    public internal(set) var state: PolicyState = .loading
    /// What it says about itself; nil before it was loaded once.
    public internal(set) var description: PolicyDescription?
    /// What it has done.
    public internal(set) var statistics = PolicyStatistics()
    /// How it failed last, in a sentence.
    public internal(set) var lastFailure: String?
    /// The number of its process; nil while there is none.
    public var pid: Int32? { runtime?.pid }
    /// When it is loaded again (monotonic).
    public internal(set) var retryAt: Duration?
    /// When it wants to be asked again (monotonic).
    public internal(set) var asksAgainAt: Duration?

    var runtime: (any PolicyRuntime)?
    var ledger = FailureLedger()
    /// For loading again, and for asking again.
    var retryTimer: TimerSource?
    var askTimer: TimerSource?
    /// Tells a runtime that was replaced from the present one.
    var generation = 0

    /// Its deadline, as answers are timed.
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

/// What asks a policy: in this process, or in one of its own.
protocol PolicyRuntime: AnyObject {
    /// The number of its process, nil for this one.
    var pid: Int32? { get }
    /// Asks, and calls back once, at once or later; never after ``close()``. One question at a time. Whether an answer
    /// that is given at once was given in time, is the caller's to judge.
    func ask(
        _ events: [torpor_policy_event],
        limit: Int,
        _ completion: @escaping (Result<PolicyAnswer, PolicyFailure>) -> Void
    )
    /// Ends it.
    func close()
}

/// A policy in this process.
final class LibraryRuntime: PolicyRuntime {
    private let library: PolicyLibrary
    private let view: PolicyView
    private let guarding: (Bool) -> Void

    var pid: Int32? { nil }

    /// `guarding` is told when a question begins and when it is over: what happens in between is the policy's doing.
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
