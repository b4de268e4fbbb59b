// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// One process of an app.
public struct ProcessInfo: Hashable, Sendable {
    /// The number of the process.
    public var pid: Int32
    /// The number of its parent.
    public var parent: Int32
    /// The letter of /proc/PID/stat.
    public var state: String
    /// Its command line, else its name.
    public var command: String
    /// How many threads it has.
    public var threads: Int64

    /// Makes one from its parts.
    public init(pid: Int32, parent: Int32, state: String, command: String, threads: Int64) {
        self.pid = pid
        self.parent = parent
        self.state = state
        self.command = command
        self.threads = threads
    }

    /// Reads it from its object.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        pid = try fields.optionalInt32("pid") ?? 0
        parent = try fields.optionalInt32("ppid") ?? 0
        state = try fields.string("state")
        command = try fields.string("command")
        threads = try fields.optionalInt("threads") ?? 1
    }

    /// It as an object.
    public var json: JSON {
        [
            "pid": .int(Int64(pid)), "ppid": .int(Int64(parent)), "state": .string(state),
            "command": .string(command), "threads": .int(threads),
        ]
    }
}

/// A deadline that is armed.
public struct DeadlineInfo: Hashable, Sendable {
    /// Its name, as the configuration has it: `launch`, `background`, `watchdog` …
    public var name: String
    /// Milliseconds in all.
    public var limitMilliseconds: Int64?
    /// Milliseconds that are left; nil while its clock stands still.
    public var remainingMilliseconds: Int64?

    /// Makes one from its parts.
    public init(name: String, limitMilliseconds: Int64?, remainingMilliseconds: Int64?) {
        self.name = name
        self.limitMilliseconds = limitMilliseconds
        self.remainingMilliseconds = remainingMilliseconds
    }

    /// Reads it from its object.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        name = try fields.string("name")
        limitMilliseconds = try fields.optionalInt("limit_ms")
        remainingMilliseconds = try fields.optionalInt("remaining_ms")
    }

    /// It as an object.
    public var json: JSON {
        [
            "name": .string(name), "limit_ms": .optional(limitMilliseconds),
            "remaining_ms": .optional(remainingMilliseconds),
        ]
    }
}

/// One line that an app wrote.
public struct LogLine: Hashable, Sendable {
    /// Microseconds since 1970, where known.
    public var at: Int64?
    /// Which run of the app, counted from 1.
    public var incarnation: Int64?
    /// `stdout` or `stderr`, where they are told apart.
    public var stream: String?
    /// The line without its end.
    public var text: String

    /// Makes one from its parts.
    public init(at: Int64? = nil, incarnation: Int64? = nil, stream: String? = nil, text: String) {
        self.at = at
        self.incarnation = incarnation
        self.stream = stream
        self.text = text
    }

    /// Reads it from its object.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        at = try fields.optionalInt("at")
        incarnation = try fields.optionalInt("incarnation")
        stream = try fields.optionalString("stream")
        text = try fields.string("text")
    }

    /// It as an object.
    public var json: JSON {
        [
            "at": .optional(at), "incarnation": .optional(incarnation), "stream": .optional(stream),
            "text": .string(text),
        ]
    }
}

/// A state archive of an app.
public struct ArchiveInfo: Hashable, Sendable {
    /// Where it is.
    public var path: String
    /// Its size.
    public var bytes: Int64
    /// When it was saved, microseconds since 1970.
    public var at: Int64

    /// Makes one from its parts.
    public init(path: String, bytes: Int64, at: Int64) {
        self.path = path
        self.bytes = bytes
        self.at = at
    }

    /// Reads it from its object.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        path = try fields.string("path")
        bytes = try fields.int("bytes")
        at = try fields.int("at")
    }

    static func optional(_ fields: Fields, _ name: String) throws(FieldError) -> ArchiveInfo? {
        guard let json = fields[name], !json.isNull else { return nil }
        return try ArchiveInfo(json: json)
    }

    /// It as an object.
    public var json: JSON { ["path": .string(path), "bytes": .int(bytes), "at": .int(at)] }
}

