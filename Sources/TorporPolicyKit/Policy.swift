// SPDX-License-Identifier: Apache-2.0

// Re-export the C header: the line that exports a policy uses its types, and then needs no other import.
@_exported public import TorporPolicyABI

/// A lifecycle policy: the supervisor tells it what happens to apps, and it advises what should happen next.
///
/// A policy changes nothing itself: the supervisor follows its advice as far as the rules allow. A single thread
/// calls a policy, never recursively, and the policy should answer within microseconds. Equal questions about equal
/// views should get equal answers: use no clock and no random numbers, only the view and what the policy has stored
/// itself.
///
/// A library exports one policy, in one line:
///
///     @c(torpor_policy_entry)
///     public func entry(_ abi: UInt32) -> UnsafePointer<torpor_policy>? { Mobile.exported(to: abi) }
public protocol Policy {
    /// The policy's name, the events that it is asked about, and its options.
    static var description: PolicyDescription { get }

    /// Creates the policy with its options. Options that the policy's `description` does not contain were refused
    /// before.
    ///
    /// - Throws: ``PolicyError`` with a sentence that says what to write.
    init(options: Options) throws(PolicyError)

    /// Answers a question.
    ///
    /// - Parameters:
    ///   - event: what happened, or the question.
    ///   - view: all apps and the machine. The view, and every ``App`` from the view or the event, is valid until this
    ///     function returns: keep an app's ``App/place``, never the ``App``.
    ///   - advice: collects the advice.
    mutating func decide(_ event: Event, in view: View, advice: inout Advice) -> Verdict
}

/// Whether further policies are asked about the event.
public enum Verdict: Sendable, Hashable {
    /// The policies after this one are asked too. If both advise about the same matter of an app, such as its goal,
    /// only the advice of this policy counts.
    case `continue`
    /// No other policy is asked about this event.
    case decided

    var code: Int32 {
        switch self {
        case .continue: Int32(bitPattern: TORPOR_CONTINUE.rawValue)
        case .decided: Int32(bitPattern: TORPOR_DECIDED.rawValue)
        }
    }
}

/// An error in a policy's options.
public struct PolicyError: Error, Sendable, Hashable, CustomStringConvertible {
    /// A sentence that begins with the option's key and says what to write.
    public var description: String

    /// Creates an error from a sentence.
    ///
    /// - Parameter description: a sentence that begins with the option's key, such as `max_active must be at least
    ///   1`.
    public init(_ description: String) { self.description = description }
}

/// How a policy describes itself.
public struct PolicyDescription: Sendable {
    /// The policy's name: lower case, no spaces.
    public var name: String
    /// The policy's version.
    public var version: String
    /// What the policy does, in a sentence.
    public var summary: String
    /// The events that the policy is asked about.
    public var events: Events
    /// The measurements that the policy needs.
    public var needs: Needs
    /// The policy's options; other options are refused.
    public var options: [OptionDescription]
    /// The earliest version of the policy ABI that the policy can work with.
    public var minimumABI: UInt32

    /// Creates a description from its parts.
    public init(
        name: String,
        version: String,
        summary: String,
        events: Events,
        needs: Needs = [],
        options: [OptionDescription] = [],
        minimumABI: UInt32 = 1
    ) {
        self.name = name
        self.version = version
        self.summary = summary
        self.events = events
        self.needs = needs
        self.options = options
        self.minimumABI = minimumABI
    }
}

/// The description of an option, for users.
public struct OptionDescription: Sendable, Hashable {
    /// The option's key. In the tables of a list it is written as `rules.*.apps`, in a table with free keys as
    /// `limits.*`.
    public var key: String
    /// The type of the option's value: `integer`, `duration`, `list of selectors` …
    public var type: String
    /// The default value, as a user would write it.
    public var defaultValue: String
    /// What the option does, in a sentence.
    public var meaning: String

    /// Creates a description from its parts.
    public init(_ key: String, _ type: String, default defaultValue: String, _ meaning: String) {
        self.key = key
        self.type = type
        self.defaultValue = defaultValue
        self.meaning = meaning
    }
}

/// The events that a policy is asked about.
public struct Events: OptionSet, Sendable, Hashable {
    /// The `TORPOR_EVENT_BIT` of each event.
    public let rawValue: UInt64

    /// Creates a set from bits of `TORPOR_EVENT_BIT`.
    public init(rawValue: UInt64) { self.rawValue = rawValue }

    private init(_ kind: torpor_policy_event_kind) { rawValue = 1 << UInt64(kind.rawValue) }

    /// The policy is asked about ``Event/started``.
    public static let started = Events(TORPOR_EVENT_STARTED)
    /// The policy is asked about ``Event/appsChanged``.
    public static let appsChanged = Events(TORPOR_EVENT_APPS)
    /// The policy is asked about ``Event/stateChanged(_:from:to:)``.
    public static let stateChanged = Events(TORPOR_EVENT_STATE)
    /// The policy is asked about ``Event/goalChanged(_:from:to:)``.
    public static let goalChanged = Events(TORPOR_EVENT_GOAL)
    /// The policy is asked about ``Event/timeUsed(_:)``.
    public static let timeUsed = Events(TORPOR_EVENT_TIME_USED)
    /// The policy is asked about ``Event/launch(_:_:)``.
    public static let launch = Events(TORPOR_EVENT_LAUNCH)
    /// The policy is asked about ``Event/ended(_:_:restartsAfter:)``.
    public static let ended = Events(TORPOR_EVENT_ENDED)
    /// The policy is asked about ``Event/timer``.
    public static let timer = Events(TORPOR_EVENT_TIMER)
    /// The policy is asked about ``Event/pressureChanged(from:to:)``.
    public static let pressureChanged = Events(TORPOR_EVENT_PRESSURE)
    /// The policy is asked about ``Event/eviction``.
    public static let eviction = Events(TORPOR_EVENT_EVICTION)
}

/// Measurements that the supervisor makes from time to time, if a policy needs them.
public struct Needs: OptionSet, Sendable, Hashable {
    /// The bits `TORPOR_NEEDS_…`.
    public let rawValue: UInt64

    /// Creates a set from bits of `TORPOR_NEEDS_…`.
    public init(rawValue: UInt64) { self.rawValue = rawValue }

    /// The supervisor measures ``App/memory``.
    public static let memory = Needs(rawValue: 1 << 0)
    /// The supervisor measures ``App/processorTime`` and ``App/processorPermille``.
    public static let processor = Needs(rawValue: 1 << 1)
    /// The supervisor measures ``App/connections`` and ``App/lastTraffic``.
    public static let connections = Needs(rawValue: 1 << 2)
    /// The measurements of ``Machine``.
    public static let machine = Needs(rawValue: 1 << 3)
}
