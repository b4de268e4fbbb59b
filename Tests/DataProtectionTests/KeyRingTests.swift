// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
import Testing

@testable import ProtectionKeys

@Suite("Sealed keys", .serialized) struct KeyRingTests {
    private static func secret(_ text: String) -> Secret {
        Array(text.utf8).withUnsafeBytes { Secret(copying: $0) }
    }

    private static func with(_ body: (KeyRing, String) throws -> Void) throws {
        let root = NSTemporaryDirectory() + "keys-\(UInt64.random(in: 0 ... .max))"
        try File.makeDirectories(root, mode: 0o711)
        defer { try? FileManager.default.removeItem(atPath: root) }
        try body(try KeyRing(root), root)
    }

    private static func bytes(_ keys: ClassKeys) -> [UInt8] { Array(keys.secret.bytes) }

    @Test("class keys come back by the passphrase and by the recovery key, and by nothing else")
    func ring() throws {
        try Self.with { ring, root in
            #expect(!ring.isThere)
            let (keys, recovery) = try ring.make(Self.secret("correct"))
            #expect(throws: KeyError.self) { try ring.make(Self.secret("other")) }
            #expect(Self.bytes(try ring.open(passphrase: Self.secret("correct"))) == Self.bytes(keys))
            #expect(Self.bytes(try ring.open(recovery: recovery.groups)) == Self.bytes(keys))
            for wrong in ["", "correc", "correct ", "Correct"] {
                #expect(throws: KeyError.self) { try ring.open(passphrase: Self.secret(wrong)) }
            }
            #expect(throws: KeyError.self) { try ring.open(recovery: Self.secret("00")) }
            #expect(throws: KeyError.self) { try ring.open(recovery: Secret.random(count: 32).groups) }
            try ring.change(keys, to: Self.secret("new"))
            #expect(throws: KeyError.self) { try ring.open(passphrase: Self.secret("correct")) }
            #expect(Self.bytes(try ring.open(passphrase: Self.secret("new"))) == Self.bytes(keys))
            #expect(Self.bytes(try ring.open(recovery: recovery.groups)) == Self.bytes(keys))
            #expect(try File.status(root + "/.keys").mode == 0o700)
            #expect(try File.status(root + "/.keys/ring").mode == 0o600)
        }
    }

    @Test("a file that was changed anywhere, or cut, opens nothing and asks for no more memory than it may")
    func damaged() throws {
        try Self.with { ring, root in
            _ = try ring.make(Self.secret("correct"))
            let path = root + "/.keys/ring"
            let text = try File.readString(path)
            let changes = [
                String(text.prefix(60)), "", "torpor-keys 2" + String(text.dropFirst(13)),
                text.replacing(" 67108864 ", with: " 99999999999999 "), text.replacing(" 67108864 ", with: " 8388608 "),
                text.replacing(" 3 ", with: " 0 "), text.replacing("argon2id", with: "plain"),
            ]
            for changed in changes {
                try File.write(path, changed)
                #expect(throws: KeyError.self, "\(changed.prefix(60))") {
                    try ring.open(passphrase: Self.secret("correct"))
                }
            }
            // A flipped digit of the sealed bytes.
            var lines = text.split(separator: "\n").map(String.init)
            lines[1] = String(lines[1].dropLast()) + (lines[1].hasSuffix("0") ? "1" : "0")
            try File.write(path, lines.joined(separator: "\n") + "\n")
            #expect(throws: KeyError.self) { try ring.open(passphrase: Self.secret("correct")) }
        }
    }

    @Test("what one app's key sealed is not taken for another's")
    func contexts() {
        let key = Secret.random(count: 32)
        let sealed = Sealed(Self.secret("key"), with: key, context: "a")
        #expect(sealed.open(with: key, context: "b") == nil)
        #expect(sealed.open(with: .random(count: 32), context: "a") == nil)
        #expect(sealed.open(with: key, context: "a").map { Array($0.bytes) } == Array("key".utf8))
        #expect(Sealed(Self.secret("key"), with: key, context: "a").nonce != sealed.nonce)
    }

    @Test("two that make or change keys at the same time are not both told that theirs count")
    func together() throws {
        try Self.with { ring, root in
            try File.makeDirectories(root + "/.keys", mode: 0o700)
            let lock = try File.open(root + "/.keys/.lock", [.readWrite, .create], mode: 0o600)
            #expect(try Locks.tryLock(lock.raw))
            #expect(throws: KeyError.self) { try ring.make(Self.secret("one")) }
            try Locks.unlock(lock.raw)
            let (keys, _) = try ring.make(Self.secret("one"))
            #expect(throws: KeyError.self) { try ring.make(Self.secret("two")) }
            #expect(try Locks.tryLock(lock.raw))
            #expect(throws: KeyError.self) { try ring.change(keys, to: Self.secret("two")) }
            try Locks.unlock(lock.raw)
            #expect(Self.bytes(try ring.open(passphrase: Self.secret("one"))) == Self.bytes(keys))
        }
    }

    @Test("a folder of somebody else, or that others can write to, is not used")
    func owners() throws {
        try Self.with { _, root in
            try File.setMode(root, 0o777)
            #expect(throws: KeyError.self) { try KeyRing(root) }
            try File.setMode(root, 0o711)
            if Users.isRoot {
                try File.setOwner(root, uid: 65534, gid: 65534)
                #expect(throws: KeyError.self) { try KeyRing(root) }
            }
        }
    }

    @Test("a secret is read up to a newline or a NUL, as pam_exec writes it, and a long one is refused")
    func lines() throws {
        for (text, wanted) in [("a b\nrest", "a b"), ("a\u{0}", "a"), ("a", "a"), ("", "")] {
            let pipe = try Descriptor.pipe()
            try Descriptor.writeAll(pipe.write.raw, Array(text.utf8))
            pipe.write.close()
            #expect(try Secret.line(from: pipe.read.raw).map { Array($0.bytes) } == Array(wanted.utf8))
        }
        let pipe = try Descriptor.pipe()
        try Descriptor.writeAll(pipe.write.raw, [UInt8](repeating: 65, count: 2000))
        pipe.write.close()
        #expect(try Secret.line(from: pipe.read.raw) == nil)
    }
}
