// SPDX-License-Identifier: Apache-2.0

public import Bundles
import CSodium
import Linux

/// Computes SHA-256 and fs-verity digests.
public enum Digest {
    /// Returns the SHA-256 of bytes.
    public static func sha256(_ bytes: UnsafeRawBufferPointer) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: 32)
        let start = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
        crypto_hash_sha256(&digest, start, UInt64(bytes.count))
        return digest
    }

    /// A new, empty Merkle tree with SHA-256.
    public static var tree: MerkleTree { MerkleTree(hash: sha256) }

    /// How many bytes are read at a time: a multiple of the tree's block size.
    public static let step = 256 << 10

    /// Reads a file from start to end, and passes each part on.
    ///
    /// - Returns: the file's fs-verity digest, and its size in bytes.
    public static func read(
        _ file: Int32,
        _ body: (UnsafeRawBufferPointer) throws(BundleFault) -> Void = { _ in }
    ) throws(BundleFault) -> (digest: [UInt8], size: UInt64) {
        var (tree, size) = (tree, UInt64(0))
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: step, alignment: 4096)
        defer { buffer.deallocate() }
        while true {
            // read(2) may return less than was asked for, but `tree` needs whole blocks: read again until the buffer is
            // full.
            var filled = 0
            while filled < step {
                let part = UnsafeMutableRawBufferPointer(rebasing: buffer[filled...])
                let count: Int
                do throws(Errno) { count = try Descriptor.read(file, into: part) ?? 0 } catch {
                    throw BundleFault("it cannot be read", error)
                }
                guard count > 0 else { break }
                filled += count
            }
            guard filled > 0 else { return (tree.digest(), size) }
            let part = UnsafeRawBufferPointer(rebasing: buffer[..<filled])
            tree.append(part)
            size += UInt64(filled)
            try body(part)
            guard filled == step else { return (tree.digest(), size) }
        }
    }
}

/// A secret key that signs bundles.
public struct SigningKey: Sendable {
    /// The public key that belongs to the secret key.
    public let key: MinisignKey
    /// The Ed25519 secret key, 64 bytes.
    private let secret: [UInt8]

    /// Makes a new key.
    public init() {
        _ = sodium_init()
        var (open, secret) = ([UInt8](repeating: 0, count: 32), [UInt8](repeating: 0, count: 64))
        crypto_sign_keypair(&open, &secret)
        var id = [UInt8](repeating: 0, count: 8)
        randombytes_buf(&id, id.count)
        key = MinisignKey(id: id, key: open)
        self.secret = secret
    }

    /// Decrypts a key from its file.
    ///
    /// - Parameter password: returns the password; called only if the key is encrypted.
    public init(_ file: MinisignSecret, password: () throws(BundleFault) -> [UInt8]) throws(BundleFault) {
        _ = sodium_init()
        var bytes = file.sealed
        if file.isEncrypted {
            // Limits against files that would use up time and memory; minisign itself uses at most 2^25 operations
            // and 1 GiB.
            guard file.operations <= 1 << 26, file.memory <= 2 << 30 else {
                throw BundleFault("this secret key asks for more than 2 GiB of memory")
            }
            var (stream, password) = (
                [UInt8](repeating: 0, count: 104), try password().map { CChar(bitPattern: $0) }
            )
            defer { sodium_memzero(&password, password.count) }
            let result = crypto_pwhash_scryptsalsa208sha256(
                &stream,
                104,
                password,
                UInt64(password.count),
                file.salt,
                file.operations,
                Int(file.memory)
            )
            guard result == 0 else { throw BundleFault("there is not enough memory to open this secret key") }
            for index in bytes.indices { bytes[index] ^= stream[index] }
        }
        let (id, secret, check) = (Array(bytes[..<8]), Array(bytes[8..<72]), Array(bytes[72...]))
        // Check the checksum only of an encrypted key: minisign writes none into a key without a password.
        guard !file.isEncrypted || check == Self.check(id, secret) else {
            throw BundleFault("this is not the password of the key")
        }
        key = MinisignKey(id: id, key: Array(secret[32...]))
        self.secret = secret
    }

