// SPDX-License-Identifier: Apache-2.0

import Lifecycle

/// The record of an app's machine, as the last torpord left it.
enum AppRecords: FuzzedParser {
    static func run(_ bytes: [UInt8]) throws(Finding) {
        guard let machine = read(bytes) else { return }
        let written = write(machine)
        guard let again = read(written) else { throw Finding("what was written cannot be read") }
        try expect(write(again) == written, "it is another machine when it is written and read again")
    }

    private static func read(_ bytes: [UInt8]) -> AppMachine? {
        bytes.withUnsafeBytes { raw in
            var reader = RecordReader(raw)
            return AppMachine(rules: AppRules(), from: &reader)
        }
    }

    private static func write(_ machine: AppMachine) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: 2_048) { buffer, count in
            buffer.initialize(repeating: 0)
            var writer = RecordWriter(UnsafeMutableRawBufferPointer(buffer))
            machine.encode(into: &writer)
            count = writer.count
        }
    }
}
