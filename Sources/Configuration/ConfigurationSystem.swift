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
            read: { path in
                do throws(SmallFileError) {
                    return .success(try SmallFile.read(path, limit: fileLimit))
                } catch {
                    switch error {
                    case .missing: return .failure(.missing)
                    case .notAFile: return .failure(.unusable("it is not a regular file"))
                    case .tooLarge: return .failure(.unusable("it is larger than 4 MiB: split it with include"))
                    case .other(let reason): return .failure(.unusable("it cannot be read: \(reason)"))
                    }
                }
            },
            names: SmallFile.names(in:),
            userID: Accounts.userID,
            groupID: Accounts.groupID,
            effectiveUserID: Accounts.effectiveUserID,
            effectiveGroupID: Accounts.effectiveGroupID,
            workingDirectory: SmallFile.workingDirectory()
        )
    }
}
