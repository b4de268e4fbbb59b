// SPDX-License-Identifier: Apache-2.0

public import TransferProtocol

/// `[supervisor.transfers]`: limits of all apps' transfers together.
public struct SupervisorTransfers: Sendable, Hashable {
    /// Transfers that run at a time.
    public var connections = 8
    /// Of these, transfers of one app.
    public var perApp = 4
    /// Of these, transfers with one server.
    public var perHost = 2
    /// Bytes per second of all together; nil for no limit.
    public var rate: UInt64?
    /// The free space that downloads must leave on the filesystem that they write to.
    public var minFree = FreeSpaceRule.part(0.05)

    /// The defaults.
    public init() {}
}

/// `[apps.NAME.transfers]`: what an app may transfer.
public struct TransferSpecification: Sendable, Hashable {
    /// The servers it may use; empty for any.
    public var allow: [WebPattern] = []
    /// How many unfinished transfers it may have.
    public var limit = 1000
    /// Largest download in bytes; nil for no limit.
    public var sizeLimit: UInt64? = 20 << 30
    /// How long a whole transfer may take; nil for no limit.
    public var resourceTime: Duration? = .seconds(7 * 86_400)
    /// Whether discretionary transfers may use metered networks.
    public var usesMeteredLinks = false
    /// When discretionary transfers may run; nil for always.
    public var window: DailyWindow?
    /// Logins for servers that ask for one, by host in lower case.
    public var credentials: [String: TransferLogin] = [:]
    /// Files with CA certificates that are trusted for a host besides the system's, by host in lower case.
    public var authorities: [String: String] = [:]

    /// The defaults.
    public init() {}

    /// Whether the app may transfer from or to that URL.
    public func allows(_ url: String) -> Bool {
        guard let address = WebAddress(url) else { return false }
        return allow.isEmpty || allow.contains { $0.matches(address) }
    }
}

/// A login for a server.
public struct TransferLogin: Sendable, Hashable {
    /// The user name.
    public var user = ""
    /// The setting of type `secret` that has the password.
    public var secret = ""

    init() {}
}

/// A time of each day, as `"01:00-05:00"`, in the machine's time zone; the end may be on the next day.
public struct DailyWindow: Sendable, Hashable {
    /// Minutes after midnight at which it begins, 0 to 1439.
    public var start: Int
    /// Minutes after midnight before which it ends, 0 to 1439; never the same as `start`.
    public var end: Int

    init?(_ text: String) {
        let times = text.split(separator: "-", omittingEmptySubsequences: false).map(Self.minutes)
        guard times.count == 2, let start = times[0], let end = times[1], start != end else { return nil }
        self.start = start
        self.end = end
    }

    /// Whether a minute of the day, 0 to 1439, is within it.
    public func contains(minute: Int) -> Bool {
        start < end ? (start..<end).contains(minute) : minute >= start || minute < end
    }

    /// As it is written.
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