/// Who suspends an app that is in the background.
public enum Suspender: String, Hashable, Sendable {
    /// It is suspended again when the time for what woke it is over.
    case eventTime = "event-time"
    /// It was to be suspended when it was launched, and is when its first background time is over.
    case launch
    /// It is to be suspended, and is when nothing keeps it awake any more.
    case asked
    /// A policy may, when its background time is used up.
    case policy
    /// Nobody but a person: no policy is in charge.
    case nobody
}

/// Everything about one app. In JSON the fields of the summary stand beside the others.
public struct AppStatus: Hashable, Sendable {
    /// What `list` shows.
    public var summary: AppSummary
    /// Since when it is in its state, microseconds since 1970.
    public var stateSince: Int64?
    /// Who suspends it; nil for one that is not in the background.
    public var suspendedBy: Suspender?
    /// What wakes it while it is suspended, or launches it, in words.
    public var wokenBy: [String] = []
    /// What one may expect to wake it and does not, in words.
    public var notWokenBy: [String] = []
    /// The command of the configuration.
    public var exec: [String] = []
    /// The configuration file that declares it.
    public var file: String?
    /// The line of that file.
    public var line: Int64?
    /// The tags of its configuration.
    public var tags: [String] {
        get { summary.tags }
        set { summary.tags = newValue }
    }
    /// How it says that it is ready: `exec`, `notify`, `tcp 127.0.0.1:8000` …
    public var ready: String?
    /// Started and ready before it, stopped after it.
    public var requires: [String] = []
    /// Only ordered before it.
    public var after: [String] = []
    /// The apps that require it.
    public var requiredBy: [String] = []
    /// Milliseconds between heartbeats.
    public var watchdogMilliseconds: Int64?
    /// Why its launch waits, in words: for memory, or for a policy.
    public var heldBack: String? {
        get { summary.heldBack }
        set { summary.heldBack = newValue }
    }
    /// Of one that a person force-quit, what that means for events that would launch it, in words.
    public var forceQuit: String?
    /// Bytes that it may have at most.
    public var memoryLimit: Int64?
    /// How many messages wait to be told to it.
    public var mailbox: Int64 = 0
    /// How many messages nobody handled.
    public var unhandled: Int64 = 0
    /// How many of its transfers are not over.
    public var transfers: Int64 = 0
    /// Where its data folders are; nil for one that has none.
    public var dataFolder: String?
    /// The settings whose values do not fit their declaration: they count as not set.
    public var unfitSettings: [String] = []
    /// The deadlines that are armed.
    public var deadlines: [DeadlineInfo] = []
    /// It stopped itself, or somebody else stopped it.
    public var stopped = false
    /// A debugger traces it: its deadlines are off.
    public var traced = false
    /// It was launched by an older configuration than is in force.
    public var outdated = false
    /// The state that it saved, which a launch after a crash or an eviction gets.
    public var archive: ArchiveInfo?
    /// One with which a launch did not come up.
    public var archiveAside: ArchiveInfo?
    /// What it showed when it was in the background last.
    public var snapshot: SnapshotInfo?
    /// The sockets that are held for it.
    public var sockets: [SocketInfo] = []
    /// The path of its cgroup.
    public var cgroup: String?
    /// The state whose share of the machine it has.
    public var profile: String?
    /// What of that share was given to it, such as `cpu.weight 25`.
    public var profileDone: [String] = []
    /// What of that, and of its limits, could not be had, and why.
    public var profileMissing: [String] = []
    /// Parents before children.
    public var processes: [ProcessInfo] = []
    /// Its last output, where the supervisor keeps it.
    public var log: [LogLine] = []
    /// Where its output is, if that is the journal.
    public var journal: JournalPlace?
    /// Its last termination reports, the newest first.
    public var reports: [Report] = []
    /// How the launch of its incarnation went.
    public var launch: LaunchTimes?

    /// A status of which only the summary is known so far.
    public init(summary: AppSummary) { self.summary = summary }

