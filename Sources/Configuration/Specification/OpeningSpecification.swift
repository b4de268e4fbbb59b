// SPDX-License-Identifier: Apache-2.0

public import Mailbox
import WireText

/// The URLs and files that an app opens, and the URLs that it may ask other apps to open.
public struct OpeningSpecification: Sendable, Hashable {
    /// The URL schemes that the app opens, in lower case, such as `notes`.
    public var schemes: [String] = []
    /// The hosts of http and https links that the app opens, in lower case, such as `notes.example.org`.
    public var hosts: [String] = []
    /// The files that the app opens: media types (`text/markdown`, `image/*`) and patterns of file names (`*.md`).
    public var files: [String] = []
    /// The URL schemes that the app may ask other apps to open, in lower case; `*` for all schemes.
    public var mayOpen: [String] = []
    /// The types of activities that the app continues, such as `org.example.note`.
    public var activities: [String] = []
    /// A command that opens a URL while the app is active. The URL replaces `%u`. Empty for no command.
    public var command: [String] = []

    /// Creates the specification of an app that opens nothing.
    public init() {}

    /// Whether the app may ask other apps to open URLs with this scheme.
    public func mayOpen(scheme: String) -> Bool { mayOpen.contains(scheme) || mayOpen.contains("*") }

    /// How well the app matches the URL or file; nil if the app does not open it.
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

    /// Whether an entry of `opens` is a media type, not a pattern of file names.
    static func isType(_ entry: String) -> Bool { entry.utf8.contains(UInt8(ascii: "/")) }
}

/// How an app matches a URL or file. A greater value is a better match.
public enum OpenFit: Int, Sendable, Hashable, Comparable {
    /// The media type matches a pattern, such as `text/*`, in the app's key `opens`.
    case types
    case type
    /// The file's name matches a pattern, such as `*.md`, in the app's key `opens`.
    case name
    case scheme
    case host

    /// The kind of match as a word for users: `host`, `scheme`, `name` or `type`.
    public var word: String {
        switch self {
        case .types, .type: "type"
        case .name: "name"
        case .scheme: "scheme"
        case .host: "host"
        }
    }

    /// Whether `one` is a worse match than `other`.
    public static func < (one: OpenFit, other: OpenFit) -> Bool { one.rawValue < other.rawValue }
}

/// The placeholders in `exec` and `open_command` for a URL or file.
public enum OpenPlaceholder {
    /// The placeholder for the URL.
    public static let url = "%u"
    /// The placeholder for the path of a file. If the target is a URL and not a file, the URL is inserted.
    public static let file = "%f"

    /// Whether an argument of the command is `%u` or `%f`.
    public static func isIn(_ command: [String]) -> Bool { command.contains { $0 == url || $0 == file } }

    /// The command with the target inserted for its placeholders. Without a target, arguments that are placeholders are
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
