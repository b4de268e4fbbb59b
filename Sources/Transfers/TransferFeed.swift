// SPDX-License-Identifier: Apache-2.0

public import Schedules
public import Varlink

/// A subscription: a transfer that is repeated without end. The less often there is new content, the less often the
/// transfer is repeated.
public struct TransferFeed: Hashable, Sendable {
    /// The subscription's name, unique in the app.
    public let name: String
    /// The shortest interval between two fetches.
    public var every: Duration
    /// The version of the last content: the ETag or Last-Modified that the server sent; nil if it sent neither.
    public var version: String?
    /// The SHA-256 of the last content; nil before the first fetch.
    public var sha256: String?
    private var learned: FetchState.FetchHistory
    private var lastWall: Int64?

    /// Creates a subscription that was never fetched.
    public init(name: String, every: Duration) {
        (self.name, self.every) = (name, every)
        learned = FetchState.FetchHistory(interval: every)
    }

    /// How many fetches in a row have failed.
    public var failures: Int { learned.failures }

    private func state(_ now: ClockPair) -> FetchState {
        FetchState(minimum: every, learned, lastWall: lastWall, now: now)
    }

    /// When the next fetch is due, in microseconds since 1970; nil if it is due at once.
    public func due(now: ClockPair) -> Int64? {
        lastWall.map { _ in now.wall(atRunning: state(now).due) }
    }

    /// Records the result of a fetch.
    public mutating func looked(_ result: FetchResult, now: ClockPair) {
        var state = state(now)
        state.begin(now: now)
        state.end(result)
        learned = state.learned
        lastWall = now.wall
    }

    /// Decodes a persisted subscription.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        self.init(name: try fields.string("name"), every: .microseconds(try fields.int("every")))
        version = try fields.optionalString("version")
        sha256 = try fields.optionalString("sha256")
        learned = FetchState.FetchHistory(interval: .microseconds(try fields.int("interval")))
        learned.failures = Int(clamping: try fields.int("failures"))
        lastWall = try fields.optionalInt("last")
        for result in FetchResult.allCases { learned.counts[result] = try fields.optionalInt(result.rawValue) }
    }

    /// The persisted form. Durations are in microseconds.
    public var json: JSON {
        var object: JSONObject = [
            "name": .string(name), "every": .int(Self.microseconds(every)), "version": .optional(version),
            "sha256": .optional(sha256), "interval": .int(Self.microseconds(learned.interval)),
            "failures": .int(Int64(learned.failures)), "last": .optional(lastWall),
        ]
        for (result, count) in learned.counts { object[result.rawValue] = .int(count) }
        return .object(object)
    }

    private static func microseconds(_ duration: Duration) -> Int64 {
        let parts = duration.components
        return parts.seconds * 1_000_000 + parts.attoseconds / 1_000_000_000_000
    }
}
