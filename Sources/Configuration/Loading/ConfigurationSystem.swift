// SPDX-License-Identifier: Apache-2.0

public import Linux

/// What the loader asks the machine; a test puts its own files and users in.
public struct ConfigurationSystem {
    /// Why a file could not be read.
    public enum ReadFailure: Error, Sendable, Hashable {
        /// Nothing is there.
        case missing
        /// It cannot be used, and this sentence says why.
        case unusable(String)
    }

    /// The bytes of a file.
    public var read: (String) -> Result<[UInt8], ReadFailure>
    /// The names in a folder, sorted; nil where there is none.
    public var names: (String) -> [String]?
    /// The number of a user by name or number.
    public var userID: (String) -> UInt32?
    /// The number of a group by name or number.
    public var groupID: (String) -> UInt32?
    /// The user that the supervisor runs as.
    public var effectiveUserID: UInt32
    /// The group that the supervisor runs as.
    public var effectiveGroupID: UInt32
    /// Where relative paths on the command line begin.
    public var workingDirectory: String
    /// How programs, folders and files that apps need are looked at; nil where that is not to be done, as in a loop that
    /// must not wait for a disk.
    public var inspection: Inspection?

    /// Looks at what a configuration needs on this machine.
    public struct Inspection {
        /// What there is at a path.
        public enum Finding: Sendable {
            case nothing
            case folder
            /// A file that can be executed.
            case program
            /// Something else.
            case file
            /// It cannot be looked at from here.
            case unknown
        }

        /// What there is at an absolute path.
        public var find: (String) -> Finding
        /// Where programs without a path are looked for.
        public var searchPath: String
        /// Why a policy, whose library is in that folder, cannot be used as it is configured; nil when it can.
        public var refusal: (_ policy: PolicySpecification, _ folder: String) -> String?

        /// An inspection of this machine.
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

    /// The largest file that is read, in bytes.
    public static let fileLimit = 4 << 20

    /// This machine and this process.
    public static var live: ConfigurationSystem {
        ConfigurationSystem(
            read: readFile,
            names: { path in (try? File.list(path))?.sorted() },
            userID: { name in Users.lookup(name)?.uid ?? UInt32(name) },
            groupID: { name in Users.group(name) },
            effectiveUserID: Users.effectiveUID,
            effectiveGroupID: Users.effectiveGID,
            workingDirectory: (try? File.realPath(".")) ?? "/"
        )
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

    /// The bytes of a file that may lie in a folder of the app that it is for (``OwnedFile``).
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
