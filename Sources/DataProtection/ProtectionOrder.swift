// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// The folder of an app with protected data, as torpord names it to torpor-protect.
public struct ProtectedFolder: Hashable, Sendable {
    /// The name of the app, and of its folder below the root.
    public let app: String
    /// Whether the folder may be closed by its mode alone, where it cannot be encrypted.
    public let mayFallBack: Bool
    /// The app's user, by name or number; empty for that of torpord.
    public let user: String
    /// The app's group, by name or number; empty for that of the user.
    public let group: String

    /// Memberwise initializer.
    public init(app: String, mayFallBack: Bool, user: String, group: String) {
        (self.app, self.mayFallBack, self.user, self.group) = (app, mayFallBack, user, group)
    }

    /// The arguments of torpor-protect for this folder.
    public var words: [String] { [app, mayFallBack ? "permissions" : "none", user, group] }

    /// The folders that arguments name; nil if the arguments are none.
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

/// Where protected folders are, below the state directory: `protected/APP` is the door, a folder of torpord's user that
/// lets nobody through while it is closed; `protected/APP/files` is the app's, and encrypted where the filesystem can.
public enum ProtectedPlace {
    /// The name of the root in the state directory.
    public static let root = "protected"
    /// The name of the app's own folder behind its door.
    public static let files = "files"
    /// The folder of the sealed keys in the root. No app has such a name.
    public static let keys = ".keys"
    /// The file in the root that one torpor-protect locks while it works.
    public static let lock = ".lock"
}

/// A process that has files of a protected folder open.
public struct FileHolder: Hashable, Sendable {
    /// Its pid.
    public let pid: Int32
    /// The name of its program.
    public let name: String
    /// Some of the files, as the process sees them.
    public let files: [String]
    /// How many files it has open or mapped.
    public let count: Int
    /// Its cgroup, as `/proc/PID/cgroup` has it.
    public let cgroup: String?

    /// The most files of each that are named.
    public static let mostFiles = 8
    /// The most holders of a folder whose files are named. All are reported: one of them may belong to an app.
    public static let mostNamed = 32
    /// The most holders of a folder that are remembered to be shown.
    public static let mostShown = 1000

    /// Memberwise initializer.
    public init(pid: Int32, name: String, files: [String], count: Int, cgroup: String? = nil) {
        (self.pid, self.name, self.files, self.count, self.cgroup) = (pid, name, files, count, cgroup)
    }

    /// The holder together with what else was found of the same process.
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

    /// Encodes a JSON object.
    public var json: JSON {
        [
            "pid": .int(Int64(pid)), "name": .string(name), "files": .strings(files), "count": .int(Int64(count)),
            "cgroup": .optional(cgroup),
        ]
    }
}

/// What torpor-protect found or did about one folder.
public struct FolderStanding: Hashable, Sendable {
    /// Whether the folder is open.
    public enum State: String, Sendable {
        /// Its app can read it.
        case open
        /// No app can open it.
        case closed
        /// The kernel lacks its key, so that it stays closed.
        case withoutKey = "no-key"
        /// It cannot be protected as configured.
        case refused
    }

    /// The app's name.
    public var app: String
    /// Whether its folder is open.
    public var state: State
    /// Whether the kernel encrypts it; nil before it was opened for the first time.
    public var isEncrypted: Bool?
    /// Why it is in this state, in words that follow the app's name.
    public var problem: String?
    /// Whether files of it are still in use although it is closed.
    public var isBusy = false
    /// The processes that use them, which are lines of their own (``ProtectionAnswer``). May be empty: what the kernel
    /// itself holds belongs to no process.
    public var holders: [FileHolder] = []

    /// Creates a standing without problems and holders.
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

    /// Encodes a JSON object.
    public var json: JSON {
        [
            "app": .string(app), "state": .string(state.rawValue), "encrypted": isEncrypted.map { .bool($0) } ?? .null,
            "problem": .optional(problem), "busy": .bool(isBusy),
        ]
    }
}

/// What torpor-protect prints, a line of JSON each, at once when it is known: the standing of each folder; after all of
/// them, when it closes, the holders that it finds; and that it came to its end. If it is ended before, what it has
/// printed counts.
public struct ProtectionAnswer: Sendable {
    /// The folders, with their holders.
    public private(set) var standings: [FolderStanding] = []
    /// Whether it came to its end. Otherwise there may be more holders.
    public private(set) var isWhole = false

    /// The last line.
    public static var end: JSON { ["end": true] }

    /// The line of a holder.
    public static func line(_ app: String, _ holder: FileHolder) -> JSON {
        ["app": .string(app), "holder": holder.json]
    }

    /// Creates the answer of a run that printed nothing.
    ///
    /// - Parameter isWhole: whether the run was complete although it printed nothing, because there was nothing to do.
    public init(isWhole: Bool = false) { self.isWhole = isWhole }

    /// Reads lines. What follows the last newline is a line that was not finished; what is no JSON is a sentence about
    /// an error.
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
