// SPDX-License-Identifier: Apache-2.0

public import DesktopProtocol
import WireText

/// An alert as arguments of `Notify` (Desktop Notifications Specification 1.2), reduced to what the notification
/// server can do.
public struct NotificationContent: Hashable, Sendable {
    /// The value of a hint, in the type that the specification requires.
    public enum Hint: Hashable, Sendable {
        /// A string.
        case text(String)
        /// A byte.
        case byte(UInt8)
        /// A boolean.
        case flag(Bool)
    }

    /// The summary: one line of plain text.
    public var summary: String
    /// The text below the summary, escaped if the server expects markup.
    public var body: String
    /// The ids and labels of the actions, alternately.
    public var actions: [String]
    /// The hints by name.
    public var hints: [String: Hint]
    /// The timeout in milliseconds; −1 for the server's default, 0 for none.
    public var timeout: Int32

    /// The id of the action that a click on the notification itself invokes.
    public static let clicked = "default"

    /// - Parameter isSilent: whether the server shall play no sound, since the alert was shown before.
    public init(_ alert: DesktopAlert, for server: DesktopServer, isSilent: Bool) {
        let abilities = Set(server.capabilities)
        summary = alert.title
        body = abilities.contains("body-markup") ? Markup.escape(alert.body) : alert.body
        actions = []
        if abilities.contains("actions") {
            actions = [Self.clicked, "Open"]
            // A button with this id could not be distinguished from a click on the notification.
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

/// Escapes plain text for markup, and paths for URLs.
public enum Markup {
    /// Escapes text so that a server with `body-markup` shows it unchanged.
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

    /// Whether a name is valid for a desktop entry: a file name of characters that the specification allows.
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
