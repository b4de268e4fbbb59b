// SPDX-License-Identifier: Apache-2.0

// The line that exports a policy uses the header's types; it needs no import of its own.
@_exported public import TorporPolicyABI

/// A lifecycle policy: it is told what happens to apps, and advises what should happen next.
///
/// It changes nothing itself: the supervisor follows its advice as far as the rules allow. A single thread calls it,
/// never recursively, and it should answer within microseconds. Equal questions about equal views should get equal
/// answers: use no clock and no random numbers, only the view and what the policy remembers.
///
/// A library has one policy, exported in one line:
///
///     @c(torpor_policy_entry)
///     public func entry(_ abi: UInt32) -> UnsafePointer<torpor_policy>? { Mobile.exported(to: abi) }
public protocol Policy {
    /// Its name, the events that it is asked about, and its options.
    static var description: PolicyDescription { get }

    /// A policy with its options. Unknown options are refused before this is called.
    ///
    /// - Throws: ``PolicyError`` with a sentence that says what to write.
    init(options: Options) throws(PolicyError)

    /// Answers a question.
    ///
    /// - Parameters:
    ///   - event: what happened.
    ///   - view: all apps and the machine. It, and every app from it or from the event, is valid until this returns:
    ///     keep an app's ``App/place``, never an ``App``.
    ///   - advice: collects the advice.
    mutating func decide(_ event: Event, in view: View, advice: inout Advice) -> Verdict
}

/// Whether further policies are asked about the event.
public enum Verdict: Sendable, Hashable {
    /// The policies after this one are asked too, but their advice for the same app in the same matter is ignored.
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
    /// A sentence that begins with the option and says what to write.
    public var description: String

    /// An error.
    ///
    /// - Parameter description: a sentence that begins with the option's key: `max_active must be at least 1`.
    public init(_ description: String) { self.description = description }
}

/// How a policy describes itself.
public struct PolicyDescription: Sendable {
    /// Its name: lower case, no spaces.
    public var name: String
    /// Its version.
    public var version: String
    /// What it does, in a sentence.
    public var summary: String
    /// The events that it is asked about.
    public var events: Events
    /// The measurements that it needs.
    public var needs: Needs
    /// Its options; other options are refused.
    public var options: [OptionDescription]
    /// The earliest version of the policy ABI that it can work with.
    public var minimumABI: UInt32

    /// A description.
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
    /// Its key. A key in the tables of a list is `rules.*.apps`, one in a table with free keys `limits.*`.
    public var key: String
    /// The type of its value: `integer`, `duration`, `list of selectors` …
    public var type: String
    /// The default, as it would be written.
    public var defaultValue: String
    /// What it does, in a sentence.
    public var meaning: String

    /// A description.
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

    /// Takes bits of `TORPOR_EVENT_BIT`.
    public init(rawValue: UInt64) { self.rawValue = rawValue }

    private init(_ kind: torpor_policy_event_kind) { rawValue = 1 << UInt64(kind.rawValue) }

    /// ``Event/started``.
    public static let started = Events(TORPOR_EVENT_STARTED)
    /// ``Event/appsChanged``.
    public static let appsChanged = Events(TORPOR_EVENT_APPS)
    /// ``Event/stateChanged(_:from:to:)``.
    public static let stateChanged = Events(TORPOR_EVENT_STATE)
    /// ``Event/goalChanged(_:from:to:)``.
    public static let goalChanged = Events(TORPOR_EVENT_GOAL)
    /// ``Event/timeUsed(_:)``.
    public static let timeUsed = Events(TORPOR_EVENT_TIME_USED)
    /// ``Event/launch(_:_:)``.
    public static let launch = Events(TORPOR_EVENT_LAUNCH)
    /// ``Event/ended(_:_:restartsAfter:)``.
    public static let ended = Events(TORPOR_EVENT_ENDED)
    /// ``Event/timer``.
    public static let timer = Events(TORPOR_EVENT_TIMER)
    /// ``Event/pressureChanged(from:to:)``.
    public static let pressureChanged = Events(TORPOR_EVENT_PRESSURE)
    /// ``Event/eviction``.
    public static let eviction = Events(TORPOR_EVENT_EVICTION)
}

/// Measurements that the supervisor makes from time to time. What no policy needs is not measured.
public struct Needs: OptionSet, Sendable, Hashable {
    /// `TORPOR_NEEDS_…`.
    public let rawValue: UInt64

    /// Takes bits of `TORPOR_NEEDS_…`.
    public init(rawValue: UInt64) { self.rawValue = rawValue }

    /// ``App/memory``.
    public static let memory = Needs(rawValue: 1 << 0)
    /// ``App/processorTime`` and ``App/processorShare``.
    public static let processor = Needs(rawValue: 1 << 1)
    /// ``App/connections`` and ``App/lastTraffic``.
    public static let connections = Needs(rawValue: 1 << 2)
    /// The measurements of ``Machine``.
    public static let machine = Needs(rawValue: 1 << 3)
}
