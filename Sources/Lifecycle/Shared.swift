// SPDX-License-Identifier: Apache-2.0

/// A value in memory that several holders share, so that, for example, apps with equal configuration need only one. A
/// holder that changes the value gets its own copy (copy on write).
public struct Shared<Value> {
    @usableFromInline
    final class Box {
        @usableFromInline var value: Value

        @usableFromInline
        init(_ value: Value) { self.value = value }
    }

    @usableFromInline var box: Box

    /// A value with one holder.
    @inlinable
    public init(_ value: Value) { box = Box(value) }

    /// The value. Changing it affects only this holder.
    @inlinable public var value: Value {
        _read { yield box.value }
        _modify {
            if !isKnownUniquelyReferenced(&box) { box = Box(box.value) }
            yield &box.value
        }
    }
}

// This is safe, because a box is changed only while it has a single holder.
extension Shared: @unchecked Sendable where Value: Sendable {}

extension Shared: Equatable where Value: Equatable {
    /// Whether the values are equal, even if they are not in the same box.
    @inlinable
    public static func == (left: Shared, right: Shared) -> Bool {
        left.box === right.box || left.box.value == right.box.value
    }
}

extension Shared: Hashable where Value: Hashable {
    /// Hashes the value.
    @inlinable
    public func hash(into hasher: inout Hasher) { box.value.hash(into: &hasher) }
}
