// SPDX-License-Identifier: Apache-2.0

import Linux

/// The files and folders that torpord itself uses, recognised by device and inode: a symlink, a mount and
/// `/proc/PID/root` give a folder another name. What a bundle's manifest asks for must not lead there.
///
/// Opening may wait for a disk: do not use it on the event loop.
struct GuardedPlaces {
    /// A bound for loops over parent folders: no path has more levels than this.
    private static let mostLevels = 4096

    /// torpord's own files and folders, and their paths.
    private var own: [FileIdentity: String] = [:]
    /// The folders above torpord's own files and folders, each with the path of one of those that is below it.
    private var above: [FileIdentity: String] = [:]

    /// Opens the paths. Those that do not exist are left out.
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

    /// Which of torpord's own places the file that was found at a path gives access to: the place itself, one that
    /// contains the file, or, for writing, one below the file. Nil if it gives access to none.
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

    /// The folder that contains an open file; nil if it cannot be opened.
    private static func folder(around file: Descriptor, _ status: FileStatus) -> Descriptor? {
        if status.kind == .directory { return try? File.open("..", in: file.raw, [.path, .directory]) }
        // Only a folder has an entry "..". For any other file, ask the kernel for its path.
        guard let path = try? File.readLink("/proc/self/fd/\(file.raw)"), path.hasPrefix("/") else { return nil }
        return File.parent(of: path).flatMap { try? File.open($0, [.path, .directory]) }
    }

    /// The identities of a folder and of all folders above it.
    private static func levels(_ folder: Descriptor) -> [FileIdentity] {
        var levels: [FileIdentity] = []
        var next = try? File.open(".", in: folder.raw, [.path, .directory])
        while let here = next, levels.count < mostLevels, let status = try? File.status(descriptor: here.raw) {
            let identity = Self.identity(of: status)
            // The parent of the root folder is the root folder itself.
            guard levels.last != identity else { break }
            levels.append(identity)
            next = try? File.open("..", in: here.raw, [.path, .directory])
        }
        return levels
    }
}
