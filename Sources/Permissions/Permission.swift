// SPDX-License-Identifier: Apache-2.0

import WireText

/// Something that a sandboxed app may do only if it was allowed to.
public enum Permission: Hashable, Sendable {
    /// The file or tree at an absolute path, or at each path that matches the pattern (glob(7)).
    case files(path: String, isReadOnly: Bool)
    /// Sockets to other machines.
    case network
    /// A kind of device, opened by its nodes in /dev.
    case device(Device)
    /// Something that torpord itself does for the app.
    case gift(Gift)

    /// The kinds of devices.
    public enum Device: String, CaseIterable, Sendable {
        case camera, microphone, gpu, serial, usb, input, tty

        /// The device nodes, as paths or patterns (glob(7)).
        public var nodes: [String] {
            switch self {
            case .camera: ["/dev/video*", "/dev/media*", "/dev/v4l"]
            case .microphone: ["/dev/snd"]
            case .gpu: ["/dev/dri", "/dev/nvidia*", "/dev/kfd"]
            // The UARTs of drivers: ttyS0, ttyUSB0, ttyACM0, ttyAMA0.
            case .serial: ["/dev/tty[A-Z]*", "/dev/serial"]
            case .usb: ["/dev/bus/usb", "/dev/hidraw*"]
            case .input: ["/dev/input", "/dev/uinput"]
            // Consoles and pseudo-terminals. An app that opens its user's terminals could type commands into other
            // programs.
            case .tty: ["/dev/tty", "/dev/tty[0-9]*", "/dev/console", "/dev/ptmx", "/dev/pts"]
            }
        }
    }

    /// What torpord itself does for an app.
    public enum Gift: String, CaseIterable, Sendable {
        case location, bluetooth, alerts, transfers
        case openURL = "open-url"
    }

    /// The longest path in bytes (PATH_MAX with its NUL).
    public static let longestPath = 4095

    /// The names of all permissions but `files`, for hints.
    public static let words: [String] =
        ["network"] + Device.allCases.map(\.rawValue) + Gift.allCases.map(\.rawValue)

    /// Why a text is not the name of a permission.
    public struct Problem: Error, Hashable, Sendable, CustomStringConvertible {
        /// What is wrong, as the end of a sentence that begins with the name.
        public let description: String
    }

    /// Reads the name of a permission: `files:/srv/media:ro`, `network`, `camera`.
    public init(_ name: String) throws(Problem) {
        if name.utf8.elementsEqual("network".utf8) {
            self = .network
        } else if let device = Device.allCases.first(where: { $0.rawValue.utf8.elementsEqual(name.utf8) }) {
            self = .device(device)
        } else if let gift = Gift.allCases.first(where: { $0.rawValue.utf8.elementsEqual(name.utf8) }) {
            self = .gift(gift)
        } else {
            self = try Self.files(name)
        }
    }

    private static func files(_ name: String) throws(Problem) -> Permission {
        let prefix = "files:"
        guard name.utf8.starts(with: prefix.utf8) else {
            let list = words.joined(separator: ", ")
            throw Problem(
                description: "is not a permission: write \"files:/path\", \"files:/path:ro\" or one of " + list
            )
        }
        var path = Array(name.utf8.dropFirst(prefix.utf8.count))
        let readOnly = Array(":ro".utf8)
        let isReadOnly = path.suffix(readOnly.count).elementsEqual(readOnly)
        if isReadOnly { path.removeLast(readOnly.count) }
        guard path.first == UInt8(ascii: "/") else {
            throw Problem(description: "names no absolute path: write \"files:/path\" or \"files:/path:ro\"")
        }
        guard path.count <= longestPath else {
            throw Problem(description: "has a path of \(path.count) bytes: at most \(longestPath) are allowed")
        }
        guard !path.contains(where: { $0 < 0x20 || $0 == 0x7f }) else {
            throw Problem(description: "has a control character in its path: rename the file")
        }
        let parts = path.split(separator: UInt8(ascii: "/"))
        guard !parts.contains(where: { $0.elementsEqual("..".utf8) }) else {
            throw Problem(description: "has \"..\" in its path: write the path without it")
        }
        let kept = parts.filter { !$0.elementsEqual(".".utf8) }.map { String(wire: $0) }
        return .files(path: "/" + kept.joined(separator: "/"), isReadOnly: isReadOnly)
    }

    /// The permission's name, in normal form.
    public var name: String {
        switch self {
        case .files(let path, let isReadOnly): "files:" + path + (isReadOnly ? ":ro" : "")
        case .network: "network"
        case .device(let device): device.rawValue
        case .gift(let gift): gift.rawValue
        }
    }
}
