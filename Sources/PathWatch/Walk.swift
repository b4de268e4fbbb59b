// SPDX-License-Identifier: Apache-2.0

import Linux
import WireText

/// A walk along a path: adds watches on everything that could change what is at its end, and finds what is there. It
/// may wait for disks and servers: do not run it on the event loop.
///
/// A directory on the path is watched for being moved or removed, a symlink for being replaced; if a name is missing,
/// its directory is watched for the name to appear. Any such event causes a new walk.
///
/// It uses the permissions of the place's user, who may have redirected the path: what that user may not inspect,
/// list or read is neither found nor watched. Watches that only trigger a new walk reveal nothing to the user, and
/// use the process's own permissions: others may be allowed to pass a folder on the path but not to read it.
struct Walk {
    /// The purpose of a watch.
    struct Mark: Hashable, Sendable {
        /// The name for whose appearance the directory is watched, or a pattern; nil for all names.
        var awaited: String?
        /// The events of names that count for `awaited`.
        var names: Inotify.Events = []
        /// If the file itself is watched: the path to report for its events.
        var leaf: String?
        /// The events of that file to report.
        var events: Inotify.Events = []
    }

    struct Outcome: Sendable {
        let key: String
        var marks: [Int32: [Mark]] = [:]
        var found: [String: Found] = [:]
        var trouble: String?
        /// The duration of the walk.
        var took = Duration.zero
    }

    private struct Part {
        let name: String
        /// Whether the name is a component of the watched path itself, not of a symlink's target.
        let isShown: Bool
    }

    private let inotify: Int32
    private let place: Place
    private var links = 0
    private var steps = 0
    private var matches = 0
    private(set) var outcome: Outcome

    /// The maximum number of symlinks to follow.
    private static let mostLinks = 40
    /// The maximum number of matches for a pattern; further matches are ignored.
    private static let mostFound = 4096
    /// The maximum number of names to visit along all paths together, because nested symlinks can lead to any number of
    /// names.
    private static let mostSteps = 4 * mostFound

    /// The maximum number of marks (reasons for a watch) that a place may have for one file or folder.
    private static let mostMarks = 64

    init(_ key: String, _ place: Place, _ inotify: Int32) {
        self.place = place
        self.inotify = inotify
        outcome = Outcome(key: key)
    }

    static func run(_ key: String, _ place: Place, _ inotify: Int32) -> Outcome {
        var walk = Walk(key, place, inotify)
        let began = Clock.monotonic()
        let parts = place.path.split(separator: "/").map { Part(name: String($0), isShown: true) }
        if let rights = place.rights {
            do throws(Errno) {
                try rights.acting { walk.go("", parts[...], shown: "") }
            } catch {
                walk.outcome.trouble = "\(place.path) cannot be checked as user \(rights.name): \(error)"
            }
        } else {
            walk.go("", parts[...], shown: "")
        }
        walk.outcome.took = Clock.monotonic() - began
        return walk.outcome
    }

    // MARK: On the way

    /// Continues from a folder. Symlinks are followed in a loop, since another user may make the path so long that a
    /// recursion would overflow the stack; only patterns recurse.
    private mutating func go(_ start: String, _ parts: ArraySlice<Part>, shown before: String) {
        var (folder, rest, shown) = (start, parts, before)
        while let part = rest.popFirst() {
            steps += 1
            guard steps <= Self.mostSteps else {
                let most = Self.mostSteps
                return complain("\(place.path) passes through more than \(most) names: the others are not watched")
            }
            if part.isShown, NamePattern.isPattern(part.name) { return expand(folder, part.name, rest, shown) }
            if part.name == "." { continue }
            if part.name == ".." {
                folder = folder.split(separator: "/").dropLast().map { "/" + $0 }.joined()
                continue
            }
            guard let step = step(folder, part.name) else { return }
            if part.isShown { shown += "/" + part.name }
            switch step {
            case .folder: folder += "/" + part.name
            case .file:
                guard rest.isEmpty else { return }
                folder += "/" + part.name
            case .link(let target):
                links += 1
                guard links <= Self.mostLinks else { return }
                rest = (target.split(separator: "/").map { Part(name: String($0), isShown: false) } + rest)[...]
                if target.hasPrefix("/") { folder = "" }
            }
        }
        arrive(folder.isEmpty ? "/" : folder, shown)
    }

    /// Visits all names that match, up to the limit; more are not stored.
    private mutating func expand(_ folder: String, _ pattern: String, _ rest: ArraySlice<Part>, _ shown: String) {
        let path = folder.isEmpty ? "/" : folder
        guard watch(path, Mark(awaited: pattern, names: .names), isRead: true) else { return }
        let room = Self.mostFound - matches
        var names: [String] = []
        do throws(Errno) {
            try File.eachName(in: path) { name in
                guard NamePattern.fits(name, path: pattern) else { return true }
                names.append(String(terminatedWire: name))
                return names.count <= room
            }
        } catch {
            if error == .permissionDenied { deny(path) }
        }
        if names.count > room {
            names.removeLast()
            complain("more than \(Self.mostFound) names match \(place.path): the others are not watched")
        }
        matches += names.count
        for name in names.sorted() {
            let before = links
            go(folder, [Part(name: name, isShown: true)] + rest, shown: shown)
            links = before
        }
    }

