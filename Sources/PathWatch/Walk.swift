// SPDX-License-Identifier: Apache-2.0

import Linux
import WireText

/// A walk to a place: it sees to it that everything on the way is watched that could change what is there, and finds
/// what is there. It waits for disks and servers: not for the loop's thread.
///
/// A directory on the way is watched for being moved or removed, a link for being replaced; where a name is missing its
/// directory is watched for it to come. Whatever happens there, the walk is done anew.
///
/// It is gone with the rights of the place's user, who may have led the path anywhere: what that user may not look at, list
/// or read is not found and not watched. The watches that are only there to go again tell nobody of anything, and are made
/// with the process's own rights: a folder on the way may be one that others may pass and not read.
struct Walk {
    /// What a watch is for.
    struct Mark: Hashable, Sendable {
        /// A name in the directory that counts, or the pattern of those that do; nil for all.
        var awaited: String?
        /// Which events of names count for `awaited`.
        var names: Inotify.Events = []
        /// The path of what is there, as its owner knows it, where the watch is on that itself.
        var leaf: String?
        /// Which events of the leaf are news.
        var events: Inotify.Events = []
    }

    struct Outcome: Sendable {
        let key: String
        var marks: [Int32: [Mark]] = [:]
        var found: [String: Found] = [:]
        var trouble: String?
        /// How long it took.
        var took = Duration.zero
    }

    private struct Part {
        let name: String
        /// Whether it is part of the path as its owner knows it, and not of what a link says.
        let isShown: Bool
    }

    private let inotify: Int32
    private let place: Place
    private var links = 0
    private var steps = 0
    private var matches = 0
    private(set) var outcome: Outcome

    /// More than this are no way to name a file.
    private static let mostLinks = 40
    /// Of a pattern; what comes after is not looked at.
    private static let mostFound = 4096
    /// Names that are looked at, on all ways together: links of links can ask for any number.
    private static let mostSteps = 4 * mostFound

    /// Of one place, for one file or folder.
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

    /// Goes on from a folder, without recursion but for patterns: how long a way is may be another's doing.
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

    /// Every name that fits, as far as there is room: however many there are, no more are kept.
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

    /// Looks at a name in a folder, and sees to it that it is watched; nil where the way ends.
    private mutating func step(_ folder: String, _ name: String) -> Step? {
        let path = folder + "/" + name
        // What is there may be another one by the time it is watched: then once more.
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
            // A file that is open goes without a word, but for its number of names.
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

    /// What is at a path itself.
    private func open(_ path: String) throws(Errno) -> Descriptor { try File.open(path, [.path, .noFollow]) }

    // MARK: Watches

    private mutating func complain(_ trouble: String) { if outcome.trouble == nil { outcome.trouble = trouble } }

    /// The place's user may not look at it, or into it, which may be otherwise when its mode is another one.
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

    /// Whether it is watched; what is gone in between is not, and what was watched above tells of it.
    ///
    /// - Parameter isRead: somebody learns what happens there, and so must be allowed to read it.
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

    /// Many names of one file, or many that are missing in one folder, are one mark each only as far as news name them: the
    /// loop goes through all of a watch with each of its news.
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
