// SPDX-License-Identifier: Apache-2.0

/// Decides which denials of an app are reported: the same denial once in each ``window``, and at most ``most`` denials
/// per window. The others are only counted. The ledger's size is limited.
public struct DenialLedger: Sendable {
    /// The period in which the same denial is reported only once.
    public static let window = Duration.seconds(60)
    /// The most denials that are reported per ``window``.
    public static let most = 20

    /// The number of all denials so far.
    public private(set) var total = 0
    private var untold = 0
    /// When each denial was last reported, for reports in this window and the previous one.
    private var told: [Denial: Duration] = [:]
    private var began: Duration?
    private var count = 0

    /// Creates an empty ledger, for an app without denials.
    public init() {}

    /// Records a denial that occurred `times` times. If the denial must be reported, returns how many denials were not
    /// reported since the last report; otherwise nil.
    public mutating func take(_ denial: Denial, times: Int = 1, now: Duration) -> Int? {
        total += times
        if began.map({ now - $0 >= Self.window }) ?? true {
            (began, count) = (now, 0)
            told = told.filter { now - $0.value < Self.window }
        }
        guard count < Self.most, told[denial].map({ now - $0 >= Self.window }) ?? true else {
            untold += times
            return nil
        }
        count += 1
        told[denial] = now
        defer { untold = times - 1 }
        return untold
    }
}
