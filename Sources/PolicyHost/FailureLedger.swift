/// When a policy that failed is tried again, and when no more.
struct FailureLedger: Sendable {
    /// The first delay; each failure in a row doubles it.
    static let initial = Duration.milliseconds(100)
    /// The longest delay.
    static let cap = Duration.seconds(60)
    /// One more than this within the window, and it is not tried again.
    static let limit = 5
    /// How long a failure is remembered.
    static let window = Duration.seconds(600)

    private var failures: [Duration] = []

    enum Verdict: Hashable, Sendable {
        case retry(after: Duration)
        case quarantine
    }

    /// Counts a failure, and says what follows.
    mutating func failed(at now: Duration) -> Verdict {
        failures.removeAll { now - $0 >= Self.window }
        failures.append(now)
        guard failures.count <= Self.limit else { return .quarantine }
        var delay = Self.initial
        for _ in 1..<failures.count { delay = min(delay * 2, Self.cap) }
        return .retry(after: delay)
    }

    /// Somebody wants it tried again.
    mutating func forget() { failures = [] }
}
