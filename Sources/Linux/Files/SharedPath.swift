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
        // One allocation, and no function of String for each part: a launch makes eight of these.
        let count = folder.utf8.count + 1 + name.utf8.count + ending.utf8.count
        return String(unsafeUninitializedCapacity: count) { buffer in
            var end = Self.append(folder, to: buffer, at: 0)
            buffer[end] = UInt8(ascii: "/")
            end = Self.append(name, to: buffer, at: end + 1)
            return Self.append(ending, to: buffer, at: end)
        }
    }

    private static func append(_ text: String, to buffer: UnsafeMutableBufferPointer<UInt8>, at place: Int) -> Int {
        var text = text
        return text.withUTF8 { bytes in
            guard let start = bytes.baseAddress else { return place }
            (buffer.baseAddress! + place).initialize(from: start, count: bytes.count)
            return place + bytes.count
        }
    }
}
