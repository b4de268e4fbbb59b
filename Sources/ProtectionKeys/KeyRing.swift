// SPDX-License-Identifier: Apache-2.0

import CSodium
import DataProtection
public import Linux
import WireText

/// Why keys cannot be opened or kept, as a sentence.
public struct KeyError: Error, CustomStringConvertible {
    /// What is wrong, as a sentence.
    public let description: String

    /// Creates an error with a sentence.
    public init(_ description: String) { self.description = description }
}

/// A secret that was encrypted and authenticated with a key (XChaCha20-Poly1305): without the key, it can be neither
/// read nor changed.
struct Sealed: Hashable {
    static let nonceLength = 24
    static let tagLength = 16
    let nonce: [UInt8]
    let bytes: [UInt8]

    init(nonce: [UInt8], bytes: [UInt8]) { (self.nonce, self.bytes) = (nonce, bytes) }

    /// Seals a secret. `context` is not stored, but the same context is needed to open the result.
    init(_ secret: Secret, with key: Secret, context: String) {
        var nonce = [UInt8](repeating: 0, count: Self.nonceLength)
        randombytes_buf(&nonce, nonce.count)
        var bytes = [UInt8](repeating: 0, count: secret.count + Self.tagLength)
        let context = Array(context.utf8)
        crypto_aead_xchacha20poly1305_ietf_encrypt(
            &bytes,
            nil,
            secret.pointer,
            UInt64(secret.count),
            context,
            UInt64(context.count),
            nil,
            nonce,
            key.pointer
        )
        self.init(nonce: nonce, bytes: bytes)
    }

    /// Decrypts the secret; nil if the key or the context is wrong, or if the bytes were changed.
    func open(with key: Secret, context: String) -> Secret? {
        guard nonce.count == Self.nonceLength, bytes.count >= Self.tagLength, key.count == 32 else { return nil }
        let secret = Secret(count: bytes.count - Self.tagLength)
        let context = Array(context.utf8)
        let result = crypto_aead_xchacha20poly1305_ietf_decrypt(
            secret.pointer,
            nil,
            nil,
            bytes,
            UInt64(bytes.count),
            context,
            UInt64(context.count),
            nonce,
            key.pointer
        )
        return result == 0 ? secret : nil
    }

    var words: [String] { [Hexadecimal.text(nonce), Hexadecimal.text(bytes)] }

    init?(_ words: ArraySlice<Substring>) {
        let words = Array(words)
        guard words.count == 2, let nonce = Hexadecimal.bytes(words[0]), let bytes = Hexadecimal.bytes(words[1]) else {
            return nil
        }
        self.init(nonce: nonce, bytes: bytes)
    }
}

enum Hexadecimal {
    static func text(_ bytes: [UInt8]) -> String {
        let digits = Array("0123456789abcdef".utf8)
        return String(wire: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] })
    }

    static func bytes(_ text: Substring) -> [UInt8]? {
        let digits = text.utf8.map { byte -> UInt8? in
            switch byte {
            case 0x30...0x39: byte - 0x30
            case 0x61...0x66: byte - 0x57
            default: nil
            }
        }
        guard digits.count % 2 == 0, !digits.contains(nil) else { return nil }
        return stride(from: 0, to: digits.count, by: 2).map { (digits[$0] ?? 0) << 4 | (digits[$0 + 1] ?? 0) }
    }
}

/// The class keys: one for each value of `protected`. They seal the keys of apps.
public struct ClassKeys {
    /// The keys, 32 bytes each, in the order of ``names``.
    let secret: Secret
    static let names = ["complete", "first-unlock"]

    init(_ secret: Secret) { self.secret = secret }

    /// Creates new random keys.
    public init() { self.init(.random(count: 32 * Self.names.count)) }

    func key(_ name: String) -> Secret? {
        Self.names.firstIndex(of: name).map { secret.part(from: 32 * $0, count: 32) }
    }
}

/// The file `.keys/ring`: the class keys, sealed by a passphrase and by a recovery key.
///
///     torpor-keys 1
///     passphrase argon2id PASSES BYTES SALT NONCE SEALED
///     recovery NONCE SEALED
public struct KeyRing: Sendable {
    /// The folder of the sealed keys.
    private let folder: String
    private var path: String { folder + "/ring" }

    private static let head = "torpor-keys 1"
    private static let passes: UInt64 = 3
    private static let memory = 64 << 20
    private static let saltLength = 16
    /// Limits for the numbers in the file. This version never writes larger numbers: in a file, they would be an
    /// attempt to use up time or memory.
    private static let most = (passes: UInt64(64), memory: 4 << 30)

