// SPDX-License-Identifier: Apache-2.0

import EventSources
import Lifecycle
import Linux
import Schedules
import Store
import Supervisor
import Varlink
import WireText

/// What a torpord reads back of apps that an earlier one wrote. The first byte says what: the shell's part of an app's record
/// with the state of its messages behind it, its ledger, or what is known of a timer or of its fetches.
enum SupervisorRecords: FuzzedParser {
    static func run(_ bytes: [UInt8]) throws(Finding) {
        guard let first = bytes.first else { return }
        let rest = Array(bytes.dropFirst())
        switch first % 4 {
        case 0: try record(rest)
        case 1: try ledger(rest)
        case 2: try timer(rest)
        default: try fetches(rest)
        }
    }

    private static func record(_ bytes: [UInt8]) throws(Finding) {
        // What is cut off is only known when it was written once.
        let written = rewritten(rewritten(bytes))
        try expect(rewritten(written) == written, "it is another record when it is written and read again")
    }

    private static func rewritten(_ bytes: [UInt8]) -> [UInt8] {
        let (app, channel) = bytes.withUnsafeBytes { raw in
            var reader = RecordReader(raw)
            return (AppRecord(from: &reader), ChannelRecord(from: &reader))
        }
        return [UInt8](unsafeUninitializedCapacity: 2_048) { buffer, count in
            buffer.initialize(repeating: 0)
            var writer = RecordWriter(UnsafeMutableRawBufferPointer(buffer))
            app.encode(into: &writer)
            channel.encode(into: &writer)
            count = writer.count
        }
    }

    private static func ledger(_ bytes: [UInt8]) throws(Finding) {
        guard let ledger = ChannelLedger(bytes) else { return }
        let written = ledger.json.serialised()
        guard let again = ChannelLedger(written) else { throw Finding("a ledger that was written cannot be read") }
        try expect(again == ledger, "it is another ledger when it is written and read again")
    }

    /// The input begins behind the brace that opens it: what was learned in another boot is hardly looked at.
    private static func timer(_ bytes: [UInt8]) throws(Finding) {
        let bytes = Array("{\"boot\":\"\(ThisProcess.bootID)\",".utf8) + bytes
        let now = ClockPair(running: .seconds(1_000), wall: 1_700_000_000_000_000)
        let memory = TimerMemory(row(bytes), now: now)
        let written = memory.json.serialised()
        let again = TimerMemory(row(written), now: now)
        try expect(
            !memory.isOfThisBoot || again.json.serialised() == written,
            "it is another timer when it is read again"
        )
    }

    private static func fetches(_ bytes: [UInt8]) throws(Finding) {
        guard let memory = FetchMemory(row(bytes)) else { return }
        let written = memory.json.serialised()
        guard let again = FetchMemory(row(written)) else { throw Finding("fetches that were written cannot be read") }
        try expect(again.json.serialised() == written, "they are other fetches when they are read again")
    }

    private static func row(_ bytes: [UInt8]) -> StoredSchedule {
        StoredSchedule(app: "web", name: "timer", learned: String(wire: bytes))
    }
}
