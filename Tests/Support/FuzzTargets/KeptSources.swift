// SPDX-License-Identifier: Apache-2.0

import Configuration

/// The texts of the configuration in force, as the last torpord left them: all but their checksum, which is put behind.
enum KeptSources: FuzzedParser {
    static func run(_ bytes: [UInt8]) throws(Finding) {
        _ = ConfigurationSources(decoding: bytes)
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        let whole = bytes + (0..<8).map { UInt8(truncatingIfNeeded: hash >> ($0 * 8)) }
        guard let sources = ConfigurationSources(decoding: whole) else { return }
        let written = sources.encoded()
        guard let again = ConfigurationSources(decoding: written) else {
            throw Finding("what was written cannot be read")
        }
        try expect(again == sources && again.encoded() == written, "they are others when they are written and read")
    }
}
