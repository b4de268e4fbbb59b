// SPDX-License-Identifier: Apache-2.0

/// The protected data of an app: `protected`, `protected_fallback` and `launch_when_locked`.
public struct ProtectionSpecification: Sendable, Hashable {
    /// When the app can read its protected folder; nil for an app without one.
    public var kind: ProtectionKind?
    /// What protects the folder where the filesystem cannot encrypt it.
    public var fallback: ProtectionFallback = .none
    /// Whether the app is launched although its data is locked.
    public var launchesWhenLocked = false

    /// Creates the specification of an app without protected data.
    public init() {}
}

/// The values of `protected`: when an app can read its protected folder.
public enum ProtectionKind: String, Sendable, Hashable, CaseIterable {
    /// While data is unlocked.
    case complete
    /// From the first unlock until the supervisor ends.
    case firstUnlock = "first-unlock"
}

/// The values of `protected_fallback`.
public enum ProtectionFallback: String, Sendable, Hashable, CaseIterable {
    /// The app is not launched.
    case none
    /// The folder's mode closes it.
    case permissions
}

/// The table `[supervisor.protected]`: what locks the protected data of all apps, and what unlocks it.
public struct SupervisorProtection: Sendable, Hashable {
    /// What locks data.
    public var lockWith: [ProtectionLock] = [.session, .sleep]
    /// The time that apps have to close their files, from the moment when they are told of the lock.
    public var deadline: Duration = .seconds(10)
    /// The command whose output is the passphrase; empty if a person gives it.
    public var unlock: [String] = []

    /// Creates a specification with default values.
    public init() {}
}

/// The values of `lock_with`: what locks protected data.
public enum ProtectionLock: String, Sendable, Hashable, CaseIterable {
    /// The lock of the session that `session` names.
    case session
    /// The machine's sleep.
    case sleep
}
