// SPDX-License-Identifier: Apache-2.0

public import DesktopProtocol
import WireText

/// An alert as a notification server takes it (`Notify` of the Desktop Notifications Specification 1.2), with no more
/// than that server can do.
public struct NotificationContent: Hashable, Sendable {
    /// A hint: its name, and a value of the type that the specification has for it.
    public enum Hint: Hashable, Sendable {
        /// A string.
        case text(String)
        /// A byte.
        case byte(UInt8)
        /// A boolean.
        case flag(Bool)
    }

    /// One line of plain text.
    public var summary: String
    /// The text below it, escaped if the server reads markup there.
    public var body: String
    /// Ids and labels in turn.
    public var actions: [String]
    /// The hints, by name.
    public var hints: [String: Hint]
    /// In milliseconds; −1: as the server likes, 0: never.
    public var timeout: Int32

    /// The action of the notification itself.
    public static let clicked = "default"

    /// - Parameter isSilent: whether it makes no sound, since it was shown before.
    public init(_ alert: DesktopAlert, for server: DesktopServer, isSilent: Bool) {
        let abilities = Set(server.capabilities)
        summary = alert.title
        body = abilities.contains("body-markup") ? Markup.escape(alert.body) : alert.body
        actions = []
        if abilities.contains("actions") {
            actions = [Self.clicked, "Open"]
            // An action of this name would be the same as a click.
            for action in alert.actions where action.id != Self.clicked { actions += [action.id, action.label] }
        }
        hints = ["urgency": .byte(Self.level(alert.urgency))]
        if let entry = alert.entry { hints["desktop-entry"] = .text(entry) }
        if let icon = alert.icon { hints["image-path"] = .text(Markup.fileURL(icon)) }
        if !isSilent, let sound = alert.sound {
            if abilities.contains("sound") { hints["sound-name"] = .text(sound) }
        } else {
            hints["suppress-sound"] = .flag(true)
        }
        timeout = alert.urgency == .critical ? 0 : -1
    }

    private static func level(_ urgency: DesktopAlert.Urgency) -> UInt8 {
        switch urgency {
        case .low: 0
        case .normal: 1
        case .critical: 2
        }
    }
}

/// Plain text as markup, and paths as URLs.
public enum Markup {
    /// Text that a server with `body-markup` shows as it is.
    public static func escape(_ text: String) -> String {
        var escaped: [UInt8] = []
        escaped.reserveCapacity(text.utf8.count)
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "&"): escaped += "&amp;".utf8
            case UInt8(ascii: "<"): escaped += "&lt;".utf8
            case UInt8(ascii: ">"): escaped += "&gt;".utf8
            case UInt8(ascii: "\""): escaped += "&quot;".utf8
            case UInt8(ascii: "'"): escaped += "&apos;".utf8
            default: escaped.append(byte)
            }
        }
        return String(wire: escaped)
    }

    /// The `file:` URL of an absolute path.
    public static func fileURL(_ path: String) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var url = Array("file://".utf8)
        for byte in path.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "/"), UInt8(ascii: "-"), UInt8(ascii: "."),
                UInt8(ascii: "_"), UInt8(ascii: "~"):
                url.append(byte)
            default: url += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(wire: url)
    }

    /// Whether this may be the name of a desktop entry: a file name in the character set of the specification.
    public static func isEntry(_ name: String) -> Bool {
        !name.isEmpty && name.utf8.count <= 255
            && name.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"):
                    true
                default: false
                }
            }
    }
}
