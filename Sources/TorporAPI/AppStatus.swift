// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// The processes of an app that its status contains.
public struct ShownProcesses: Hashable, Sendable {
    /// The processes, parents before their children.
    public var list: [ProcessInfo] = []
    /// How many further processes the app has; nil if `list` contains all.
    public var leftOut: Int64?

    /// No processes.
    public init() {}
}

/// One process of an app.
public struct ProcessInfo: Hashable, Sendable {
    /// The process ID (pid).
    public var pid: Int32
    /// The pid of the parent process.
    public var parent: Int32
    /// The state letter of /proc/PID/stat.
    public var state: String
    /// The command line; if that is empty, the process's name.
    public var command: String
    /// How many threads the process has.
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

    /// Encodes the value as a JSON object.
    public var json: JSON {
        [
            "pid": .int(Int64(pid)), "ppid": .int(Int64(parent)), "state": .string(state),
            "command": .string(command), "threads": .int(threads),
        ]
    }
}

/// An armed deadline of an app.
public struct DeadlineInfo: Hashable, Sendable {
    /// The name of the deadline in the configuration: `launch`, `background`, `watchdog` …
    public var name: String
    /// The whole time that the app has until the deadline, in milliseconds.
    public var limitMilliseconds: Int64?
    /// Milliseconds left until the deadline; nil while the deadline is paused.
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

    /// Encodes the value as a JSON object.
    public var json: JSON {
        [
            "name": .string(name), "limit_ms": .optional(limitMilliseconds),
            "remaining_ms": .optional(remainingMilliseconds),
        ]
    }
}

/// A line of an app's output.
public struct LogLine: Hashable, Sendable {
    /// When the line was written, in microseconds since 1970; nil if unknown.
    public var at: Int64?
    /// The number of the app's run that wrote the line, counted from 1.
    public var incarnation: Int64?
    /// `stdout` or `stderr`; nil if the two are not separate.
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

    /// Encodes the value as a JSON object.
    public var json: JSON {
        var object = JSONObject()
        object.reserve(4)
        addMembers(to: &object)
        return .object(object)
    }

    /// Appends the JSON object as text.
    public func append(to writer: inout JSONWriter) { writer.appendObject { addMembers(to: &$0) } }

    private func addMembers(to members: inout some JSONMembers & ~Copyable) {
        members.add("at", at)
        members.add("incarnation", incarnation)
        members.add("stream", stream)
        members.add("text", text)
    }
}

/// What suspends an app that is in the background, and when.
public enum Suspender: String, Hashable, Sendable {
    /// An event woke the app: it is suspended again when the time for the event is over.
    case eventTime = "event-time"
    /// The app was launched only to be suspended: it is suspended when its first background time is over.
    case launch
    /// A user requested the suspension: the app is suspended as soon as nothing keeps it awake.
    case asked
    /// A policy may suspend the app once the app's background time is used up.
    case policy
    /// No policy is in use, so only a user's request suspends the app.
    case nobody
}

/// How the health of an app is checked. Why the last check failed is in ``AppSummary/unhealthy``.
public struct HealthInfo: Hashable, Sendable {
    /// What is checked, and how often.
    public var check: String
    /// Whether a check has had a result since the app was launched or resumed.
    public var isKnown: Bool

    /// Memberwise initializer.
    public init(check: String, isKnown: Bool) { (self.check, self.isKnown) = (check, isKnown) }
}

/// For how long an app was suspended in its current run, and the resources that this has saved.
public struct SleepInfo: Hashable, Sendable {
    /// For how long the app was suspended, in seconds.
    public var seconds: Double
    /// The processor time, in seconds, that the app would have used while it was suspended, at its average rate while
    /// awake; nil if the app has been awake for less than a minute, since a launch uses much more than that rate.
    public var processorSaved: Double?
    /// Bytes of the app's memory that are paged out now.
    public var pagedOut: Int64

