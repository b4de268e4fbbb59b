// SPDX-License-Identifier: Apache-2.0

import CLinux

/// The records of the kernel's audit about Landlock. Reading them changes nothing for other readers, such as auditd.
public struct AuditRecords {
    /// The descriptor to watch, which is readable while records wait.
    public let descriptor: Descriptor

    /// A record as the kernel wrote it.
    public struct Record: Hashable, Sendable {
        /// The number of its kind (linux/audit.h).
        public let type: UInt16
        /// Its text, `audit(1729738800.268:30): domain=…`.
        public let text: [UInt8]

        /// Memberwise initializer.
        public init(type: UInt16, text: [UInt8]) { (self.type, self.text) = (type, text) }
    }

    /// What was read at once.
    public struct Batch: Sendable {
        /// The records, oldest first.
        public var records: [Record] = []
        /// Whether the kernel had no room for records before these.
        public var isLossy = false
        /// Whether more records may wait.
        public var isFull = false
        /// Why nothing can be read any longer; nil if it can.
        public var failure: Errno?
    }

    /// Begins to listen; EPERM without CAP_AUDIT_READ.
    public init() throws(Errno) { descriptor = Descriptor(owning: try call { tlx_audit_listen() }) }

    /// Continues with a socket that another process has opened.
    public init(taking descriptor: Descriptor) { self.descriptor = descriptor }

    /// Reads the records that wait at a descriptor like ``descriptor``, `most` at most. Never waits. May be called on any
    /// thread.
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

    /// The longest record: a path of 4096 bytes in hexadecimal, and room for the other fields.
    private static let longest = 10 << 10

    /// Whether audit is enabled on this machine. Waits up to a second; needs CAP_AUDIT_CONTROL.
    public static func isEnabled() throws(Errno) -> Bool { try call { tlx_audit_enabled(1000) } > 0 }
}
