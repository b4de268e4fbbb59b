// SPDX-License-Identifier: Apache-2.0

import CKeeperProtocol
import WireText

/// A message from the keeper to torpord.
public enum KeeperMessage: Sendable {
    case welcome(Welcome)
    /// Living processes, each with whether one of the descriptors that come with the message, in the same order, is its
    /// pidfd.
    case table([(record: ProcessRecord, hasDescriptor: Bool)])
    case tableEnd(count: UInt32)
    case launched(ProcessRecord)
    case launchFailed(stage: UInt32, errno: Int32)
    case exited(ProcessRecord)
    case orphan(OrphanWire)
    case done(errno: Int32)
    case taken(errno: Int32, total: UInt32)
    case names(next: UInt32, [String])
    case refused(errno: Int32)
    case held(HeldPart)
    /// A message of a type that only a newer keeper knows.
    case unknown(type: UInt32)

    /// The keeper's first message.
    public struct Welcome: Hashable, Sendable {
        /// The protocol version that the keeper speaks.
        public var version: UInt32
        /// How many instances of torpord this keeper has started.
        public var instance: UInt32
        /// The timeout, in milliseconds, of the watchdog that ends a torpord whose event loop hangs; 0: no watchdog.
        public var watchMilliseconds: UInt32
        /// Whether a service manager started the keeper, so that torpord may send messages to that manager.
        public var isUnderManager: Bool
        /// The limit of open descriptors (RLIMIT_NOFILE) of apps, unless their launch request sets it.
        public var appDescriptorLimit: UInt64
        /// The process ID of the keeper.
        public var keeperPid: Int32
        /// Whether the keeper started this torpord from the program that worked before, because the program on disk
        /// failed.
        public var isFallback: Bool
        /// The version of the state that the keeper saves before it executes a new keeper program.
        public var resumeVersion: UInt32
        /// Whether the keeper can open the files of a launch by path.
        public var opensFiles: Bool
        /// Whether torpor-keeper gives sandboxed apps their own IPC namespaces, and makes the kernel log denials.
        public var hasWalls: Bool
    }

    /// A part of all held descriptors. The descriptors come with the message, in the same order.
    public struct HeldPart: Hashable, Sendable {
        /// The index of the name that the next part starts with.
        public var nextName: UInt32
        /// How many of the descriptors of that name were already sent. At the end both this and `nextName` are 0.
        public var nextOffset: UInt32
        /// The names in this part, each with the number of its descriptors.
        public var names: [Name]

        /// A name and its number of descriptors in this part.
        public struct Name: Hashable, Sendable {
            /// The name.
            public var name: String
            /// How many descriptors of the name are in this part.
            public var count: Int
        }
    }

    /// A process that the keeper launched or adopted.
    public struct ProcessRecord: Hashable, Sendable {
        /// The index of the process in the keeper's table.
        public var slot: UInt32
        /// How often the slot was used before. This distinguishes the process from earlier ones in the same slot, to
        /// which a late message may refer.
        public var generation: UInt32
        /// The pid.
        public var pid: Int32
        /// The number of the app's run, counted from 1.
        public var incarnation: UInt32
        /// Start time in clock ticks since boot.
        public var startTime: UInt64
        /// Whether the exec of the process was not reported yet.
        public var isLaunching: Bool
        /// Whether the keeper kills the process when torpord ends.
        public var isHelper: Bool
        /// Whether another program launched the process (`TORPOR_KEEPER_ADOPT`).
        public var isAdopted: Bool
        /// The exit and resource usage of the process.
        public var end: End
        /// The stage at which the launch failed, if that happened while torpord was not running; otherwise 0.
        public var failedStage: UInt32
        /// The error (errno) of the failed stage.
        public var failedErrno: Int32
        /// The name of the app.
        public var app: String
    }

