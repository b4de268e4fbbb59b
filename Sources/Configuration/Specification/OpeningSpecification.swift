// SPDX-License-Identifier: Apache-2.0

public import Mailbox
import WireText

/// The URLs and files that an app opens, and those that it may ask other apps to open.
public struct OpeningSpecification: Sendable, Hashable {
    /// The schemes of URLs that the app opens, in lower case: `notes`.
    public var schemes: [String] = []
    /// The hosts whose http and https links the app opens, in lower case: `notes.example.org`.
    public var hosts: [String] = []
    /// The files that the app opens: media types (`text/markdown`, `image/*`) and patterns of file names (`*.md`).
    public var files: [String] = []
    /// The schemes of URLs that the app may ask other apps to open, in lower case; `*` for all.
    public var mayOpen: [String] = []
    /// A command that opens a URL while the app is active; `%u` is replaced by the URL. Empty for no command.
    public var command: [String] = []

    /// Creates the specification of an app that opens nothing.
    public init() {}

    /// Whether the app may ask other apps to open URLs of the scheme.
    public func mayOpen(scheme: String) -> Bool { mayOpen.contains(scheme) || mayOpen.contains("*") }

    /// How well the app matches a target; nil if the app does not open the target.
    public func fit(_ target: OpenTarget) -> OpenFit? {
        switch target {
        case .url(let url):
            if let host = OpenedURL.host(url), hosts.contains(where: { $0.utf8.elementsEqual(host.utf8) }) {
                return .host
            }
            guard let scheme = OpenedURL.scheme(url), schemes.contains(scheme) else { return nil }
            return .scheme
        case .file(let path, let type):
            let name = path.utf8.lastIndex(of: UInt8(ascii: "/")).map { String(path[path.utf8.index(after: $0)...]) }
            if files.contains(where: { !Self.isType($0) && Glob.matches($0, name ?? path) }) { return .name }
            guard let type = type.map({ OpenedURL.lowercased($0.utf8) }) else { return nil }
            if files.contains(where: { $0.utf8.elementsEqual(type.utf8) }) { return .type }
            return files.contains { Self.isType($0) && Glob.matches($0, type) } ? .types : nil
        }
    }

    /// Whether an entry of `opens` is a media type rather than a file name pattern.
    static func isType(_ entry: String) -> Bool { entry.utf8.contains(UInt8(ascii: "/")) }
}

/// How an app matches a target; a greater value is a better match.
public enum OpenFit: Int, Sendable, Hashable, Comparable {
    /// A pattern of media types: `text/*`.
    case types
    case type
    /// A pattern of file names.
    case name
    case scheme
    case host

    /// The name of the match: `host`, `scheme`, `name` or `type`.
    public var word: String {
        switch self {
        case .types, .type: "type"
        case .name: "name"
        case .scheme: "scheme"
        case .host: "host"
        }
    }

    /// Compares the values: a better match is greater.
    public static func < (one: OpenFit, other: OpenFit) -> Bool { one.rawValue < other.rawValue }
}

/// The placeholders for a URL in `exec` and `open_command`.
public enum OpenPlaceholder {
    /// Stands for the URL.
    public static let url = "%u"
    /// Stands for the path if a file is opened, and for the URL of any other target.
    public static let file = "%f"

    /// Whether an argument of the command is one of these placeholders.
    public static func isIn(_ command: [String]) -> Bool { command.contains { $0 == url || $0 == file } }

    /// The command with the target for the placeholders; without a target, the arguments that are placeholders are
    /// omitted.
    public static func fill(_ command: [String], _ target: String?) -> [String] {
        guard isIn(command) else { return command }
        return command.compactMap { word in
            switch word {
            case url: target
            case file: target.map { OpenedURL.path($0) ?? $0 }
            default: word
            }
        }
    }
}
