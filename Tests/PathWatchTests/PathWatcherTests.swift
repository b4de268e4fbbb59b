// SPDX-License-Identifier: Apache-2.0

import EventLoop
import Foundation
import Linux
import PathWatch
import Testing

/// A watcher on a loop of its own, and a folder for it.
private final class World {
    let folder: String
    let loop: EventLoop
    var watcher: PathWatcher
    var news: [PathNews] = []

    init() throws {
        var template = Array((NSTemporaryDirectory() + "tp-paths-XXXXXX").utf8CString)
        guard mkdtemp(&template) != nil else { throw CancellationError() }
        // The way there must be the same however it is written.
        folder = try File.realPath(String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self))
        loop = try EventLoop()
        watcher = try PathWatcher(loop)
        listen()
    }

    deinit { try? FileManager.default.removeItem(atPath: folder) }

    private func listen() { watcher.onNews = { [unowned self] in self.news += $0 } }

    /// Another watcher, which goes on from what the first one has found.
    func replaceWatcher() throws {
        watcher = try PathWatcher(loop, remembered: watcher.remembered)
        listen()
    }

    func watch(_ path: String, _ interest: Place.Interest, as rights: FileRights? = nil) throws {
        watcher.watch(["it": Place(folder + "/" + path, interest, as: rights)])
        try settle()
    }

    /// Turns the loop until nothing is under way and nothing more comes for a while.
    func settle() throws {
        let end = loop.now + .seconds(10)
        while loop.now < end {
            if try !loop.runOnce(timeout: .milliseconds(60)), watcher.isIdle { return }
        }
        Issue.record("it never comes to rest")
    }

    /// What is told of a step: the paths below the folder.
    func told(_ step: () throws -> Void) throws -> [String] {
        news = []
        try step()
        try settle()
        let paths = news.filter(\.isNew).flatMap { $0.paths }
        return Set(paths).map { String($0.dropFirst(folder.count + 1)) }.sorted()
    }

    func write(_ path: String, _ text: String = "x") throws { try File.write(folder + "/" + path, text) }
    func make(_ path: String) throws { try File.makeDirectories(folder + "/" + path) }
    func move(_ from: String, _ to: String) throws { try File.rename(folder + "/" + from, folder + "/" + to) }
    func remove(_ path: String) throws { try File.removeTree(folder + "/" + path) }
    func link(_ path: String, _ target: String) throws { try File.link(folder + "/" + path, to: target) }
}

@Suite("Places that are watched")
struct PathWatcherTests {
    @Test("notes of its owner are for the next watcher's owner, and no places") func notes() throws {
        let world = try World()
        let notes = ["web/path/a": "a change of /a\nb", "": "x"]
        let bytes = world.watcher.remembered(with: notes)
        #expect(PathWatcher.notes(in: bytes) == notes && PathWatcher.notes(in: []).isEmpty)
        #expect(PathWatcher.notes(in: world.watcher.remembered).isEmpty)
        let next = try PathWatcher(world.loop, remembered: bytes)
        #expect(next.remembered == world.watcher.remembered)
    }

