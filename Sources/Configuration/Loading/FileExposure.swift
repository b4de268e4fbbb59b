// SPDX-License-Identifier: Apache-2.0

import Linux

/// A path through which every user of the machine, or another user than root, can change a configuration of root. This
/// is dangerous, because torpord runs the configured programs with its own rights, or as any user if torpord runs as
/// root.
public struct FileExposure: Sendable, Hashable {
    /// The path to which other users may write: the file itself, its folder, or a folder further up.
    public let path: String
    /// What is wrong and what to do about it, as a sentence whose subject is the file.
    public let sentence: String

    /// Examines a file or folder, and all folders on its path, following symlinks. Nil if only its owner and group may
    /// change it, and its owner is root if root asks (`isForRoot`), or if it does not exist.
    public init?(of path: String) { self.init(of: path, isForRoot: Users.effectiveUID == 0) }

    /// Examines a file or folder for root, or for another user.
    public init?(of path: String, isForRoot: Bool) {
        guard let status = try? File.status(path) else { return nil }
        let real = (try? File.realPath(path)) ?? path
        if Self.isOpen(status) {
            let verb = status.kind == .directory ? "add files here" : "change it"
            self.init(path: real, sentence: "every user can \(verb): ‘chmod o-w \(real)’")
            return
        }
        if isForRoot, status.uid != 0 {
            self.init(
                path: real,
                sentence: "its owner (user \(status.uid)) can change it, and so run programs as root where root's "
                    + "supervisor uses it: ‘chown root \(real)’"
            )
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
                if isForRoot, let owner = try? File.status(next).uid, owner != 0 {
                    self.init(
                        path: next,
                        sentence:
                            "the owner of \(next) (user \(owner)) can replace it, and so run programs as root where "
                            + "root's supervisor uses it: copy it to a folder of root, such as /etc/torpor/conf.d"
                    )
                    return
                }
                folder = next == "/" ? nil : File.parent(of: next)
            }
        }
        return nil
    }

    private init(path: String, sentence: String) { (self.path, self.sentence) = (path, sentence) }

    /// Whether users other than the owner and the group can change the file or, for a folder, replace files in it. In a
    /// folder with the sticky bit, such as /tmp, users cannot replace files of others.
    private static func isOpen(_ status: FileStatus) -> Bool {
        guard status.mode & 0o002 != 0 else { return false }
        return status.kind == .directory ? status.mode & 0o1000 == 0 : status.kind == .regular
    }
}
