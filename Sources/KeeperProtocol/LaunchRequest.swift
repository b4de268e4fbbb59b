// SPDX-License-Identifier: Apache-2.0

import CKeeperProtocol
import Glibc

/// A request to launch a process. Descriptors are given as numbers in this process; they are sent with the message,
/// in the order of `descriptors`.
public struct LaunchRequest: Sendable {
    /// The name of the app.
    public var app = ""
    /// The number of the app's run, counted from 1.
    public var incarnation: UInt32 = 0
    /// The absolute path of the program.
    public var executable = ""
    /// The arguments, starting with the program's name.
    public var arguments: [String] = []
    /// The whole environment as `K=V`.
    public var environment: [String] = []
    /// The working directory; nil for that of the keeper.
    public var directory: String?
    /// The user to run as; nil for the keeper's.
    public var user: (uid: UInt32, gid: UInt32, groups: [UInt32])?
    /// The file mode mask; nil for the keeper's.
    public var umask: UInt32?
    /// The nice value; nil for the keeper's.
    public var nice: Int32?
    /// The value of oom_score_adj; nil for the keeper's.
    public var oomScoreAdjust: Int32?
    /// Resource limits by their RLIMIT numbers (setrlimit(2)).
    public var limits: [(resource: Int32, soft: UInt64, hard: UInt64)] = []
    /// The descriptors for standard input, output and error; a negative number means /dev/null.
    public var standard: (Int32, Int32, Int32) = (-1, -1, -1)
    /// The absolute path of a file to use as standard input instead of a descriptor. The child opens the file: with
    /// the keeper's rights if only root and the keeper's user can have created the path's components, otherwise as
    /// the user that the child runs as.
    public var inputFile: String?
    /// The absolute path of a file for standard error, opened as ``inputFile``; it is created if necessary and
    /// appended to.
    public var errorFile: String?
    /// Descriptors that become numbers 3, 4 and so on in the child.
    public var passed: [Int32] = []
    /// A descriptor of the cgroup directory in which the process is started.
    public var cgroup: Int32?
    /// What the child gives up before it executes the program; needs a keeper of version 3.
    public var sandbox: Sandbox?
    /// Whether the child sets LISTEN_PID to its pid.
    public var setListenPid = false
    /// Whether the child sets WATCHDOG_PID to its pid.
    public var setWatchdogPid = false
    /// Whether the keeper kills the process when torpord ends.
    public var isHelper = false

    /// Creates an empty request.
    public init() {}

    /// The rights that a child gives up for good. Besides, it can no longer gain rights by setuid programs.
    public struct Sandbox: Sendable {
        /// The descriptor of a Landlock ruleset; nil for none.
        public var ruleset: Int32?
        /// The instructions of a seccomp filter, at least one.
        public var filter: [(code: UInt16, ifTrue: UInt8, ifFalse: UInt8, value: UInt32)]
        /// Whether the child gets its own IPC namespace, if the kernel permits it, so that it cannot reach System V
        /// shared memory, semaphores and message queues of other processes. An older keeper ignores this.
        public var hasOwnIPC = false
        /// Whether the kernel must log to audit the accesses that the ruleset denies, if the kernel can. An older
        /// keeper ignores this.
        public var logsDenials = false

        /// Creates a sandbox.
        public init(ruleset: Int32?, filter: [(code: UInt16, ifTrue: UInt8, ifFalse: UInt8, value: UInt32)]) {
            self.ruleset = ruleset
            self.filter = filter
        }
    }

    /// Why a request cannot be sent to the keeper.
    public enum Refusal: Error, Hashable, CustomStringConvertible {
        case name(String)
        case noArguments
        case nul
        case noFilter
        case tooLarge(bytes: Int)
        case tooMany(what: String, count: Int, limit: Int)

        /// A sentence for users.
        public var description: String {
            switch self {
            case .name(let name):
                "the app's name '\(name)' is empty or longer than \(KeeperProtocol.appNameLimit) bytes: shorten it"
            case .noArguments: "there is no argument 0: exec needs at least the program's name"
            case .nul: "an argument, a path or the environment contains a NUL: remove it"
            case .noFilter: "a sandbox needs a filter of system calls"
            case .tooLarge(let bytes):
                "arguments and environment are \(bytes) bytes, \(KeeperProtocol.planLimit) at most: "
                    + "put long values into a file"
            case .tooMany(let what, let count, let limit): "\(count) \(what), \(limit) at most"
            }
        }
    }

    /// The descriptors to send with the message, in order.
    public var descriptors: [Int32] {
        [standard.0, standard.1, standard.2].filter { $0 >= 0 } + passed + [sandbox?.ruleset, cgroup].compactMap { $0 }
    }

