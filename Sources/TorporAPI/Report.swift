// SPDX-License-Identifier: Apache-2.0

public import Varlink
import WireText

/// A file lock that an app held when it ended.
public struct LockInfo: Hashable, Sendable {
    /// The file's path.
    public var file: String
    /// `flock`, `posix`, `ofd` or `lease`.
    public var kind: String
    /// The process of the app that held the lock.
    public var holder: Int32?
    /// A process outside the app that waited for the lock.
    public var waiter: Int32?

    /// Memberwise initializer.
    public init(file: String, kind: String, holder: Int32? = nil, waiter: Int32? = nil) {
        self.file = file
        self.kind = kind
        self.holder = holder
        self.waiter = waiter
    }

    /// Decodes a JSON object; throws if a field is missing or has the wrong type.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        file = try fields.string("file")
        kind = try fields.string("kind")
        holder = try fields.optionalInt32("holder")
        waiter = try fields.optionalInt32("waiter")
    }

    /// Encodes the value as a JSON object.
    public var json: JSON {
        ["file": .string(file), "kind": .string(kind), "holder": .optional(holder), "waiter": .optional(waiter)]
    }
}

/// The stack of a thread.
public struct ThreadStack: Hashable, Sendable {
    /// The ID of the thread's process.
    public var pid: Int32?
    /// The thread ID.
    public var tid: Int32
    /// The thread's name.
    public var name: String
    /// The state letter of /proc/PID/task/TID/stat.
    public var state: String
    /// The kernel function in which the thread waits; nil if it runs, or the kernel does not show the function.
    public var waitChannel: String?
    /// Processor time of the thread so far, in seconds.
    public var cpuSeconds: Double?
    /// The kernel functions on the thread's stack, innermost first; empty if the kernel does not show them.
    public var stack: [String]
    /// The program's functions on the thread's stack, with their files, innermost first; empty if no tool that can
    /// read the stack is installed.
    public var userStack: [String] = []

    /// Creates a value. Fields without a parameter here keep their defaults, and can be set afterwards.
    public init(pid: Int32? = nil, tid: Int32, name: String, state: String, stack: [String]) {
        self.pid = pid
        self.tid = tid
        self.name = name
        self.state = state
        self.stack = stack
    }

    /// Decodes a JSON object; throws if a field is missing or has the wrong type.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        pid = try fields.optionalInt32("pid")
        tid = try fields.optionalInt32("tid") ?? 0
        name = try fields.string("name")
        state = try fields.string("state")
        waitChannel = try fields.optionalString("wait_channel")
        cpuSeconds = try fields.optionalDouble("cpu_s")
        stack = try fields.strings("stack")
        userStack = try fields.strings("user_stack")
    }

    /// Encodes the value as a JSON object.
    public var json: JSON {
        [
            "pid": .optional(pid), "tid": .int(Int64(tid)), "name": .string(name), "state": .string(state),
            "wait_channel": .optional(waitChannel), "cpu_s": .optional(cpuSeconds), "stack": .strings(stack),
            "user_stack": .strings(userStack),
        ]
    }
}

