// SPDX-License-Identifier: Apache-2.0

import Linux

/// Bytes for the next torpord, in a memory file whose descriptor the keeper holds. The first write creates the file.
package final class PersistedBytes {
    private unowned(unsafe) let keeping: any DescriptorKeeping
    private let log: DaemonLog
    private let name: String
    private let most: Int
    private var memory: Descriptor?

    /// - Parameters:
    ///   - name: the name of the descriptor in the keeper (``DescriptorName``).
    ///   - most: the limit in bytes. If a new value is longer, it is not stored, and the old value is kept.
    package init(_ keeping: any DescriptorKeeping, _ log: DaemonLog, named name: String, most: Int) {
        self.keeping = keeping
        self.log = log
        self.name = name
        self.most = most
        memory = keeping.inheritance.take(name).first
    }

    /// The bytes that were stored last; nil if none were.
    package var bytes: [UInt8]? { memory.flatMap { try? File.read($0.raw, at: 0, maximum: most) } }

    /// Whether a value was ever stored, even an empty one.
    package var exists: Bool { memory != nil }

    /// The descriptor of the memory file, under its name in the keeper.
    package var held: [(name: String, descriptors: [Int32])] { memory.map { [(name, [$0.raw])] } ?? [] }

    package func keep(_ bytes: [UInt8]) {
        guard bytes.count <= most else { return }
        do throws(Errno) {
            if memory == nil {
                let made = try Memory.file(named: "torpor-\(name)")
                keeping.hold(name, made.raw)
                memory = made
            }
            guard let memory else { return }
            try File.truncate(memory.raw, to: 0)
            try File.write(memory.raw, at: 0, bytes)
        } catch {
            log.debug("\(name) cannot be kept for the next torpord: \(error)")
        }
    }
}
