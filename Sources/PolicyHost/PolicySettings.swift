// SPDX-License-Identifier: Apache-2.0

public import Policies

/// The configuration of a policy.
public struct PolicySettings: Hashable, Sendable {
    /// The policy's name in the configuration.
    public var name: String
    /// The absolute path of the policy's library.
    public var path: String
    /// Whether the policy runs in a process of its own; otherwise it runs in this one.
    public var isIsolated = true
    /// Whether the policy's advice is only reported, not followed.
    public var onlyAdvises = false
    /// The longest time that an answer may take.
    public var deadline: Duration = .milliseconds(50)
    /// The policy's options.
    public var options: [PolicyOption] = []

    /// The limit of a host's address space, in bytes; a Swift runtime needs a tenth of this.
    package static let addressSpace: UInt64 = 768 << 20

    /// Creates settings of a policy without options that runs in a process of its own.
    public init(name: String, path: String) {
        self.name = name
        self.path = path
    }
}

/// The state of a policy.
public enum PolicyState: Hashable, Sendable {
    /// The policy's library is being opened.
    case loading
    /// The policy is in use.
    case ready
    /// The policy failed, and is reloaded after a delay.
    case waiting
    /// The policy is not used, for this reason, until its configuration or its library changes and it is reloaded.
    case refused(String)
    /// The policy failed too often (the reason is the last failure). It is not asked until ``PolicySlot/retryAt``,
    /// or, if that is nil, until a user reloads the policy.
    case quarantined(String)

    /// The state as one word.
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
    /// How often the policy was asked; a question about several events counts once.
    public var questions = 0
    /// Pieces of advice that changed something.
    public var taken = 0
    /// Pieces of advice that changed nothing, since they asked for the current state.
    public var idle = 0
    /// Pieces of advice that broke the rules or came too late.
    public var refused = 0
    /// Pieces of advice that were ignored because the policy changed its mind too often.
    public var damped = 0
    /// Pieces of advice that would have changed something, from a policy with mode `advise`.
    public var told = 0
    /// How many pieces of advice did not apply, because an earlier policy in the chain had given advice about the same
    /// matter, such as the goal of the same app.
    public var overruled = 0
    /// Crashes, late answers, invalid answers and floods of advice.
    public var failures = 0
    /// Late answers while the machine stalled. They do not count as failures.
    public var stalls = 0
    /// How often the policy was reloaded after a failure.
    public var restarts = 0
    /// The times that the policy's answers took.
    public var latency = Latency()
}
