// SPDX-License-Identifier: Apache-2.0

/// Whether the machine is within a region, and when that changed.
///
/// Near the edge positions waver: a crossing counts when every position within ``Region/settle`` was on the other side, and
/// so far from the edge as it is inaccurate, though no farther than half the radius. Where it is at first is no crossing.
public struct RegionTracker: Sendable, Hashable {
    /// The machine is within the region; nil before that is known.
    public private(set) var isInside: Bool?
    /// Since when positions say otherwise.
    private var otherwiseSince: Duration?

    /// A tracker, which may know where it was when somebody last looked.
    public init(isInside: Bool? = nil) { self.isInside = isInside }

    /// Takes a position; whether the machine has come into the region (`true`) or left it (`false`) with it.
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

/// Whether the machine has moved far enough since the last time that this was told.
public struct ChangeTracker: Sendable, Hashable {
    /// Where it was then.
    public private(set) var base: Position?
    private var since: Duration?

    /// A tracker, which may know where it was when that was last told.
    public init(base: Position? = nil) { self.base = base }

    /// Takes a position; how many metres it is from the last one that was told, if this is to be told.
    ///
    /// - Parameters:
    ///   - distance: metres from which on it is; what could be inaccuracy alone is not.
    ///   - interval: so long nothing is told after the last one.
    ///   - tellsFirst: the first one is told too.
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
