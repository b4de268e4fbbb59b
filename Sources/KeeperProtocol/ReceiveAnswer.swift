// SPDX-License-Identifier: Apache-2.0

import CKeeperProtocol
public import SystemPackage

/// What `torpor-keeper --receive` says of the descriptors that it opened.
public struct ReceiveAnswer: Hashable, Sendable {
    /// Its size in bytes.
    public static let size = MemoryLayout<torpor_keeper_received>.size

    /// No datagram could be read.
    public let failure: Errno?
    /// How many were refused, since their close could wait for whoever made them.
    public let refused: Int
    /// Some could not be opened, and which is not known.
    public let isIncomplete: Bool

    /// One from its message; nil when it is none.
    public init?(decoding bytes: [UInt8]) {
        guard bytes.count == Self.size else { return nil }
        let raw = bytes.withUnsafeBytes { $0.loadUnaligned(as: torpor_keeper_received.self) }
        failure = raw.error == 0 ? nil : Errno(rawValue: Int32(truncatingIfNeeded: raw.error))
        refused = Int(raw.refused)
        isIncomplete = raw.lost != 0
    }
}
