// SPDX-License-Identifier: Apache-2.0

import CKeeperProtocol
public import SystemPackage

/// The answer of `torpor-keeper --receive` about the descriptors of one datagram.
public struct ReceiveAnswer: Hashable, Sendable {
    /// The size of the answer in bytes.
    public static let size = MemoryLayout<torpor_keeper_received>.size

    /// The error, if no datagram could be read.
    public let failure: Errno?
    /// How many descriptors were dropped instead of passed on, because closing them could block torpord.
    public let refused: Int
    /// Whether some descriptors could not be received; it is not known which.
    public let isIncomplete: Bool
    /// Whether this answers a request to remove a datagram.
    public let isOfDrop: Bool

    /// What ``ReceiveAnswer`` answers, a message of one byte.
    public enum Request: UInt8, Sendable {
        /// Open the descriptors of the next datagram, and leave the datagram in the queue.
        case open = 1
        /// Remove the next datagram, without opening its descriptors.
        case drop = 2
    }

    /// Decodes an answer; nil if `bytes` has another size.
    public init?(decoding bytes: [UInt8]) {
        guard bytes.count == Self.size else { return nil }
        let raw = bytes.withUnsafeBytes { $0.loadUnaligned(as: torpor_keeper_received.self) }
        failure = raw.error == 0 ? nil : Errno(rawValue: Int32(truncatingIfNeeded: raw.error))
        refused = Int(raw.refused)
        isIncomplete = raw.lost == 1
        isOfDrop = raw.lost == 2
    }
}
