// SPDX-License-Identifier: Apache-2.0

public import Policies

/// What the configuration says of a policy.
public struct PolicySettings: Hashable, Sendable {
    /// Its name in the configuration.
    public var name: String
    /// The library, absolute.
    public var path: String
    /// In a process of its own; otherwise in this one.
    public var isIsolated = true
    /// Its advice is told and not taken.
    public var onlyAdvises = false
    /// The longest time that an answer may take.
    public var deadline: Duration = .milliseconds(50)
    /// What it is given.
    public var options: [PolicyOption] = []

    /// A policy without options in a process of its own.
    public init(name: String, path: String) {
        self.name = name
        self.path = path
    }
}

/// How a policy is doing.
public enum PolicyState: Hashable, Sendable {
    /// Its library is being opened.
    case loading
    /// It is asked.
    case ready
    /// It failed, and is loaded again after a delay.
    case waiting
    /// It is not used, for this reason, until its configuration or its library changes and it is loaded again.
    case refused(String)
    /// It failed too often, the last time like this, and is left out for a while: until ``PolicySlot/retryAt``, and where
    /// that is nil until a person loads it again.
    case quarantined(String)

    /// One word.
    public var name: String {
        switch self {
        case .loading: "loading"
        case .ready: "ready"
        case .waiting: "waiting"
        case .refused: "refused"
        case .quarantined: "quarantined"
        }
    }
}

/// What a policy has done so far.
public struct PolicyStatistics: Sendable {
    /// How often it was asked; about several events at once counts once.
    public var questions = 0
    /// Pieces of advice that changed something.
    public var taken = 0
    /// Pieces of advice that asked for what was so already.
    public var idle = 0
    /// Pieces of advice against the rules, or that came too late.
    public var refused = 0
    /// Pieces of advice that were not followed since the policy changed its mind too often.
    public var damped = 0
    /// Pieces of advice that would have changed something, of a policy that only advises.
    public var told = 0
    /// Pieces of advice that a policy before it in the chain had forestalled.
    public var overruled = 0
    /// Crashes, late answers, nonsense and floods.
    public var failures = 0
    /// Late answers while the machine stalled, which are no failures.
    public var stalls = 0
    /// How often it was loaded again after a failure.
    public var restarts = 0
    /// How long its answers took.
    public var latency = Latency()
}
