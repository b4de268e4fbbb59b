// SPDX-License-Identifier: Apache-2.0

public import Linux

/// A library that may be loaded. Its file and folder are open, so the file that is loaded is the one that was
/// checked.
public struct TrustedLibrary {
    /// The library's path without symlinks.
    public let path: String
    /// The library, open for reading.
    public let library: Descriptor
    /// The library's folder, opened with O_PATH.
    public let directory: Descriptor
}

/// Decides which libraries may be loaded: those that only root and the supervisor's user can have created or changed.
/// Every folder and symlink on the path is checked, since a user that can write to one of them can redirect the path.
public enum LibraryTrust {
    private static let mostLinks = 40

    /// Opens a library after checking the file and every folder and symlink on its path.
    ///
    /// - Parameters:
    ///   - path: the path; relative to the current directory if it does not begin with `/`.
    ///   - users: the users whose files are trusted.
    /// - Throws: ``PolicyFailure/refused(_:)``, which says what to do.
    public static func open(
        _ path: String,
        users: Set<UInt32> = [0, Users.effectiveUID]
    ) throws(PolicyFailure) -> TrustedLibrary {
        var walk = try Walk(users: users, asked: path)
        return try walk.walk(path.hasPrefix("/") ? path : ThisProcess.directory + "/" + path)
    }

    /// Opens a library without checking which users could have changed it: for users that try out their own
    /// libraries.
    ///
    /// - Throws: ``PolicyFailure/refused(_:)`` if the library does not exist or cannot be read.
    public static func openAnyway(_ path: String) throws(PolicyFailure) -> TrustedLibrary {
        do throws(Errno) {
            let real = try File.realPath(path)
            if try File.kind(real) == .regular {
                return TrustedLibrary(
                    path: real,
                    library: try File.open(real, [.read, .nonBlocking]),
                    directory: try File.open(File.parent(of: real) ?? "/", [.path, .directory])
                )
            }
        } catch {
            if error == .noSuchFileOrDirectory { throw .refused("\(path) is not there") }
            throw .refused("\(path) cannot be opened: \(error)")
        }
        throw .refused("\(path) is not a library: it is not a file")
    }

    /// Follows a path to a library, one name at a time.
    private struct Walk {
        let users: Set<UInt32>
        let asked: String
        /// The current folder, and the names of the folders that lead to it.
        var directory: Descriptor
        var names: [Substring] = []
        var links = 0

        init(users: Set<UInt32>, asked: String) throws(PolicyFailure) {
            self.users = users
            self.asked = asked
            do throws(Errno) {
                directory = try File.open("/", [.path, .directory])
            } catch {
                throw .refused("\(asked) cannot be opened: /: \(error)")
            }
            try look(directory, named: "/")
        }

        mutating func walk(_ path: String) throws(PolicyFailure) -> TrustedLibrary {
            var rest = Self.parts(path)
            while let name = rest.popLast() {
                let place = place(name)
                let next: Descriptor
                let kind: FileStatus.Kind
                do throws(Errno) {
                    next = try File.open(String(name), in: directory.raw, [.path, .noFollow])
                    kind = try File.status(descriptor: next.raw).kind
                } catch {
                    throw .refused(Self.sentence(asked, place, error))
                }
                try look(next, named: place)
                switch kind {
                case .link:
                    rest += try follow(next, named: place)
                case .directory:
                    if name == ".." { _ = names.popLast() } else { names.append(name) }
                    directory = next
                case .regular where rest.isEmpty:
                    return try finish(name, next, named: place)
                case .regular, .fifo, .socket, .character, .block, .other:
                    throw .refused("\(asked) is not a library: \(place) is not \(rest.isEmpty ? "a file" : "a folder")")
                }
            }
            throw .refused("\(asked) is not a library: it is a folder; name the library in it")
        }

        /// The names in a path in reverse order, as a stack.
        private static func parts(_ path: String) -> [Substring] {
            path.split(separator: "/").filter { $0 != "." }.reversed()
        }

        private func place(_ name: Substring) -> String {
            "/" + (name == ".." ? names.dropLast() : names + [name]).joined(separator: "/")
        }

        /// The names in a symlink's target in reverse order, as a stack.
        private mutating func follow(_ link: Descriptor, named place: String) throws(PolicyFailure) -> [Substring] {
            links += 1
            guard links <= LibraryTrust.mostLinks else {
                throw .refused(
                    "\(asked) cannot be opened: more than \(LibraryTrust.mostLinks) symbolic links lead to it"
                )
            }
            do throws(Errno) {
                let target = try File.readLink(descriptor: link.raw)
                if target.hasPrefix("/") {
                    directory = try File.open("/", [.path, .directory])
                    names = []
                }
                return Self.parts(target)
            } catch {
                throw .refused(Self.sentence(asked, place, error))
            }
        }

        private func finish(
            _ name: Substring,
            _ seen: Descriptor,
            named place: String
        ) throws(PolicyFailure) -> TrustedLibrary {
            do throws(Errno) {
                // Open without blocking, since the file may have been replaced by a FIFO.
                let library = try File.open(String(name), in: directory.raw, [.read, .noFollow, .nonBlocking])
                let opened = try File.status(descriptor: library.raw)
                let looked = try File.status(descriptor: seen.raw)
                guard opened.device == looked.device, opened.inode == looked.inode else {
                    throw Errno.noSuchFileOrDirectory
                }
                return TrustedLibrary(path: place, library: library, directory: directory)
            } catch {
                throw .refused(Self.sentence(asked, place, error))
            }
        }

        /// Checks that only trusted users can change the file, or the contents of the folder.
        private func look(_ file: Descriptor, named place: String) throws(PolicyFailure) {
            let status: FileStatus
            do throws(Errno) {
                status = try File.status(descriptor: file.raw)
            } catch {
                throw .refused(Self.sentence(asked, place, error))
            }
            let of = place == asked ? "" : "\(place) "
            guard users.contains(status.uid) else {
                throw .refused(
                    "\(asked) is not loaded: \(of)belongs to user \(status.uid), who could change what is loaded; "
                        + "chown \(users.contains(0) ? "root" : String(users.min() ?? 0)) \(place), or put the policy into a folder that root owns"
                )
            }
            // The mode of a symlink does not matter: only its owner, or its folder's owner, can replace it.
            if status.kind == .link { return }
            // In a sticky folder users can replace only their own files. The file in the folder is checked too.
            if status.kind == .directory, status.mode & 0o1000 != 0 { return }
            guard status.mode & 0o022 == 0 else {
                let who = status.mode & 0o002 != 0 ? "everybody" : "group \(status.gid)"
                throw .refused(
                    "\(asked) is not loaded: \(of)can be written to by \(who), who could change what is loaded; "
                        + "chmod go-w \(place)"
                )
            }
        }

        private static func sentence(_ asked: String, _ place: String, _ error: Errno) -> String {
            if error == .noSuchFileOrDirectory {
                return place == asked ? "\(asked) is not there" : "\(asked) is not there: there is no \(place)"
            }
            return "\(asked) cannot be opened: " + (place == asked ? "" : "\(place): ") + "\(error)"
        }
    }
}