    /// Encodes the request in wire format. Throws if the keeper would refuse it.
    public func encoded(id: UInt32) throws(Refusal) -> [UInt8] {
        guard !app.isEmpty, app.utf8.count <= KeeperProtocol.appNameLimit else { throw .name(app) }
        guard !arguments.isEmpty else { throw .noArguments }
        let environment = environmentWithRoomForPids
        try check("arguments", arguments.count, KeeperProtocol.stringLimit)
        try check("environment entries", environment.count, KeeperProtocol.stringLimit)
        try check("limits", limits.count, Int(TORPOR_KEEPER_LIMIT_LIMIT))
        try check("groups", user?.groups.count ?? 0, Int(TORPOR_KEEPER_GROUP_LIMIT))
        try check("instructions", sandbox?.filter.count ?? 0, KeeperProtocol.filterLimit)
        if let sandbox, sandbox.filter.isEmpty { throw .noFilter }
        try check("descriptors", descriptors.count, KeeperProtocol.descriptorLimit)

        var message = bytes(
            torpor_keeper_launch(
                header: torpor_keeper_header(type: TORPOR_KEEPER_LAUNCH.rawValue, id: id),
                incarnation: incarnation,
                flags: flags,
                user: user?.uid ?? 0,
                group: user?.gid ?? 0,
                umask: umask ?? 0,
                nice: nice ?? 0,
                oom_score_adjust: oomScoreAdjust ?? 0,
                passed_count: UInt32(passed.count),
                limit_count: UInt32(limits.count),
                group_count: UInt32(user?.groups.count ?? 0),
                argument_count: UInt32(arguments.count),
                environment_count: UInt32(environment.count)
            )
        )
        for limit in limits {
            message += bytes(
                torpor_keeper_limit(
                    resource: UInt32(bitPattern: limit.resource),
                    reserved: 0,
                    soft: limit.soft,
                    hard: limit.hard
                )
            )
        }
        for group in user?.groups ?? [] { message += bytes(group) }
        if let sandbox {
            message += bytes(UInt32(sandbox.filter.count))
            for step in sandbox.filter {
                message += bytes(
                    torpor_keeper_instruction(
                        code: step.code,
                        if_true: step.ifTrue,
                        if_false: step.ifFalse,
                        value: step.value
                    )
                )
            }
        }
        let files = [inputFile, errorFile].compactMap { $0 }
        let groups = [[app, executable, directory ?? ""], files, arguments, environment]
        let length = groups.reduce(message.count) { $1.reduce($0) { $0 + $1.utf8.count + 1 } }
        if length <= KeeperProtocol.planLimit { message.reserveCapacity(length) }
        all: for texts in groups {
            for text in texts {
                var text = text
                let isFit = text.withUTF8 { bytes in
                    message.append(contentsOf: bytes)
                    // Swift's search looks at each byte: it took most of the time of an encoding.
                    return bytes.baseAddress.map { memchr($0, 0, bytes.count) == nil } ?? true
                }
                guard isFit else { throw .nul }
                message.append(0)
                if message.count > 64 * KeeperProtocol.planLimit { break all }
            }
        }
        guard message.count <= KeeperProtocol.planLimit else { throw .tooLarge(bytes: message.count) }
        return message
    }

    private func check(_ what: String, _ count: Int, _ limit: Int) throws(Refusal) {
        if count > limit { throw .tooMany(what: what, count: count, limit: limit) }
    }

    private var flags: UInt32 {
        let all: [(Bool, torpor_keeper_launch_flags)] = [
            (isHelper, TORPOR_LAUNCH_HELPER), (standard.0 >= 0, TORPOR_LAUNCH_STDIN),
            (standard.1 >= 0, TORPOR_LAUNCH_STDOUT), (standard.2 >= 0, TORPOR_LAUNCH_STDERR),
            (cgroup != nil, TORPOR_LAUNCH_CGROUP), (directory != nil, TORPOR_LAUNCH_DIRECTORY),
            (user != nil, TORPOR_LAUNCH_USER), (umask != nil, TORPOR_LAUNCH_UMASK), (nice != nil, TORPOR_LAUNCH_NICE),
            (oomScoreAdjust != nil, TORPOR_LAUNCH_OOM), (setListenPid, TORPOR_LAUNCH_LISTEN_PID),
            (setWatchdogPid, TORPOR_LAUNCH_WATCHDOG_PID), (inputFile != nil, TORPOR_LAUNCH_INPUT_FILE),
            (errorFile != nil, TORPOR_LAUNCH_ERROR_FILE), (sandbox != nil, TORPOR_LAUNCH_SANDBOX),
            (sandbox?.ruleset != nil, TORPOR_LAUNCH_RULESET), (sandbox?.hasOwnIPC ?? false, TORPOR_LAUNCH_OWN_IPC),
            (sandbox?.ruleset != nil && sandbox?.logsDenials ?? false, TORPOR_LAUNCH_LOG_DENIALS),
        ]
        return all.reduce(0) { $1.0 ? $0 | UInt32($1.1.rawValue) : $0 }
    }

    /// The environment with ten zeros for each pid that the child must fill in. The child learns its pid only after
    /// the fork, when it must not allocate memory: it overwrites the zeros.
    private var environmentWithRoomForPids: [String] {
        var result = environment
        for (wanted, name) in [(setListenPid, "LISTEN_PID="), (setWatchdogPid, "WATCHDOG_PID=")] where wanted {
            result.removeAll { $0.hasPrefix(name) }
            result.append(name + "0000000000")
        }
        return result
    }
}
