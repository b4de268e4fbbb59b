// SPDX-License-Identifier: Apache-2.0

/// What a room keeps with an app or with a run of it, and most have nothing of most of the time: it takes memory only where
/// it is. The room declares it beside its own code:
///
///     extension Incarnation {
///         /// When it was last looked at.
///         var lookedAt: Duration? {
///             get { slots[LookedAtSlot.self] }
///             set { slots[LookedAtSlot.self] = newValue }
///         }
///     }
///
///     private enum LookedAtSlot: Slot { typealias Value = Duration }
public protocol Slot {
    /// What is kept.
    associatedtype Value
}

/// The values that rooms keep with an app or a run, by their ``Slot``s.
///
/// Few at a time, so that looking through them is quicker than a table would be. Public, since the compiler makes generic
/// code special to the type that it is used with only where it is that: for other modules of the package it would not.
public struct Slots: ~Copyable {
    @usableFromInline var boxes: [(slot: ObjectIdentifier, box: AnyObject)] = []

    @usableFromInline
    final class Box<Value> {
        @usableFromInline var value: Value

        @inlinable
        init(_ value: Value) { self.value = value }
    }

    /// None.
    public init() {}

    /// The value in a slot; nil: there is none.
    @inlinable
    public subscript<S: Slot>(slot: S.Type) -> S.Value? {
        get {
            let wanted = ObjectIdentifier(slot)
            for index in boxes.indices where boxes[index].slot == wanted {
                return unsafeDowncast(boxes[index].box, to: Box<S.Value>.self).value
            }
            return nil
        }
        set {
            let wanted = ObjectIdentifier(slot)
            for index in boxes.indices where boxes[index].slot == wanted {
                if let newValue {
                    unsafeDowncast(boxes[index].box, to: Box<S.Value>.self).value = newValue
                } else {
                    boxes.remove(at: index)
                }
                return
            }
            if let newValue { boxes.append((wanted, Box(newValue))) }
        }
    }

    /// The value in a slot; where there is none, `value` stands for it, and is kept once it was changed in place.
    @inlinable
    public subscript<S: Slot>(slot: S.Type, default value: @autoclosure () -> S.Value) -> S.Value {
        get { self[slot] ?? value() }
        _modify {
            let wanted = ObjectIdentifier(slot)
            let index = boxes.firstIndex { $0.slot == wanted } ?? boxes.endIndex
            if index == boxes.endIndex { boxes.append((wanted, Box(value()))) }
            let box = unsafeDowncast(boxes[index].box, to: Box<S.Value>.self)
            yield &box.value
        }
    }
}
