// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// One process of an app.
public struct ProcessInfo: Hashable, Sendable {
    /// The process ID.
    public var pid: Int32
    /// The process ID of its parent.
    public var parent: Int32
    /// The state letter of /proc/PID/stat.
    public var state: String
    /// The command line; the process's name if that is empty.
    public var command: String
    /// How many threads it has.
    public var threads: Int64

    /// Memberwise initializer.
    public init(pid: Int32, parent: Int32, state: String, command: String, threads: Int64) {
        self.pid = pid
        self.parent = parent
        self.state = state
        self.command = command
        self.threads = threads
    }

    /// Decodes a JSON object; throws if a field is missing or has the wrong type.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        pid = try fields.optionalInt32("pid") ?? 0
        parent = try fields.optionalInt32("ppid") ?? 0
        state = try fields.string("state")
        command = try fields.string("command")
        threads = try fields.optionalInt("threads") ?? 1
    }

    /// Encodes a JSON object.
    public var json: JSON {
        [
            "pid": .int(Int64(pid)), "ppid": .int(Int64(parent)), "state": .string(state),
            "command": .string(command), "threads": .int(threads),
        ]
    }
}

/// A deadline that is armed.
public struct DeadlineInfo: Hashable, Sendable {
    /// The name in the configuration: `launch`, `background`, `watchdog` …
    public var name: String
    /// The whole time in milliseconds.
    public var limitMilliseconds: Int64?
    /// Milliseconds left; nil while the deadline is paused.
    public var remainingMilliseconds: Int64?

    /// Memberwise initializer.
    public init(name: String, limitMilliseconds: Int64?, remainingMilliseconds: Int64?) {
        self.name = name
        self.limitMilliseconds = limitMilliseconds
        self.remainingMilliseconds = remainingMilliseconds
    }

    /// Decodes a JSON object; throws if a field is missing or has the wrong type.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        name = try fields.string("name")
        limitMilliseconds = try fields.optionalInt("limit_ms")
        remainingMilliseconds = try fields.optionalInt("remaining_ms")
    }

    /// Encodes a JSON object.
    public var json: JSON {
        [
            "name": .string(name), "limit_ms": .optional(limitMilliseconds),
            "remaining_ms": .optional(remainingMilliseconds),
        ]
    }
}

/// A line of an app's output.
public struct LogLine: Hashable, Sendable {
    /// Microseconds since 1970, where known.
    public var at: Int64?
    /// Which run of the app, counted from 1.
    public var incarnation: Int64?
    /// `stdout` or `stderr`; nil where they are not separate.
    public var stream: String?
    /// The line without its newline.
    public var text: String

    /// Memberwise initializer.
    public init(at: Int64? = nil, incarnation: Int64? = nil, stream: String? = nil, text: String) {
        self.at = at
        self.incarnation = incarnation
        self.stream = stream
        self.text = text
    }

    /// Decodes a JSON object; throws if a field is missing or has the wrong type.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        at = try fields.optionalInt("at")
        incarnation = try fields.optionalInt("incarnation")
        stream = try fields.optionalString("stream")
        text = try fields.string("text")
    }

    /// Encodes a JSON object.
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
    /// Size in bytes.
    public var bytes: Int64
    /// When it was saved, microseconds since 1970.
    public var at: Int64

    /// Memberwise initializer.
    public init(path: String, bytes: Int64, at: Int64) {
        self.path = path
        self.bytes = bytes
        self.at = at
    }

    /// Decodes a JSON object; throws if a field is missing or has the wrong type.
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

    /// Encodes a JSON object.
    public var json: JSON { ["path": .string(path), "bytes": .int(bytes), "at": .int(at)] }
}

/// What suspends an app that is in the background.
public enum Suspender: String, Hashable, Sendable {
    /// An event woke it: it is suspended again when the time for the event is over.
    case eventTime = "event-time"
    /// It was launched to be suspended: it is suspended when its first background time is over.
    case launch
    /// A user asked: it is suspended as soon as nothing keeps it awake.
    case asked
    /// A policy may suspend it when its background time is used up.
    case policy
    /// Only a user suspends it: no policy is in charge.
    case nobody
}

/// How the health of an app is checked. Why the last check failed is in its summary.
public struct HealthInfo: Hashable, Sendable {
    /// What is asked, and how often.
    public var check: String
    /// Whether there was a result since the app was launched or woke.
    public var isKnown: Bool

    /// Memberwise initializer.
    public init(check: String, isKnown: Bool) { (self.check, self.isKnown) = (check, isKnown) }
}

/// What an app's sleep has saved in this run of it.
public struct SleepInfo: Hashable, Sendable {
    /// For how long it was suspended, in seconds.
    public var seconds: Double
    /// The processor time that it would have used meanwhile at its pace while awake, in seconds; nil if it has not been awake
    /// for a second.
    public var processorSaved: Double?
    /// Bytes of its memory that are paged out now.
    public var pagedOut: Int64

    /// - Parameters:
    ///   - seconds: for how long it was suspended.
    ///   - awake: for how long it was not, in seconds.
    ///   - processor: the processor time that it has used, in seconds.
    ///   - pagedOut: bytes of its memory that are paged out now.
    public init(seconds: Double, awake: Double, processor: Double, pagedOut: Int64) {
        self.seconds = seconds
        self.pagedOut = pagedOut
        processorSaved = awake < 1 ? nil : processor / awake * seconds
    }

