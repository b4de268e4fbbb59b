// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// The reply of Describe: information about the torpord that answers.
public struct SupervisorInfo: Hashable, Sendable {
    /// The version of torpord, such as `0.1.0`.
    public var version: String
    /// The number of instances of torpord that its keeper has started so far, including this one.
    public var instance: Int64
    /// The process ID of torpord.
    public var pid: Int32
    /// How many apps torpord supervises.
    public var apps: Int64
    /// `starting` until torpord has launched all apps that it launches at its start, then `running`; `ending` once
    /// torpord shuts down. Nil from an older torpord, which lacks this field.
    public var phase: String?
    /// Why the last upgrade failed, in a sentence; nil if there was none or it succeeded.
    public var upgradeFailure: String?
    /// Why torpord does not use the configuration on disk, in a sentence; nil if the configuration was valid when
    /// last read.
    public var configurationFailure: String?
    /// Whether the configuration's files on disk differ from those in force, so that an apply would change something.
    public var configurationDiffers = false
    /// What is wrong with torpord's database or the apps' logs; one sentence each.
    public var troubles: [String] = []

    /// Creates a value. Fields without a parameter here keep their defaults, and can be set afterwards.
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

    /// Decodes a JSON object; throws if a field is missing or has the wrong type.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        version = try fields.string("version")
        instance = try fields.int("instance")
        pid = try fields.optionalInt32("pid") ?? 0
        apps = try fields.int("apps")
        phase = try fields.optionalString("phase")
        upgradeFailure = try fields.optionalString("upgrade_failure")
        configurationFailure = try fields.optionalString("configuration_failure")
        configurationDiffers = try fields.optionalBool("configuration_differs") ?? false
        troubles = try fields.strings("troubles")
    }

    /// Encodes the value as a JSON object.
    public var json: JSON {
        [
            "version": .string(version), "instance": .int(instance), "pid": .int(Int64(pid)), "apps": .int(apps),
            "phase": .optional(phase), "upgrade_failure": .optional(upgradeFailure),
            "configuration_failure": .optional(configurationFailure),
            "configuration_differs": .bool(configurationDiffers),
            "troubles": .strings(troubles),
        ]
    }

    /// Whether `other` describes the same process of the same torpord instance.
    public func isSameInstance(as other: SupervisorInfo) -> Bool { instance == other.instance && pid == other.pid }
}

/// The reply of Upgrade, sent before the old instance exits.
public struct UpgradeReply: Hashable, Sendable {
    /// Whether torpord accepted the upgrade: the next instance is about to be started.
    public var ok: Bool
    /// What happens next. If the upgrade is refused: why, and what to do.
    public var message: String

    /// Memberwise initializer.
    public init(ok: Bool, message: String) {
        self.ok = ok
        self.message = message
    }

    /// Decodes a JSON object; throws if a field is missing or has the wrong type.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        ok = try fields.bool("ok")
        message = try fields.optionalString("message") ?? ""
    }

    /// Encodes the value as a JSON object.
    public var json: JSON { ["ok": .bool(ok), "message": .string(message)] }
}
