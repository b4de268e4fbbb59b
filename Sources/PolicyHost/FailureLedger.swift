// SPDX-License-Identifier: Apache-2.0

/// Decides when a failed policy is retried.
///
/// After each of the first few failures the policy is retried after a short delay. One more failure within the window
/// puts the policy into quarantine: the policy is not asked for a minute, the next time for twice as long, up to an
/// hour. If the policy works for a whole window after a quarantine, all earlier failures are forgotten.
struct FailureLedger: Sendable {
    /// The delay after the first failure; each further failure within the window doubles it.
    static let initial = Duration.milliseconds(100)
    /// The maximum number of failures within ``window`` that each lead to a delay. The next failure leads to a
    /// quarantine.
    static let limit = 5
    /// A failure counts towards ``limit`` for this long after it happened.
    static let window = Duration.seconds(600)
    /// The length of the first quarantine; each later quarantine is twice as long as the one before.
    static let quarantine = Duration.seconds(60)
    /// The maximum length of a quarantine.
    static let longestQuarantine = Duration.seconds(3600)
    /// The delay after ``PolicyFailure/stalled(_:)``, which does not count as a failure: the machine needs time to
    /// recover.
    static let afterStall = Duration.seconds(5)
    /// The delay after a failure of a policy whose library was overwritten while it was loaded. It is not the policy's
    /// failure either. By then the file is probably complete.
    static let afterOverwrite = Duration.seconds(1)

    private var failures: [Duration] = []
    private var quarantines = 0
    /// The end of the probation after the last quarantine. If the policy fails before this time, its next quarantine
    /// is twice as long as the last one.
    private var probationEnds = Duration.zero

    enum Verdict: Hashable, Sendable {
        case retry(after: Duration)
        case quarantine(for: Duration)
    }

    /// Counts a failure and decides what happens next.
    mutating func failed(at now: Duration) -> Verdict {
        failures.removeAll { now - $0 >= Self.window }
        failures.append(now)
        if now >= probationEnds { quarantines = 0 }
        guard quarantines > 0 || failures.count > Self.limit else {
            return .retry(after: Self.initial * (1 << (failures.count - 1)))
        }
        let time = min(Self.quarantine * (1 << quarantines), Self.longestQuarantine)
        // `quarantines` is limited so that the shift above cannot overflow. The longest quarantine is reached long
        // before 16 doublings.
        quarantines = min(quarantines + 1, 16)
        failures = []
        probationEnds = now + time + Self.window
        return .quarantine(for: time)
    }

    /// Forgets all failures, since a user wants the policy to be retried now.
    mutating func forget() { self = FailureLedger() }
}
