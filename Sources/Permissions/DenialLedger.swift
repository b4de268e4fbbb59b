// SPDX-License-Identifier: Apache-2.0

/// Which denials of an app are told: the same one once in ``window``, and at most ``most`` in that time. The others are
/// counted. Bounded, whatever the app does.
public struct DenialLedger: Sendable {
    /// The time in which the same denial is told once.
    public static let window = Duration.seconds(60)
    /// The most denials that are told in ``window``.
    public static let most = 20

    /// How many there were.
    public private(set) var total = 0
    private var untold = 0
    /// The denials told in this window and the one before, and when.
    private var told: [Denial: Duration] = [:]
    private var began: Duration?
    private var count = 0

    /// Creates the ledger of an app without denials.
    public init() {}

    /// Takes in a denial that came so many times. Returns how many were not told before it; nil if it is not told
    /// either.
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
