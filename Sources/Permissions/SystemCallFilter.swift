// SPDX-License-Identifier: Apache-2.0

/// An instruction of a seccomp filter (`struct sock_filter`).
public struct FilterInstruction: Hashable, Sendable {
    /// The operation.
    public var code: UInt16
    /// How many instructions to skip if a comparison is true.
    public var ifTrue: UInt8
    /// How many instructions to skip if the comparison is false.
    public var ifFalse: UInt8
    /// The operand.
    public var value: UInt32
}

/// The seccomp filter of a sandboxed app.
///
/// It allows all system calls that are not listed, so that programs for later kernels run. Listed calls fail with
/// EPERM, and sockets that were not allowed with EACCES. A filter cannot see the paths of files, so Landlock checks
/// these.
public struct SystemCallFilter: Hashable, Sendable {
    /// The instructions.
    public private(set) var instructions: [FilterInstruction] = []

    /// The most instructions that a keeper accepts.
    public static let most = 256

    /// The processor architecture, which decides the numbers of system calls.
    public enum Architecture: Sendable {
        case x86, arm

        /// The architecture of this program.
        public static var current: Architecture {
            #if arch(arm64)
            .arm
            #else
            .x86
            #endif
        }

        /// The kernel's number: AUDIT_ARCH_X86_64 or AUDIT_ARCH_AARCH64.
        public var audit: UInt32 {
            switch self {
            case .x86: 0xc000_003e
            case .arm: 0xc000_00b7
            }
        }
    }

    /// A system call by its numbers on both architectures.
    public struct Call: Hashable, Sendable {
        /// The call's name.
        public let name: String
        let x86: UInt32
        let arm: UInt32

        init(_ name: String, _ x86: UInt32, _ arm: UInt32) { (self.name, self.x86, self.arm) = (name, x86, arm) }

        /// The call's number.
        public func number(_ architecture: Architecture) -> UInt32 { architecture == .x86 ? x86 : arm }
    }

    /// Calls that change the whole machine, or open files without a path. The kernel allows them only to root, so the
    /// filter matters for apps that run as root.
    public static let machine: [Call] = [
        Call("init_module", 175, 105), Call("finit_module", 313, 273), Call("delete_module", 176, 106),
        Call("kexec_load", 246, 104), Call("kexec_file_load", 320, 294), Call("bpf", 321, 280),
        Call("reboot", 169, 142), Call("swapon", 167, 224), Call("swapoff", 168, 225), Call("acct", 163, 89),
        Call("open_by_handle_at", 304, 265), Call("quotactl", 179, 60), Call("syslog", 103, 116),
        Call("settimeofday", 164, 170), Call("clock_settime", 227, 112), Call("adjtimex", 159, 171),
        Call("clock_adjtime", 305, 266), Call("quotactl_fd", 443, 443),
        // An io_uring makes sockets and connections that this filter does not see.
        Call("io_uring_setup", 425, 425),
    ]

    /// iopl and ioperm, which give access to the machine's ports.
    static let machineOnX86: [UInt32] = [172, 173]

    /// Calls that are refused only to untrusted code (mode `agent`): few programs need these calls, and each makes
    /// much of the kernel's code reachable.
    public static let strangers: [Call] = [
        Call("unshare", 272, 97), Call("setns", 308, 268), Call("mount", 165, 40), Call("umount2", 166, 39),
        Call("pivot_root", 155, 41), Call("chroot", 161, 51), Call("move_mount", 429, 429),
        Call("open_tree", 428, 428), Call("fsopen", 430, 430), Call("fsconfig", 431, 431), Call("fsmount", 432, 432),
        Call("mount_setattr", 442, 442), Call("add_key", 248, 217), Call("request_key", 249, 218),
        Call("keyctl", 250, 219), Call("ptrace", 101, 117), Call("process_vm_readv", 310, 270),
        Call("process_vm_writev", 311, 271), Call("perf_event_open", 298, 241), Call("userfaultfd", 323, 282),
        Call("personality", 135, 92), Call("fanotify_init", 300, 262), Call("fspick", 433, 433),
        Call("open_tree_attr", 467, 467),
    ]

