// SPDX-License-Identifier: Apache-2.0

/// A value that many hold as one in memory, until one of them changes its own: of a thousand apps that the
/// configuration says the same of, it is there once.
public struct Shared<Value> {
    @usableFromInline
    final class Box {
        @usableFromInline var value: Value

        @usableFromInline
        init(_ value: Value) { self.value = value }
    }

    @usableFromInline var box: Box

    /// A value that nobody else holds yet.
    @inlinable
    public init(_ value: Value) { box = Box(value) }

    /// The value; changing it changes it for this holder alone.
    @inlinable public var value: Value {
        _read { yield box.value }
        _modify {
            if !isKnownUniquelyReferenced(&box) { box = Box(box.value) }
            yield &box.value
        }
    }
}

// Sendable, since a box is changed only by who alone holds it.
extension Shared: @unchecked Sendable where Value: Sendable {}

extension Shared: Equatable where Value: Equatable {
    /// The same value, in one place or in two.
    @inlinable
    public static func == (left: Shared, right: Shared) -> Bool {
        left.box === right.box || left.box.value == right.box.value
    }
}

extension Shared: Hashable where Value: Hashable {
    /// That of the value.
    @inlinable
    public func hash(into hasher: inout Hasher) { box.value.hash(into: &hasher) }
}