    @Test("a file that is written to and closed, replaced, removed and made again is news each time")
    func changes() throws {
        let world = try World()
        try world.write("f")
        try world.watch("f", .changes)
        #expect(world.news.isEmpty)
        #expect(try world.told { try world.write("f", "other") } == ["f"])
        #expect(
            try world.told {
                try world.write("new", "again")
                try world.move("new", "f")
            } == ["f"]
        )
        #expect(try world.told { try world.remove("f") } == ["f"])
        #expect(try world.told { try world.write("beside") } == [])
        #expect(try world.told { try world.write("f", "back") } == ["f"])
        #expect(try world.told { try world.write("f", "and again") } == ["f"])
    }

    @Test("places are complete once each was looked at: a change from then on is news")
    func complete() throws {
        let world = try World()
        #expect(world.watcher.isComplete, "it has none")
        for round in 0..<3 {
            let path = "f\(round)"
            world.watcher.watch(["\(round)": Place(world.folder + "/" + path, .changes)])
            #expect(!world.watcher.isComplete, "only the loop learns what was found")
            let end = world.loop.now + .seconds(10)
            while !world.watcher.isComplete, world.loop.now < end { _ = try world.loop.runOnce(timeout: .seconds(1)) }
            #expect(try world.told { try world.write(path) } == [path])
        }
    }

    @Test("what goes on is watched on when a place leaves that was just written to")
    func leaving() throws {
        let world = try World()
        let (busy, other) = (world.folder + "/busy", world.folder + "/other")
        for round in 0..<5 {
            world.watcher.watch(["busy": Place(busy, .changes), "other": Place(other, .changes)])
            try world.settle()
            // The second time comes too soon after the first to be looked at.
            for _ in 0..<2 {
                try world.write("busy", "\(round)")
                _ = try world.loop.runOnce(timeout: .milliseconds(5))
                _ = try world.loop.runOnce(timeout: .milliseconds(5))
            }
            world.watcher.watch(["other": Place(other, .changes)])
            #expect(try world.told { try world.write("other", "\(round)") } == ["other"])
        }
    }

    @Test("a file that somebody has open is missed when it is removed, and found when it is there again")
    func removedWhileOpen() throws {
        let world = try World()
        try world.write("f")
        let open = try File.open(world.folder + "/f", .read)
        try world.watch("f", .existence)
        #expect(try world.told { try world.remove("f") } == [])
        #expect(try world.told { try world.write("f") } == ["f"])
        open.close()
    }

    @Test(
        "each write is news for who wants each, the last for the others",
        arguments: [Place.Interest.writes, .changes]
    )
    func writes(interest: Place.Interest) throws {
        let world = try World()
        try world.write("f")
        try world.watch("f", interest)
        let open = try File.open(world.folder + "/f", [.write])
        let expected = interest == .writes ? ["f"] : []
        #expect(try world.told { try Descriptor.writeAll(open.raw, [1, 2, 3]) } == expected)
        #expect(try world.told { open.close() } == ["f"])
    }

    @Test("what is not a change of the content is no news for who wants only those")
    func content() throws {
        let world = try World()
        try world.write("f")
        try world.watch("f", .content)
        #expect(try world.told { try File.setMode(world.folder + "/f", 0o600) } == [])
        #expect(try world.told { try world.write("f", "longer") } == ["f"])
    }

    @Test("a file is found in directories that come later, one after the other")
    func missingDirectories() throws {
        let world = try World()
        try world.watch("a/b/c/f", .existence)
        #expect(try world.told { try world.make("a") } == [])
        #expect(try world.told { try world.make("a/b/c") } == [])
        #expect(try world.told { try world.write("a/b/c/f") } == ["a/b/c/f"])
        #expect(try world.told { try world.move("a/b", "a/away") } == [])
        #expect(try world.told { try world.write("a/away/c/f", "not there") } == [])
        #expect(try world.told { try world.move("a/away", "a/b") } == ["a/b/c/f"])
        #expect(try world.told { try world.remove("a") } == [])
        #expect(
            try world.told {
                try world.make("a/b/c")
                try world.write("a/b/c/f")
            } == ["a/b/c/f"]
        )
    }

    @Test("links are followed, and news come when one of them points elsewhere")
    func links() throws {
        let world = try World()
        try world.make("v1")
        try world.make("v2")
        try world.write("v1/f", "1")
        try world.write("v2/f", "22")
        try world.link("current", "v1")
        try world.link("f", "current/f")
        try world.watch("f", .content)
        #expect(
            try world.told {
                try world.link("next", "v2")
                try world.move("next", "current")
            } == ["f"]
        )
        #expect(try world.told { try world.write("v1/f", "old") } == [])
        #expect(try world.told { try world.write("v2/f", "new!") } == ["f"])
        #expect(try world.told { try world.remove("v2") } == ["f"])
    }

    @Test("links that lead to each other come to an end")
    func circle() throws {
        let world = try World()
        try world.link("a", "b")
        try world.link("b", "a")
        try world.watch("a/f", .existence)
        #expect(world.news.isEmpty)
        #expect(
            try world.told {
                try world.remove("b")
                try world.make("b")
                try world.write("b/f")
            } == ["a/f"]
        )
    }

    @Test("a directory is news when something comes into it, and not when something goes")
    func entries() throws {
        let world = try World()
        try world.make("in")
        try world.watch("in", .entries)
        #expect(world.news.isEmpty)
        #expect(try world.told { try world.write("in/1") } == ["in/1"])
        #expect(world.news.last?.holds == world.folder + "/in")
        #expect(try world.told { try world.write("in/2") } == ["in/2"])
        #expect(try world.told { try world.remove("in/1") } == [])
        news(world) { world.watcher.look("it") }
        #expect(world.news.map(\.holds) == [world.folder + "/in"])
        try world.remove("in/2")
        try world.settle()
        news(world) { world.watcher.look("it") }
        #expect(world.news.map(\.holds) == [nil])
    }

    private func news(_ world: World, _ step: () -> Void) {
        world.news = []
        step()
        try? world.settle()
    }

    @Test("a pattern finds what fits it, in directories that fit too")
    func patterns() throws {
        let world = try World()
        try world.make("a1")
        try world.write("a1/x.conf")
        try world.write("a1/.hidden.conf")
        try world.watch("a*/*.conf", .changes)
        #expect(world.news.isEmpty)
        #expect(try world.told { try world.write("a1/y.conf") } == ["a1/y.conf"])
        #expect(try world.told { try world.write("a1/y.txt") } == [])
        #expect(
            try world.told {
                try world.make("a2")
                try world.write("a2/z.conf")
            } == ["a2/z.conf"]
        )
        #expect(try world.told { try world.write("a2/z.conf", "more") } == ["a2/z.conf"])
        #expect(try world.told { try world.remove("a1/x.conf") } == ["a1/x.conf"])
    }

    @Test("what lasts is news at the first look, what happens is not")
    func firstLook() throws {
        let world = try World()
        try world.write("f")
        try world.watch("f", .existence)
        #expect(world.news.map(\.holds) == [world.folder + "/f"])
        #expect(world.news.map(\.isNew) == [true])
    }

    @Test("what was otherwise when an earlier watcher looked is news, and nothing else")
    func remembered() throws {
        let world = try World()
        try world.make("in")
        try world.write("in/1")
        for name in ["same", "written", "replaced", "gone"] { try world.write(name) }
        let places: [String: Place] = Dictionary(
            uniqueKeysWithValues: ["same", "written", "replaced", "gone", "new"].map {
                ($0, Place(world.folder + "/" + $0, .changes))
            } + [("in", Place(world.folder + "/in", .entries))]
        )
        world.watcher.watch(places)
        try world.settle()
        try world.write("written", "more")
        try world.write("tmp", "y")
        try world.move("tmp", "replaced")
        try world.remove("gone")
        try world.write("new")
        try world.replaceWatcher()
        world.news = []
        world.watcher.watch(places)
        try world.settle()
        #expect(world.news.filter(\.isNew).map(\.key).sorted() == ["gone", "new", "replaced", "written"])
    }

    @Test("what nobody wants to know of any more is not told")
    func forgotten() throws {
        let world = try World()
        try world.write("f")
        try world.watch("f", .changes)
        world.watcher.watch([:])
        #expect(try world.told { try world.write("f", "other") } == [])
    }

    @Test("a file that is written to all the time keeps the loop from nothing, and is told")
    func flood() throws {
        let world = try World()
        try world.write("f")
        try world.watch("f", .writes)
        let open = try File.open(world.folder + "/f", [.write])
        let end = world.loop.now + .milliseconds(300)
        var turns = 0
        world.news = []
        while world.loop.now < end {
            try Descriptor.writeAll(open.raw, [1])
            if try world.loop.runOnce(timeout: .zero) { turns += 1 }
        }
        try world.settle()
        #expect(!world.news.isEmpty)
        // Gathered: no more than 50 walks a second, of a few turns each.
        #expect(turns < 300)
        #expect(world.news.count < 40)
    }

    @Test("more news than the kernel keeps: nothing is missed, though it is not known what happened")
    func overflow() throws {
        let world = try World()
        try world.make("in")
        try world.watch("in", .changes)
        let limit = Int((try? File.readString("/proc/sys/fs/inotify/max_queued_events")) ?? "") ?? 16_384
        world.news = []
        for number in 0...(limit / 2) {
            try world.write("in/\(number % 7)a")
        }
        try world.settle()
        #expect(world.news.contains { $0.isNew })
    }

    @Test("of more files than are watched no more is kept, and it is said once")
    func tooMany() throws {
        let world = try World()
        try world.make("in")
        for number in 0..<6000 { try world.write("in/\(number)", "") }
        try world.watch("in/*", .existence)
        #expect(world.news.compactMap(\.trouble).count == 1)
        #expect(world.watcher.trouble(of: "it")?.contains("more than 4096 names match") ?? false)
        let kept = world.watcher.remembered.split(separator: 0).filter { $0.starts(with: world.folder.utf8) }
        #expect(kept.count == 4096)
        world.news = []
        for number in 6000..<6010 { try world.write("in/\(number)", "") }
        try world.settle()
        #expect(world.news.compactMap(\.trouble).isEmpty)
        try world.remove("in")
        try world.settle()
        #expect(world.watcher.trouble(of: "it") == nil)
        #expect(world.watcher.remembered.split(separator: 0).count == 1)
    }

    @Test("links of thousands of steps, and thousands of links to nothing, lead to an end")
    func longLinks() throws {
        let world = try World()
        try world.make("d")
        let steps = String(repeating: "d/../", count: 800)
        for number in 0..<30 { try world.link("d/\(number)", "../" + steps + "d/\(number + 1)") }
        try world.watch("d/0", .existence)
        #expect(world.watcher.trouble(of: "it")?.contains("passes through more than") ?? false)
        try world.make("e")
        for number in 0..<1000 { try world.link("e/\(number)", "missing\(number)") }
        try world.watch("e/*", .existence)
        #expect(world.news.allSatisfy { $0.holds == nil })
        #expect(try world.told { try world.write("e/missing900") } == ["e/900", "e/missing900"])
    }
}

