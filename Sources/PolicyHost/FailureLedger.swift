// SPDX-License-Identifier: Apache-2.0

/// Decides when a failed policy is retried.
///
/// The first few failures lead to a short delay each. One more within the window, and the policy is quarantined: not
/// asked for a minute, then for twice as long each time, up to an hour. A policy that works for a whole window after
/// a quarantine starts with a clean record.
struct FailureLedger: Sendable {
    /// The first delay; each further failure within the window doubles it.
    static let initial = Duration.milliseconds(100)
    /// One more failure than this within the window leads to a quarantine.
    static let limit = 5
    /// How long a failure counts.
    static let window = Duration.seconds(600)
    /// The first quarantine; each one that follows doubles it.
    static let quarantine = Duration.seconds(60)
    /// The longest quarantine.
    static let longestQuarantine = Duration.seconds(3600)
    /// The delay after ``PolicyFailure/stalled(_:)``, which does not count as a failure: the machine needs the time.
    static let afterStall = Duration.seconds(5)

    private var failures: [Duration] = []
    private var quarantines = 0
    /// A failure before this time shows that the last quarantine was too short.
    private var probationEnds = Duration.zero

    enum Verdict: Hashable, Sendable {
        case retry(after: Duration)
        case quarantine(for: Duration)
    }

    /// Counts a failure and decides what follows.
    mutating func failed(at now: Duration) -> Verdict {
        failures.removeAll { now - $0 >= Self.window }
        failures.append(now)
        if now >= probationEnds { quarantines = 0 }
        guard quarantines > 0 || failures.count > Self.limit else {
            return .retry(after: Self.initial * (1 << (failures.count - 1)))
        }
        let time = min(Self.quarantine * (1 << quarantines), Self.longestQuarantine)
        // Limits the shift above; the longest quarantine is reached long before.
        quarantines = min(quarantines + 1, 16)
        failures = []
        probationEnds = now + time + Self.window
        return .quarantine(for: time)
    }

    /// A user wants it retried now.
    mutating func forget() { self = FailureLedger() }
}
