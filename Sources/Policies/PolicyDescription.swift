// SPDX-License-Identifier: Apache-2.0

/// A policy's description of itself, and its confinement.
public struct PolicyDescription: Hashable, Sendable {
    /// Its name, 63 bytes at most, never empty.
    public var name: String
    /// Its version, 63 bytes at most.
    public var version: String
    /// What it does, as a sentence.
    public var summary: String
    /// The version of the policy ABI that it was compiled for.
    public var abi: UInt32
    /// The `TORPOR_EVENT_BIT` of each event that it is asked about.
    public var events: UInt64
    /// `TORPOR_NEEDS_…`: what must be measured for it.
    public var needs: UInt64
    /// The options that it knows, in the order in which it lists them.
    public var options: [PolicyOptionDescription]
    /// What prevents it from doing harm; empty for a policy in this process.
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

/// An option that a policy knows, as it describes it.
public struct PolicyOptionDescription: Hashable, Sendable {
    /// Its name.
    public var key: String
    /// The type of its value: `integer`, `duration` …
    public var type: String
    /// The value if it is not configured.
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

    /// Parses a policy's texts, four per option; an incomplete rest is ignored.
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

/// What prevents a policy in its own process from doing harm, as far as the host process could set it up.
public struct PolicyConfinement: OptionSet, Hashable, Sendable {
    /// `TORPOR_CONFINED_…`.
    public let rawValue: UInt32
    /// `TORPOR_CONFINED_…`.
    public init(rawValue: UInt32) { self.rawValue = rawValue }
    /// Landlock limits the files that it may open.
    public static let files = PolicyConfinement(rawValue: 1 << 0)
    /// Seccomp limits the system calls that it may make.
    public static let systemCalls = PolicyConfinement(rawValue: 1 << 1)
    /// It runs as a different user than the supervisor.
    public static let user = PolicyConfinement(rawValue: 1 << 2)
}
