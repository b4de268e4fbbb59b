// SPDX-License-Identifier: Apache-2.0

import WireText

/// The files, environment variables and properties of the machine that an importer may read. Tests replace them.
public struct SourceTree {
    /// The bytes of a file; nil if there is no such file, or it cannot be read.
    public var read: (String) -> [UInt8]?
    /// The names in a folder, sorted; nil if there is no such folder.
    public var names: (String) -> [String]?
    /// The path of an executable file with all symlinks resolved; nil if there is no such file.
    public var program: (String) -> String? = { _ in nil }
    /// The environment variables of the process that imports. A supervisor that the user starts from the same shell
    /// would inherit them.
    public var variables: [String: String]
    /// How many processors the machine has.
    public var processors: Int
    /// The host name of the machine.
    public var hostName: String
    /// How many files the process that imports may open, and so a program that the user starts from the same shell.
    public var openFiles: Bound
    /// How many processes the user of the import may have.
    public var processes: Bound
    /// For PM2: the name of the environment, given with `--env`.
    public var environmentName: String?
    /// For compose: whether services become programs on this machine instead of containers.
    public var hasPrograms = false
    /// For compose: the active profiles. Their services are started in addition to those without profiles; "*" stands
    /// for all profiles.
    public var profiles: [String] = []

    /// A limit of setrlimit(2); `UInt64.max` means no limit.
    public struct Bound: Sendable, Hashable {
        /// The soft limit, which is the one in force.
        public var soft: UInt64
        /// The hard limit, up to which a program may raise its soft limit.
        public var hard: UInt64

        /// Creates a limit from the two values of getrlimit(2).
        public init(soft: UInt64, hard: UInt64) {
            self.soft = soft
            self.hard = hard
        }

        /// The limits as text for an app's key `limits`, each raised to `least` if it is lower.
        func raised(to least: UInt64) -> String {
            [soft, hard].map { $0 == .max ? "unlimited" : "\(max(least, $0))" }.joined(separator: ":")
        }
    }

    /// How many files an app may open by default. These are the limits of a systemd service, because Torpor will run as
    /// a service, whereas the shell in which the import runs often has other limits. If the hard limit of this machine
    /// is lower, it is used, because a user without privileges cannot exceed it.
    var filesOfServices: Bound { Bound(soft: 1024, hard: min(openFiles.hard, Self.mostFilesOfServices)) }

    /// The hard limit of open files that systemd gives to a service by default.
    static let mostFilesOfServices: UInt64 = 524_288

    /// Creates a source tree. The default limits are those of a systemd service.
    public init(
        read: @escaping (String) -> [UInt8]?,
        names: @escaping (String) -> [String]?,
        variables: [String: String] = [:],
        processors: Int = 1,
        hostName: String = "localhost",
        openFiles: Bound = Bound(soft: 1024, hard: 524_288),
        processes: Bound = Bound(soft: .max, hard: .max),
        environmentName: String? = nil
    ) {
        self.read = read
        self.names = names
        self.variables = variables
        self.processors = processors
        self.hostName = hostName
        self.openFiles = openFiles
        self.processes = processes
        self.environmentName = environmentName
    }

    /// The text of a file, without a byte order mark, and with `\n` at the end of every line.
    func text(_ path: String) -> String? {
        guard var bytes = read(path) else { return nil }
        if bytes.starts(with: [0xef, 0xbb, 0xbf]) { bytes.removeFirst(3) }
        var text = String(wire: bytes)
        // Remove the characters that stand for variables (``Late``), so that a source cannot contain such marks itself.
        if text.unicodeScalars.contains(where: { (Late.open...Late.close).contains($0) }) {
            text.unicodeScalars.removeAll { (Late.open...Late.close).contains($0) }
        }
        guard bytes.contains(0x0d) else { return text }
        return text.replacing("\r\n", with: "\n").replacing("\r", with: "\n")
    }

    func exists(_ path: String) -> Bool { read(path) != nil || names(path) != nil }

    static func lastPart(_ path: String) -> String {
        path.split(separator: "/").last.map(String.init) ?? path
    }

