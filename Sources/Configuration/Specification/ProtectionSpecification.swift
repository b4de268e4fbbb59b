// SPDX-License-Identifier: Apache-2.0

/// The protected data of an app: `protected`, `protected_fallback` and `launch_when_locked`.
public struct ProtectionSpecification: Sendable, Hashable {
    /// When the app can read its protected folder; nil for an app without one.
    public var kind: ProtectionKind?
    /// What happens if the filesystem cannot encrypt the protected folder.
    public var fallback: ProtectionFallback = .none
    /// Whether the app is launched even while its data is locked.
    public var launchesWhenLocked = false

    /// Creates the specification of an app without protected data.
    public init() {}
}

/// The values of `protected`: when an app can read its protected folder.
public enum ProtectionKind: String, Sendable, Hashable, CaseIterable {
    /// The app can read the folder only while data is unlocked.
    case complete
    /// The app can read the folder from the first unlock on, until the supervisor ends.
    case firstUnlock = "first-unlock"
}

/// The values of `protected_fallback`: what happens if the filesystem cannot encrypt the app's protected folder.
public enum ProtectionFallback: String, Sendable, Hashable, CaseIterable {
    /// The app is not launched.
    case none
    /// While data is locked, the folder's mode denies access to it.
    case permissions
}

/// The table `[supervisor.protected]`: what locks the protected data of all apps, and what unlocks it.
public struct SupervisorProtection: Sendable, Hashable {
    /// The events that lock the protected data of all apps.
    public var lockWith: [ProtectionLock] = [.session, .sleep]
    /// How long apps have to close their files after they are notified of the lock.
    public var deadline: Duration = .seconds(10)
    /// The command whose output is the passphrase that unlocks the data; empty if a user types the passphrase.
    public var unlock: [String] = []

    /// Creates a specification with default values.
    public init() {}
}

/// The values of `lock_with`: what locks protected data.
public enum ProtectionLock: String, Sendable, Hashable, CaseIterable {
    /// The login session that `[supervisor] session` names is locked.
    case session
    /// The machine goes to sleep.
    case sleep
}
