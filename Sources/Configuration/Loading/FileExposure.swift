// SPDX-License-Identifier: Apache-2.0

import Linux

/// A path through which every user of the machine can change a configuration: torpord runs what stands there with its
/// own rights, or as any user if it runs as root.
public struct FileExposure: Sendable, Hashable {
    /// The path that every user may write: the file itself, its folder, or a folder above that.
    public let path: String
    /// What is wrong and what to do, as a sentence about the file.
    public let sentence: String

    /// Examines a file or folder with all folders on its path, also where a symlink leads elsewhere. nil if only its
    /// owner and its group may change it, or if it does not exist.
    public init?(of path: String) {
        guard let status = try? File.status(path) else { return nil }
        let real = (try? File.realPath(path)) ?? path
        if Self.isOpen(status) {
            let verb = status.kind == .directory ? "add files here" : "change it"
            self.init(path: real, sentence: "every user can \(verb): ‘chmod o-w \(real)’")
            return
        }
        for start in real == path ? [real] : [real, path] {
            var folder = File.parent(of: start)
            while let next = folder {
                if let status = try? File.status(next), Self.isOpen(status) {
                    self.init(
                        path: next,
                        sentence: "every user can replace it, since everyone may write to \(next): ‘chmod o-w \(next)’"
                    )
                    return
                }
                folder = next == "/" ? nil : File.parent(of: next)
            }
        }
        return nil
    }

    private init(path: String, sentence: String) { (self.path, self.sentence) = (path, sentence) }

    /// Whether users other than the owner and the group can change the file, or replace files in the folder. In a
    /// folder with the sticky bit, such as /tmp, they cannot.
    private static func isOpen(_ status: FileStatus) -> Bool {
        guard status.mode & 0o002 != 0 else { return false }
        return status.kind == .directory ? status.mode & 0o1000 == 0 : status.kind == .regular
    }
}
