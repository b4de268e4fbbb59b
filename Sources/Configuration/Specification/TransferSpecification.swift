// SPDX-License-Identifier: Apache-2.0

public import TransferProtocol

/// The table `[supervisor.transfers]`: limits for the transfers of all apps together.
public struct SupervisorTransfers: Sendable, Hashable {
    /// How many transfers may run at the same time.
    public var connections = 8
    /// How many transfers of one app may run at the same time.
    public var perApp = 4
    /// How many transfers with one server may run at the same time.
    public var perHost = 2
    /// The maximum bytes per second of all transfers together; nil for no limit.
    public var rate: UInt64?
    /// How much space downloads must leave free on the filesystem that they write to.
    public var minFree = FreeSpaceRule.part(0.05)

    /// The defaults.
    public init() {}
}

/// The table `[apps.NAME.transfers]`: what an app may transfer.
public struct TransferSpecification: Sendable, Hashable {
    /// The servers that the app may use; empty for any.
    public var allow: [WebPattern] = []
    /// How many unfinished transfers the app may have.
    public var limit = 1000
    /// The maximum size of a download in bytes; nil for no limit.
    public var sizeLimit: UInt64? = 20 << 30
    /// How long a whole transfer may take; nil for no limit.
    public var resourceTime: Duration? = .seconds(7 * 86_400)
    /// Whether discretionary transfers may use metered networks.
    public var usesMeteredLinks = false
    /// The time of day when discretionary transfers may run; nil for always.
    public var window: DailyWindow?
    /// Logins for servers that ask for one, by host in lower case.
    public var credentials: [String: TransferLogin] = [:]
    /// Files with CA certificates, by host in lower case. They are trusted for that host in addition to the system's.
    public var authorities: [String: String] = [:]

    /// The defaults.
    public init() {}

    /// Whether the app may download from or upload to the URL.
    public func allows(_ url: String) -> Bool {
        guard let address = WebAddress(url) else { return false }
        return allow.isEmpty || allow.contains { $0.matches(address) }
    }
}

/// A login for a server.
public struct TransferLogin: Sendable, Hashable {
    /// The user name at the server.
    public var user = ""
    /// The name of the app's setting, of type `secret`, that contains the password.
    public var secret = ""

    init() {}
}

/// A window of time on each day, such as `"01:00-05:00"`, in the machine's time zone; its end may be on the next day.
public struct DailyWindow: Sendable, Hashable {
    /// The minute of the day at which the window begins, 0 to 1439.
    public var start: Int
    /// The minute of the day before which the window ends, 0 to 1439; never the same as `start`.
    public var end: Int

    init?(_ text: String) {
        let times = text.split(separator: "-", omittingEmptySubsequences: false).map(Self.minutes)
        guard times.count == 2, let start = times[0], let end = times[1], start != end else { return nil }
        self.start = start
        self.end = end
    }

    /// Whether a minute of the day, 0 to 1439, is within the window.
    public func contains(minute: Int) -> Bool {
        start < end ? (start..<end).contains(minute) : minute >= start || minute < end
    }

    /// The window as the configuration writes it.
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