    private enum Step {
        case folder
        case file
        case link(String)
    }

    /// Inspects and watches a name in a folder; nil if the path ends here.
    private mutating func step(_ folder: String, _ name: String) -> Step? {
        let path = folder + "/" + name
        // The file may be replaced before it is watched: then try again.
        for _ in 0..<8 {
            let node: Descriptor
            do throws(Errno) {
                node = try open(path)
            } catch {
                let around = folder.isEmpty ? "/" : folder
                guard error != .permissionDenied else {
                    deny(around)
                    return nil
                }
                guard watch(around, Mark(awaited: name, names: [.created, .movedHere])) else { return nil }
                if (try? open(path)) == nil { return nil }
                continue
            }
            guard let status = try? File.status(descriptor: node.raw) else { continue }
            // Removing a file that is open causes no event except a change of its link count.
            guard watch(node, path, Mark(), status.kind == .directory ? [] : .attributes) else { return nil }
            guard let again = try? File.status(path, followLinks: false), again.inode == status.inode,
                again.device == status.device
            else { continue }
            switch status.kind {
            case .link: return (try? File.readLink(descriptor: node.raw)).map { .link($0) }
            case .directory: return .folder
            default: return .file
            }
        }
        return nil
    }

    private mutating func arrive(_ path: String, _ shown: String) {
        guard let node = try? open(path) else { return }
        var mark = Mark(leaf: shown)
        mark.events = place.interest.events
        guard watch(node, path, mark, isRead: !mark.events.isEmpty),
            let status = try? File.status(descriptor: node.raw)
        else { return }
        var hasEntries: Bool?
        if status.kind == .directory, place.interest == .entries {
            hasEntries = false
            try? File.eachName(in: path) { _ in
                hasEntries = true
                return false
            }
        }
        outcome.found[shown] = Found(status, hasEntries: hasEntries)
    }

    /// Opens the file at a path itself, with O_PATH.
    private func open(_ path: String) throws(Errno) -> Descriptor { try File.open(path, [.path, .noFollow]) }

    // MARK: Watches

    private mutating func complain(_ trouble: String) { if outcome.trouble == nil { outcome.trouble = trouble } }

    /// Records that the user with whose rights the path is watched may not inspect or list it. Its mode may change, so
    /// watch its attributes.
    private mutating func deny(_ path: String) {
        if let rights = place.rights {
            complain(
                "user \(rights.name) may not read \(path): grant access (chmod, chown, setfacl), or name another path"
            )
        } else {
            complain("\(path) cannot be checked: \(Errno.permissionDenied)")
        }
        if let node = try? open(path) { _ = watch(node, path, Mark(), .attributes) }
    }

    private mutating func watch(_ path: String, _ mark: Mark, isRead: Bool = false) -> Bool {
        do throws(Errno) {
            return watch(try open(path), path, mark, isRead: isRead)
        } catch {
            if error == .noSuchFileOrDirectory { return true }
            complain("\(path) cannot be watched: \(error)")
            return false
        }
    }

    /// Adds a watch; false on failure. A file that is gone counts as watched, since the watch of its parent folder
    /// reports it.
    ///
    /// - Parameter isRead: whether the place's user learns of the events of this watch, and so must be allowed to read
    ///   the file.
    private mutating func watch(
        _ node: Descriptor,
        _ path: String,
        _ mark: Mark,
        _ more: Inotify.Events = [],
        isRead: Bool = false
    ) -> Bool {
        let (inotify, raw) = (inotify, node.raw)
        let events = mark.names.union(mark.events).union(more).union(.selfGone)
        do throws(Errno) {
            let number =
                isRead
                ? try Inotify.watch(inotify, node: raw, events)
                : try FileRights.pausing { () throws(Errno) in try Inotify.watch(inotify, node: raw, events) }
            add(mark, to: number)
            return true
        } catch {
            switch error {
            case .noSuchFileOrDirectory: return true
            case .permissionDenied where isRead && place.rights != nil: deny(path)
            case .noSpace: complain("\(path) cannot be watched: raise fs.inotify.max_user_watches (sysctl)")
            default: complain("\(path) cannot be watched: \(error)")
            }
            return false
        }
    }

    /// Adds a mark (reason) to a watch. Limits the number of marks, in case of many hard links or many missing names in
    /// a folder: beyond the limit a mark loses its details, since the loop checks all marks of a watch for each event.
    private mutating func add(_ mark: Mark, to watch: Int32) {
        var mark = mark
        let list = outcome.marks[watch] ?? []
        if list.count >= Self.mostMarks {
            guard mark.leaf == nil else { return }
            mark.awaited = nil
        }
        if !list.contains(mark) { outcome.marks[watch, default: []].append(mark) }
    }
}
