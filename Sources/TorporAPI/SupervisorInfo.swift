// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// Which torpord answers: the reply of Describe.
public struct SupervisorInfo: Hashable, Sendable {
    /// Its version, such as `0.1.0`.
    public var version: String
    /// How many torpords its keeper has started, this one included.
    public var instance: Int64
    /// Its process.
    public var pid: Int32
    /// How many apps it supervises.
    public var apps: Int64
    /// `starting` until what is launched at the start was launched, `running`, or `ending`; nil from one that is older
    /// than this field.
    public var phase: String?
    /// Why the last upgrade came to nothing, in a sentence; nil when there was none or it succeeded.
    public var upgradeFailure: String?
    /// Why the configuration on disk is not the one in force, in a sentence; nil when it was valid when it was read last.
    public var configurationFailure: String?
    /// What is not well with what torpord keeps: the database, the apps' logs; a sentence for each.
    public var troubles: [String] = []

    /// Makes one from its parts.
    public init(
        version: String,
        instance: Int64,
        pid: Int32,
        apps: Int64,
        phase: String? = nil,
        upgradeFailure: String? = nil,
        configurationFailure: String? = nil
    ) {
        self.version = version
        self.instance = instance
        self.pid = pid
        self.apps = apps
        self.phase = phase
        self.upgradeFailure = upgradeFailure
        self.configurationFailure = configurationFailure
    }

    /// Reads it from its object.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        version = try fields.string("version")
        instance = try fields.int("instance")
        pid = try fields.optionalInt32("pid") ?? 0
        apps = try fields.int("apps")
        phase = try fields.optionalString("phase")
        upgradeFailure = try fields.optionalString("upgrade_failure")
        configurationFailure = try fields.optionalString("configuration_failure")
        troubles = try fields.strings("troubles")
    }

    /// It as an object.
    public var json: JSON {
        [
            "version": .string(version), "instance": .int(instance), "pid": .int(Int64(pid)), "apps": .int(apps),
            "phase": .optional(phase), "upgrade_failure": .optional(upgradeFailure),
            "configuration_failure": .optional(configurationFailure),
            "troubles": .strings(troubles),
        ]
    }

    /// Whether both are the same process of the same instance.
    public func isSameInstance(as other: SupervisorInfo) -> Bool { instance == other.instance && pid == other.pid }
}

/// What Upgrade answers, before the instance that was asked makes way.
public struct UpgradeReply: Hashable, Sendable {
    /// The next instance is about to be started.
    public var ok: Bool
    /// What happens; when it is refused, why and what to do.
    public var message: String

    /// Makes one from its parts.
    public init(ok: Bool, message: String) {
        self.ok = ok
        self.message = message
    }

    /// Reads it from its object.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        ok = try fields.bool("ok")
        message = try fields.optionalString("message") ?? ""
    }

    /// It as an object.
    public var json: JSON { ["ok": .bool(ok), "message": .string(message)] }
}
