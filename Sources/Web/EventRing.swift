// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// The last events, so that a browser that was away a moment gets what it missed.
public struct EventRing: Sendable {
    private var entries: [(sequence: Int64, event: JSON)] = []
    private let capacity: Int
    /// Everything behind this number is here.
    private var complete: Int64?

    /// An empty one for so many.
    public init(capacity: Int) { self.capacity = max(1, capacity) }

    /// The number of the newest event; nil as long as none is known.
    public var newest: Int64? { entries.last?.sequence ?? complete }

    /// Takes an event; false for one that is here already, or comes too late.
    public mutating func take(_ sequence: Int64, _ event: JSON) -> Bool {
        if let newest, sequence <= newest { return false }
        if complete == nil { complete = sequence - 1 }
        entries.append((sequence, event))
        // In big steps, since what is before has to move.
        if entries.count > capacity + capacity / 4 {
            let left = entries.count - capacity
            complete = entries[left - 1].sequence
            entries.removeFirst(left)
        }
        return true
    }

    /// Nothing came before this number that is not here.
    public mutating func begin(behind sequence: Int64) {
        if complete == nil { complete = sequence }
    }

    /// The events behind a number; nil where some of these are not here.
    public func events(after sequence: Int64) -> [(sequence: Int64, event: JSON)]? {
        guard let complete, sequence >= complete else { return nil }
        return entries.filter { $0.sequence > sequence }
    }
}
