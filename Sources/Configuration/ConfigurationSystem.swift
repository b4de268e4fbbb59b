import Linux

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
    public static func read(_ path: String, ownedBy user: UInt32) -> Result<[UInt8], ReadFailure> {
        do throws(OwnedFile.Failure) {
            return .success(try OwnedFile.read(path, for: user, limit: fileLimit))
        } catch {
            switch error {
            case .errno(.noSuchFileOrDirectory), .errno(.notDirectory): return .failure(.missing)
            default: return .failure(.unusable(error.description))
            }
        }
    }

    private static let tooLarge = ReadFailure.unusable("it is larger than 4 MiB: split it with include")
}
