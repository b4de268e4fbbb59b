// SPDX-License-Identifier: Apache-2.0

import Importing
import Linux
import WireText

/// The files that an import has read, and the mode that a file made from them may have. The sources may contain
/// passwords, so no user may read the result who could not read every source. Access control lists are not considered.
final class SourceReaders {
    private var paths: [String] = []
    private var seen: Set<WireText> = []

    /// A tree that reads the files of this machine, and adds each file that it reads.
    var tree: SourceTree {
        var tree = ImportFiles.live
        let read = tree.read
        tree.read = { [self] path in
            guard let bytes = read(path) else { return nil }
            if seen.insert(WireText(path)).inserted { paths.append(path) }
            return bytes
        }
        return tree
    }

    /// The mode for the result.
    ///
    /// - Parameters:
    ///   - folder: the absolute path of the folder of the result, without symlinks.
    ///   - gid: the group of the result.
    func mode(in folder: String, gid: UInt32) -> UInt32 {
        // These folders hide no source from a user who can open the result, because that user can enter them.
        let entered = Set(Self.folders(above: folder + "/torpor.toml").map { WireText($0) })
        var checked: Set<WireText> = []
        var mode: UInt32 = 0o644
        for path in paths {
            guard let real = try? File.realPath(path), let status = try? File.status(real) else { return 0o600 }
            mode &= Self.mode(status, needing: 0o4, gid)
            for folder in Self.folders(above: real) where !entered.contains(WireText(folder)) {
                guard checked.insert(WireText(folder)).inserted else { continue }
                guard let status = try? File.status(folder) else { return 0o600 }
                mode &= Self.mode(status, needing: 0o1, gid)
            }
        }
        return mode
    }

    /// The mode for a result whose only source is a file or folder with the given status. Members of the owning group
    /// have only the rights of the group, so other users have access only if the group has it too.
    private static func mode(_ status: FileStatus, needing bit: UInt32, _ gid: UInt32) -> UInt32 {
        let isForGroup = status.mode >> 3 & bit != 0
        let isForAll = isForGroup && status.mode & bit != 0
        return 0o600 | (isForAll || isForGroup && status.gid == gid ? 0o040 : 0) | (isForAll ? 0o004 : 0)
    }

    /// The folders that contain the path, from the root down.
    private static func folders(above path: String) -> [String] {
        var folders = ["/"]
        for part in path.split(separator: "/").dropLast() {
            folders.append((folders.count > 1 ? folders[folders.count - 1] : "") + "/" + part)
        }
        return folders
    }
}