/// A termination report: torpord writes one for every exit of an app that was not requested (docs/lifecycle.md, "Why
/// an app ended").
public struct Report: Hashable, Sendable {
    /// The name of the app.
    public var app: String
    /// The number of the app's run, counted from 1.
    public var incarnation: Int64
    /// The process ID of the app's main process.
    public var pid: Int32?
    /// When the app ended, microseconds since 1970.
    public var at: Int64
    /// The termination reason: one of those in docs/lifecycle.md.
    public var reason: String
    /// The reason's code, such as 0x8badf00d.
    public var code: Int64?
    /// What happened, as a sentence for people.
    public var text: String?
    /// The exit status, if the app exited by itself.
    public var exitCode: Int32?
    /// The name of the signal that ended the app.
    public var signal: String?
    /// Whether the app left a core dump.
    public var coreDumped = false
    /// The stage at which a launch failed.
    public var stage: String?
    /// The error number (errno) of the failed stage, or the ERRNO that the app sent (sd_notify).
    public var errno: Int32?
    /// The name of the deadline that the app missed.
    public var deadline: String?
    /// What the app had to do before the deadline: `ready`, `heartbeat`, `tasks`, or the message that it had to
    /// answer.
    public var due: String?
    /// The time between the start of the missed deadline and its end, in milliseconds.
    public var deadlineMilliseconds: Int64?
    /// By how much the app extended the missed deadline, in milliseconds.
    public var extendedMilliseconds: Int64?
    /// The time from the start of the deadline until torpord noticed that it was missed, in milliseconds. Time during
    /// which a debugger was attached does not count.
    public var usedMilliseconds: Int64?
    /// How long after the deadline the app did what it had to do, or exited, in milliseconds; nil if it did neither.
    public var lateMilliseconds: Int64?
    /// Whether the app did what it had to do, but only after the deadline.
    public var answered = false
    /// Seconds from launch to end.
    public var wallSeconds: Double?
    /// Processor time of the app in seconds.
    public var cpuSeconds: Double?
    /// The state in which the app ended.
    public var state: String
    /// The transition that was in progress when the app ended.
    public var transition: String?
    /// The last STATUS that the app sent (sd_notify).
    public var status: String?
    /// Memory of the app at its end in bytes.
    public var memoryBytes: Int64?
    /// Peak memory of the app in bytes.
    public var maxMemoryBytes: Int64?
    /// The names of the app's background tasks at its end.
    public var tasks: [String] = []
    /// The file locks that the app held at its end.
    public var locks: [LockInfo] = []
    /// The last lines of the app's output, if the supervisor itself stores that output.
    public var log: [LogLine] = []
    /// Where the app's output is in the journal; nil if it is not written to the journal.
    public var journal: JournalPlace?
    /// The stacks of the app's threads just before the app was terminated.
    public var threads: [ThreadStack] = []
    /// How long the app's launch took.
    public var launch: LaunchTimes?
    /// The events of the run; of a long run only those at the beginning and at the end.
    public var timeline: [TimelineEntry] = []

    /// Sets the required fields; the others keep their defaults.
    public init(app: String, incarnation: Int64, at: Int64, reason: String, state: String) {
        self.app = app
        self.incarnation = incarnation
        self.at = at
        self.reason = reason
        self.state = state
    }

    /// The maximum size of a text in a report, in bytes of its JSON.
    public static let longestText = 2 << 10
    /// The maximum size of a name, such as that of a task, in bytes of its JSON.
    private static let longestName = 512
    private static let mostLocks = 100

    /// Shortens the texts that the app determines. An app can crash again and again with long lines as its last output,
    /// and the reports of all apps must fit into one reply.
    public mutating func shorten() {
        for index in log.indices { log[index].text = log[index].text.shortened(toSerialised: Self.longestText) }
        text = text?.shortened(toSerialised: Self.longestText)
        status = status?.shortened(toSerialised: Self.longestText)
        tasks = tasks.map { $0.shortened(toSerialised: Self.longestName) }
        locks = Array(locks.prefix(Self.mostLocks))
        for index in locks.indices { locks[index].file = locks[index].file.shortened(toSerialised: Self.longestText) }
        for index in timeline.indices {
            timeline[index].name = timeline[index].name?.shortened(toSerialised: Self.longestName)
        }
        for index in threads.indices {
            threads[index].name = threads[index].name.shortened(toSerialised: Self.longestName)
            threads[index].userStack = threads[index].userStack.map { $0.shortened(toSerialised: Self.longestName) }
        }
    }

