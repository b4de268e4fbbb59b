// SPDX-License-Identifier: Apache-2.0

public import Linux

/// The loader's access to files, users and groups of the machine. Tests replace this access.
public struct ConfigurationSystem {
    /// Why a file could not be read.
    public enum ReadFailure: Error, Sendable, Hashable {
        /// The file does not exist.
        case missing
        /// The file cannot be used. The text says why.
        case unusable(String)
        /// The manifest of a bundle cannot be read now, but another attempt may succeed. The text says why.
        case passing(String)
    }

    /// Returns the content of a file.
    public var read: (String) -> Result<[UInt8], ReadFailure>
    /// Returns the sorted names in a folder; nil if the folder does not exist.
    public var names: (String) -> [String]?
    /// Returns the ID of a user, which is given by name or number; nil if there is no such user.
    public var userID: (String) -> UInt32?
    /// Returns the ID of a group, which is given by name or number; nil if there is no such group.
    public var groupID: (String) -> UInt32?
    /// The ID of the user that the supervisor runs as.
    public var effectiveUserID: UInt32
    /// The ID of the group that the supervisor runs as.
    public var effectiveGroupID: UInt32
    /// The directory against which relative paths are resolved.
    public var workingDirectory: String
    /// Returns the manifest of an installed bundle. `state` is the path of the state directory.
    public var bundle: (_ name: String, _ state: String) -> Result<InstalledManifest, ReadFailure> = { _, _ in
        .failure(.missing)
    }
    /// Returns how every user of the machine could change a file of the configuration, or a folder with such files.
    /// Returns nil if only their owner and group can.
    public var exposure: (String) -> FileExposure? = { _ in nil }
    /// Tries a policy with its options; returns nil if nothing is to be said of it. `folder` is the folder that contains
    /// the policy's library. Blocks until the policy is loaded.
    public var policyFinding: (_ policy: PolicySpecification, _ folder: String) -> PolicyFinding? = { _, _ in nil }
    /// Whether this process may not read a file or folder that the supervisor may read. Then nothing is known of it,
    /// and that is no error.
    public var isForbidden: (String) -> Bool = { _ in false }
    /// Inspects programs, folders and files that apps need. Nil on an event loop, which must not block on a disk.
    public var inspection: Inspection?

    /// Checks whether the programs, folders and files that a configuration names exist on this machine.
    public struct Inspection {
        /// What was found at a path.
        public enum Finding: Sendable {
            case nothing
            case folder
            /// An executable file.
            case program
            /// A file that is not executable, or a special file (FIFO, socket, device).
            case file
            /// Nothing is known, because this process may not inspect the path.
            case unknown
        }

        /// Inspects an absolute path.
        public var find: (String) -> Finding
        /// The value of PATH: the folders in which programs are looked up.
        public var searchPath: String
        /// The caller's PATH, if it differs from `searchPath`. If a program is found only in the caller's PATH, the
        /// loader warns, because torpord would not find it.
        public var callerPath: String?
        /// Returns the first 256 bytes of a regular file, or fewer if the file is shorter; nil if the file cannot be
        /// read.
        public var head: (String) -> [UInt8]? = Self.head
        /// Whether this machine has the locale with that name; nil if that is unknown.
        public var hasLocale: (String) -> Bool? = { _ in nil }
        /// The version of the kernel's Landlock; 0 if the kernel has no Landlock, nil if that is unknown.
        public var landlock: Int?
        /// Whether the filesystem of a path can encrypt folders (fscrypt); nil if unknown.
        public var encrypts: (String) -> Bool? = { _ in nil }
        /// The hard limit (setrlimit(2)) that torpord cannot raise; nil if it can, or if that is unknown.
        public var hardLimit: (Int32) -> UInt64? = { _ in nil }

        /// Creates an inspection of this machine.
        public init(searchPath: String?) {
            find = Self.find
            self.searchPath = searchPath ?? ConfigurationSystem.servicePath
        }

        /// Whether the filesystem of the folder can encrypt folders. The folder need not exist yet.
        public static func encrypts(_ folder: String) -> Bool? {
            var path = folder
            while !File.exists(path), path != "/", let parent = File.parent(of: path) { path = parent }
            switch try? Encryption.standing(of: Folder(path)) {
            case .plain, .encrypted: return true
            case .unsupported: return false
            case nil: return nil
            }
        }

        /// The hard limit of this process, which a torpord of the same user probably has too; nil if the process has
        /// CAP_SYS_RESOURCE, which may raise it.
        public static func hardLimit(_ resource: Int32) -> UInt64? {
            let field = try? ProcFS.statusField(ThisProcess.pid, "CapEff")
            // Bit 24 is CAP_SYS_RESOURCE (linux/capability.h).
            guard let capabilities = field.flatMap({ UInt64($0, radix: 16) }), capabilities & 1 << 24 == 0 else {
                return nil
            }
            return (try? ThisProcess.limit(resource))?.hard
        }

        private static func head(_ path: String) -> [UInt8]? {
            try? File.open(path, [.read, .nonBlocking]).withRaw { raw throws(Errno) in
                try File.read(raw, at: 0, maximum: 256)
            }
        }

        private static func find(_ path: String) -> Finding {
            do throws(Errno) {
                let status = try File.status(path)
                switch status.kind {
                case .directory: return .folder
                case .regular: return status.mode & 0o111 == 0 ? .file : .program
                case .link, .fifo, .socket, .character, .block, .other: return .file
                }
            } catch {
                return error == .noSuchFileOrDirectory || error == .notDirectory ? .nothing : .unknown
            }
        }
    }

    /// The PATH that torpord has if a service manager starts it without setting a PATH.
    public static let servicePath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

    /// The maximum size of a configuration file, in bytes.
    public static let fileLimit = 4 << 20

    /// Access to this machine with the rights of this process.
    public static var live: ConfigurationSystem {
        var system = ConfigurationSystem(
            read: readFile,
            names: { path in (try? File.list(path))?.sorted() },
            userID: { name in Users.lookup(name)?.uid ?? UInt32(name) },
            groupID: { name in Users.group(name) },
            effectiveUserID: Users.effectiveUID,
            effectiveGroupID: Users.effectiveGID,
            workingDirectory: (try? File.realPath(".")) ?? "/"
        )
        system.bundle = InstalledManifest.read
        system.exposure = { FileExposure(of: $0) }
        return system
    }

    private static func readFile(_ path: String) -> Result<[UInt8], ReadFailure> {
        do throws(Errno) {
            let content = try File.readRegular(path, limit: fileLimit)
            return content.map { .success($0) } ?? .failure(.unusable("it is not a regular file"))
        } catch {
            switch error {
            case .noSuchFileOrDirectory, .notDirectory: return .failure(.missing)
            case .fileTooLarge: return .failure(tooLarge)
            default: return .failure(.unusable("it cannot be read: \(error)"))
            }
        }
    }

    /// Reads a file in a folder to which the app's user may be able to write, with the checks of ``OwnedFile``.
    /// `reader` is the user whose rights are used; nil for the supervisor's own rights.
    public static func read(_ path: String, for reader: FileRights?) -> Result<[UInt8], ReadFailure> {
        do throws(OwnedFile.Failure) {
            return .success(try OwnedFile.read(path, for: reader, limit: fileLimit))
        } catch {
            switch error {
            case .errno(.noSuchFileOrDirectory), .errno(.notDirectory): return .failure(.missing)
            default: return .failure(.unusable(error.description))
            }
        }
    }

    private static let tooLarge = ReadFailure.unusable("it is larger than 4 MiB: split it with include")
}
