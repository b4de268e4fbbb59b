// SPDX-License-Identifier: Apache-2.0

/// The differences between two configurations, and when they take effect for running apps.
public struct ConfigurationDiff: Sendable, Hashable {
    /// An app that differs between the two configurations.
    public struct App: Sendable, Hashable {
        /// Whether the app was added, removed or changed.
        public enum Kind: String, Sendable, Hashable, CaseIterable {
            case added
            case removed
            case changed
        }

        /// The app's name.
        public var name: String
        /// Whether the app was added, removed or changed.
        public var kind: Kind
        /// The keys that changed, sorted by name; empty if the app was added or removed.
        public var changes: [KeyChange] = []

        /// Whether a changed key takes effect for a running app only after a restart.
        public var needsRestart: Bool { changes.contains { $0.effect == .restart } }
    }

    /// The apps that were added or changed, in the order of the new configuration; then the removed apps.
    public var apps: [App] = []
    /// The changed keys of `[supervisor]`, such as `supervisor.log_level`, and of `[policies]`, such as
    /// `policies.mobile.path`.
    public var supervisor: [KeyChange] = []

    /// Whether there are no differences.
    public var isEmpty: Bool { apps.isEmpty && supervisor.isEmpty }

    /// Compares two configurations.
    public init(_ old: TorporConfiguration, _ new: TorporConfiguration) {
        let before = Dictionary(old.apps.map { ($0.name, $0) }, uniquingKeysWith: { $1 })
        let after = Set(new.apps.map(\.name))
        for app in new.apps {
            guard let was = before[app.name] else {
                apps.append(App(name: app.name, kind: .added))
                continue
            }
            let changes = Self.changes(was, app)
            if !changes.isEmpty { apps.append(App(name: app.name, kind: .changed, changes: changes)) }
        }
        for app in old.apps where !after.contains(app.name) { apps.append(App(name: app.name, kind: .removed)) }
        supervisor = SupervisorKeyEffects.all.flatMap {
            $0.changes(old.supervisor, new.supervisor, prefix: "supervisor.")
        }
        supervisor += Self.policies(old.policies, new.policies)
    }

    /// The keys that differ between two specifications of an app, sorted by name.
    public static func changes(_ old: AppSpecification, _ new: AppSpecification) -> [KeyChange] {
        AppKeyEffects.all.flatMap { $0.changes(old, new) }
    }

    /// Adds a changed key to an app that both configurations contain.
    public mutating func add(_ change: KeyChange, to name: String) {
        if let index = apps.firstIndex(where: { $0.name == name }) {
            if apps[index].kind == .changed { apps[index].changes.append(change) }
        } else {
            apps.append(App(name: name, kind: .changed, changes: [change]))
        }
    }

    private static func policies(_ old: [PolicySpecification], _ new: [PolicySpecification]) -> [KeyChange] {
        let before = Dictionary(old.map { ($0.name, $0) }, uniquingKeysWith: { $1 })
        let after = Dictionary(new.map { ($0.name, $0) }, uniquingKeysWith: { $1 })
        return Set(before.keys).union(after.keys).sorted().flatMap { name in
            let key = "policies.\(name)"
            switch (before[name], after[name]) {
            case (let was?, let now?):
                return SupervisorKeyEffects.policy.flatMap { $0.changes(was, now, prefix: key + ".") }
            case (let was, let now): return [KeyChange(key: key, old: was?.path, new: now?.path, effect: .live)]
            }
        }
    }
}

extension AppSpecification {
    /// The specification of a running app after `new` is applied: keys whose changes take effect at once have the
    /// values of `new`, and all other keys keep their values. `self` is the specification with which the app was
    /// launched.
    public func taking(liveKeysOf new: AppSpecification) -> AppSpecification {
        // Return `new` itself, so that equal specifications share their memory.
        if self == new { return new }
        var result = self
        for key in AppKeyEffects.all where key.effect(self, new) == .live { key.copy(&result, new) }
        return result == new ? new : result
    }

    /// A hash of all values that a process gets only at its launch: in the upper half of those that need a restart, in
    /// the lower half of those that count from the next launch on. It is never 0. Another build of Torpor may compute
    /// another hash for the same specification.
    public var launchDigest: UInt64 {
        var (restart, launch) = (StableHash(), StableHash())
        let blank = AppSpecification(name: name)
        for key in AppKeyEffects.all {
            // Compare in both directions, because some keys can be removed while the app runs but not added, and others
            // can be added but not removed.
            let effects = [key.effect(self, blank), key.effect(blank, self)]
            guard effects.contains(where: { $0 != .live }) else { continue }
            for (member, value) in key.written(self).sorted(by: { $0.key < $1.key }) {
                for text in [key.name, member, value] {
                    if effects.contains(.restart) { restart.add(text) } else { launch.add(text) }
                }
            }
        }
        return max(1, restart.half << 32 | launch.half)
    }

    /// Whether an app that was launched with another specification, of which only the ``launchDigest`` is known, has all
    /// values of this one that need a restart.
    public func needsNoRestart(after digest: UInt64) -> Bool { digest >> 32 == launchDigest >> 32 }
}

/// FNV-1a, because Swift's Hasher gives different results in each process.
package struct StableHash {
    /// The hash of all texts that were added.
    package private(set) var digest: UInt64 = 0xcbf2_9ce4_8422_2325

    package init() {}

    package mutating func add(_ text: String) {
        for byte in text.utf8 { digest = (digest ^ UInt64(byte)) &* 0x100_0000_01b3 }
        // The byte 0xff occurs in no UTF-8 text, so it separates the texts.
        digest = (digest ^ 0xff) &* 0x100_0000_01b3
    }

    /// 32 bits of it.
    var half: UInt64 { digest >> 32 ^ digest & 0xffff_ffff }
}

extension TorporConfiguration {
    /// This configuration, with its directories replaced by those that the supervisor `running` uses. The directories
    /// are also stored in `sources`, so that a later load from `sources` gives the same result.
    public func keepingDirectories(of running: TorporConfiguration) -> TorporConfiguration {
        var result = self
        for key in SupervisorKeyEffects.directories where !key.isSame(supervisor, running.supervisor) {
            key.copy(&result.supervisor, running.supervisor)
            result.sources.directories[key.name] = key.written(running.supervisor)[""]
        }
        return result
    }
}