    /// Calls that set how processes are scheduled, each with the index of the argument that names the process (0: the
    /// caller). With them, untrusted code could slow down all other processes of its user, so only the value 0 is
    /// allowed. A filter cannot know which other numbers are the app's own processes and threads, so these are refused
    /// too.
    static let scheduling: [(call: Call, who: UInt32)] = [
        (Call("setpriority", 141, 140), 1), (Call("ioprio_set", 251, 30), 1), (Call("sched_setparam", 142, 118), 0),
        (Call("sched_setscheduler", 144, 119), 0), (Call("sched_setattr", 314, 274), 0),
        (Call("sched_setaffinity", 203, 122), 0),
    ]
    /// The calls in ``scheduling`` that can affect all processes of a user, even with the number 0. They do so if their
    /// first argument has the value `which`: PRIO_USER or IOPRIO_WHO_USER.
    static let ofUsers: [(name: String, which: UInt32)] = [("setpriority", 2), ("ioprio_set", 3)]

    /// Calls for System V shared memory, semaphores and message queues, and for POSIX message queues. Untrusted code
    /// may use them only in an IPC namespace of its own: otherwise it could access the objects of its user's other
    /// processes.
    public static let sharedWithOthers: [Call] = [
        Call("shmget", 29, 194), Call("shmat", 30, 196), Call("shmctl", 31, 195), Call("semget", 64, 190),
        Call("semop", 65, 193), Call("semctl", 66, 191), Call("semtimedop", 220, 192), Call("msgget", 68, 186),
        Call("msgsnd", 69, 189), Call("msgrcv", 70, 188), Call("msgctl", 71, 187), Call("mq_open", 240, 180),
    ]

    static let socket = Call("socket", 41, 198)
    static let socketPair = Call("socketpair", 53, 199)
    static let limits = Call("prlimit64", 302, 261)
    /// Calls that can connect while they send, each with the index of its argument for flags.
    static let sending: [(call: Call, flags: UInt32)] = [
        (Call("sendto", 44, 206), 3), (Call("sendmsg", 46, 211), 2), (Call("sendmmsg", 307, 269), 3),
    ]
    static let clone = Call("clone", 56, 220)
    static let clone3 = Call("clone3", 435, 435)
    static let ioctl = Call("ioctl", 16, 29)

    /// The address families AF_UNIX, and AF_NETLINK, by which programs learn which addresses this machine has.
    static let alwaysOpen: [UInt32] = [1, 16]
    /// The address families AF_INET, AF_INET6, AF_PACKET and AF_VSOCK.
    static let ofNetwork: [UInt32] = [2, 10, 17, 40]
    /// IPPROTO_SCTP, IPPROTO_SMC and IPPROTO_MPTCP: Landlock does not check their connections.
    static let besideTCP: [UInt32] = [132, 256, 262]
    /// The flag MSG_FASTOPEN, by which a send also connects.
    static let fastOpen: UInt32 = 0x2000_0000
    /// The flags CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET.
    static let namespaces: UInt32 = 0x7e02_0000
    /// The ioctls TIOCSTI and TIOCLINUX, which type into a terminal.
    static let typing: [UInt32] = [0x5412, 0x541c]

    private static let loadWord: UInt16 = 0x20
    private static let jumpEqual: UInt16 = 0x15
    private static let jumpNotLess: UInt16 = 0x35
    private static let jumpSet: UInt16 = 0x45
    private static let answer: UInt16 = 0x06
    private static let allow: UInt32 = 0x7fff_0000
    private static let kill: UInt32 = 0x8000_0000
    private static func fail(_ errno: UInt32) -> UInt32 { 0x0005_0000 | errno }
    private static let notPermitted: UInt32 = 1
    private static let accessDenied: UInt32 = 13
    private static let notSupported: UInt32 = 38
    private static let noProtocol: UInt32 = 93
    private static let noOperation: UInt32 = 95

