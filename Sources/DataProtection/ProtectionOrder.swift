// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// The protected folder of an app, in the form in which torpord names it to torpor-protect.
public struct ProtectedFolder: Hashable, Sendable {
    /// The name of the app, and of its folder below the root.
    public let app: String
    /// Whether the folder may be protected by its permissions alone if it cannot be encrypted.
    public let mayFallBack: Bool
    /// The app's user, by name or number; empty for torpord's user.
    public let user: String
    /// The app's group, by name or number; empty for the user's group.
    public let group: String

    /// Memberwise initializer.
    public init(app: String, mayFallBack: Bool, user: String, group: String) {
        (self.app, self.mayFallBack, self.user, self.group) = (app, mayFallBack, user, group)
    }

    /// The arguments of torpor-protect for this folder.
    public var words: [String] { [app, mayFallBack ? "permissions" : "none", user, group] }

    /// The folders that the arguments name; nil if the arguments are invalid.
    public static func folders(_ words: ArraySlice<String>) -> [ProtectedFolder]? {
        guard words.count % 4 == 0 else { return nil }
        let words = Array(words)
        return stride(from: 0, to: words.count, by: 4).map { at in
            ProtectedFolder(
                app: words[at],
                mayFallBack: words[at + 1] == "permissions",
                user: words[at + 2],
                group: words[at + 3]
            )
        }
    }
}

/// The places of protected folders in the state directory. `protected/APP` is the door: a folder of torpord's user that
/// no other user can enter while it is closed. `protected/APP/files` belongs to the app, and is encrypted if the
/// filesystem supports it.
public enum ProtectedPlace {
    /// The name of the root in the state directory.
    public static let root = "protected"
    /// The name of the app's own folder inside `protected/APP`, the door.
    public static let files = "files"
    /// The name of a second folder beside ``files`` while ‘torpor protect move’ works. It holds first the unfinished
    /// copy, then, once the copy has replaced the original, the original. It is never the only complete folder, so it
    /// may be removed at any time.
    public static let draft = ".moving"
    /// The folder of the sealed keys in the root. No app has such a name.
    public static let keys = ".keys"
    /// The file in the root that torpor-protect locks while it works, so that only one works at a time.
    public static let lock = ".lock"
}

/// A process that has files of a protected folder open.
public struct FileHolder: Hashable, Sendable {
    /// The pid of the process.
    public let pid: Int32
    /// The name of the process's program.
    public let name: String
    /// Some of the files, as the process sees them.
    public let files: [String]
    /// How many files the process has open or mapped.
    public let count: Int
    /// The process's cgroup as in `/proc/PID/cgroup`.
    public let cgroup: String?

    /// The most files that are named for each process.
    public static let mostFiles = 8
    /// The most holders per folder whose files are named. Further holders are reported too, with one file each, since
    /// they may be processes of an app.
    public static let mostNamed = 32
    /// The most holders (processes that use files of a folder) that are stored for each folder, to be shown.
    public static let mostShown = 1000

    /// Memberwise initializer.
    public init(pid: Int32, name: String, files: [String], count: Int, cgroup: String? = nil) {
        (self.pid, self.name, self.files, self.count, self.cgroup) = (pid, name, files, count, cgroup)
    }

    /// This holder, merged with another finding about the same process.
    func joined(with other: FileHolder) -> FileHolder {
        let more = other.files.filter { !files.contains($0) }
        return FileHolder(
            pid: pid,
            name: name,
            files: Array((files + more).prefix(Self.mostFiles)),
            count: count + other.count,
            cgroup: cgroup ?? other.cgroup
        )
    }

    /// Decodes a JSON object.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        guard let pid = Int32(exactly: try fields.int("pid")) else {
            throw FieldError(field: "pid", problem: "is none")
        }
        self.init(
            pid: pid,
            name: try fields.string("name"),
            files: try fields.strings("files"),
            count: Int(clamping: try fields.int("count")),
            cgroup: try fields.optionalString("cgroup")
        )
    }

    /// Encodes the value as a JSON object.
    public var json: JSON {
        [
            "pid": .int(Int64(pid)), "name": .string(name), "files": .strings(files), "count": .int(Int64(count)),
            "cgroup": .optional(cgroup),
        ]
    }
}

