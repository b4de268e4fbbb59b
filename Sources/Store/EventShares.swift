// SPDX-License-Identifier: Apache-2.0

/// Decides which events are removed when there are too many: the oldest of the apps that have most. So an app with many
/// events does not push out those of others.
enum EventShares {
    /// How many events of an app there are, or how many to remove. The app is nil for events of the supervisor.
    typealias Share = (app: String?, count: Int64)

    /// How many events to remove of each app, so that `excess` events are removed, and the largest number that an app
    /// keeps is as small as possible.
    static func surplus(_ shares: [Share], excess: Int64) -> [Share] {
        guard excess > 0 else { return [] }
        let shares = shares.sorted { $0.count > $1.count }
        var sum: Int64 = 0
        for index in shares.indices {
            sum += shares[index].count
            let count = Int64(index + 1)
            let next = index + 1 < shares.count ? shares[index + 1].count : 0
            // Whether it suffices to lower the shares up to this one to the size of the next.
            guard sum - next * count >= excess else { continue }
            let (level, rest) = (sum - excess).quotientAndRemainder(dividingBy: count)
            return shares[...index].enumerated().map { place, share in
                (share.app, share.count - level - (place < rest ? 1 : 0))
            }
        }
        return shares
    }
}
