// SPDX-License-Identifier: Apache-2.0

public import TransferProtocol

/// The table `[supervisor.transfers]`: limits for the downloads and uploads of all apps together.
public struct SupervisorTransfers: Sendable, Hashable {
    /// The maximum number of transfers at the same time.
    public var connections = 8
    /// The maximum number of simultaneous transfers of one app.
    public var perApp = 4
    /// The maximum number of simultaneous transfers with one server.
    public var perHost = 2
    /// The maximum rate of all transfers together, in bytes per second; nil for no limit.
    public var rate: UInt64?
    /// The space that downloads must leave free on their filesystem.
    public var minFree = FreeSpaceRule.part(0.05)

    /// Creates limits with default values.
    public init() {}
}

/// The table `[apps.NAME.transfers]`: limits for the downloads and uploads of one app.
public struct TransferSpecification: Sendable, Hashable {
    /// The servers with which the app may exchange files; empty for all servers.
    public var allow: [WebPattern] = []
    /// The maximum number of unfinished transfers of the app.
    public var limit = 1000
    /// The maximum size of a downloaded file in bytes; nil for no limit.
    public var sizeLimit: UInt64? = 20 << 30
    /// The maximum duration of a transfer; nil for no limit.
    public var resourceTime: Duration? = .seconds(7 * 86_400)
    /// Whether discretionary transfers (those for which torpord may choose a good time) may use metered networks.
    public var usesMeteredLinks = false
    /// The time of day in which discretionary transfers (those for which torpord may choose a good time) run; nil for
    /// any time.
    public var window: DailyWindow?
    /// Logins for servers that require one. The keys are host names in lower case.
    public var credentials: [String: TransferLogin] = [:]
    /// Paths of files with CA certificates. The keys are host names in lower case; for these hosts, the certificates
    /// are trusted in addition to those of the system.
    public var authorities: [String: String] = [:]

    /// Creates limits with default values.
    public init() {}

    /// Whether the app may download from this URL and upload to it.
    public func allows(_ url: String) -> Bool {
        guard let address = WebAddress(url) else { return false }
        return allow.isEmpty || allow.contains { $0.matches(address) }
    }
}

/// The user name and password for a server.
public struct TransferLogin: Sendable, Hashable {
    /// The user name on the server.
    public var user = ""
    /// The name of the app's setting that contains the password. Its type must be `secret`.
    public var secret = ""

    init() {}
}

/// A period of each day in the machine's time zone, such as `"01:00-05:00"`. It may end on the next day.
public struct DailyWindow: Sendable, Hashable {
    /// The minute of the day when the period begins, 0 to 1439.
    public var start: Int
    /// The minute of the day when the period ends, 0 to 1439. This minute is not part of the period, and always differs
    /// from `start`.
    public var end: Int

    init?(_ text: String) {
        let times = text.split(separator: "-", omittingEmptySubsequences: false).map(Self.minutes)
        guard times.count == 2, let start = times[0], let end = times[1], start != end else { return nil }
        self.start = start
        self.end = end
    }

    /// Whether the period contains this minute of the day, 0 to 1439.
    public func contains(minute: Int) -> Bool {
        start < end ? (start..<end).contains(minute) : minute >= start || minute < end
    }

    /// The period as it is written in the configuration.
    public var text: String { "\(Self.text(start))-\(Self.text(end))" }

    static func minutes(_ text: Substring) -> Int? {
        let bytes = Array(text.utf8)
        guard bytes.count == 5, bytes[2] == UInt8(ascii: ":"), let hour = Int(text.prefix(2)),
            let minute = Int(text.suffix(2)), (0...23).contains(hour), (0...59).contains(minute),
            bytes.allSatisfy({ $0 == UInt8(ascii: ":") || (0x30...0x39).contains($0) })
        else { return nil }
        return hour * 60 + minute
    }

    private static func text(_ minutes: Int) -> String {
        func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
        return "\(two(minutes / 60)):\(two(minutes % 60))"
    }
}
