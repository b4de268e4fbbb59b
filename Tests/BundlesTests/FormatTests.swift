// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Bundles

@Suite("Bundles: names, versions and texts") struct FormatTests {
    static let digest = [UInt8](repeating: 0xAB, count: 32)

    static func file(_ path: String, mode: UInt32 = 0o644, size: UInt64 = 1) throws -> BundleEntry {
        BundleEntry(try BundlePath(path.utf8), .file(mode: mode, size: size, digest: digest))
    }

    @Test("A table is the same when it is written and read again")
    func table() throws {
        let table = try FileTable([
            try Self.file("b/c", mode: 0o755, size: 1 << 33), try Self.file("quote\"back\\slash"),
            try Self.file("ü/ñ €"),
            BundleEntry(try BundlePath("a".utf8), .link(Array("b/c".utf8))), try Self.file("b-", size: 0),
        ])
        let manifest = Array("name = \"x\"\n".utf8) + table.text
        let (head, read) = try FileTable.split(manifest)
        #expect(read == table)
        #expect(head == Array("name = \"x\"\n".utf8))
        #expect(read.text == table.text)
        #expect(read.folders == [Array("b".utf8), Array("ü".utf8)])
        #expect(read.bytes == 1 << 33 + 2)
        #expect(try FileTable.split(Array("[files]".utf8)).files.entries.isEmpty)
    }

    @Test(
        "Only one form of a line is read",
        arguments: [
            "\"a\" = { mode = \"0644\", size = 01, verity = \"D\" }\n",
            "\"a\" = { mode = \"644\", size = 1, verity = \"D\" }\n",
            "\"a\"= { mode = \"0644\", size = 1, verity = \"D\" }\n",
            "\"a\" = { mode = \"0644\", size = 1, verity = \"D\" }",
            "\"a\" = { mode = \"0644\", size = -1, verity = \"D\" }\n", "a = { link = \"b\" }\n", "\n", "# c\n",
            "\"a\" = { mode = \"0844\", size = 1, verity = \"D\" }\n",
            "\"a\" = { mode = \"0644\", size = 1, verity = \"dd\" }\n",
            "\"a\\n\" = { mode = \"0644\", size = 1, verity = \"D\" }\n", "\"a\" = { link = \"b\" } \n",
        ]
    )
    func forms(line: String) throws {
        let text = line.replacing("D", with: String(repeating: "ab", count: 32))
        #expect(throws: BundleFault.self) { try FileTable.split(Array(("[files]\n" + text).utf8)) }
    }

    @Test(
        "Versions are compared as Debian does",
        arguments: [
            ("1.0", "1.1"), ("1.9", "1.10"), ("1.0~rc1", "1.0"), ("1.0", "1.0a"), ("1.0a", "1.0+"),
            ("6.6", "6.12.9-amd64"),
            ("0", "1"), ("1", "1.0"), ("1.0", "1.0-1"), ("2.0~a", "2.0~b"),
        ]
    )
    func versions(lower: String, higher: String) {
        #expect(BundleWord.isLower(lower, than: higher))
        #expect(!BundleWord.isLower(higher, than: lower))
        #expect(!BundleWord.isLower(lower, than: lower))
    }

