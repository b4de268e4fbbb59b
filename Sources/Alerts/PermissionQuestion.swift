// SPDX-License-Identifier: Apache-2.0

public import Permissions
import TorporAPI
import WireText

/// The alert by which an app asks people for a permission.
public enum PermissionQuestion {
    /// The id of the alert's button that allows the permission.
    public static let allow = "allow"
    /// The id of the alert's button that denies the permission.
    public static let deny = "deny"

    /// The id of the alert that asks for a permission. It never collides with another alert, since ids that apps
    /// choose contain no slash.
    public static func id(_ permission: String) -> String { "permission/" + permission }

    /// Makes the alert. It is due at once.
    ///
    /// - Parameters:
    ///   - app: the app's name.
    ///   - title: the app's name for people.
    public static func alert(
        _ declaration: PermissionDeclaration,
        number: Int64,
        app: String,
        title: String,
        now: Int64
    ) -> Alert {
        var alert = Alert(
            number: number,
            app: app,
            id: id(declaration.name),
            title: line("Allow \(words(for: declaration)) to \(title)?", AlertRules.longestTitle),
            time: .at(now),
            base: now
        )
        alert.permission = declaration.name
        var body = declaration.purpose
        if case .files(let path, _) = declaration.permission { body = line(path, 120) + "\n" + body }
        alert.body = line(body, AlertRules.longestBody / 4)
        alert.actions = [AlertAction(id: allow, label: "Allow"), AlertAction(id: deny, label: "Deny")]
        return alert
    }

    /// What the permission allows the app, in words.
    static func words(for declaration: PermissionDeclaration) -> String {
        switch declaration.permission {
        case .files(_, let isReadOnly): return isReadOnly ? "reading files" : "reading and changing files"
        case .network:
            let ports = declaration.ports.map { "\($0)" }.joined(separator: ", ")
            return ports.isEmpty ? "the network" : "the network (ports \(ports))"
        case .device(let device):
            switch device {
            case .camera, .microphone: return "the \(device.rawValue)"
            case .gpu: return "the graphics card"
            case .serial: return "serial ports"
            case .usb: return "USB devices"
            case .input: return "keyboard and mouse"
            case .tty: return "terminals"
            }
        case .gift(let gift):
            switch gift {
            case .location: return "the location"
            case .bluetooth: return "Bluetooth"
            case .alerts: return "alerts"
            case .transfers: return "downloads and uploads"
            case .openURL: return "opening links"
            }
        }
    }

    /// Returns at most `limit` Unicode scalars, without control characters, which could control a terminal. A single
    /// character (grapheme cluster) may have any number of scalars.
    private static func line(_ text: String, _ limit: Int) -> String {
        let clean = String.UnicodeScalarView(text.unicodeScalars.filter { $0 == "\n" || !$0.steersTerminals })
        return clean.count > limit ? String(clean.prefix(limit - 1)) + "…" : String(clean)
    }
}
