// SPDX-License-Identifier: Apache-2.0

internal import TorporPolicyABI

/// What is other than it was in an app's record.
public struct PolicyChange: Sendable {
    /// The app's place.
    public var place: Int
    /// Its name and tags, if the place has another app than before, or one whose tags are others.
    public var identity: Identity?
    /// What is other than before; for another app, than in the record of one that never ran.
    public var values: [Value]

    /// Who an app is.
    public struct Identity: Hashable, Sendable {
        /// Its name.
        public var name: String
        /// Its tags.
        public var tags: [String]
    }

    /// A field, and what it says now.
    public struct Value: Sendable {
        /// Which field.
        public var field: PolicyField
        /// As many numbers as it has; nil for never and unknown.
        public var numbers: [Int64?]
    }
}

/// A view as it was when it was last looked at.
public struct PolicySnapshot {
    private var apps: [torpor_policy_app] = []
    private var system: torpor_policy_system?

    /// One of nothing: then everything is a change.
    public init() {}

    /// What has changed among the apps since the last time. An app that is gone has its flags 0.
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

    /// What has changed about the machine since the last time; all of it the first time.
    public mutating func takeSystemChanges(of view: PolicyView) -> [PolicyChange.Value] {
        defer { system = view.system }
        return Self.values(PolicyField.ofSystem, from: system, to: view.system)
    }

    private static func isSame(_ one: torpor_policy_app, _ other: torpor_policy_app) -> Bool {
        withUnsafeBytes(of: one) { one in
            withUnsafeBytes(of: other) { other in
                // A record is a whole number of words.
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
    /// Puts a value into an app's record. False when the field cannot have it.
    public func put(_ numbers: [Int64?], as field: PolicyField, intoApp place: Int) -> Bool {
        withUnsafeMutableBytes(of: &self[place]) { Self.put(numbers, field, $0) }
    }

    /// Puts a value into the machine's record. False likewise.
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
