// SPDX-License-Identifier: Apache-2.0

/// When a policy that failed is tried again.
///
/// A few failures are followed by a short delay each. One more within the window, and the policy is quarantined: left out
/// for a minute, then for twice as long each time, up to an hour. One that has worked for a whole window after a
/// quarantine is as good as new.
struct FailureLedger: Sendable {
    /// The first delay; each failure in a row doubles it.
    static let initial = Duration.milliseconds(100)
    /// One more than this within the window, and it is quarantined.
    static let limit = 5
    /// How long a failure is remembered.
    static let window = Duration.seconds(600)
    /// The first quarantine; each one that follows doubles it.
    static let quarantine = Duration.seconds(60)
    /// The longest quarantine.
    static let longestQuarantine = Duration.seconds(3600)
    /// The delay after ``PolicyFailure/stalled(_:)``, which is not counted: the machine needs the time.
    static let afterStall = Duration.seconds(5)

    private var failures: [Duration] = []
    private var quarantines = 0
    /// A failure before this follows a quarantine that was too short.
    private var probationEnds = Duration.zero

    enum Verdict: Hashable, Sendable {
        case retry(after: Duration)
        case quarantine(for: Duration)
    }

    /// Counts a failure, and says what follows.
    mutating func failed(at now: Duration) -> Verdict {
        failures.removeAll { now - $0 >= Self.window }
        failures.append(now)
        if now >= probationEnds { quarantines = 0 }
        guard quarantines > 0 || failures.count > Self.limit else {
            return .retry(after: Self.initial * (1 << (failures.count - 1)))
        }
        let time = min(Self.quarantine * (1 << quarantines), Self.longestQuarantine)
        // More would not make it longer.
        quarantines = min(quarantines + 1, 16)
        failures = []
        probationEnds = now + time + Self.window
        return .quarantine(for: time)
    }

    /// A person wants it tried again.
    mutating func forget() { self = FailureLedger() }
}
