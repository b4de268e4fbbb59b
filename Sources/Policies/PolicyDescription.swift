// SPDX-License-Identifier: Apache-2.0

/// A policy's description of itself, and its confinement.
public struct PolicyDescription: Hashable, Sendable {
    /// The policy's name, 63 bytes at most, never empty.
    public var name: String
    /// The policy's version, 63 bytes at most.
    public var version: String
    /// What the policy does, as a sentence.
    public var summary: String
    /// The version of the policy ABI that the policy was compiled for.
    public var abi: UInt32
    /// The events that the policy is asked about: the `TORPOR_EVENT_BIT` of each.
    public var events: UInt64
    /// What torpord must measure for the policy: bits `TORPOR_NEEDS_…`.
    public var needs: UInt64
    /// The options that the policy knows, in the order in which the policy lists them.
    public var options: [PolicyOptionDescription]
    /// What prevents the policy from doing harm; empty for a policy in this process.
    public var confinement: PolicyConfinement

    /// Creates a description from its parts.
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

/// An option of a policy, as the policy describes it.
public struct PolicyOptionDescription: Hashable, Sendable {
    /// The option's name.
    public var key: String
    /// The type of the option's value: `integer`, `duration` …
    public var type: String
    /// The option's value if it is not configured.
    public var defaultValue: String
    /// What the option does.
    public var meaning: String

    /// Creates a description of an option from its parts.
    public init(key: String, type: String, defaultValue: String, meaning: String) {
        self.key = key
        self.type = type
        self.defaultValue = defaultValue
        self.meaning = meaning
    }

    /// Parses a policy's texts, four per option; an incomplete last group is ignored.
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

/// What prevents a policy in its own process from doing harm, as far as the host process could set this up.
public struct PolicyConfinement: OptionSet, Hashable, Sendable {
    /// The bits `TORPOR_CONFINED_…`.
    public let rawValue: UInt32
    /// Wraps the bits `TORPOR_CONFINED_…`.
    public init(rawValue: UInt32) { self.rawValue = rawValue }
    /// Landlock limits the files that the policy may open.
    public static let files = PolicyConfinement(rawValue: 1 << 0)
    /// Seccomp limits the system calls that the policy may make.
    public static let systemCalls = PolicyConfinement(rawValue: 1 << 1)
    /// The policy runs as a different user than the supervisor.
    public static let user = PolicyConfinement(rawValue: 1 << 2)
}
