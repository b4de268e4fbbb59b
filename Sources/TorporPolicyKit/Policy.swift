// SPDX-License-Identifier: Apache-2.0

// Whoever writes a policy needs the header's types for the line that exports it, and no import of its own.
@_exported public import TorporPolicyABI

/// A lifecycle policy: it is told what happens to apps, and says what should become of them.
///
/// It changes nothing itself: the supervisor takes its advice as far as the rules allow. One thread calls it, never
/// twice at once, and it should answer within microseconds. The same questions about the same view should get the same
/// answers: no clock, no random numbers, nothing but what the view says and what the policy remembers.
///
/// A library has one policy, exported in one line:
///
///     @c(torpor_policy_entry)
///     public func entry(_ abi: UInt32) -> UnsafePointer<torpor_policy>? { Mobile.exported(to: abi) }
public protocol Policy {
    /// What it is called, what it is asked about, and what can be configured.
    static var description: PolicyDescription { get }

    /// A policy with its options. Options that are not described are refused before this is called.
    ///
    /// - Throws: ``PolicyError`` with a sentence that says what to write.
    init(options: Options) throws(PolicyError)

    /// Answers a question.
    ///
    /// - Parameters:
    ///   - event: what happened.
    ///   - view: all apps and the machine. It, and every app from it or from the event, is good until this returns:
    ///     keep an app's ``App/place``, never an ``App``.
    ///   - advice: takes what should be done.
    mutating func decide(_ event: Event, in view: View, advice: inout Advice) -> Verdict
}

/// Who is asked about the event next.
public enum Verdict: Sendable, Hashable {
    /// The policies behind this one are asked too; what they advise for the same app and in the same matter as this one
    /// does not count.
    case `continue`
    /// Nobody else is asked about this event.
    case decided

    var code: Int32 {
        switch self {
        case .continue: Int32(bitPattern: TORPOR_CONTINUE.rawValue)
        case .decided: Int32(bitPattern: TORPOR_DECIDED.rawValue)
        }
    }
}

/// What is wrong with a policy's options.
public struct PolicyError: Error, Sendable, Hashable, CustomStringConvertible {
    /// A sentence that begins with the option and says what to write.
    public var description: String

    /// An error.
    ///
    /// - Parameter description: a sentence that begins with the option's key: `max_active must be at least 1`.
    public init(_ description: String) { self.description = description }
}

/// What a policy says about itself.
public struct PolicyDescription: Sendable {
    /// Its name: lower case, no spaces.
    public var name: String
    /// Its version.
    public var version: String
    /// What it does, in a sentence.
    public var summary: String
    /// What it is asked about, and nothing else.
    public var events: Events
    /// What is measured for it.
    public var needs: Needs
    /// Its options; others are refused.
    public var options: [OptionDescription]
    /// The earliest version of the interface with which it can do its work.
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

/// An option as people are told of it.
public struct OptionDescription: Sendable, Hashable {
    /// Its key. A key within the tables of a list is `rules.*.apps`, one of a table whose keys are free `limits.*`.
    public var key: String
    /// What is written there: `integer`, `duration`, `list of selectors` …
    public var type: String
    /// What counts where it is not configured, as it would be written.
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

/// What a policy is asked about.
public struct Events: OptionSet, Sendable, Hashable {
    /// `TORPOR_EVENT_BIT` of each.
    public let rawValue: UInt64

    /// From `TORPOR_EVENT_BIT`.
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

/// What is measured for a policy now and then. What no policy needs is not measured.
public struct Needs: OptionSet, Sendable, Hashable {
    /// `TORPOR_NEEDS_…`.
    public let rawValue: UInt64

    /// From `TORPOR_NEEDS_…`.
    public init(rawValue: UInt64) { self.rawValue = rawValue }

    /// ``App/memory``.
    public static let memory = Needs(rawValue: 1 << 0)
    /// ``App/processorTime`` and ``App/processorShare``.
    public static let processor = Needs(rawValue: 1 << 1)
    /// ``App/connections`` and ``App/lastTraffic``.
    public static let connections = Needs(rawValue: 1 << 2)
    /// What of ``Machine`` is measured.
    public static let machine = Needs(rawValue: 1 << 3)
}
