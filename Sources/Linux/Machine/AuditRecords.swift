// SPDX-License-Identifier: Apache-2.0

import CLinux

/// Reads the kernel's audit records about Landlock. Other readers of audit, such as auditd, are not affected.
public struct AuditRecords {
    /// The audit socket, which is readable while records are queued.
    public let descriptor: Descriptor

    /// A record as the kernel has written it.
    public struct Record: Hashable, Sendable {
        /// The record's type (linux/audit.h).
        public let type: UInt16
        /// The record's text, such as `audit(1729738800.268:30): domain=…`.
        public let text: [UInt8]

        /// Memberwise initializer.
        public init(type: UInt16, text: [UInt8]) { (self.type, self.text) = (type, text) }
    }

    /// The result of one read.
    public struct Batch: Sendable {
        /// The records, oldest first.
        public var records: [Record] = []
        /// Whether the kernel has dropped records before these, because the queue was full.
        public var isLossy = false
        /// Whether more records may be queued.
        public var isFull = false
        /// The error after which no more records can be read; nil if there was none.
        public var failure: Errno?
    }

    /// Opens an audit socket. Throws EPERM if torpord lacks CAP_AUDIT_READ.
    public init() throws(Errno) { descriptor = Descriptor(owning: try call { tlx_audit_listen() }) }

    /// Uses an audit socket that an earlier torpord opened.
    public init(taking descriptor: Descriptor) { self.descriptor = descriptor }

    /// Reads at most `most` queued records from an audit socket, without blocking. May be called on any thread.
    public static func read(_ descriptor: Int32, atMost most: Int) -> Batch {
        var batch = Batch()
        var text = [CChar](repeating: 0, count: longest)
        for _ in 0..<most {
            var type: UInt16 = 0
            do throws(Errno) {
                let size = text.count
                guard let count = try callUnlessBlocked({ tlx_audit_next(descriptor, &type, &text, size) }) else {
                    return batch
                }
                guard type != 0 else { continue }
                batch.records.append(Record(type: type, text: text.prefix(count).map { UInt8(bitPattern: $0) }))
            } catch {
                guard error == .noBufferSpace else {
                    batch.failure = error
                    return batch
                }
                batch.isLossy = true
            }
        }
        batch.isFull = true
        return batch
    }

    /// The size of the longest record, in bytes: a path of 4096 bytes in hexadecimal digits, plus the other fields.
    private static let longest = 10 << 10

    /// Whether audit is enabled on this machine. Waits up to a second; needs CAP_AUDIT_CONTROL.
    public static func isEnabled() throws(Errno) -> Bool { try call { tlx_audit_enabled(1000) } > 0 }
}