/// The state of one folder after a run of torpor-protect.
public struct FolderStanding: Hashable, Sendable {
    /// Whether the folder is open.
    public enum State: String, Sendable {
        /// The app can read the folder.
        case open
        /// The folder is closed: no app can open it.
        case closed
        /// The folder stays closed, because the kernel lacks its key.
        case withoutKey = "no-key"
        /// The folder cannot be protected as the configuration demands.
        case refused
    }

    /// The app's name.
    public var app: String
    /// Whether the app can read the folder, and if not, why.
    public var state: State
    /// Whether the kernel encrypts the folder; nil before it was opened for the first time.
    public var isEncrypted: Bool?
    /// Why the folder is in this state, as text that follows the app's name.
    public var problem: String?
    /// Whether files of the folder are still in use although it is closed.
    public var isBusy = false
    /// The processes that use files of the folder. torpor-protect prints them on lines of their own
    /// (``ProtectionAnswer``). May be empty even if files are in use, since the kernel itself may use them.
    public var holders: [FileHolder] = []

    /// Creates the state of a folder with no problem and no process that uses its files.
    public init(app: String, _ state: State) { (self.app, self.state) = (app, state) }

    /// Decodes a JSON object.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        guard let state = State(rawValue: try fields.string("state")) else {
            throw FieldError(field: "state", problem: "is none")
        }
        self.init(app: try fields.string("app"), state)
        isEncrypted = try fields.optionalBool("encrypted")
        problem = try fields.optionalString("problem")
        isBusy = try fields.bool("busy")
    }

    /// Encodes the value as a JSON object.
    public var json: JSON {
        [
            "app": .string(app), "state": .string(state.rawValue), "encrypted": isEncrypted.map { .bool($0) } ?? .null,
            "problem": .optional(problem), "busy": .bool(isBusy),
        ]
    }
}

/// The output of torpor-protect: one JSON object per line, each printed as soon as it is known. First comes the
/// standing of each folder, then (if folders are closed) each holder that was found, and at last a line that shows that
/// the run was complete. If torpor-protect is killed, the lines printed so far count.
public struct ProtectionAnswer: Sendable {
    /// The state of each folder, with the processes that use its files.
    public private(set) var standings: [FolderStanding] = []
    /// Whether the run was complete. If not, there may be further holders.
    public private(set) var isWhole = false

    /// The last line of a complete run.
    public static var end: JSON { ["end": true] }

    /// The line of the output that reports a process that uses files of the app's folder.
    public static func line(_ app: String, _ holder: FileHolder) -> JSON {
        ["app": .string(app), "holder": holder.json]
    }

    /// Creates the answer of a run that printed nothing.
    ///
    /// - Parameter isWhole: whether the run was complete although it printed nothing, because there was nothing to do.
    public init(isWhole: Bool = false) { self.isWhole = isWhole }

    /// Parses the output. A line without a newline at its end is incomplete and ignored. A line that is not JSON is an
    /// error message.
    public init(_ bytes: [UInt8]) throws {
        var places: [String: Int] = [:]
        var known: [Int: [Int32: Int]] = [:]
        guard let last = bytes.lastIndex(of: UInt8(ascii: "\n")) else { return }
        for line in bytes[..<last].split(separator: UInt8(ascii: "\n")) where line.first == UInt8(ascii: "{") {
            let json = try JSON.parse(line)
            if json["end"] != nil {
                isWhole = true
            } else if let found = json["holder"] {
                let holder = try FileHolder(json: found)
                guard let place = places[try Fields(json).string("app")] else { continue }
                standings[place].isBusy = true
                if let at = known[place]?[holder.pid] {
                    standings[place].holders[at] = standings[place].holders[at].joined(with: holder)
                } else {
                    known[place, default: [:]][holder.pid] = standings[place].holders.count
                    standings[place].holders.append(holder)
                }
            } else {
                let standing = try FolderStanding(json: json)
                places[standing.app] = standings.count
                standings.append(standing)
            }
        }
    }
}