    private static func check(_ id: [UInt8], _ secret: [UInt8]) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: 32)
        let bytes = Array("Ed".utf8) + id + secret
        crypto_generichash(&digest, 32, bytes, UInt64(bytes.count), nil, 0)
        return digest
    }

    /// The key's file, without a password.
    public var text: [UInt8] { MinisignSecret.text(sealed: key.id + secret + Self.check(key.id, secret)) }

    /// Signs a file's bytes.
    public func sign(_ bytes: [UInt8], comment: String) -> MinisignSignature {
        let comment = Array(comment.utf8)
        let first = sign(raw: Seal.blake2b(bytes))
        return MinisignSignature(
            key: key.id,
            signature: first,
            trustedComment: comment,
            second: sign(raw: first + comment)
        )
    }

    private func sign(raw bytes: [UInt8]) -> [UInt8] {
        var signature = [UInt8](repeating: 0, count: 64)
        crypto_sign_detached(&signature, nil, bytes, UInt64(bytes.count), secret)
        return signature
    }
}

/// Verifies signatures.
public enum Seal {
    static func blake2b(_ bytes: [UInt8]) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: 64)
        crypto_generichash(&digest, 64, bytes, UInt64(bytes.count), nil, 0)
        return digest
    }

    /// The key among `keys` that made both signatures of these bytes; nil if none did.
    public static func signer(
        of bytes: [UInt8],
        _ signature: MinisignSignature,
        among keys: [TrustedKey]
    ) throws(BundleFault) -> TrustedKey {
        _ = sodium_init()
        let named = keys.filter { $0.key.id == signature.key }
        guard !named.isEmpty else {
            throw BundleFault(
                "it is signed by the key \(MinisignKey.name(signature.key)), which is not trusted here: if you trust its "
                    + "maker, copy the maker’s .pub file to the trusted keys, the folder keys beside torpor.toml"
            )
        }
        let digest = blake2b(bytes)
        let second = signature.signature + signature.trustedComment
        // Only the signature proves which key signed: anyone can make a key with a given id.
        let signer = named.first { trusted in
            let key = trusted.key.key
            return crypto_sign_verify_detached(signature.signature, digest, UInt64(digest.count), key) == 0
                && crypto_sign_verify_detached(signature.second, second, UInt64(second.count), key) == 0
        }
        guard let signer else { throw BundleFault("manifest.toml is not what was signed") }
        return signer
    }
}

/// A public key whose bundles may run on this machine.
public struct TrustedKey: Hashable, Sendable {
    /// The public key.
    public let key: MinisignKey
    /// The path of the key's file.
    public let path: String
    /// When the key's file last changed, in nanoseconds since 1970.
    public let changed: Int64

    /// The most keys that are read from a folder.
    private static let most = 1000

    /// Creates a trusted key from its parts.
    public init(key: MinisignKey, path: String, changed: Int64) {
        (self.key, self.path, self.changed) = (key, path, changed)
    }

    /// Returns the keys in the `*.pub` files of a folder, sorted by path, and why other files were not accepted. The
    /// folder and the keys decide which programs run, so only root and this user may be able to write to them.
    public static func all(in folder: String) -> (keys: [TrustedKey], problems: [String]) {
        var (keys, problems) = ([TrustedKey](), [String]())
        if let status = try? File.status(folder), let problem = problem(status) {
            return ([], ["\(folder) \(problem)"])
        }
        let names = ((try? File.list(folder)) ?? []).filter { $0.hasSuffix(".pub") && !$0.hasPrefix(".") }.sorted()
        for name in names.prefix(most) {
            let path = folder + "/" + name
            do {
                // torpor-verify's sandbox can read only this folder, so a symlink would lead out of it.
                guard try File.kind(path) != .link else { throw BundleFault("it is a symlink: copy the key here") }
                guard let text = try File.readRegular(path, limit: BundleLimit.signature) else {
                    throw BundleFault("it is not a regular file")
                }
                if let problem = problem(try File.status(path)) {
                    problems.append("\(path) \(problem)")
                    continue
                }
                let key = try MinisignKey(text: text)
                keys.append(TrustedKey(key: key, path: path, changed: try File.status(path).changedNanoseconds))
            } catch {
                problems.append("\(path): \(error)")
            }
        }
        return (keys, problems)
    }
    private static func problem(_ status: FileStatus) -> String? {
        if status.uid != 0, status.uid != Users.effectiveUID {
            return "belongs to another user (\(status.uid)), so no key in it counts: chown it"
        }
        guard status.mode & 0o022 != 0 else { return nil }
        return "may be written to by others, so no key in it counts: chmod go-w"
    }
}
