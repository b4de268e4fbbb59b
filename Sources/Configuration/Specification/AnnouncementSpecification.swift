// SPDX-License-Identifier: Apache-2.0

import Linux
import WireText

/// An entry of `announce`: a service of the app that other machines find on the local network (DNS-SD, RFC 6763).
public struct AnnouncementSpecification: Sendable, Hashable {
    /// When a service is announced.
    public enum Time: String, Sendable, Hashable, CaseIterable {
        /// While the app has a process.
        case running
        /// While the app runs and is not suspended.
        case awake
        /// Also while the app does not run, if events may launch it. A client's connection to the service's socket then
        /// launches the app.
        case always
    }

    /// The service's type, such as `_http._tcp`.
    public var type = ""
    /// The service's name, which users see; nil for the app's title or name.
    public var name: String?
    /// The name of the entry of `sockets` on which the service listens; nil if ``port`` is set.
    public var socket: String?
    /// The port of the service, if the app opens the port itself; nil if ``socket`` is set.
    public var port: UInt16?
    /// The entries of the service's TXT record, such as `path=/`, sorted.
    public var text: [String] = []
    /// When the service is announced.
    public var time = Time.running

    /// An announcement without a type.
    public init() {}

    /// The maximum number of entries of `announce` in one app.
    public static let most = 16
    /// The maximum length of a name in bytes (RFC 6763, 4.1.1).
    public static let longestName = 63
    /// The maximum length of an entry of a TXT record in bytes (RFC 6763, 6.1).
    static let longestPair = 255
    /// The maximum length of a TXT record in bytes. A longer record might not fit into a packet (RFC 6763, 6.2).
    static let longestText = 1300

    /// The service's port; nil if the service's socket does not exist or has no port.
    public func port(of app: AppSpecification) -> UInt16? {
        if let port { return port }
        guard let address = app.sockets.first(where: { $0.name == socket })?.plan.address else { return nil }
        switch address {
        case .port(let port), .ipv4(_, let port), .ipv6(_, let port, _): return port
        default: return nil
        }
    }
}

extension AnnouncementSpecification: Written {
    var written: String? {
        var parts = [type]
        if let name { parts.append("name \(name)") }
        if let socket { parts.append("socket \(socket)") }
        if let port { parts.append("port \(port)") }
        if !text.isEmpty { parts.append("txt \(text.joined(separator: " "))") }
        if time != .running { parts.append("while \(time.rawValue)") }
        return parts.joined(separator: ", ")
    }
}