    /// A process's exit and resource usage.
    public struct End: Hashable, Sendable {
        /// How the process ended: CLD_EXITED 1, CLD_KILLED 2, CLD_DUMPED 3; 0 while it lives, or if unknown.
        public var code: Int32
        /// The exit status, or the signal's number.
        public var status: Int32
        /// User time in microseconds.
        public var userMicroseconds: UInt64
        /// System time in microseconds.
        public var systemMicroseconds: UInt64
        /// Peak resident memory in bytes.
        public var maxResidentBytes: UInt64
    }

    /// A process that the keeper did not launch: a descendant of an app.
    public struct OrphanWire: Hashable, Sendable {
        /// The number of the orphan, by which torpord acknowledges it.
        public var sequence: UInt64
        /// The pid.
        public var pid: Int32
        /// The number of the orphan's session (setsid(2)).
        public var session: Int32
        /// Start time in clock ticks since boot.
        public var startTime: UInt64
        /// The exit and resource usage of the orphan.
        public var end: End
        /// The name of the app that it descends from; nil if unknown.
        public var app: String?
        /// The number of the app's run, counted from 1.
        public var incarnation: UInt32
        /// The first 15 bytes of the orphan's name.
        public var command: String
        /// The last 127 bytes of the orphan's cgroup v2 path; empty if it had none.
        public var cgroup: String
    }

    /// Decodes a message; nil if it is too short for its type.
    public static func decode(_ message: [UInt8]) -> (id: UInt32, message: KeeperMessage)? {
        message.withUnsafeBytes { raw in
            func load<Value: BitwiseCopyable>(_ type: Value.Type) -> Value? {
                raw.count < MemoryLayout<Value>.size ? nil : raw.loadUnaligned(as: type)
            }
            guard let header = load(torpor_keeper_header.self) else { return nil }
            let number = load(torpor_keeper_number.self)?.value
            let pair = load(torpor_keeper_pair.self)
            let record = load(torpor_keeper_record.self).map(ProcessRecord.init)
            let decoded: KeeperMessage? =
                switch torpor_keeper_type(rawValue: header.type) {
                case TORPOR_KEEPER_WELCOME: load(torpor_keeper_welcome.self).map { .welcome(Welcome($0)) }
                case TORPOR_KEEPER_TABLE: table(raw)
                case TORPOR_KEEPER_TABLE_END: number.map { .tableEnd(count: $0) }
                case TORPOR_KEEPER_LAUNCHED: record.map { .launched($0) }
                case TORPOR_KEEPER_LAUNCH_FAILED:
                    pair.map { .launchFailed(stage: $0.first, errno: Int32(bitPattern: $0.second)) }
                case TORPOR_KEEPER_EXITED: record.map { .exited($0) }
                case TORPOR_KEEPER_ORPHAN:
                    load(torpor_keeper_orphan_message.self).map { .orphan(OrphanWire($0.record)) }
                case TORPOR_KEEPER_DONE: number.map { .done(errno: Int32(bitPattern: $0)) }
                case TORPOR_KEEPER_TAKEN: pair.map { .taken(errno: Int32(bitPattern: $0.first), total: $0.second) }
                case TORPOR_KEEPER_NAMES:
                    pair.map { .names(next: $0.first, names(raw.dropFirst(MemoryLayout<torpor_keeper_pair>.size))) }
                case TORPOR_KEEPER_HELD: HeldPart(raw).map { .held($0) }
                case TORPOR_KEEPER_REFUSED: number.map { .refused(errno: Int32(bitPattern: $0)) }
                default: .unknown(type: header.type)
                }
            return decoded.map { (header.id, $0) }
        }
    }

    private static func table(_ raw: UnsafeRawBufferPointer) -> KeeperMessage? {
        let size = MemoryLayout<torpor_keeper_record>.size
        let count = raw.count / size
        guard count > 0 else { return nil }
        return .table(
            (0..<count).map { index in
                let record = raw.loadUnaligned(fromByteOffset: index * size, as: torpor_keeper_record.self)
                // A keeper that sends one record in a message does not say whose the descriptor is.
                return (ProcessRecord(record), count == 1 || record.descriptors > 0)
            }
        )
    }

