// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// The most recent events, for browsers that reconnect after a short interruption.
public struct EventRing: Sendable {
    private var entries: [(sequence: Int64, event: JSON)] = []
    private let capacity: Int
    /// The ring has all events after this number; nil as long as no such number is known.
    private var complete: Int64?

    /// Creates an empty ring for `capacity` events.
    public init(capacity: Int) { self.capacity = max(1, capacity) }

    /// The number of the newest event; nil if none is known.
    public var newest: Int64? { entries.last?.sequence ?? complete }

    /// Adds an event. Returns false if the event is known already or is older than the newest.
    public mutating func take(_ sequence: Int64, _ event: JSON) -> Bool {
        if let newest, sequence <= newest { return false }
        if complete == nil { complete = sequence - 1 }
        entries.append((sequence, event))
        // Remove many old events at once, since each removal moves the whole array.
        if entries.count > capacity + capacity / 4 {
            let left = entries.count - capacity
            complete = entries[left - 1].sequence
            entries.removeFirst(left)
        }
        return true
    }

    /// Declares that the ring will have all events after this number.
    public mutating func begin(behind sequence: Int64) {
        if complete == nil { complete = sequence }
    }

    /// The events after a number; nil if the ring has lost some of them.
    public func events(after sequence: Int64) -> [(sequence: Int64, event: JSON)]? {
        guard let complete, sequence >= complete else { return nil }
        return entries.filter { $0.sequence > sequence }
    }
}
