// SPDX-License-Identifier: Apache-2.0

import Glibc

/// An open cgroup. The kernel finds the files of the cgroups directly below it from there in two thirds of the time that
/// it takes for their absolute paths, whose parts it checks one by one.
public struct CgroupFolder {
    /// The absolute path, with a slash at its end.
    private let start: String
    private let descriptor: Descriptor

    /// Opens the cgroup above the one at `path`; nil if it cannot be opened.
    public init?(above path: String) {
        guard let folder = File.parent(of: path), let descriptor = try? File.open(folder, [.path, .directory]) else {
            return nil
        }
        start = folder + "/"
        self.descriptor = descriptor
    }

    /// The arguments of openat(2) for a file of the cgroup at `path`. `file` begins with a slash, or is empty for the
    /// cgroup itself.
    static func place(
        of file: String,
        in path: String,
        from folder: CgroupFolder?
    ) -> (directory: Int32, path: String) {
        guard let folder, path.utf8.starts(with: folder.start.utf8) else { return (AT_FDCWD, path + file) }
        let name = String(Substring(path.utf8.dropFirst(folder.start.utf8.count)))
        return (folder.descriptor.raw, name + file)
    }
}
