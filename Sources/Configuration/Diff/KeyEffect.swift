// SPDX-License-Identifier: Apache-2.0

/// When a change of a key takes effect for a running app.
public enum KeyEffect: String, Sendable, Hashable, CaseIterable {
    /// At once; for deadlines from the next one of their kind on.
    case live
    /// It only matters at a launch: from the next one on.
    case launch = "next-launch"
    /// The app runs with the old value until it is launched again.
    case restart
    /// It adds and removes apps, and changes none.
    case apps
    /// When the supervisor itself is restarted.
    case supervisor = "supervisor-start"
}

/// A key whose value changed.
public struct KeyChange: Sendable, Hashable {
    /// The key as it is written; of a table, with the member that changed: `limits.nofile`.
    public var key: String
    /// The old value; `nil` if it was not set, or was `"none"`.
    public var old: String?
    /// The new value; `nil` if it is not set, or is `"none"`.
    public var new: String?
    /// When it takes effect.
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
    /// When a change from the first to the second takes effect.
    let effect: @Sendable (Target, Target) -> KeyEffect
    let isSame: @Sendable (Target, Target) -> Bool
    /// The value, or the values of a table's members, as the configuration writes them; `""` is the key itself.
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

    /// A table whose members are shown one by one.
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

    /// The differences; empty if the values are equal.
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
