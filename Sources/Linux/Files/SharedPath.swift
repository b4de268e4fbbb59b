// SPDX-License-Identifier: Apache-2.0

/// A path in a folder with many files, which share the folder's string in memory.
public struct SharedPath: Sendable, Hashable {
    private let folder: String
    private let name: String
    private let ending: String

    /// The path `folder/name` followed by `ending`. Names and endings of up to 15 bytes need no allocation of their
    /// own.
    public init(_ folder: String, _ name: String, _ ending: String = "") {
        self.folder = folder
        self.name = name
        self.ending = ending
    }

    /// A path that shares its string with no other path.
    public init(_ path: String) { self.init(path, "") }

    /// The whole path.
    public var text: String { name.isEmpty ? folder : "\(folder)/\(name)\(ending)" }
}