    init?(fields: Fields) throws(FieldError) {
        guard let seconds = try fields.optionalDouble("asleep_s") else { return nil }
        self.seconds = seconds
        processorSaved = try fields.optionalDouble("cpu_saved_s")
        pagedOut = try fields.optionalInt("paged_out") ?? 0
    }
}

/// The container of an app.
public struct ContainerInfo: Hashable, Sendable {
    /// What podman calls it.
    public var name: String
    /// Its image, as the configuration has it.
    public var image: String
    /// The digest of the image that it was started with, `sha256:…`; nil if it does not run, or podman gave none.
    public var digest: String?
    /// Its published ports, as the configuration has them.
    public var ports: [String] = []
    /// Its networks.
    public var networks: [String] = []

    /// A container that has not been started.
    public init(name: String, image: String) { (self.name, self.image) = (name, image) }

    static func optional(_ fields: Fields, _ name: String) throws(FieldError) -> ContainerInfo? {
        guard let json = fields[name], !json.isNull else { return nil }
        return try ContainerInfo(json: json)
    }

    private init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        name = try fields.string("name")
        image = try fields.string("image")
        digest = try fields.optionalString("digest")
        ports = try fields.strings("ports")
        networks = try fields.strings("networks")
    }

    /// Encodes a JSON object.
    public var json: JSON {
        [
            "name": .string(name), "image": .string(image), "digest": .optional(digest), "ports": .strings(ports),
            "networks": .strings(networks),
        ]
    }
}

/// Everything about one app. In JSON the fields of the summary are at the same level as the others.
public struct AppStatus: Hashable, Sendable {
    /// What `list` shows.
    public var summary: AppSummary
    /// When it entered its state, microseconds since 1970.
    public var stateSince: Int64?
    /// What suspends it; nil if it is not in the background.
    public var suspendedBy: Suspender?
    /// What wakes it from suspension or launches it, in words.
    public var wokenBy: [String] = []
    /// What one may expect to wake it but does not, in words.
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
    /// How it reports that it is ready: `exec`, `notify`, `tcp 127.0.0.1:8000` …
    public var ready: String?
    /// Apps that are started and ready before it, and stopped after it.
    public var requires: [String] = []
    /// Apps that are only ordered before it.
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
    /// If a user force-quit it: what that means for events that would launch it, in words.
    public var forceQuit: String?
    /// The memory limit in bytes.
    public var memoryLimit: Int64?
    /// How many messages are queued for it.
    public var mailbox: Int64 = 0
    /// How many messages no app handled.
    public var unhandled: Int64 = 0
    /// How many of its transfers have not ended.
    public var transfers: Int64 = 0
    /// Where its data folders are; nil if it has none.
    public var dataFolder: String?
    /// Settings whose stored values no longer fit their declaration: they count as not set.
    public var unfitSettings: [String] = []
    /// The deadlines that are armed.
    public var deadlines: [DeadlineInfo] = []
    /// It is stopped by a signal (SIGSTOP …), from itself or another process.
    public var stopped = false
    /// A debugger traces it: its deadlines are off.
    public var traced = false
    /// It was launched with an older configuration than the current one.
    public var outdated = false
    /// The state that it saved, which a launch after a crash or an eviction gets.
    public var archive: ArchiveInfo?
    /// An archive set aside because a launch with it failed.
    public var archiveAside: ArchiveInfo?
    /// What it showed when it was last in the background.
    public var snapshot: SnapshotInfo?
    /// The sockets that are held for it.
    public var sockets: [SocketInfo] = []
    /// Its container; nil if it has none.
    public var container: ContainerInfo?
    /// How its health is checked; nil if it is not.
    public var health: HealthInfo?
    /// Its sleep in this run; nil if it does not run.
    public var sleep: SleepInfo?
    /// The path of its cgroup.
    public var cgroup: String?
    /// The state whose resource profile applies to it.
    public var profile: String?
    /// Parts of the profile that were applied, such as `cpu.weight 25`.
    public var profileDone: [String] = []
    /// Parts of the profile and limits that could not be applied, and why.
    public var profileMissing: [String] = []
    /// The processes, parents before children.
    public var processes: [ProcessInfo] = []
    /// Its last output, if the supervisor keeps it.
    public var log: [LogLine] = []
    /// Where its output is in the journal, if it goes there.
    public var journal: JournalPlace?
    /// Its last termination reports, the newest first.
    public var reports: [Report] = []
    /// How long the launch of its incarnation took.
    public var launch: LaunchTimes?

    /// A status of which only the summary is known so far.
    public init(summary: AppSummary) { self.summary = summary }

    /// Decodes a JSON object; throws if a field is missing or has the wrong type.
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
        container = try ContainerInfo.optional(fields, "container")
        if let check = try fields.optionalString("health") {
            health = HealthInfo(check: check, isKnown: try fields.optionalBool("health_known") ?? false)
        }
        sleep = try SleepInfo(fields: fields)
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

    /// Encodes a JSON object.
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
        object["container"] = container?.json ?? .null
        object["health"] = .optional(health?.check)
        object["health_known"] = .bool(health?.isKnown ?? false)
        object["asleep_s"] = .optional(sleep?.seconds)
        object["cpu_saved_s"] = .optional(sleep?.processorSaved)
        object["paged_out"] = .optional(sleep?.pagedOut)
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