    @Test("Names and versions that cannot be folders are refused")
    func words() {
        for name in ["", ".", "..", "a/b", "-a", "_a", "a b", "ä", String(repeating: "a", count: 65)] {
            #expect(throws: BundleFault.self, "\(name)") { try BundleWord.checkName(name) }
        }
        for version in ["", "v1", "current", "..", "1/2", "1 ", "1:2", ".1"] {
            #expect(throws: BundleFault.self, "\(version)") { try BundleWord.checkVersion(version) }
        }
        #expect(throws: Never.self) {
            try BundleWord.checkName("notes-2_x")
            try BundleWord.checkVersion("1.0~rc1+b-2_x")
        }
    }

    @Test("A link may go up and down inside the bundle")
    func links() throws {
        func table(_ path: String, _ target: String) throws -> FileTable {
            try FileTable([
                try Self.file("a/b/c"), try Self.file("d"),
                BundleEntry(try BundlePath("l".utf8), .link(Array("d".utf8))),
                BundleEntry(try BundlePath(path.utf8), .link(Array(target.utf8))),
            ])
        }
        for (path, target) in [("a/b/x", "../../d"), ("a/x", "b"), ("x", "l"), ("a/x", "./b/../b/c"), ("x", ".")] {
            #expect(throws: Never.self, "\(path) → \(target)") { try table(path, target) }
        }
        for (path, target) in [("x", ".."), ("x", "/d"), ("x", "d/e"), ("x", "l/.."), ("x", ""), ("x", "a/../../d")] {
            #expect(throws: BundleFault.self, "\(path) → \(target)") { try table(path, target) }
        }
        func chain(_ targets: [(String, String)]) throws -> FileTable {
            var entries = [try Self.file("f")]
            for (path, target) in targets {
                entries.append(BundleEntry(try BundlePath(path.utf8), .link(Array(target.utf8))))
            }
            return try FileTable(entries)
        }
        for circle in [[("x", "x")], [("x", "./x")], [("x", "y"), ("y", "x")], [("w", "x"), ("x", "y"), ("y", "x")]] {
            #expect(throws: BundleFault.self, "\(circle)") { try chain(circle) }
        }
        let links = (1...41).map { ("l\($0)", $0 == 1 ? "f" : "l\($0 - 1)") }
        #expect(throws: Never.self) { try chain(Array(links.prefix(40))) }
        #expect(throws: BundleFault.self) { try chain(links) }
    }

    @Test("What is written as an archive is read again, long names and links too")
    func archives() throws {
        let long = Array(repeating: "folder", count: 40).joined(separator: "/")
        let content = [UInt8](repeating: 7, count: 1300)
        var bytes: [UInt8] = []
        var writer = ArchiveWriter { bytes += $0 }
        try writer.file(try BundlePath(long.utf8), mode: 0o755, size: UInt64(content.count))
        try writer.content(content)
        try writer.link(try BundlePath("l".utf8), to: Array(long.utf8))
        try writer.file(try BundlePath("empty".utf8), mode: 0o644, size: 0)
        try writer.end()
        #expect(bytes.count % 10_240 == 0)
        for step in [1, 7, 512, 100_000] {
            var place = 0
            var reader = ArchiveReader { most in
                let part = bytes[place..<min(place + min(step, most), bytes.count)]
                place += part.count
                return Array(part)
            }
            let first = try #require(try reader.next())
            #expect(first == ArchiveMember(path: try BundlePath(long.utf8), kind: .file(size: 1300), mode: 0o755))
            #expect(try reader.all(atMost: 2000) == content)
            #expect(try reader.next()?.kind == .link(Array(long.utf8)))
            #expect(try reader.next()?.kind == .file(size: 0))
            #expect(try reader.next() == nil)
            #expect(try reader.next() == nil)
        }
    }

    @Test("An archive that is cut anywhere, or has another bit anywhere in a header, is refused or ends earlier")
    func damage() throws {
        var bytes: [UInt8] = []
        var writer = ArchiveWriter { bytes += $0 }
        try writer.file(try BundlePath("a".utf8), mode: 0o644, size: 3)
        try writer.content([1, 2, 3])
        try writer.end()
        func members(_ bytes: [UInt8]) throws -> Int {
            var (place, count) = (0, 0)
            var reader = ArchiveReader { most in
                let part = bytes[place..<min(place + most, bytes.count)]
                place += part.count
                return Array(part)
            }
            while try reader.next() != nil { count += 1 }
            return count
        }
        #expect(try members(bytes) == 1)
        for length in 0..<(1024 + 1024) { #expect(throws: BundleFault.self) { try members(Array(bytes[..<length])) } }
        // The sum itself may be written in several ways.
        for bit in 0..<(512 * 8) where !(148..<156).contains(bit / 8) {
            var other = bytes
            other[bit / 8] ^= UInt8(1) << UInt8(bit % 8)
            #expect(throws: BundleFault.self, "bit \(bit)") { try members(other) }
        }
    }

    @Test("A name for messages has no control characters, of which some move a terminal's cursor")
    func shown() {
        #expect(BundlePath.shown("a\u{1b}[2Jb\u{9b}c\nd".utf8) == "a?[2Jb?c?d")
        #expect(BundlePath.shown("ü/€".utf8) == "ü/€")
        #expect(BundlePath.shown([UInt8](repeating: 0x61, count: 300)).count == 200)
    }

    @Test("What the author writes is bounded, as torpord reads it")
    func longHead() throws {
        let files = try FileTable([try Self.file("a")]).text
        let most = [UInt8](repeating: UInt8(ascii: "\n"), count: BundleLimit.head)
        #expect(try FileTable.split(most + files).head.count == BundleLimit.head)
        #expect(throws: BundleFault.self) { try FileTable.split(most + [UInt8(ascii: "\n")] + files) }
    }

    @Test("The signature is checked before anything in the manifest is read")
    func order() throws {
        var bytes: [UInt8] = []
        var writer = ArchiveWriter { bytes += $0 }
        let text = Array("[files]\nno line of a table\n".utf8)
        try writer.file(.manifest, mode: 0o644, size: UInt64(text.count))
        try writer.content(text)
        try writer.end()
        func read(_ check: ([UInt8], [UInt8]?) throws(BundleFault) -> Void) -> BundleFault? {
            var place = 0
            do throws(BundleFault) {
                _ = try BundleArchive(
                    { most in
                        let part = bytes[place..<min(place + most, bytes.count)]
                        place += part.count
                        return Array(part)
                    },
                    check: check
                )
                return nil
            } catch { return error }
        }
        let refusal = BundleFault("not signed")
        var given: [UInt8] = []
        let refused = read { manifest, _ throws(BundleFault) in
            given = manifest
            throw refusal
        }
        #expect(refused == refusal && given == text)
        let unchecked = read { _, _ throws(BundleFault) in }
        #expect(unchecked?.description.contains("line 1 of [files]") ?? false)
    }

    @Test("Base64 has one form")
    func base64() {
        for text in ["A", "AA", "AAA", "AB==", "AAB=", "A===", "====", "AA==AA==", "A=A=", "AA A"] {
            #expect(Base64.bytes(Array(text.utf8)[...]) == nil, "\(text)")
        }
        for count in 0..<20 {
            let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 * 37 + 200) }
            #expect(Base64.bytes(Base64.text(bytes)[...]) == bytes)
        }
    }
}
