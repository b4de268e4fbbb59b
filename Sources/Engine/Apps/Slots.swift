// SPDX-License-Identifier: Apache-2.0

/// A value that a part of torpord (a ``Room``) stores for an app or for one of its runs. Most apps do not have the
/// value, so it takes memory only where it is set. The part declares it beside its own code:
///
///     extension Incarnation {
///         /// When torpord last inspected the incarnation.
///         var lookedAt: Duration? {
///             get { slots[LookedAtSlot.self] }
///             set { slots[LookedAtSlot.self] = newValue }
///         }
///     }
///
///     private enum LookedAtSlot: Slot { typealias Value = Duration }
public protocol Slot {
    /// The type of the value.
    associatedtype Value
}

/// The values that parts of torpord store with an app or a run, each under a ``Slot``.
///
/// An app has few values at a time, so a linear search is faster than a hash table. The type is public because the
/// compiler specializes generic code for other modules of the package only if it is public.
public struct Slots: ~Copyable {
    @usableFromInline var boxes: [(slot: ObjectIdentifier, box: AnyObject)] = []

    @usableFromInline
    final class Box<Value> {
        @usableFromInline var value: Value

        @inlinable
        init(_ value: Value) { self.value = value }
    }

    /// No values.
    public init() {}

    /// The value in a slot; nil if there is none.
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

    /// The value in a slot, or the default `value` if the slot is empty. A change in place is stored in the slot.
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
