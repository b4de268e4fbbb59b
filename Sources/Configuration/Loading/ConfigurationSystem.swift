// SPDX-License-Identifier: Apache-2.0

public import Linux

/// The loader's access to the machine. Tests replace files and users.
public struct ConfigurationSystem {
    /// Why a file could not be read.
    public enum ReadFailure: Error, Sendable, Hashable {
        /// The file does not exist.
        case missing
        /// The file cannot be used; the sentence says why.
        case unusable(String)
    }

    /// The bytes of a file.
    public var read: (String) -> Result<[UInt8], ReadFailure>
    /// The names in a folder, sorted; nil if there is no such folder.
    public var names: (String) -> [String]?
    /// The ID of a user, given by name or number.
    public var userID: (String) -> UInt32?
    /// The ID of a group, given by name or number.
    public var groupID: (String) -> UInt32?
    /// The user that the supervisor runs as.
    public var effectiveUserID: UInt32
    /// The group that the supervisor runs as.
    public var effectiveGroupID: UInt32
    /// The directory that relative paths on the command line start from.
    public var workingDirectory: String
    /// The manifest of an installed bundle, by its name and the state directory.
    public var bundle: (_ name: String, _ state: String) -> Result<InstalledManifest, ReadFailure> = { _, _ in
        .failure(.missing)
    }
    /// Inspects programs, folders and files that apps need; nil if they are not to be inspected, as on an event loop,
    /// which must not wait for a disk.
    public var inspection: Inspection?

    /// Inspects whether the programs, folders and files that a configuration names exist on this machine.
    public struct Inspection {
        /// What was found at a path.
        public enum Finding: Sendable {
            case nothing
            case folder
            /// A file that can be executed.
            case program
            /// A file that cannot be executed, or a special file (FIFO, socket, device).
            case file
            /// The path cannot be inspected by this process.
            case unknown
        }

        /// Inspects an absolute path.
        public var find: (String) -> Finding
        /// The PATH in which programs without a path are searched.
        public var searchPath: String
        /// Whether programs on this machine find the locale of that name; nil if that is not known.
        public var hasLocale: (String) -> Bool? = { _ in nil }
        /// Why a policy, whose library is in `folder`, cannot be used as configured; nil if it can.
        public var refusal: (_ policy: PolicySpecification, _ folder: String) -> String?

        /// Creates an inspection of this machine.
        public init(searchPath: String?, refusal: @escaping (PolicySpecification, String) -> String?) {
            find = Self.find
            self.searchPath = searchPath ?? "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
            self.refusal = refusal
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

    /// The maximum size of a file that is read, in bytes.
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

    /// The content of a file that may be in a folder where its app's user can write (``OwnedFile``).
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
