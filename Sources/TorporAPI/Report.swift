public import Varlink

/// A file lock that an app held when it ended.
public struct LockInfo: Hashable, Sendable {
    /// The file's path.
    public var file: String
    /// `flock`, `posix` or `ofd`.
    public var kind: String
    /// A process outside the app that waited for it.
    public var waiter: Int32?

    /// Makes one from its parts.
    public init(file: String, kind: String, waiter: Int32? = nil) {
        self.file = file
        self.kind = kind
        self.waiter = waiter
    }

    /// Reads it from its object.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        file = try fields.string("file")
        kind = try fields.string("kind")
        waiter = try fields.optionalInt32("waiter")
    }

    /// It as an object.
    public var json: JSON { ["file": .string(file), "kind": .string(kind), "waiter": .optional(waiter)] }
}

/// Where a thread stood in the kernel.
public struct ThreadStack: Hashable, Sendable {
    /// The number of the thread.
    public var tid: Int32
    /// The name of the thread.
    public var name: String
    /// The letter of /proc/PID/task/TID/stat.
    public var state: String
    /// Innermost first; empty where the kernel does not show it.
    public var stack: [String]

    /// Makes one from its parts.
    public init(tid: Int32, name: String, state: String, stack: [String]) {
        self.tid = tid
        self.name = name
        self.state = state
        self.stack = stack
    }

    /// Reads it from its object.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        tid = try fields.optionalInt32("tid") ?? 0
        name = try fields.string("name")
        state = try fields.string("state")
        stack = try fields.strings("stack")
    }

    /// It as an object.
    public var json: JSON {
        ["tid": .int(Int64(tid)), "name": .string(name), "state": .string(state), "stack": .strings(stack)]
    }
}

/// A termination report: what every ending leaves that was not asked for (docs/lifecycle.md, "Why an app ended").
public struct Report: Hashable, Sendable {
    /// The name of the app.
    public var app: String
    /// Which run of the app, counted from 1.
    public var incarnation: Int64
    /// The number of the process.
    public var pid: Int32?
    /// Microseconds since 1970.
    public var at: Int64
    /// A termination reason of docs/lifecycle.md.
    public var reason: String
    /// The reason's code, such as 0x8badf00d.
    public var code: Int64?
    /// A sentence for people.
    public var text: String?
    /// The exit status, if it ended by itself.
    public var exitCode: Int32?
    /// The signal's name.
    public var signal: String?
    /// It left a core dump.
    public var coreDumped = false
    /// The stage at which a launch failed.
    public var stage: String?
    /// The error number of that stage, or what the app said in ERRNO.
    public var errno: Int32?
    /// The name of the deadline that was missed.
    public var deadline: String?
    /// How long that deadline was, in milliseconds.
    public var deadlineMilliseconds: Int64?
    /// Running time that was used of it, in milliseconds.
    public var usedMilliseconds: Int64?
    /// Seconds from launch to end.
    public var wallSeconds: Double?
    /// Processor time in seconds.
    public var cpuSeconds: Double?
    /// The state in which it ended.
    public var state: String
    /// The edge that was in flight.
    public var transition: String?
    /// What the app last said in STATUS.
    public var status: String?
    /// Memory at the end in bytes.
    public var memoryBytes: Int64?
    /// Most memory ever in bytes.
    public var maxMemoryBytes: Int64?
    /// Names of the background tasks that it held.
    public var tasks: [String] = []
    /// The file locks that it held.
    public var locks: [LockInfo] = []
    /// Its last output, where the supervisor keeps it.
    public var log: [LogLine] = []
    /// Where its output is, if that is the journal.
    public var journal: JournalPlace?
    /// Where its threads stood.
    public var threads: [ThreadStack] = []

    /// Makes one from its parts.
    public init(app: String, incarnation: Int64, at: Int64, reason: String, state: String) {
        self.app = app
        self.incarnation = incarnation
        self.at = at
        self.reason = reason
        self.state = state
    }

    /// Reads it from its object.
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
        deadlineMilliseconds = try fields.optionalInt("deadline_ms")
        usedMilliseconds = try fields.optionalInt("used_ms")
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
    }

    /// It as an object.
    public var json: JSON {
        [
            "app": .string(app), "incarnation": .int(incarnation), "pid": .optional(pid), "at": .int(at),
            "reason": .string(reason), "code": .optional(code), "text": .optional(text),
            "exit_code": .optional(exitCode), "signal": .optional(signal), "core_dumped": .bool(coreDumped),
            "stage": .optional(stage), "errno": .optional(errno), "deadline": .optional(deadline),
            "deadline_ms": .optional(deadlineMilliseconds), "used_ms": .optional(usedMilliseconds),
            "wall_s": .optional(wallSeconds), "cpu_s": .optional(cpuSeconds), "state": .string(state),
            "transition": .optional(transition), "status": .optional(status),
            "memory_bytes": .optional(memoryBytes), "max_memory_bytes": .optional(maxMemoryBytes),
            "tasks": .strings(tasks), "locks": .array(locks.map(\.json)), "log": .array(log.map(\.json)),
            "journal": journal?.json ?? .null, "threads": .array(threads.map(\.json)),
        ]
    }
}
