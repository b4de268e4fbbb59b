// SPDX-License-Identifier: Apache-2.0

internal import TorporPolicyABI

/// The change of an app's record between two snapshots.
public struct PolicyChange: Sendable {
    /// The app's index in the view.
    public var place: Int
    /// The name and tags, if the index now belongs to another app, or the tags changed.
    public var identity: Identity?
    /// The fields that changed. If `identity` is set, the fields are compared with those of an app that never ran.
    public var values: [Value]

    /// The name and tags of an app.
    public struct Identity: Hashable, Sendable {
        /// The app's name.
        public var name: String
        /// The app's tags.
        public var tags: [String]
    }

    /// A field and its new values.
    public struct Value: Sendable {
        /// The field.
        public var field: PolicyField
        /// The field's new values, ``PolicyField/count`` of them; nil stands for never or unknown.
        public var numbers: [Int64?]
    }
}

/// A copy of a view, to find later what has changed in the view.
public struct PolicySnapshot {
    private var apps: [torpor_policy_app] = []
    private var system: torpor_policy_system?

    /// Creates an empty snapshot: compared with it, everything has changed.
    public init() {}

    /// The changes of apps since the last call. If an app was removed, its field `flags` is now 0.
    public mutating func takeChanges(of view: PolicyView) -> [PolicyChange] {
        while apps.count < view.count { apps.append(PolicyView.emptyApp) }
        var changes: [PolicyChange] = []
        for place in 0..<view.count {
            let record = view[place]
            let old = apps[place]
            guard !Self.isSame(old, record) else { continue }
            apps[place] = record
            var change = PolicyChange(place: place, identity: nil, values: [])
            var base = old
            if view.isPresent(place),
                record.name != old.name || record.tags != old.tags || record.tag_count != old.tag_count
            {
                change.identity = PolicyChange.Identity(name: view.name(place), tags: view.tags(place))
                base = PolicyView.emptyApp
            }
            change.values = Self.values(PolicyField.ofApps, from: base, to: record)
            if change.identity != nil || !change.values.isEmpty { changes.append(change) }
        }
        return changes
    }

    /// The changes of the machine's record since the last call; the first call returns all fields.
    public mutating func takeSystemChanges(of view: PolicyView) -> [PolicyChange.Value] {
        defer { system = view.system }
        return Self.values(PolicyField.ofSystem, from: system, to: view.system)
    }

    private static func isSame(_ one: torpor_policy_app, _ other: torpor_policy_app) -> Bool {
        withUnsafeBytes(of: one) { one in
            withUnsafeBytes(of: other) { other in
                // The comparison reads eight bytes at a time: the size of a record is a multiple of eight bytes.
                for offset in stride(from: 0, to: one.count, by: 8)
                where one.load(fromByteOffset: offset, as: UInt64.self)
                    != other.load(fromByteOffset: offset, as: UInt64.self)
                {
                    return false
                }
                return true
            }
        }
    }

    private static func values<Record>(
        _ fields: [PolicyField],
        from old: Record?,
        to new: Record
    ) -> [PolicyChange.Value] {
        withUnsafeBytes(of: new) { new in
            guard let old else { return fields.map { value($0, new) } }
            return withUnsafeBytes(of: old) { old in
                fields.compactMap { $0.isSame(old, new) ? nil : value($0, new) }
            }
        }
    }

    private static func value(_ field: PolicyField, _ record: UnsafeRawBufferPointer) -> PolicyChange.Value {
        PolicyChange.Value(field: field, numbers: (0..<field.count).map { field.value(in: record, $0) })
    }
}

extension PolicyView {
    /// Stores values in an app's record. Returns false if the field cannot have these values.
    public func put(_ numbers: [Int64?], as field: PolicyField, intoApp place: Int) -> Bool {
        withUnsafeMutableBytes(of: &self[place]) { Self.put(numbers, field, $0) }
    }

    /// Stores values in the machine's record. Returns false if the field cannot have these values.
    public func putSystem(_ numbers: [Int64?], as field: PolicyField) -> Bool {
        var system = system
        guard withUnsafeMutableBytes(of: &system, { Self.put(numbers, field, $0) }) else { return false }
        self.system = system
        return true
    }

    private static func put(_ numbers: [Int64?], _ field: PolicyField, _ record: UnsafeMutableRawBufferPointer) -> Bool
    {
        guard numbers.count == field.count else { return false }
        for (index, number) in numbers.enumerated() where !field.put(number, into: record, index) { return false }
        return true
    }
}
