// SPDX-License-Identifier: Apache-2.0

import Linux
import Store

/// The journal of the store from its head's places on, as the last torpord left it, with a ring of 4 KiB.
enum StoreJournals: FuzzedParser {
    private static let capacity = 4_096

    static func run(_ bytes: [UInt8]) throws(Finding) {
        var content = Array("TpJ1".utf8) + bytes.prefix(capacity + 60)
        content += Array(repeating: 0, count: capacity + 64 - content.count)
        for index in 16..<52 { content[index] = 0 }
        guard let journal = StoreJournal(try MemoryFile.make(content), boot: "") else { return }
        let before = journal.items()
        try expect(before.count <= capacity / 8, "\(before.count) items in \(capacity) bytes")
        var event = StoredEvent(at: 7, app: "fuzz", kind: "fuzz", text: "after it")
        event.sequence = 9
        journal.append(event)
        try expect(journal.items().last == .event(event), "what was appended is not there")
    }
}
