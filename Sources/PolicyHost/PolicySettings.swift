// SPDX-License-Identifier: Apache-2.0

public import Policies

/// What the configuration says of a policy.
public struct PolicySettings: Hashable, Sendable {
    /// Its name in the configuration.
    public var name: String
    /// The absolute path of the library.
    public var path: String
    /// Whether it runs in its own process; otherwise in this one.
    public var isIsolated = true
    /// Whether its advice is only reported, not followed.
    public var onlyAdvises = false
    /// The longest time that an answer may take.
    public var deadline: Duration = .milliseconds(50)
    /// Its options.
    public var options: [PolicyOption] = []

    /// A policy without options in a process of its own.
    public init(name: String, path: String) {
        self.name = name
        self.path = path
    }
}

/// The state of a policy.
public enum PolicyState: Hashable, Sendable {
    /// Its library is being opened.
    case loading
    /// It is in use.
    case ready
    /// It failed, and is loaded again after a delay.
    case waiting
    /// It is not used, for this reason, until its configuration or its library changes and it is loaded again.
    case refused(String)
    /// It failed too often (the reason is the last failure) and is not asked until ``PolicySlot/retryAt``; if that is
    /// nil, until a user loads it again.
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

/// The counters of a policy.
public struct PolicyStatistics: Sendable {
    /// How often it was asked; a question about several events counts once.
    public var questions = 0
    /// Pieces of advice that changed something.
    public var taken = 0
    /// Pieces of advice that asked for what was already so.
    public var idle = 0
    /// Pieces of advice that broke the rules or came too late.
    public var refused = 0
    /// Pieces of advice that were ignored because the policy changed its mind too often.
    public var damped = 0
    /// Pieces of advice that would have changed something, from a policy with mode `advise`.
    public var told = 0
    /// Pieces of advice that an earlier policy of the chain had forestalled.
    public var overruled = 0
    /// Crashes, late answers, invalid answers and floods of advice.
    public var failures = 0
    /// Late answers while the machine stalled, which do not count as failures.
    public var stalls = 0
    /// How often it was loaded again after a failure.
    public var restarts = 0
    /// How long its answers took.
    public var latency = Latency()
}
