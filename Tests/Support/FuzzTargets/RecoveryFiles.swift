// SPDX-License-Identifier: Apache-2.0

import Lifecycle
import Linux
import Recovery

/// The recovery file from its version on, as the last torpord left it; behind the end of an input it is full of zeros.
enum RecoveryFiles: FuzzedParser {
    /// Its first page with one slot of the largest size, and some more.
    private static let size = 4_096 + (1 << 16) + 4_096

    static func run(_ bytes: [UInt8]) throws(Finding) {
        var content = Array("TORPREC1".utf8) + bytes.prefix(size - 8)
        content += Array(repeating: 0, count: max(0, size - content.count))
        for index in 32..<68 { content[index] = 0 }
        for index in 80..<88 { content[index] = 0 }
        try look(try open(try MemoryFile.make(content), isWritable: false))
        let descriptor = try MemoryFile.make(content)
        guard let file = try open(descriptor, isWritable: true) else { return }
        try look(file)
        let record = Array(bytes.prefix(32))
        var slot = 0
        do throws(Errno) {
            slot = try file.add("fuzz")
        } catch {
            return
        }
        file.write(slot, undone: 3) { memory in
            let count = min(memory.count, record.count)
            memory.copyBytes(from: record.prefix(count))
            return count
        }
        guard let found = file.entries.first(where: { $0.slot == slot }) else {
            throw Finding("what was added is gone")
        }
        try expect(found.name == "fuzz" && found.undone == 3, "\(found.name) was added")
        let kept = found.record.map { Array($0) } ?? []
        try expect(record.starts(with: kept) && file.snapshot(slot) == kept, "the record is another one")
    }

    private static func open(_ descriptor: Descriptor, isWritable: Bool) throws(Finding) -> RecoveryFile? {
        try? RecoveryFile(descriptor, boot: "", firstProcess: 0, isWritable: isWritable)
    }

    private static func look(_ file: RecoveryFile?) throws(Finding) {
        guard let file else { return }
        _ = (file.verdict, file.flags, file.nextEvent, file.keeper)
        for entry in file.entries {
            try expect(
                entry.name.utf8.count <= 3 * RecoveryFile.longestName,
                "a name is \(entry.name.utf8.count) bytes"
            )
            guard let record = entry.record else { continue }
            var reader = RecordReader(record)
            _ = AppMachine(rules: AppRules(), from: &reader)
        }
    }
}
