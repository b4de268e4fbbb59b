// SPDX-License-Identifier: Apache-2.0

import Linux

/// The files and folders that torpord itself uses. A path in a bundle's manifest must not give access to them. They are
/// recognised by device and inode, because a symlink, a mount or `/proc/PID/root` can give a folder another name.
///
/// Opening paths may wait for a disk, so do not use this type on the event loop.
struct GuardedPlaces {
    /// The most levels of folders that a loop over parent folders visits, so that it always ends; no path has more
    /// levels.
    private static let mostLevels = 4096

    /// torpord's own files and folders, and their paths.
    private var own: [FileIdentity: String] = [:]
    /// The folders that contain torpord's own files and folders, at any depth. The value is the path of one that the
    /// folder contains.
    private var above: [FileIdentity: String] = [:]

    /// Opens the paths. Paths that do not exist are left out.
    init(_ paths: [String]) {
        for path in paths {
            guard let file = try? File.open(path, .path), let status = try? File.status(descriptor: file.raw) else {
                continue
            }
            own[Self.identity(of: status)] = path
            guard let folder = Self.folder(around: file, status) else { continue }
            for identity in Self.levels(folder) { above[identity] = path }
        }
    }

    /// The file or folder of torpord that an app could open if it may access `file`; nil if there is none. This is
    /// `file` itself, or a folder that contains it, or, if the access is for writing, something below `file`.
    func place(openedBy file: SteadyPath.Found, forWriting: Bool) -> String? {
        guard let status = try? File.status(descriptor: file.descriptor.raw) else { return nil }
        let identity = Self.identity(of: status)
        if let place = own[identity] { return place }
        if forWriting, let place = above[identity] { return place }
        guard let folder = Self.folder(around: file.descriptor, status) else { return nil }
        return Self.levels(folder).lazy.compactMap { own[$0] }.first
    }

    private static func identity(of status: FileStatus) -> FileIdentity {
        FileIdentity(device: status.device, inode: status.inode)
    }

    /// Opens the folder that contains an open file; nil if that folder cannot be opened.
    private static func folder(around file: Descriptor, _ status: FileStatus) -> Descriptor? {
        if status.kind == .directory { return try? File.open("..", in: file.raw, [.path, .directory]) }
        // Only a folder has an entry "..". For any other file, the kernel tells its path.
        guard let path = try? File.readLink("/proc/self/fd/\(file.raw)"), path.hasPrefix("/") else { return nil }
        return File.parent(of: path).flatMap { try? File.open($0, [.path, .directory]) }
    }

    /// The identities of a folder and of all folders above it.
    private static func levels(_ folder: Descriptor) -> [FileIdentity] {
        var levels: [FileIdentity] = []
        var next = try? File.open(".", in: folder.raw, [.path, .directory])
        while let here = next, levels.count < mostLevels, let status = try? File.status(descriptor: here.raw) {
            let identity = Self.identity(of: status)
            // At the root folder the loop ends: its parent is the root folder itself.
            guard levels.last != identity else { break }
            levels.append(identity)
            next = try? File.open("..", in: here.raw, [.path, .directory])
        }
        return levels
    }
}
