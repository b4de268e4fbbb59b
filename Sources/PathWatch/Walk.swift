// SPDX-License-Identifier: Apache-2.0

import Linux

/// A walk to a place: it sees to it that everything on the way is watched that could change what is there, and finds
/// what is there. It waits for disks and servers: not for the loop's thread.
///
/// A directory on the way is watched for being moved or removed, a link for being replaced; where a name is missing its
/// directory is watched for it to come. Whatever happens there, the walk is done anew.
struct Walk {
    /// What a watch is for.
    struct Mark: Sendable {
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
    }

    private struct Part {
        let name: String
        /// Whether it is part of the path as its owner knows it, and not of what a link says.
        let isShown: Bool
    }

    private let inotify: Int32
    private let place: Place
    private var links = 0
    private(set) var outcome: Outcome

    /// More than this are no way to name a file.
    private static let mostLinks = 40
    /// Of a pattern; what comes after is not looked at.
    private static let mostFound = 4096

    init(_ key: String, _ place: Place, _ inotify: Int32) {
        self.place = place
        self.inotify = inotify
        outcome = Outcome(key: key)
    }

    static func run(_ key: String, _ place: Place, _ inotify: Int32) -> Outcome {
        var walk = Walk(key, place, inotify)
        let parts = place.path.split(separator: "/").map { Part(name: String($0), isShown: true) }
        walk.go("", parts[...], shown: "")
        return walk.outcome
    }

    // MARK: On the way

    private mutating func go(_ folder: String, _ parts: ArraySlice<Part>, shown: String) {
        guard let part = parts.first else { return arrive(folder.isEmpty ? "/" : folder, shown) }
        let rest = parts.dropFirst()
        guard part.isShown, NamePattern.isPattern(part.name) else { return step(folder, part, rest, shown) }
        guard watch(folder.isEmpty ? "/" : folder, Mark(awaited: part.name, names: .names)) else { return }
        let names = (try? File.list(folder.isEmpty ? "/" : folder)) ?? []
        for name in names.sorted() where NamePattern.fits(name, path: part.name) {
            guard outcome.found.count < Self.mostFound else {
                outcome.trouble = "more than \(Self.mostFound) files fit \(place.path): the others are not watched"
                return
            }
            step(folder, Part(name: name, isShown: true), rest, shown)
        }
    }

    private mutating func step(_ folder: String, _ part: Part, _ rest: ArraySlice<Part>, _ before: String) {
        if part.name == "." { return go(folder, rest, shown: before) }
        if part.name == ".." {
            let parent = folder.split(separator: "/").dropLast().map { "/" + $0 }.joined()
            return go(parent, rest, shown: before)
        }
        let path = folder + "/" + part.name
        let shown = part.isShown ? before + "/" + part.name : before
        // What is there may be another one by the time it is watched: then once more.
        for _ in 0..<8 {
            guard let status = look(path) else {
                let mark = Mark(awaited: part.name, names: [.created, .movedHere])
                guard watch(folder.isEmpty ? "/" : folder, mark) else { return }
                if look(path) == nil { return }
                continue
            }
            // A file that is open goes without a word, but for its number of names.
            guard watch(path, Mark(), status.kind == .directory ? [] : .attributes) else { return }
            guard let again = look(path), again.inode == status.inode, again.device == status.device else { continue }
            switch again.kind {
            case .link: return follow(path, folder, rest, shown)
            case .directory where !rest.isEmpty: return go(path, rest, shown: shown)
            case _ where rest.isEmpty: return arrive(path, shown)
            default: return
            }
        }
    }

    private mutating func follow(_ path: String, _ folder: String, _ rest: ArraySlice<Part>, _ shown: String) {
        links += 1
        guard links <= Self.mostLinks, let target = try? File.readLink(path) else { return }
        let parts = target.split(separator: "/").map { Part(name: String($0), isShown: false) }
        go(target.hasPrefix("/") ? "" : folder, (parts + rest)[...], shown: shown)
    }

    private mutating func arrive(_ path: String, _ shown: String) {
        guard let status = look(path) else { return }
        var mark = Mark(leaf: shown)
        mark.events = place.interest.events
        guard watch(path, mark) else { return }
        var hasEntries: Bool?
        if status.kind == .directory, place.interest == .entries {
            hasEntries = !((try? File.list(path)) ?? []).isEmpty
        }
        outcome.found[shown] = Found(status, hasEntries: hasEntries)
    }

    private func look(_ path: String) -> FileStatus? { try? File.status(path, followLinks: false) }

    /// Whether it is watched; what is gone in between is not, and what was watched above tells of it.
    private mutating func watch(_ path: String, _ mark: Mark, _ more: Inotify.Events = []) -> Bool {
        do throws(Errno) {
            let events = mark.names.union(mark.events).union(more).union(.selfGone)
            let number = try Inotify.watch(inotify, path, events)
            outcome.marks[number, default: []].append(mark)
            return true
        } catch {
            if error == .noSuchFileOrDirectory { return true }
            outcome.trouble =
                error == .noSpace
                ? "\(path) cannot be watched: raise fs.inotify.max_user_watches (sysctl)"
                : "\(path) cannot be watched: \(error)"
            return false
        }
    }
}