    private static func names(_ bytes: Slice<UnsafeRawBufferPointer>) -> [String] {
        bytes.split(separator: 0).map { String(wire: $0) }
    }
}

extension KeeperMessage.Welcome {
    init(_ raw: torpor_keeper_welcome) {
        version = raw.version
        instance = raw.instance
        watchMilliseconds = raw.watch_milliseconds
        isUnderManager = raw.under_manager != 0
        appDescriptorLimit = raw.app_nofile_soft
        keeperPid = raw.keeper_pid
        isFallback = raw.started_from_image != 0
        resumeVersion = raw.resume_version
        opensFiles = raw.features & UInt32(TORPOR_KEEPER_FILES.rawValue) != 0
        hasWalls = raw.features & UInt32(TORPOR_KEEPER_WALLS.rawValue) != 0
    }
}

extension KeeperMessage.HeldPart {
    init?(_ message: UnsafeRawBufferPointer) {
        guard message.count >= MemoryLayout<torpor_keeper_held>.size else { return nil }
        let head = message.loadUnaligned(as: torpor_keeper_held.self)
        nextName = head.next_name
        nextOffset = head.next_offset
        names = []
        var rest = message[MemoryLayout<torpor_keeper_held>.size...]
        for _ in 0..<head.count {
            guard rest.count > 2, let end = rest.dropFirst(2).firstIndex(of: 0) else { return nil }
            let count = UnsafeRawBufferPointer(rebasing: rest).loadUnaligned(as: UInt16.self)
            let name = String(wire: rest[(rest.startIndex + 2)..<end])
            names.append(Name(name: name, count: Int(count)))
            rest = rest[(end + 1)...]
        }
    }
}

extension KeeperMessage.ProcessRecord {
    init(_ raw: torpor_keeper_record) {
        slot = raw.slot
        generation = raw.record.generation
        pid = raw.record.pid
        incarnation = raw.record.incarnation
        startTime = raw.record.start_time
        isLaunching =
            raw.record.state == TORPOR_SLOT_LAUNCHING.rawValue
            || raw.record.state == TORPOR_SLOT_FAILED.rawValue
        isHelper = raw.record.flags & UInt32(TORPOR_LAUNCH_HELPER.rawValue) != 0
        isAdopted = raw.record.flags & UInt32(TORPOR_LAUNCH_ADOPTED.rawValue) != 0
        end = KeeperMessage.End(
            code: raw.record.code,
            status: raw.record.status,
            userMicroseconds: raw.record.user_microseconds,
            systemMicroseconds: raw.record.system_microseconds,
            maxResidentBytes: raw.record.max_resident_bytes
        )
        failedStage = raw.record.stage
        failedErrno = Int32(bitPattern: raw.record.error)
        app = text(raw.record.app)
    }
}

extension KeeperMessage.OrphanWire {
    init(_ raw: torpor_keeper_orphan) {
        sequence = raw.sequence
        pid = raw.pid
        session = raw.session
        startTime = raw.start_time
        end = KeeperMessage.End(
            code: raw.code,
            status: raw.status,
            userMicroseconds: raw.user_microseconds,
            systemMicroseconds: raw.system_microseconds,
            maxResidentBytes: raw.max_resident_bytes
        )
        app = raw.attributed != 0 ? text(raw.app) : nil
        incarnation = raw.incarnation
        command = text(raw.comm)
        cgroup = text(raw.cgroup)
    }
}

/// The text in an array of C characters, up to its NUL or its end.
private func text<Characters: BitwiseCopyable>(_ characters: Characters) -> String {
    withUnsafeBytes(of: characters) { String(wire: $0.prefix { $0 != 0 }) }
}
