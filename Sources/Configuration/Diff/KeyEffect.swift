// SPDX-License-Identifier: Apache-2.0

/// When a change of a key takes effect for a running app.
public enum KeyEffect: String, Sendable, Hashable, CaseIterable {
    /// At once. A changed deadline applies the next time torpord arms the deadline.
    case live
    /// At the app's next launch, because the key is used only during a launch.
    case launch = "next-launch"
    /// When the app is restarted. Until then the app runs with the old value.
    case restart
    /// At once, by adding and removing apps. Existing apps do not change.
    case apps
    /// When the supervisor itself is restarted.
    case supervisor = "supervisor-start"
}

/// A changed value of a key.
public struct KeyChange: Sendable, Hashable {
    /// The key as it is written in the configuration. For a table, it includes the changed member, such as
    /// `limits.nofile`.
    public var key: String
    /// The old value as text; `nil` if the key was not set, or was `"none"`.
    public var old: String?
    /// The new value as text; `nil` if the key is not set, or is `"none"`.
    public var new: String?
    /// When the new value takes effect.
    public var effect: KeyEffect

    /// Creates a change of a key from the value `old` to the value `new`.
    public init(key: String, old: String?, new: String?, effect: KeyEffect) {
        self.key = key
        self.old = old
        self.new = new
        self.effect = effect
    }
}

/// How to compare, show and copy the values of one key.
struct ComparedKey<Target>: Sendable {
    let name: String
    /// When a change of the key takes effect. The arguments are the old and the new specification.
    let effect: @Sendable (Target, Target) -> KeyEffect
    let isSame: @Sendable (Target, Target) -> Bool
    /// The key's value as it is written in the configuration. A single value has the name `""` in the result. A table
    /// has one entry for each member.
    let written: @Sendable (Target) -> [String: String]
    let copy: @Sendable (inout Target, Target) -> Void

    /// A key with one value.
    package static func value<T: Equatable & Written & SendableMetatype>(
        _ name: String,
        _ path: any WritableKeyPath<Target, T> & Sendable,
        _ effect: KeyEffect,
        depending: (@Sendable (T, T) -> KeyEffect)? = nil
    ) -> ComparedKey {
        ComparedKey(
            name: name,
            effect: { old, new in depending?(old[keyPath: path], new[keyPath: path]) ?? effect },
            isSame: { $0[keyPath: path] == $1[keyPath: path] },
            written: { target in target[keyPath: path].written.map { ["": $0] } ?? [:] },
            copy: { $0[keyPath: path] = $1[keyPath: path] }
        )
    }

    /// A key whose value is a table. Each member is compared and shown separately.
    package static func table<T: Equatable & SendableMetatype>(
        _ name: String,
        _ path: any WritableKeyPath<Target, T> & Sendable,
        _ effect: KeyEffect,
        _ members: @escaping @Sendable (T) -> [String: String]
    ) -> ComparedKey {
        ComparedKey(
            name: name,
            effect: { _, _ in effect },
            isSame: { $0[keyPath: path] == $1[keyPath: path] },
            written: { members($0[keyPath: path]) },
            copy: { $0[keyPath: path] = $1[keyPath: path] }
        )
    }

    /// The changes of the key's value from `old` to `new`; empty if both values are equal.
    func changes(_ old: Target, _ new: Target, prefix: String = "") -> [KeyChange] {
        guard !isSame(old, new) else { return [] }
        let (before, after) = (written(old), written(new))
        let effect = effect(old, new)
        let members = Set(before.keys).union(after.keys).filter { before[$0] != after[$0] }.sorted()
        guard !members.isEmpty else { return [KeyChange(key: prefix + name, old: nil, new: nil, effect: effect)] }
        return members.map { member in
            let key = prefix + (member.isEmpty ? name : name + "." + member)
            return KeyChange(key: key, old: before[member], new: after[member], effect: effect)
        }
    }
}
