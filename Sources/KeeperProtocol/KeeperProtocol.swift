// SPDX-License-Identifier: Apache-2.0

import CKeeperProtocol

/// Limits and names of the protocol; `torpor_keeper_protocol.h` explains them.
public enum KeeperProtocol {
    /// The protocol version that torpord speaks.
    public static let version: UInt32 = 4
    /// The oldest version of a keeper that torpord works with, without sandboxes.
    public static let oldestVersion: UInt32 = 2
    /// Maximum number of instructions of a sandbox's filter.
    public static let filterLimit = Int(TORPOR_KEEPER_FILTER_LIMIT)
    /// The maximum number of descriptors in a message (SCM_MAX_FD of Linux).
    public static let descriptorLimit = 253
    /// Maximum size of a launch message in bytes.
    public static let planLimit = 192 * 1024
    /// Maximum number of arguments, and of environment entries.
    public static let stringLimit = 8192
    /// Maximum length of an app's name in bytes.
    public static let appNameLimit = 63
    /// Maximum length of the name of held descriptors in bytes.
    public static let heldNameLimit = Int(TORPOR_KEEPER_NAME_BYTES) - 1
    /// Maximum length of a text for the service manager in bytes.
    public static let managerTextLimit = 8192
    /// Maximum size of a message from the keeper in bytes.
    public static let replyLimit = 32 * 1024
    /// Maximum number of launches whose exec is not reported yet.
    public static let launchesInFlight = 256
    /// The environment variable with the descriptor number of torpord's socket to the keeper.
    public static let socketVariable = "TORPOR_KEEPER_FD"
    /// The environment variable with the keeper's pid.
    public static let pidVariable = "TORPOR_KEEPER_PID"
    /// The environment variable with the time (CLOCK_MONOTONIC, in milliseconds) at which the last torpord ended that had
    /// greeted the keeper; 0 if there was none. Older keepers do not set it.
    public static let endedVariable = "TORPOR_KEEPER_ENDED_MS"
}

/// A message from torpord to the keeper.
public enum KeeperRequest: Hashable, Sendable {
    case hello(version: UInt32)
    case freeSlot(slot: UInt32, generation: UInt32)
    case freeOrphans(upTo: UInt64)
    case hold(name: String, replacing: Bool, quiet: Bool = false)
    case release(name: String)
    case take(name: String, offset: UInt32)
    case list(cursor: UInt32)
    case manager(text: String)
    case bye(status: UInt8?, keepingParked: Bool)
    case adopt(app: String, incarnation: UInt32, pid: Int32, startTime: UInt64)
    case takeAll(name: UInt32, offset: UInt32)
    case handOver(replacingKeeper: Bool)
    case settled
    case rest

    /// Encodes the message in wire format; the keeper's answer repeats `id`.
    public func encoded(id: UInt32) -> [UInt8] {
        switch self {
        case .hello(let version): head(TORPOR_KEEPER_HELLO, id) + bytes(version)
        case .freeSlot(let slot, let generation): head(TORPOR_KEEPER_SLOT_FREE, id) + bytes(slot) + bytes(generation)
        case .freeOrphans(let sequence): head(TORPOR_KEEPER_ORPHAN_FREE, id) + bytes(sequence)
        case .hold(let name, let replacing, let quiet):
            head(TORPOR_KEEPER_HOLD, id)
                + bytes((replacing ? TORPOR_HOLD_REPLACE.rawValue : 0) | (quiet ? TORPOR_HOLD_QUIET.rawValue : 0))
                + name.utf8 + [0]
        case .release(let name): head(TORPOR_KEEPER_RELEASE, id) + name.utf8 + [0]
        case .take(let name, let offset): head(TORPOR_KEEPER_TAKE, id) + bytes(offset) + name.utf8 + [0]
        case .list(let cursor): head(TORPOR_KEEPER_LIST, id) + bytes(cursor)
        case .manager(let text): head(TORPOR_KEEPER_MANAGER, id) + text.utf8
        case .bye(let status, let keeping):
            head(TORPOR_KEEPER_BYE, id)
                + bytes(
                    (keeping ? TORPOR_BYE_KEEP_PARKED.rawValue : 0) | (status != nil ? TORPOR_BYE_STATUS.rawValue : 0)
                ) + bytes(UInt32(status ?? 0))
        case .handOver(let keeperToo):
            head(TORPOR_KEEPER_HANDOVER, id) + bytes(keeperToo ? TORPOR_HANDOVER_KEEPER.rawValue : 0)
        case .settled: head(TORPOR_KEEPER_SETTLED, id)
        case .rest: head(TORPOR_KEEPER_REST, id)
        case .adopt(let app, let incarnation, let pid, let startTime):
            head(TORPOR_KEEPER_ADOPT, id) + bytes(incarnation) + bytes(pid) + bytes(startTime) + app.utf8 + [0]
        case .takeAll(let name, let offset): head(TORPOR_KEEPER_TAKE_ALL, id) + bytes(name) + bytes(offset)
        }
    }
}

func head(_ type: torpor_keeper_type, _ id: UInt32) -> [UInt8] { bytes(type.rawValue) + bytes(id) }

func bytes<Value: BitwiseCopyable>(_ value: Value) -> [UInt8] {
    withUnsafeBytes(of: value) { Array($0) }
}