    /// Uses the key ring in `root`, the folder of all protected folders. `root` must belong to this user, and no other
    /// user may be able to write to it.
    public init(_ root: String) throws(KeyError) {
        folder = root + "/" + ProtectedPlace.keys
        do throws(Errno) {
            // If the folder is missing, torpord creates it when it first closes or opens a protected folder.
            guard try File.kind(root) != nil else { return }
            let status = try File.status(root, followLinks: false)
            guard status.kind == .directory, status.uid == Users.effectiveUID, status.mode & 0o022 == 0 else {
                throw .notPermitted
            }
        } catch {
            throw KeyError(
                error == .notPermitted
                    ? "\(root) belongs to another user: run this as the supervisor's own user (root for the system's)"
                    : "\(root) cannot be used: \(error)"
            )
        }
    }

    /// Creates the folder of all protected folders, if torpord has not created it yet.
    public static func prepare(_ root: String) throws(KeyError) {
        do throws(Errno) {
            guard try File.kind(root) == nil else { return }
            try File.makeDirectory(root, mode: 0o711)
            try File.setMode(root, 0o711)
        } catch {
            guard error != .fileExists else { return }
            throw KeyError("\(root) cannot be made: \(error)")
        }
    }

    /// Whether the key ring exists.
    public var isThere: Bool { File.exists(path) }

    // MARK: The ring

    private struct Content {
        var passes: UInt64
        var memory: Int
        var salt: [UInt8]
        var byPassphrase: Sealed
        var byRecovery: Sealed

        var text: String {
            let first =
                ["passphrase", "argon2id", "\(passes)", "\(memory)", Hexadecimal.text(salt)] + byPassphrase.words
            return [
                KeyRing.head, first.joined(separator: " "), (["recovery"] + byRecovery.words).joined(separator: " "),
            ]
            .joined(separator: "\n") + "\n"
        }

        init(_ keys: ClassKeys, _ passphrase: Secret, byRecovery: Sealed) throws(KeyError) {
            (passes, memory) = (KeyRing.passes, KeyRing.memory)
            salt = [UInt8](repeating: 0, count: KeyRing.saltLength)
            randombytes_buf(&salt, salt.count)
            let key = try KeyRing.stretch(passphrase, passes, memory, salt)
            byPassphrase = Sealed(keys.secret, with: key, context: KeyRing.head)
            self.byRecovery = byRecovery
        }

        init?(_ text: String) {
            let lines = text.split(separator: "\n").map { $0.split(separator: " ") }
            guard lines.count == 3, lines[0].joined(separator: " ") == KeyRing.head, lines[1].count == 7,
                lines[1][0] == "passphrase", lines[1][1] == "argon2id", let passes = UInt64(lines[1][2]),
                let memory = Int(lines[1][3]), let salt = Hexadecimal.bytes(lines[1][4]),
                salt.count == KeyRing.saltLength, let first = Sealed(lines[1][5...]), lines[2].first == "recovery",
                let second = Sealed(lines[2].dropFirst()), (1...KeyRing.most.passes).contains(passes),
                (8192...KeyRing.most.memory).contains(memory)
            else { return nil }
            (self.passes, self.memory, self.salt) = (passes, memory, salt)
            (byPassphrase, byRecovery) = (first, second)
        }
    }

    private static func stretch(
        _ passphrase: Secret,
        _ passes: UInt64,
        _ memory: Int,
        _ salt: [UInt8]
    ) throws(KeyError) -> Secret {
        let key = Secret(count: 32)
        let start = UnsafeRawPointer(passphrase.pointer).assumingMemoryBound(to: CChar.self)
        let argon2id: Int32 = 2
        let result = crypto_pwhash(
            key.pointer,
            UInt64(key.count),
            start,
            UInt64(passphrase.count),
            salt,
            passes,
            memory,
            argon2id
        )
        guard result == 0 else { throw KeyError("there is not enough memory for the passphrase (\(memory >> 20) MiB)") }
        return key
    }

    private func read() throws(KeyError) -> Content {
        let text: String
        do throws(Errno) { text = try File.readString(path, limit: 4096) } catch {
            throw KeyError("\(path) cannot be read: \(error)")
        }
        guard let content = Content(text) else {
            throw KeyError("\(path) is damaged, or of a newer version: put a copy of it back")
        }
        return content
    }

    /// Creates the class keys. Returns them together with the recovery key, which is not stored anywhere.
    public func make(_ passphrase: Secret) throws(KeyError) -> (keys: ClassKeys, recovery: Secret) {
        do throws(Errno) {
            try File.makeDirectories(folder, mode: 0o700)
            try File.setMode(folder, 0o700)
        } catch {
            throw KeyError("\(folder) cannot be made: \(error)")
        }
        // Take the lock: if two processes created class keys at the same time, both would print a recovery key, but
        // only one of these would be valid.
        let lock = try lock()
        defer { lock.close() }
        guard !isThere else { throw KeyError("there are keys already: \(path)") }
        let (keys, recovery) = (ClassKeys(), Secret.random(count: 32))
        let sealed = Sealed(keys.secret, with: recovery, context: Self.head)
        try write(path, try Content(keys, passphrase, byRecovery: sealed).text)
        return (keys, recovery)
    }