    /// Creates the filter of an app with these permissions.
    ///
    /// - Parameter hasOwnIPC: whether the app's process gets an IPC namespace of its own.
    public init(
        _ grants: PermissionGrants,
        _ mode: SandboxMode,
        _ architecture: Architecture = .current,
        hasOwnIPC: Bool = true
    ) {
        // Kill programs of other architectures (32-bit programs), which have other numbers for the same calls.
        load(4)
        add(Self.jumpEqual, architecture.audit, 1, 0)
        end(Self.kill)
        load(0)
        if architecture == .x86 {
            add(Self.jumpNotLess, 0x4000_0000, 0, 1)  // x32
            end(Self.fail(Self.notSupported))
        }
        var refused = Self.machine
        if mode == .agent { refused += Self.strangers + (hasOwnIPC ? [] : Self.sharedWithOthers) }
        for call in refused { refuse(call.number(architecture), Self.notPermitted) }
        if architecture == .x86 { for number in Self.machineOnX86 { refuse(number, Self.notPermitted) } }
        // A filter cannot read the flags of clone3, which are in memory: it could make namespaces, or processes in
        // the cgroups of other apps. After ENOSYS, the C library calls clone instead.
        refuse(Self.clone3.number(architecture), Self.notSupported)
        if case .ports = grants.network {
            refuse(Self.socket.number(architecture), argument: 2, Self.besideTCP, Self.noProtocol)
            for (call, flags) in Self.sending {
                refuse(call.number(architecture), argument: flags, bits: Self.fastOpen, Self.noOperation)
            }
        }
        // Without this check, an app could lower resource limits of other processes, even of torpord, and make them
        // fail.
        among(Self.limits.number(architecture), argument: 0, [0], Self.notPermitted, isRefused: false)
        among(Self.socketPair.number(architecture), argument: 0, [1], Self.accessDenied, isRefused: false)
        if mode == .agent {
            add(Self.jumpEqual, Self.clone.number(architecture), 0, 4)
            load(16)
            add(Self.jumpSet, Self.namespaces, 0, 1)
            end(Self.fail(Self.notPermitted))
            end(Self.allow)
            among(Self.ioctl.number(architecture), argument: 1, Self.typing, Self.notPermitted, isRefused: true)
            for (call, who) in Self.scheduling {
                let number = call.number(architecture)
                for (name, which) in Self.ofUsers where name == call.name {
                    refuse(number, argument: 0, [which], Self.notPermitted)
                }
                among(number, argument: who, [0], Self.notPermitted, isRefused: false)
            }
        }
        let families = Self.alwaysOpen + (grants.network == .none ? [] : Self.ofNetwork)
        among(Self.socket.number(architecture), argument: 0, families, Self.accessDenied, isRefused: false)
        end(Self.allow)
    }

    private mutating func add(_ code: UInt16, _ value: UInt32, _ ifTrue: UInt8, _ ifFalse: UInt8) {
        instructions.append(FilterInstruction(code: code, ifTrue: ifTrue, ifFalse: ifFalse, value: value))
    }

    /// Loads a word of `struct seccomp_data`: the call's number at 0, the architecture at 4, arguments from 16 on.
    /// The lower half of an argument comes first, since both architectures are little-endian.
    private mutating func load(_ offset: UInt32) { add(Self.loadWord, offset, 0, 0) }

    private mutating func end(_ value: UInt32) { add(Self.answer, value, 0, 0) }

    private mutating func refuse(_ number: UInt32, _ errno: UInt32) {
        add(Self.jumpEqual, number, 0, 1)
        end(Self.fail(errno))
    }

    /// Refuses a call if its argument is one of the values; otherwise continues with the next check.
    private mutating func refuse(_ number: UInt32, argument: UInt32, _ values: [UInt32], _ errno: UInt32) {
        refuse(number, argument: argument, Self.jumpEqual, values, errno)
    }

    /// Refuses a call if its argument has one of the bits; otherwise continues with the next check.
    private mutating func refuse(_ number: UInt32, argument: UInt32, bits: UInt32, _ errno: UInt32) {
        refuse(number, argument: argument, Self.jumpSet, [bits], errno)
    }

    private mutating func refuse(
        _ number: UInt32,
        argument: UInt32,
        _ comparison: UInt16,
        _ values: [UInt32],
        _ errno: UInt32
    ) {
        let count = UInt8(values.count)
        add(Self.jumpEqual, number, 0, count + 4)
        load(16 + 8 * argument)
        for index in 0..<count { add(comparison, values[Int(index)], count - index + 1, 0) }
        load(0)
        add(Self.jumpEqual, number, 1, 1)  // skips the refusal, whether or not the number matches
        end(Self.fail(errno))
    }

    /// Allows or refuses a call by one of its arguments. With `isRefused`, the values are refused and all others
    /// allowed; without, the values are allowed and all others refused.
    private mutating func among(
        _ number: UInt32,
        argument: UInt32,
        _ values: [UInt32],
        _ errno: UInt32,
        isRefused: Bool
    ) {
        let count = UInt8(values.count)
        add(Self.jumpEqual, number, 0, count + 3)
        load(16 + 8 * argument)
        for index in 0..<count { add(Self.jumpEqual, values[Int(index)], count - index, 0) }
        end(isRefused ? Self.allow : Self.fail(errno))
        end(isRefused ? Self.fail(errno) : Self.allow)
    }
}
