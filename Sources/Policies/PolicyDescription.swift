// SPDX-License-Identifier: Apache-2.0

/// What a policy says about itself, and how it is kept from doing harm.
public struct PolicyDescription: Hashable, Sendable {
    /// Its name, 63 bytes at most, never empty.
    public var name: String
    /// Its version, 63 bytes at most.
    public var version: String
    /// What it does, in a sentence.
    public var summary: String
    /// The version of the policy interface that it was compiled with.
    public var abi: UInt32
    /// `TORPOR_EVENT_BIT` of those that it is asked about.
    public var events: UInt64
    /// `TORPOR_NEEDS_…`: what is measured for it.
    public var needs: UInt64
    /// The options that it knows, in its order.
    public var options: [PolicyOptionDescription]
    /// What keeps it from doing harm; nothing in this process.
    public var confinement: PolicyConfinement

    /// A description.
    public init(
        name: String,
        version: String,
        summary: String,
        abi: UInt32,
        events: UInt64,
        needs: UInt64,
        options: [PolicyOptionDescription] = [],
        confinement: PolicyConfinement = []
    ) {
        self.name = name
        self.version = version
        self.summary = summary
        self.abi = abi
        self.events = events
        self.needs = needs
        self.options = options
        self.confinement = confinement
    }
}

/// An option that a policy knows, in its own words.
public struct PolicyOptionDescription: Hashable, Sendable {
    /// Its name.
    public var key: String
    /// What is written there: `integer`, `duration` …
    public var type: String
    /// What counts when it is not configured.
    public var defaultValue: String
    /// What it does.
    public var meaning: String

    /// A description.
    public init(key: String, type: String, defaultValue: String, meaning: String) {
        self.key = key
        self.type = type
        self.defaultValue = defaultValue
        self.meaning = meaning
    }

    /// From the texts of a policy, four to an option; what is left over at the end is passed over.
    public static func options(from texts: [String]) -> [PolicyOptionDescription] {
        stride(from: 0, to: texts.count - texts.count % 4, by: 4).map {
            PolicyOptionDescription(
                key: texts[$0],
                type: texts[$0 + 1],
                defaultValue: texts[$0 + 2],
                meaning: texts[$0 + 3]
            )
        }
    }
}

/// What keeps a policy in a process of its own from doing harm, as the host process says that it was able to set up.
public struct PolicyConfinement: OptionSet, Hashable, Sendable {
    /// `TORPOR_CONFINED_…`.
    public let rawValue: UInt32
    /// `TORPOR_CONFINED_…`.
    public init(rawValue: UInt32) { self.rawValue = rawValue }
    /// Landlock: the files that it may open.
    public static let files = PolicyConfinement(rawValue: 1 << 0)
    /// Seccomp: the system calls that it may make.
    public static let systemCalls = PolicyConfinement(rawValue: 1 << 1)
    /// It runs as another user than the supervisor.
    public static let user = PolicyConfinement(rawValue: 1 << 2)
}