    /// Decrypts the class keys with the passphrase.
    public func open(passphrase: Secret) throws(KeyError) -> ClassKeys {
        let content = try read()
        let key = try Self.stretch(passphrase, content.passes, content.memory, content.salt)
        guard let secret = content.byPassphrase.open(with: key, context: Self.head) else {
            throw KeyError("this is not the passphrase")
        }
        return ClassKeys(secret)
    }

    /// Decrypts the class keys with the recovery key.
    public func open(recovery: Secret) throws(KeyError) -> ClassKeys {
        guard let key = recovery.fromHexadecimal, key.count == 32,
            let secret = try read().byRecovery.open(with: key, context: Self.head)
        else { throw KeyError("this is not the recovery key") }
        return ClassKeys(secret)
    }

    private func lock() throws(KeyError) -> Descriptor {
        do throws(Errno) {
            let lock = try File.open(folder + "/.lock", [.readWrite, .create, .noFollow], mode: 0o600)
            guard try Locks.tryLock(lock.raw) else { throw .resourceBusy }
            return lock
        } catch {
            throw KeyError(
                error == .resourceBusy
                    ? "another ‘torpor protect’ is changing the keys" : "\(folder) cannot be locked: \(error)"
            )
        }
    }

    /// Seals the class keys with another passphrase. The recovery key stays the same.
    public func change(_ keys: ClassKeys, to passphrase: Secret) throws(KeyError) {
        let lock = try lock()
        defer { lock.close() }
        try write(path, try Content(keys, passphrase, byRecovery: try read().byRecovery).text)
    }

    // MARK: The keys of apps

    /// Gives the kernel the key of an app; creates the key at the first call. Returns the key's identifier; nil if the
    /// kernel had the key before.
    public func add(
        _ app: String,
        kind: String,
        _ keys: ClassKeys,
        to root: Folder
    ) throws(KeyError) -> Encryption.Identifier? {
        let path = folder + "/" + app
        let text: String?
        do throws(Errno) { text = try File.kind(path) == nil ? nil : try File.readString(path, limit: 4096) } catch {
            throw KeyError("\(path) cannot be read: \(error)")
        }
        guard let text else { return try makeKey(app, kind, keys, path, root) }
        let lines = text.split(separator: "\n").map { $0.split(separator: " ") }
        guard lines.count == 2, lines[0].count == 1, let name = lines[1].first.map(String.init),
            let sealed = Sealed(lines[1].dropFirst()), let classKey = keys.key(name),
            let key = sealed.open(with: classKey, context: Self.context(app, name)), key.count == Encryption.keyLength
        else { throw KeyError("\(path) is damaged, or from other keys: put a copy of it back") }
        let known = Hexadecimal.bytes(lines[0][0])
        let had = known.map { $0.count == Encryption.identifierLength && Self.isThere($0, root) } ?? false
        let identifier = try give(key, root)
        return had ? nil : identifier
    }

    private static func isThere(_ key: Encryption.Identifier, _ root: Folder) -> Bool {
        (try? Encryption.status(of: key, on: root)) == .present
    }

    private static func context(_ app: String, _ kind: String) -> String { "\(head) \(kind) \(app)" }

    private func makeKey(
        _ app: String,
        _ kind: String,
        _ keys: ClassKeys,
        _ path: String,
        _ root: Folder
    ) throws(KeyError) -> Encryption.Identifier {
        guard let classKey = keys.key(kind) else { throw KeyError("there is no key for protected = \"\(kind)\"") }
        let key = Secret.random(count: Encryption.keyLength)
        let identifier = try give(key, root)
        let sealed = Sealed(key, with: classKey, context: Self.context(app, kind))
        do throws(KeyError) {
            // Write the key to disk before any folder is encrypted with it. torpor-protect reads the identifier in the
            // first line.
            try write(path, Hexadecimal.text(identifier) + "\n" + ([kind] + sealed.words).joined(separator: " ") + "\n")
        } catch {
            // Only the kernel can compute a key's identifier, so it must get the key before the file is written. If the
            // writing failed, remove the key.
            _ = try? Encryption.remove(identifier, from: root)
            throw error
        }
        return identifier
    }

    private func give(_ key: Secret, _ root: Folder) throws(KeyError) -> Encryption.Identifier {
        do throws(Errno) {
            return try Encryption.add(UnsafeRawBufferPointer(key.bytes), to: root)
        } catch {
            throw KeyError("the kernel does not take a key: \(error)")
        }
    }

    private func write(_ path: String, _ text: String) throws(KeyError) {
        do throws(Errno) {
            try File.replace(path, Array(text.utf8), mode: 0o600, sync: true)
            try File.synchroniseFolder(folder)
        } catch {
            throw KeyError("\(path) cannot be written: \(error)")
        }
    }
}
