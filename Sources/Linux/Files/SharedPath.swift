// SPDX-License-Identifier: Apache-2.0

/// A path in a folder in which there are many: the folder's own path is in memory once for all of them.
public struct SharedPath: Sendable, Hashable {
    private let folder: String
    private let name: String
    private let ending: String

    /// `folder/name` and what follows it. Names and endings of up to 15 bytes take no memory beside this.
    public init(_ folder: String, _ name: String, _ ending: String = "") {
        self.folder = folder
        self.name = name
        self.ending = ending
    }

    /// A path by itself.
    public init(_ path: String) { self.init(path, "") }

    /// The whole path.
    public var text: String { name.isEmpty ? folder : "\(folder)/\(name)\(ending)" }
}