    /// - Parameters:
    ///   - seconds: for how long the app was suspended, in seconds.
    ///   - awake: for how long the app was not suspended, in seconds.
    ///   - processor: the processor time that the app has used, in seconds.
    ///   - pagedOut: bytes of the app's memory that are paged out now.
    public init(seconds: Double, awake: Double, processor: Double, pagedOut: Int64) {
        self.seconds = seconds
        self.pagedOut = pagedOut
        processorSaved = awake < 60 ? nil : processor / awake * seconds
    }

    init?(fields: Fields) throws(FieldError) {
        guard let seconds = try fields.optionalDouble("asleep_s") else { return nil }
        self.seconds = seconds
        processorSaved = try fields.optionalDouble("cpu_saved_s")
        pagedOut = try fields.optionalInt("paged_out") ?? 0
    }
}

/// The fields of ``AppStatus`` about an app's container, sandbox and protected data, most of which are nil for most
/// apps.
private struct Walls: Hashable, Sendable {
    var container: ContainerInfo?
    var sandbox: SandboxInfo?
    var protection: ProtectionInfo?
}

/// Everything about one app. In JSON, the fields of `summary` are at the same level as the others.
public struct AppStatus: Hashable, Sendable {
    /// The fields that `torpor list` shows.
    public var summary: AppSummary
    /// When the app entered its state, microseconds since 1970.
    public var stateSince: Int64?
    /// What suspends the app; nil if the app is not in the background.
    public var suspendedBy: Suspender?
    /// The events that wake the app from suspension or launch it, in words.
    public var wokenBy: [String] = []
    /// The events that a user may expect to wake the app, but that do not, in words.
    public var notWokenBy: [String] = []
    /// The app's command, from the configuration.
    public var exec: [String] = []
    /// The configuration file that declares the app.
    public var file: String?
    /// The line of the configuration file where the app is declared.
    public var line: Int64?
    /// The app's tags, from the configuration.
    public var tags: [String] {
        get { summary.tags }
        set { summary.tags = newValue }
    }
    /// How the app reports that it is ready: `exec`, `notify`, `tcp 127.0.0.1:8000` …
    public var ready: String?
    /// The apps that must be ready before the app starts, and that are stopped after it.
    public var requires: [String] = []
    /// The apps that, if they are launched too, are launched before the app.
    public var after: [String] = []
    /// The apps that require this app.
    public var requiredBy: [String] = []
    /// The maximum time between the app's heartbeats, in milliseconds; nil without a watchdog.
    public var watchdogMilliseconds: Int64?
    /// Why the app's launch is delayed, in words: it waits for memory, or for a policy.
    public var heldBack: String? {
        get { summary.heldBack }
        set { summary.heldBack = newValue }
    }
    /// What a force quit by a user means for events that would launch the app, in words; nil if no user has force-quit
    /// the app.
    public var forceQuit: String?
    /// The app's memory limit in bytes.
    public var memoryLimit: Int64? {
        get { memory.limit }
        set { memory.limit = newValue }
    }
    /// The memory that counts for the limit; nil if there is no limit, or the app does not run.
    public var countedMemory: CountedMemory? {
        get { memory.counted }
        set { memory.counted = newValue }
    }
    private var memory = LimitedMemory()
    /// How many messages are queued for the app.
    public var mailbox: Int64 = 0
    /// How many messages to the app were handled by no app.
    public var unhandled: Int64 = 0
    /// The message that the app is working on; nil if there is none, or if a transition of the app waits for the
    /// answer.
    public var work: WorkInfo? {
        get { places.work }
        set { places.work = newValue }
    }
    /// How many of the app's transfers have not ended.
    public var transfers: Int64 = 0
    /// The folder that contains the app's data folders; nil if the app has none.
    public var dataFolder: String? {
        get { places.data }
        set { places.data = newValue }
    }
    /// The bundle that the app comes from, and its version, such as `notes 1.0`; nil for an app without a bundle.
    public var bundle: String? {
        get { places.bundle }
        set { places.bundle = newValue }
    }
    /// How the bundle is verified: `by the kernel` or `at launch`; nil while the app does not run.
    public var bundleVerified: String? {
        get { places.bundleVerified }
        set { places.bundleVerified = newValue }
    }
    /// The bundle version that torpord replaced by the previous one after two failed launches; nil for none.
    public var bundlePutBack: String? {
        get { places.bundlePutBack }
        set { places.bundlePutBack = newValue }
    }
    private var places = Places()
    /// The names of settings whose stored values no longer fit their declaration. torpord treats these settings as not
    /// set.
    public var unfitSettings: [String] = []
    /// The app's armed deadlines.
    public var deadlines: [DeadlineInfo] = []
    /// Whether the app is stopped by a signal (SIGSTOP …) from itself or from a process other than torpord.
    public var stopped = false
    /// Whether a debugger traces the app, which disables the app's deadlines.
    public var traced = false
    /// Whether the app was launched with an older configuration than the current one, or with other contents of its
    /// `environment_file`.
    public var outdated = false
    /// The state that the app saved. After a crash or an eviction, torpord passes it to the next launch.
    public var archive: ArchiveInfo?
    /// The state archives that torpord no longer uses, because launches with them failed; the first one first.
    public var archivesAside: [ArchiveInfo] = []
    /// The app's snapshot from when it was last in the background; nil if there is none.
    public var snapshot: SnapshotInfo?
    /// The sockets that torpord has bound for the app.
    public var sockets: [SocketInfo] = []
    /// The app's services on the local network.
    public var announcements: [AnnouncementInfo] {
        get { places.announcements }
        set { places.announcements = newValue }
    }
    private var walls = Walls()
    /// The app's container; nil if it has none.
    public var container: ContainerInfo? {
        get { walls.container }
        set { walls.container = newValue }
    }
    /// The app's protected data; nil if it has none.
    public var protection: ProtectionInfo? {
        get { walls.protection }
        set { walls.protection = newValue }
    }
    /// The app's sandbox; nil if it has none.
    public var sandbox: SandboxInfo? {
        get { walls.sandbox }
        set { walls.sandbox = newValue }
    }
    /// How the app's health is checked; nil if it is not checked.
    public var health: HealthInfo?
    /// What suspension has saved in the app's current run; nil if the app does not run.
    public var sleep: SleepInfo?
    /// The path of the app's cgroup.
    public var cgroup: String?
    /// The state whose resource profile applies to the app.
    public var profile: String?
    /// The parts of the resource profile that were applied, such as `cpu.weight 25`.
    public var profileDone: [String] = []
    /// The parts of the resource profile and the limits that could not be applied, each with the reason.
    public var profileMissing: [String] = []
    /// The app's processes, or the first of very many.
    public var shownProcesses = ShownProcesses()
    /// The last lines of the app's output, if the supervisor itself stores that output.
    public var log: [LogLine] = []
    /// Where the app's output is in the journal; nil if it is not written to the journal.
    public var journal: JournalPlace?
    /// The app's last termination reports, the newest first.
    public var reports: [Report] = []
    /// How long the launch of the current or last run took.
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
        countedMemory = try CountedMemory(fields: fields)
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
        work = try WorkInfo.optional(fields, "work")
        transfers = try fields.optionalInt("transfers") ?? 0
        dataFolder = try fields.optionalString("data_folder")
        bundle = try fields.optionalString("bundle")
        bundleVerified = try fields.optionalString("bundle_verified")
        bundlePutBack = try fields.optionalString("bundle_failed")
        unfitSettings = try fields.strings("unfit_settings")
        deadlines = try fields.list("deadlines") { json throws(FieldError) in try DeadlineInfo(json: json) }
        stopped = try fields.optionalBool("stopped") ?? false
        traced = try fields.optionalBool("traced") ?? false
        outdated = try fields.optionalBool("outdated") ?? false
        archive = try ArchiveInfo.optional(fields, "state_archive")
        archivesAside = try fields.list("states_set_aside") { json throws(FieldError) in try ArchiveInfo(json: json) }
        // An earlier torpord keeps one, and names only that.
        if archivesAside.isEmpty, let aside = try ArchiveInfo.optional(fields, "state_set_aside") {
            archivesAside = [aside]
        }
        snapshot = try SnapshotInfo.optional(fields, "snapshot")
        sockets = try fields.list("sockets") { json throws(FieldError) in try SocketInfo(json: json) }
        announcements = try fields.list("announcements") { json throws(FieldError) in try AnnouncementInfo(json: json) }
        container = try ContainerInfo.optional(fields, "container")
        sandbox = try SandboxInfo.optional(fields, "sandbox")
        protection = try ProtectionInfo.optional(fields, "protection")
        if let check = try fields.optionalString("health") {
            health = HealthInfo(check: check, isKnown: try fields.optionalBool("health_known") ?? false)
        }
        sleep = try SleepInfo(fields: fields)
        cgroup = try fields.optionalString("cgroup")
        profile = try fields.optionalString("profile")
        profileDone = try fields.strings("profile_done")
        profileMissing = try fields.strings("profile_missing")
        shownProcesses.list = try fields.list("processes") { json throws(FieldError) in try ProcessInfo(json: json) }
        shownProcesses.leftOut = try fields.optionalInt("processes_left_out")
        log = try fields.list("log") { json throws(FieldError) in try LogLine(json: json) }
        journal = try JournalPlace.optional(fields)
        reports = try fields.list("reports") { json throws(FieldError) in try Report(json: json) }
        launch = try LaunchTimes.optional(fields, "launch")
    }

    /// Encodes the value as a JSON object.
    public var json: JSON {
        var object = summary.object
        object.append("state_since", .optional(stateSince))
        object.append("suspended_by", .optional(suspendedBy?.rawValue))
        object.append("woken_by", .strings(wokenBy))
        object.append("not_woken_by", .strings(notWokenBy))
        object.append("memory_limit", .optional(memoryLimit))
        object.append("memory_counted", .optional(countedMemory?.bytes))
        object.append("memory_counted_by", .optional(countedMemory?.measure.rawValue))
        object.append("exec", .strings(exec))
        object.append("file", .optional(file))
        object.append("line", .optional(line))
        object.append("ready", .optional(ready))
        object.append("requires", .strings(requires))
        object.append("after", .strings(after))
        object.append("required_by", .strings(requiredBy))
        object.append("watchdog_ms", .optional(watchdogMilliseconds))
        object.append("force_quit", .optional(forceQuit))
        object.append("mailbox", .int(mailbox))
        object.append("unhandled", .int(unhandled))
        object.append("work", work?.json ?? .null)
        object.append("transfers", .int(transfers))
        object.append("data_folder", .optional(dataFolder))
        object.append("bundle", .optional(bundle))
        object.append("bundle_verified", .optional(bundleVerified))
        object.append("bundle_failed", .optional(bundlePutBack))
        object.append("unfit_settings", .strings(unfitSettings))
        object.append("deadlines", .array(deadlines.map(\.json)))
        object.append("stopped", .bool(stopped))
        object.append("traced", .bool(traced))
        object.append("outdated", .bool(outdated))
        object.append("state_archive", archive?.json ?? .null)
        object.append("state_set_aside", archivesAside.last?.json ?? .null)
        object.append("states_set_aside", .array(archivesAside.map(\.json)))
        object.append("snapshot", snapshot?.json ?? .null)
        object.append("sockets", .array(sockets.map(\.json)))
        object.append("announcements", .array(announcements.map(\.json)))
        object.append("container", container?.json ?? .null)
        object.append("sandbox", sandbox?.json ?? .null)
        object.append("protection", protection?.json ?? .null)
        object.append("health", .optional(health?.check))
        object.append("health_known", .bool(health?.isKnown ?? false))
        object.append("asleep_s", .optional(sleep?.seconds))
        object.append("cpu_saved_s", .optional(sleep?.processorSaved))
        object.append("paged_out", .optional(sleep?.pagedOut))
        object.append("cgroup", .optional(cgroup))
        object.append("profile", .optional(profile))
        object.append("profile_done", .strings(profileDone))
        object.append("profile_missing", .strings(profileMissing))
        object.append("processes", .array(shownProcesses.list.map(\.json)))
        object.append("processes_left_out", .optional(shownProcesses.leftOut))
        object.append("log", .array(log.map(\.json)))
        object.append("journal", journal?.json ?? .null)
        object.append("reports", .array(reports.map(\.json)))
        object.append("launch", launch?.json ?? .null)
        return .object(object)
    }
}