    static func folder(_ path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// The normal form of a path: without `.`, `..` and empty components. A relative path starts from the folder.
    static func join(_ folder: String, _ path: String) -> String {
        let whole = path.hasPrefix("/") ? path : folder + "/" + path
        var parts: [Substring] = []
        for part in whole.split(separator: "/") where part != "." {
            if part == "..", let last = parts.last, last != ".." {
                parts.removeLast()
            } else if part != ".." || !whole.hasPrefix("/") {
                parts.append(part)
            }
        }
        let joined = parts.joined(separator: "/")
        return whole.hasPrefix("/") ? "/" + joined : joined.isEmpty ? "." : joined
    }
}

/// A pattern for names as glob(7) has them: with `*`, `?`, and sets such as `[a-z]` and `[!0-9]`. As there, a name that
/// begins with a dot must be named by it.
struct NamePattern {
    private enum Element {
        case star
        case any
        case byte(UInt8)
        case set([ClosedRange<UInt8>], isNegated: Bool)

        func matches(_ byte: UInt8) -> Bool {
            switch self {
            case .star: false
            case .any: true
            case .byte(let own): own == byte
            case .set(let ranges, let isNegated): ranges.contains { $0.contains(byte) } != isNegated
            }
        }
    }

    private var pattern: [Element] = []
    /// The minimum length of a name that matches, in bytes.
    private var least = 0
    /// Whether the pattern contains a wildcard.
    private(set) var isPattern = false
    private let namesHidden: Bool

    /// Creates a pattern. Several consecutive stars count as one. A `[` that is never closed stands for itself.
    init(_ text: String) {
        let bytes = Array(text.utf8)
        namesHidden = bytes.first == UInt8(ascii: ".")
        var place = 0
        while place < bytes.count {
            let byte = bytes[place]
            place += 1
            if byte == UInt8(ascii: "*") {
                if case .star? = pattern.last { continue }
                pattern.append(.star)
                isPattern = true
                continue
            }
            least += 1
            if byte == UInt8(ascii: "?") {
                pattern.append(.any)
                isPattern = true
            } else if byte == UInt8(ascii: "["), let (set, next) = Self.set(bytes, from: place) {
                pattern.append(set)
                isPattern = true
                place = next
            } else {
                pattern.append(.byte(byte))
            }
        }
    }

    /// The set after a `[`, and the place after its `]`.
    private static func set(_ bytes: [UInt8], from start: Int) -> (Element, Int)? {
        var place = start
        let isNegated = place < bytes.count && bytes[place] == UInt8(ascii: "!")
        if isNegated { place += 1 }
        let first = place
        var ranges: [ClosedRange<UInt8>] = []
        while place < bytes.count {
            let low = bytes[place]
            // A ] that comes first is a member.
            if low == UInt8(ascii: "]"), place > first { return (.set(ranges, isNegated: isNegated), place + 1) }
            if place + 2 < bytes.count, bytes[place + 1] == UInt8(ascii: "-"), bytes[place + 2] != UInt8(ascii: "]") {
                let high = bytes[place + 2]
                if low <= high { ranges.append(low...high) }
                place += 3
            } else {
                ranges.append(low...low)
                place += 1
            }
        }
        return nil
    }

    func matches(_ name: String) -> Bool {
        let text = Array(name.utf8)
        guard text.count >= least, namesHidden || !isPattern || text.first != UInt8(ascii: ".") else { return false }
        var (here, place) = (0, 0)
        // The positions, in the name and in the pattern, from which to retry after the last star.
        var retry: (here: Int, place: Int)?
        while true {
            if place < pattern.count {
                if case .star = pattern[place] {
                    place += 1
                    retry = (here, place)
                    continue
                }
                if here < text.count, pattern[place].matches(text[here]) {
                    here += 1
                    place += 1
                    continue
                }
            } else if here == text.count {
                return true
            }
            guard let last = retry, last.here < text.count else { return false }
            (here, place) = (last.here + 1, last.place)
            retry = (here, place)
        }
    }
}
