// SPDX-License-Identifier: Apache-2.0

/// When a change of a key takes effect for a running app.
public enum KeyEffect: String, Sendable, Hashable, CaseIterable {
    /// At once; for a deadline, the next time one of its kind is armed.
    case live
    /// At the next launch: the key has no meaning for a running app.
    case launch = "next-launch"
    /// When the app is launched again; until then it runs with the old value.
    case restart
    /// At once: the key adds and removes apps, and changes no existing app.
    case apps
    /// When the supervisor itself is restarted.
    case supervisor = "supervisor-start"
}

/// A key whose value has changed.
public struct KeyChange: Sendable, Hashable {
    /// The key as the configuration writes it; for a table, with the member that changed: `limits.nofile`.
    public var key: String
    /// The old value; `nil` if it was not set, or was `"none"`.
    public var old: String?
    /// The new value; `nil` if it is not set, or is `"none"`.
    public var new: String?
    /// When the new value takes effect.
    public var effect: KeyEffect

    /// A change from one text to another.
    public init(key: String, old: String?, new: String?, effect: KeyEffect) {
        self.key = key
        self.old = old
        self.new = new
        self.effect = effect
    }
}

/// How to compare, show and copy the values of a key.
struct ComparedKey<Target>: Sendable {
    let name: String
    /// When a change from the first target's value to the second's takes effect.
    let effect: @Sendable (Target, Target) -> KeyEffect
    let isSame: @Sendable (Target, Target) -> Bool
    /// The value as the configuration writes it, under the name `""`; for a table, each member's value under its
    /// name.
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

    /// A table whose members are compared and shown one by one.
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

    /// The changes of the key between two targets; empty if the values are equal.
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