    /// Decodes a JSON object; throws if a field is missing or has the wrong type.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        app = try fields.string("app")
        incarnation = try fields.int("incarnation")
        pid = try fields.optionalInt32("pid")
        at = try fields.int("at")
        reason = try fields.string("reason")
        code = try fields.optionalInt("code")
        text = try fields.optionalString("text")
        exitCode = try fields.optionalInt32("exit_code")
        signal = try fields.optionalString("signal")
        coreDumped = try fields.optionalBool("core_dumped") ?? false
        stage = try fields.optionalString("stage")
        errno = try fields.optionalInt32("errno")
        deadline = try fields.optionalString("deadline")
        due = try fields.optionalString("due")
        deadlineMilliseconds = try fields.optionalInt("deadline_ms")
        extendedMilliseconds = try fields.optionalInt("extended_ms")
        usedMilliseconds = try fields.optionalInt("used_ms")
        lateMilliseconds = try fields.optionalInt("late_ms")
        answered = try fields.optionalBool("answered") ?? false
        wallSeconds = try fields.optionalDouble("wall_s")
        cpuSeconds = try fields.optionalDouble("cpu_s")
        state = try fields.string("state")
        transition = try fields.optionalString("transition")
        status = try fields.optionalString("status")
        memoryBytes = try fields.optionalInt("memory_bytes")
        maxMemoryBytes = try fields.optionalInt("max_memory_bytes")
        tasks = try fields.strings("tasks")
        locks = try fields.list("locks") { json throws(FieldError) in try LockInfo(json: json) }
        log = try fields.list("log") { json throws(FieldError) in try LogLine(json: json) }
        journal = try JournalPlace.optional(fields)
        threads = try fields.list("threads") { json throws(FieldError) in try ThreadStack(json: json) }
        launch = try LaunchTimes.optional(fields, "launch")
        timeline = try fields.list("timeline") { json throws(FieldError) in try TimelineEntry(json: json) }
    }

    /// Encodes the value as a JSON object.
    public var json: JSON {
        var object = JSONObject()
        object.reserve(34)
        addMembers(to: &object)
        return .object(object)
    }

    /// The value as the text of a JSON object, as the store keeps it. This is the same text as that of ``json``, in a
    /// tenth of the time.
    public var jsonText: String {
        var writer = JSONWriter()
        writer.appendObject { addMembers(to: &$0) }
        return writer.withBytes { String(wire: $0) }
    }

    private func addMembers(to members: inout some JSONMembers & ~Copyable) {
        members.add("app", app)
        members.add("incarnation", incarnation)
        members.add("pid", pid.map { Int64($0) })
        members.add("at", at)
        members.add("reason", reason)
        members.add("code", code)
        members.add("text", text)
        members.add("exit_code", exitCode.map { Int64($0) })
        members.add("signal", signal)
        members.add("core_dumped", coreDumped)
        members.add("stage", stage)
        members.add("errno", errno.map { Int64($0) })
        members.add("deadline", deadline)
        members.add("due", due)
        members.add("deadline_ms", deadlineMilliseconds)
        members.add("extended_ms", extendedMilliseconds)
        members.add("used_ms", usedMilliseconds)
        members.add("late_ms", lateMilliseconds)
        members.add("answered", answered)
        members.add("wall_s", wallSeconds)
        members.add("cpu_s", cpuSeconds)
        members.add("state", state)
        members.add("transition", transition)
        members.add("status", status)
        members.add("memory_bytes", memoryBytes)
        members.add("max_memory_bytes", maxMemoryBytes)
        members.add("tasks", tasks)
        members.add("locks", json: .array(locks.map(\.json)))
        members.add("log", json: .array(log.map(\.json)))
        members.add("journal", json: journal?.json ?? .null)
        members.add("threads", json: .array(threads.map(\.json)))
        if let launch {
            members.add("launch") { launch.addMembers(to: &$0) }
        } else {
            members.add("launch", nil as String?)
        }
        members.add("timeline", objects: timeline) { entry, members in entry.addMembers(to: &members) }
    }
}
