// SPDX-License-Identifier: Apache-2.0

/// Decides what to leave out when there is too much: of the apps that have most. So an app with much does not push out
/// what others have.
package enum FairShares {
    /// How much there is of an app, or how much to leave out. The app is nil for what belongs to the supervisor.
    package typealias Share = (app: String?, count: Int64)

    /// How much to leave out of each app, so that it is `excess` in all, and the most that an app keeps is as small as
    /// possible.
    package static func surplus(_ shares: [Share], excess: Int64) -> [Share] {
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
