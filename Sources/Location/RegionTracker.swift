// SPDX-License-Identifier: Apache-2.0

/// Tracks whether the machine is within a region.
///
/// Positions near the edge fluctuate. So a crossing counts only once all positions for ``Region/settle`` were on the
/// other side, and farther from the edge than their inaccuracy (or half the radius, if that is less). The first
/// position is not a crossing.
public struct RegionTracker: Sendable, Hashable {
    /// Whether the machine is within the region; nil until known.
    public private(set) var isInside: Bool?
    /// Since when all positions have been on the other side; nil if the last position was not.
    private var otherwiseSince: Duration?

    /// Creates a tracker. `isInside` is the result of an earlier tracker; nil if there is none.
    public init(isInside: Bool? = nil) { self.isInside = isInside }

    /// Adds a position; returns `true` if the machine has entered the region, `false` if it has left it, else nil.
    public mutating func take(_ position: Position, in region: Region, now: Duration) -> Bool? {
        let distance = position.distance(to: region.centre)
        guard let isInside else {
            self.isInside = distance <= region.radius
            return nil
        }
        let margin = min(position.accuracy, region.radius / 2)
        let isOtherwise = isInside ? distance > region.radius + margin : distance < region.radius - margin
        guard isOtherwise else {
            otherwiseSince = nil
            return nil
        }
        let since = otherwiseSince ?? now
        otherwiseSince = since
        guard now - since >= region.settle else { return nil }
        otherwiseSince = nil
        self.isInside = !isInside
        return !isInside
    }
}

/// Tracks whether the machine has moved far enough since its last reported position.
public struct ChangeTracker: Sendable, Hashable {
    /// The last reported position.
    public private(set) var base: Position?
    private var since: Duration?

    /// Creates a tracker, with the last reported position if there is one.
    public init(base: Position? = nil) { self.base = base }

    /// Adds a position; if it must be reported, returns the distance in metres from the last reported one.
    ///
    /// - Parameters:
    ///   - distance: the least distance in metres to report; distances within the inaccuracy are not reported.
    ///   - interval: the shortest time between two reports.
    ///   - tellsFirst: whether to report the first position.
    public mutating func take(
        _ position: Position,
        distance: Double,
        interval: Duration = .zero,
        tellsFirst: Bool = false,
        now: Duration
    ) -> Double? {
        guard let base else {
            self.base = position
            if tellsFirst { since = now }
            return tellsFirst ? 0 : nil
        }
        let moved = base.distance(to: position)
        guard moved >= distance, distance == 0 || moved > position.accuracy else { return nil }
        if let since, now - since < interval { return nil }
        self.base = position
        since = now
        return moved
    }
}
