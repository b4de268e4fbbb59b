// SPDX-License-Identifier: Apache-2.0

import BundleSeals
import Bundles
import DaemonHarness
import Foundation
import Linux
import Testing

@Suite("Bundles: digests and signatures, beside the programs of others") struct SealTests {
    static let minisign = "/usr/bin/minisign"
    static let fsverity = "/usr/bin/fsverity"

    @Test("The digest of a file is that of fs-verity", .enabled(if: File.isExecutable(fsverity), "needs fsverity"))
    func digests() throws {
        let folder = try Daemon.makeFolder()
        defer { try? File.removeTree(folder) }
        var paths: [String] = []
        // Around a block, around a block of hashes (128), and around a second level of them.
        for size in [0, 1, 4095, 4096, 4097, 8192, 524_287, 524_288, 524_289, 1 << 20, 67_108_864, 67_108_865] {
            let path = "\(folder)/\(size)"
            var bytes = [UInt8](repeating: 7, count: size)
            for place in stride(from: 0, to: size, by: 3000) { bytes[place] = UInt8(truncatingIfNeeded: place / 3000) }
            try File.write(path, bytes)
            paths.append(path)
        }
        let (code, output) = try Spawn.run([Self.fsverity, "digest", "--compact"] + paths)
        #expect(code == 0, "\(output)")
        let expected = output.split(separator: "\n").map(String.init)
        let found = try paths.map { path in
            let file = try File.open(path)
            return String(decoding: Hex.text(try Digest.read(file.raw).digest), as: UTF8.self)
        }
        #expect(found == expected)
    }

    @Test("Their signatures are ours, and ours theirs", .enabled(if: File.isExecutable(minisign), "needs minisign"))
    func minisigns() throws {
        let folder = try Daemon.makeFolder()
        defer { try? File.removeTree(folder) }
        func minisign(_ words: String..., code: Int32 = 0) throws -> String {
            let (status, output) = try Spawn.run([Self.minisign] + words)
            #expect(status == code, "\(words): \(output)")
            return output
        }
        let (file, text) = ("\(folder)/file", Array("what is signed".utf8))
        try File.write(file, text)
        // Their key, their signature.
        _ = try minisign("-G", "-W", "-p", "\(folder)/their.pub", "-s", "\(folder)/their.key")
        _ = try minisign("-S", "-H", "-s", "\(folder)/their.key", "-m", file, "-t", "a comment")
        let signature = try MinisignSignature(text: try File.read(file + ".minisig"))
        #expect(signature.comment == "a comment")
        let keys = TrustedKey.all(in: folder).keys
        #expect(try Seal.signer(of: text, signature, among: keys).path == "\(folder)/their.pub")
        #expect(throws: BundleFault.self) { try Seal.signer(of: text + [0], signature, among: keys) }
        #expect(throws: BundleFault.self) { try Seal.signer(of: text, signature, among: []) }
        // Another comment needs another signature.
        let other = MinisignSignature(
            key: signature.key,
            signature: signature.signature,
            trustedComment: Array("another".utf8),
            second: signature.second
        )
        #expect(throws: BundleFault.self) { try Seal.signer(of: text, other, among: keys) }
        // Their key, our signature.
        let theirs = try SigningKey(try MinisignSecret(text: try File.read("\(folder)/their.key"))) { [] }
        try File.write(file + ".minisig", theirs.sign(text, comment: "ours").text)
        #expect(try minisign("-V", "-p", "\(folder)/their.pub", "-m", file).contains("Trusted comment: ours"))
        // Our key, our signature and theirs.
        let ours = SigningKey()
        try File.write("\(folder)/our.pub", ours.key.text)
        try File.write("\(folder)/our.key", ours.text)
        try File.write(file + ".minisig", ours.sign(text, comment: "x").text)
        _ = try minisign("-V", "-p", "\(folder)/our.pub", "-m", file)
        _ = try minisign("-S", "-H", "-s", "\(folder)/our.key", "-m", file, "-t", "y")
        let last = try MinisignSignature(text: try File.read(file + ".minisig"))
        #expect(try Seal.signer(of: text, last, among: TrustedKey.all(in: folder).keys).path == "\(folder)/our.pub")
    }

    @Test("A key of theirs with a password", .enabled(if: File.isExecutable(minisign), "needs minisign"))
    func passwords() throws {
        let folder = try Daemon.makeFolder()
        defer { try? File.removeTree(folder) }
        // It derives the key of the password with a gigabyte of memory.
        let make = "printf 'pass word\\npass word\\n' | \(Self.minisign) -G -p \(folder)/k.pub -s \(folder)/k.key"
        let (code, output) = try Spawn.run(["/bin/sh", "-c", make])
        guard code == 0 else { return print("skipped: minisign makes no key with a password here: \(output)") }
        let file = try MinisignSecret(text: try File.read("\(folder)/k.key"))
        #expect(file.isEncrypted)
        #expect(throws: BundleFault.self) { try SigningKey(file) { Array("password".utf8) } }
        let key = try SigningKey(file) { Array("pass word".utf8) }
        let trusted = TrustedKey.all(in: folder).keys
        #expect(try Seal.signer(of: [1, 2], key.sign([1, 2], comment: "c"), among: trusted).key == key.key)
    }

    @Test("A key with the number of another one signs nothing for it")
    func forgedNumber() throws {
        let (real, forger) = (SigningKey(), SigningKey())
        let made = forger.sign([1], comment: "c")
        let forged = MinisignSignature(
            key: real.key.id,
            signature: made.signature,
            trustedComment: made.trustedComment,
            second: made.second
        )
        let trusted = [TrustedKey(key: real.key, path: "real", changed: 0)]
        #expect(throws: BundleFault.self) { try Seal.signer(of: [1], forged, among: trusted) }
        let both =
            trusted + [
                TrustedKey(key: MinisignKey(id: real.key.id, key: forger.key.key), path: "same number", changed: 0)
            ]
        #expect(try Seal.signer(of: [1], forged, among: both).path == "same number")
    }

    @Test("What is not a signature or a key is refused")
    func texts() throws {
        let key = SigningKey()
        let text = key.sign([], comment: "c").text
        #expect(throws: Never.self) { try MinisignSignature(text: text) }
        let lines = String(decoding: text, as: UTF8.self).split(separator: "\n").map(String.init)
        let notPrehashed = "RW" + String(lines[1].dropFirst(2))
        let wrong: [[String]] = [
            [], ["x"], Array(lines[..<3]), Array(lines.reversed()), lines + ["more"],
            [lines[0], lines[1], "trusted comment: a\u{1}b", lines[3]], [lines[0], notPrehashed, lines[2], lines[3]],
        ]
        for lines in wrong {
            let text = lines.joined(separator: "\n")
            #expect(throws: BundleFault.self, "\(text)") { try MinisignSignature(text: Array(text.utf8)) }
        }
        #expect(throws: BundleFault.self) { try MinisignKey(text: key.text) }
        #expect(throws: BundleFault.self) { try MinisignSecret(text: key.key.text) }
        #expect(try MinisignKey(text: key.key.text) == key.key)
    }
}
