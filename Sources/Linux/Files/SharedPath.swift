// SPDX-License-Identifier: Apache-2.0

/// A path of a file. Paths of files in the same folder share the folder's string in memory, which saves memory if there
/// are many.
public struct SharedPath: Sendable, Hashable {
    private let folder: String
    private let name: String
    private let ending: String

    /// Creates the path `folder/name` followed by `ending`. A name or ending of up to 15 bytes needs no allocation of
    /// its own.
    public init(_ folder: String, _ name: String, _ ending: String = "") {
        self.folder = folder
        self.name = name
        self.ending = ending
    }

    /// Creates a path that shares its string with no other path.
    public init(_ path: String) { self.init(path, "") }

    /// The whole path.
    public var text: String {
        guard !name.isEmpty else { return folder }
        // One allocation: an interpolation grows the string several times.
        var text = ""
        text.reserveCapacity(folder.utf8.count + 1 + name.utf8.count + ending.utf8.count)
        text += folder
        text += "/"
        text += name
        text += ending
        return text
    }
}
