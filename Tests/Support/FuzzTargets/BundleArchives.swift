// SPDX-License-Identifier: Apache-2.0

import Bundles

/// Archives of bundles, as strangers make them, with the manifest in them.
enum BundleArchives: FuzzedParser {
    static var nanosecondsPerByte: Int { 8_000 }

    static func run(_ bytes: [UInt8]) throws(Finding) {
        if let signature = try? MinisignSignature(text: bytes) {
            try expect(
                (try? MinisignSignature(text: signature.text)) == signature,
                "it is another signature when written"
            )
        }
        if let key = try? MinisignKey(text: bytes) {
            try expect((try? MinisignKey(text: key.text)) == key, "it is another key when written")
        }
        if let files = try? FileTable.split(bytes).files {
            try expect((try? FileTable.split(files.text).files) == files, "it is another table when written")
        }
        var place = 0
        guard
            var archive = try? BundleArchive({ most in
                let part = Array(bytes[place..<min(place + most, bytes.count)])
                place += part.count
                return part
            })
        else { return }
        var (count, size) = (0, UInt64(0))
        do throws(BundleFault) {
            while try archive.next() != nil {
                count += 1
                while case let part = try archive.content(atMost: 4096), !part.isEmpty { size += UInt64(part.count) }
            }
        } catch { return }
        try expect(count == archive.head.files.entries.count, "it has more or fewer files than its manifest")
        try expect(size == archive.head.files.bytes, "it has more or fewer bytes than its manifest")
    }
}