@Suite(
    "Places that are watched for another user",
    .enabled(if: Users.isRoot, "another user is needed, and only root can become one")
)
struct PlaceRightsTests {
    private static let nobody: UInt32 = 65534

    /// A folder of nobody's, `home`, and one of root's, `root`, into which only root may look.
    private func withHomes(_ body: (World, FileRights) throws -> Void) throws {
        let rights = try #require(FileRights(name: "nobody", uid: Self.nobody, gid: Self.nobody, groups: []))
        let world = try World()
        try File.setMode(world.folder, 0o711)
        try world.make("home")
        try File.setOwner(world.folder + "/home", uid: Self.nobody, gid: Self.nobody)
        try File.makeDirectory(world.folder + "/root", mode: 0o700)
        try world.write("root/secret")
        try body(world, rights)
    }

    @Test(
        "a link into a folder of root's shows nothing of it, and a sentence says so",
        arguments: [
            ("home/w/*", Place.Interest.existence), ("home/w/secret", .existence), ("home/w", .changes),
            ("home/w", .entries), ("home/w/secret", .content), ("home/w/*", .content),
        ]
    )
    func links(path: String, interest: Place.Interest) throws {
        try withHomes { world, rights in
            try world.link("home/w", world.folder + "/root")
            try world.watch(path, interest, as: rights)
            let trouble =
                "user nobody may not read \(world.folder)/root: grant access (chmod, chown, setfacl), or "
                + "name another path"
            #expect(world.watcher.trouble(of: "it") == trouble)
            #expect(world.news.allSatisfy { !$0.isNew && $0.holds == nil })
            #expect(try world.told { try world.write("root/hidden") } == [])
            #expect(try world.told { try world.write("root/secret", "another one") } == [])
            #expect(world.news.allSatisfy { !$0.isNew && $0.holds == nil })
            // It is seen when it may be.
            try File.setMode(world.folder + "/root", 0o755)
            try world.settle()
            #expect(world.watcher.trouble(of: "it") == nil)
            let isOne = path.hasSuffix("secret")
            let (name, shown) = isOne ? ("root/secret", "home/w/secret") : ("root/later", "home/w/later")
            if isOne { _ = try world.told { try world.remove("root/secret") } }
            #expect(try world.told { try world.write(name, "1") } == [shown])
        }
    }

    @Test("what a user may look at is found in folders that it may only pass, and what it may not read is not watched")
    func passing() throws {
        try withHomes { world, rights in
            try world.watch("home/a/f", .existence, as: rights)
            #expect(try world.told { try world.make("home/a") } == [])
            #expect(try world.told { try world.write("home/a/f") } == ["home/a/f"])
            try File.setMode(world.folder + "/home/a/f", 0o600)
            // Whether it is there may be known of a file that may not be read; what becomes of it may not.
            try world.watch("home/a/f", .content, as: rights)
            #expect(world.watcher.trouble(of: "it")?.contains("may not read \(world.folder)/home/a/f:") ?? false)
            #expect(try world.told { try world.write("home/a/f", "more") } == [])
            try File.setMode(world.folder + "/home/a/f", 0o644)
            try world.settle()
            #expect(try world.told { try world.write("home/a/f", "and more") } == ["home/a/f"])
        }
    }
}