    /// Reads it from its object.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        summary = try AppSummary(fields: fields)
        stateSince = try fields.optionalInt("state_since")
        suspendedBy = try fields.optionalString("suspended_by").flatMap(Suspender.init)
        wokenBy = try fields.strings("woken_by")
        notWokenBy = try fields.strings("not_woken_by")
        memoryLimit = try fields.optionalInt("memory_limit")
        exec = try fields.strings("exec")
        file = try fields.optionalString("file")
        line = try fields.optionalInt("line")
        ready = try fields.optionalString("ready")
        requires = try fields.strings("requires")
        after = try fields.strings("after")
        requiredBy = try fields.strings("required_by")
        watchdogMilliseconds = try fields.optionalInt("watchdog_ms")
        forceQuit = try fields.optionalString("force_quit")
        mailbox = try fields.optionalInt("mailbox") ?? 0
        unhandled = try fields.optionalInt("unhandled") ?? 0
        transfers = try fields.optionalInt("transfers") ?? 0
        dataFolder = try fields.optionalString("data_folder")
        unfitSettings = try fields.strings("unfit_settings")
        deadlines = try fields.list("deadlines") { json throws(FieldError) in try DeadlineInfo(json: json) }
        stopped = try fields.optionalBool("stopped") ?? false
        traced = try fields.optionalBool("traced") ?? false
        outdated = try fields.optionalBool("outdated") ?? false
        archive = try ArchiveInfo.optional(fields, "state_archive")
        archiveAside = try ArchiveInfo.optional(fields, "state_set_aside")
        snapshot = try SnapshotInfo.optional(fields, "snapshot")
        sockets = try fields.list("sockets") { json throws(FieldError) in try SocketInfo(json: json) }
        cgroup = try fields.optionalString("cgroup")
        profile = try fields.optionalString("profile")
        profileDone = try fields.strings("profile_done")
        profileMissing = try fields.strings("profile_missing")
        processes = try fields.list("processes") { json throws(FieldError) in try ProcessInfo(json: json) }
        log = try fields.list("log") { json throws(FieldError) in try LogLine(json: json) }
        journal = try JournalPlace.optional(fields)
        reports = try fields.list("reports") { json throws(FieldError) in try Report(json: json) }
        launch = try LaunchTimes.optional(fields, "launch")
    }

    /// It as an object.
    public var json: JSON {
        var object = summary.object
        object["state_since"] = .optional(stateSince)
        object["suspended_by"] = .optional(suspendedBy?.rawValue)
        object["woken_by"] = .strings(wokenBy)
        object["not_woken_by"] = .strings(notWokenBy)
        object["memory_limit"] = .optional(memoryLimit)
        object["exec"] = .strings(exec)
        object["file"] = .optional(file)
        object["line"] = .optional(line)
        object["ready"] = .optional(ready)
        object["requires"] = .strings(requires)
        object["after"] = .strings(after)
        object["required_by"] = .strings(requiredBy)
        object["watchdog_ms"] = .optional(watchdogMilliseconds)
        object["force_quit"] = .optional(forceQuit)
        object["mailbox"] = .int(mailbox)
        object["unhandled"] = .int(unhandled)
        object["transfers"] = .int(transfers)
        object["data_folder"] = .optional(dataFolder)
        object["unfit_settings"] = .strings(unfitSettings)
        object["deadlines"] = .array(deadlines.map(\.json))
        object["stopped"] = .bool(stopped)
        object["traced"] = .bool(traced)
        object["outdated"] = .bool(outdated)
        object["state_archive"] = archive?.json ?? .null
        object["state_set_aside"] = archiveAside?.json ?? .null
        object["snapshot"] = snapshot?.json ?? .null
        object["sockets"] = .array(sockets.map(\.json))
        object["cgroup"] = .optional(cgroup)
        object["profile"] = .optional(profile)
        object["profile_done"] = .strings(profileDone)
        object["profile_missing"] = .strings(profileMissing)
        object["processes"] = .array(processes.map(\.json))
        object["log"] = .array(log.map(\.json))
        object["journal"] = journal?.json ?? .null
        object["reports"] = .array(reports.map(\.json))
        object["launch"] = launch?.json ?? .null
        return .object(object)
    }
}
