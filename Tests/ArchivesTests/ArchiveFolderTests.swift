// SPDX-License-Identifier: Apache-2.0

import EventLoop
import Foundation
import Linux
import Testing
import Varlink

@testable import Archives

@Suite("State archives on the disk") final class ArchiveFolderTests {
    private let base: String
    private var folder: ArchiveFolder { ArchiveFolder(path: base + "/archives/web") }
    private var files: String { base + "/apps/web" }

    init() throws {
        base = FileManager.default.temporaryDirectory.path + "/torpor-archives-\(UUID().uuidString)"
        try File.makeDirectories(base + "/apps/web")
    }

    deinit { try? File.removeTree(base) }

    private func save(_ text: String, limit: UInt64? = 100) throws -> UInt64 {
        try folder.save(.data(Base64.encode(Array(text.utf8))), limit: limit, owner: nil)
    }

    private func copy(_ name: String, limit: UInt64? = 100, owners: Set<UInt32> = [geteuid()]) throws -> UInt64 {
        try folder.save(.file(name: name, directory: files, owners: owners), limit: limit, owner: nil)
    }

    private var kept: String? { try? File.readString(folder.current) }

    private func refused(_ body: () throws -> UInt64) -> ArchiveFailure? {
        do {
            let bytes = try body()
            Issue.record("\(bytes) bytes were taken")
            return nil
        } catch {
            return error as? ArchiveFailure
        }
    }

    @Test("the last one counts, only its owner can read it, and nothing else is left")
    func last() throws {
        #expect(folder.found == nil)
        #expect(try save("one") == 3)
        #expect(try save("twelve") == 6)
        #expect(kept == "twelve")
        #expect(folder.found?.bytes == 6)
        #expect(try File.status(folder.current).mode == 0o400)
        #expect(try File.status(folder.path).mode & 0o066 == 0)
        #expect(try File.list(folder.path) == ["current"])
        #expect(try save("") == 0)
        #expect(folder.found?.bytes == 0)
    }

    @Test("a file of the app is copied, and stays its own")
    func file() throws {
        try File.write(files + "/notes", "from a file")
        #expect(try copy("notes") == 11)
        try File.write(files + "/notes", "changed")
        #expect(kept == "from a file")
        let large = [UInt8](repeating: 7, count: 1 << 20)
        try File.write(files + "/large", large)
        #expect(try copy("large", limit: nil) == 1 << 20)
        #expect(try File.read(folder.current, limit: 2 << 20) == large)
    }

    @Test("what is too large is refused, and the one before it stays")
    func limit() throws {
        #expect(try save("one", limit: 3) == 3)
        #expect(refused { try save("more", limit: 3) } == .tooLarge(limit: 3))
        try File.write(files + "/notes", "more")
        #expect(refused { try copy("notes", limit: 3) } == .tooLarge(limit: 3))
        // As data it would not fit into a message, whatever the configuration allows.
        let huge = String(repeating: "x", count: ArchiveContent.largestData + 1)
        guard case .refused(let sentence) = refused({ try save(huge, limit: nil) }) else {
            Issue.record("not refused")
            return
        }
        #expect(sentence.contains("write them into a file in TORPOR_STATE_DIRECTORY"))
        #expect(kept == "one")
        #expect(try File.list(folder.path) == ["current"])
    }

    @Test(
        "only a regular file in the directory itself is taken",
        arguments: ["", ".", "..", "../secret", "/etc/passwd", "a/b", "missing", "link", "loop", "fifo", "folder"]
    )
    func odd(name: String) throws {
        try File.write(base + "/secret", "secret")
        try File.link(files + "/link", to: base + "/secret")
        try File.link(files + "/loop", to: "loop")
        try File.makeFIFO(files + "/fifo")
        try File.makeDirectories(files + "/folder")
        try File.makeDirectories(files + "/a")
        try File.write(files + "/a/b", "deeper")
        guard case .refused = refused({ try copy(name) }) else {
            Issue.record("\(name) was not refused")
            return
        }
        #expect(folder.found == nil)
    }

    @Test("a file of somebody else, under a name in the app's directory, is not the app's")
    func foreign() throws {
        try File.write(base + "/secret", "secret")
        #expect(link(base + "/secret", files + "/notes") == 0)
        guard case .refused(let sentence) = refused({ try copy("notes", owners: [geteuid() + 1]) }) else {
            Issue.record("not refused")
            return
        }
        #expect(sentence.contains("not owned by the app's user"))
    }

    @Test("a directory of the app that is a link by now is not followed")
    func swapped() throws {
        try File.removeTree(files)
        try File.makeDirectories(base + "/elsewhere")
        try File.write(base + "/elsewhere/notes", "x")
        try File.link(files, to: base + "/elsewhere")
        guard case .refused = refused({ try copy("notes") }) else {
            Issue.record("not refused")
            return
        }
    }

    @Test("what is not Base64 is refused", arguments: ["?", "AAA", "AA==\n"])
    func garbage(text: String) throws {
        guard case .refused = refused({ try folder.save(.data(text), limit: nil, owner: nil) }) else {
            Issue.record("not refused")
            return
        }
    }

    @Test("half of one that was begun before is not taken, and goes with the next")
    func half() throws {
        try File.makeDirectories(folder.path)
        try File.write(folder.path + "/.new-77", "ha")
        #expect(folder.found == nil)
        #expect(try save("whole") == 5)
        #expect(try File.list(folder.path) == ["current"])
    }

    @Test(
        "where nothing can be written the one before it stays, and that is said",
        .enabled(if: geteuid() != 0, "root writes where nobody may")
    )
    func unwritable() throws {
        #expect(try save("one") == 3)
        try File.setMode(folder.path, 0o500)
        defer { try? File.setMode(folder.path, 0o700) }
        guard case .failed(let sentence) = refused({ try save("two") }) else {
            Issue.record("not refused")
            return
        }
        #expect(sentence.contains("the earlier one is unchanged"))
        #expect(kept == "one")
    }

    @Test("set aside, discarded, removed: again is no error")
    func away() throws {
        for _ in 0..<2 { try folder.discard() }
        try folder.setAside()
        _ = try save("one")
        for _ in 0..<2 { try folder.setAside() }
        #expect(folder.found == nil)
        #expect(folder.foundAside.map(\.bytes) == [3])
        _ = try save("four")
        try folder.setAside()
        #expect(folder.foundAside.map(\.bytes) == [3, 4])
        _ = try save("one")
        for _ in 0..<2 { try folder.discard() }
        #expect(try File.list(folder.path).sorted() == ["set-aside", "set-aside.2"])
        for _ in 0..<2 { try folder.remove() }
        #expect(!File.exists(folder.path))
    }

    // MARK: Several that were set aside

    /// Saves that text and sets it aside, after so many days. Returns the names of those that were removed for it.
    private func setAside(_ text: String, after days: Int64 = 0) throws -> [String] {
        _ = try folder.save(.bytes(Array(text.utf8)), limit: nil, owner: nil)
        let now = Clock.realtimeMicroseconds() + days * 24 * 3600 * 1_000_000
        let aside = try #require(try folder.setAside(now: now))
        #expect(try File.readString(aside.path) == text && folder.found == nil)
        return aside.removed.map { String($0.dropFirst(folder.path.utf8.count + 1)) }
    }

    private var aside: [String] { folder.foundAside.compactMap { try? File.readString($0.path) } }

    @Test("the first one and the newest three are kept, and no name is given twice")
    func many() throws {
        for text in ["1", "2", "3", "4"] { #expect(try setAside(text).isEmpty) }
        #expect(try setAside("5") == ["set-aside.2"])
        #expect(try setAside("6") == ["set-aside.3"])
        #expect(aside == ["1", "4", "5", "6"])
        let names = ["set-aside", "set-aside.4", "set-aside.5", "set-aside.6"]
        #expect(try File.list(folder.path).sorted() == names)
        // What somebody put there by hand is neither counted nor touched.
        for name in ["set-aside.1", "set-aside.07", "set-aside.x", "7"] { try File.write(folder.path + "/" + name, "") }
        try File.makeDirectory(folder.path + "/set-aside.7")
        #expect(try setAside("8") == ["set-aside.4"])
        #expect(aside == ["1", "5", "6", "8"])
        #expect(File.exists(folder.path + "/set-aside.8") && File.exists(folder.path + "/set-aside.07"))
    }

    @Test("one with the same bytes is kept once, in its place")
    func equal() throws {
        let large = String(repeating: "x", count: 200_000)
        for text in ["1", large, "3", large + "y", large, "1"] { #expect(try setAside(text).isEmpty) }
        #expect(try setAside(large + "z") == ["set-aside.2"])
        #expect(aside == ["1", "3", large + "y", large + "z"])
    }

    @Test("after 30 days the first one goes before the second, if there are too many")
    func old() throws {
        for text in ["1", "2", "3"] { #expect(try setAside(text).isEmpty) }
        #expect(try setAside("4", after: 400).isEmpty)
        #expect(try setAside("5", after: 29) == ["set-aside.2"])
        #expect(try setAside("6", after: 31) == ["set-aside"])
        #expect(aside == ["3", "4", "5", "6"])
    }

    @Test("of large ones the first and the newest are kept")
    func large() throws {
        func plant(_ name: String) throws {
            try File.makeDirectories(folder.path)
            try File.write(folder.path + "/" + name, name)
            #expect(truncate(folder.path + "/" + name, off_t(ArchiveFolder.mostBytesAside / 2)) == 0)
        }
        for name in ["set-aside", "set-aside.2"] { try plant(name) }
        try plant("current")
        #expect(try folder.setAside()?.removed == [folder.path + "/set-aside.2"])
        #expect(try File.list(folder.path).sorted() == ["set-aside", "set-aside.3"])
        // One that is larger than all may be does not cost the first one.
        try plant("current")
        #expect(truncate(folder.current, off_t(ArchiveFolder.mostBytesAside * 2)) == 0)
        #expect(try folder.setAside()?.removed == [folder.path + "/set-aside.3"])
        #expect(folder.foundAside.map(\.bytes) == [32 << 20, 128 << 20])
    }

    // MARK: The threads

    private func turn(_ loop: EventLoop, until done: () -> Bool) throws {
        let deadline = Clock.monotonic() + .seconds(60)
        while !done(), Clock.monotonic() < deadline { try loop.runOnce(timeout: .milliseconds(50)) }
        #expect(done(), "not done within 60 s")
    }

    @Test("of one app in order, of many at once, and no thread is left")
    func threads() throws {
        let loop = try EventLoop()
        let archives = StateArchives(loop: loop)
        #expect(archives.isIdle)
        var order: [Int] = []
        for step in 0..<3 {
            let text = Base64.encode(Array("\(step)".utf8))
            archives.ask(.save(.data(text), limit: nil, owner: nil), in: folder) { _ in order.append(step) }
        }
        archives.ask(.discard, in: folder) { _ in order.append(3) }
        #expect(archives.takesAway(folder))
        var others = 0
        for number in 0..<60 {
            let other = ArchiveFolder(path: base + "/archives/web@\(number)")
            archives.ask(.save(.data("AAAA"), limit: nil, owner: nil), in: other) { outcome in
                #expect(outcome == .success(3))
                others += 1
            }
        }
        #expect(!archives.isIdle)
        try turn(loop) { order.count == 4 && others == 60 }
        #expect(order == [0, 1, 2, 3])
        #expect(folder.found == nil)
        #expect(!archives.isBusy(folder))
        try turn(loop) { archives.isIdle }
        let names = try ProcFS.tasks(getpid()).map { try? File.readString("/proc/self/task/\($0)/comm") }
        #expect(!names.contains("archives\n"))
    }

    @Test("an app that saves and saves is refused, and others are not")
    func flood() throws {
        let loop = try EventLoop()
        let archives = StateArchives(loop: loop)
        var outcomes: [Bool] = []
        for _ in 0..<12 {
            archives.ask(.save(.data("AAAA"), limit: nil, owner: nil), in: folder) { outcome in
                if case .failure(.refused) = outcome { outcomes.append(false) } else { outcomes.append(true) }
            }
        }
        let other = ArchiveFolder(path: base + "/archives/other")
        archives.ask(.save(.data("AAAA"), limit: nil, owner: nil), in: other) { outcome in
            #expect(outcome == .success(3))
            outcomes.append(true)
        }
        try turn(loop) { outcomes.count == 13 }
        #expect(outcomes.count { $0 } == 5)
    }

    @Test("The archive has a second name where a sandbox lets it be read, as long as it is the current one")
    func mirror() throws {
        var folder = folder
        folder.mirror = base + "/archives/desk@/ann"
        func save(_ text: String) throws -> UInt64 { try folder.save(.bytes(Array(text.utf8)), limit: nil, owner: nil) }
        // Only an app in a sandbox has the folder.
        #expect(try save("one") == 3 && folder.foundInMirror == nil)
        try ArchiveFolder(path: base + "/archives/desk@").make()
        #expect(folder.foundInMirror == nil)
        #expect(try save("twelve") == 6)
        #expect(folder.foundInMirror?.path == base + "/archives/desk@/ann" && folder.foundInMirror?.bytes == 6)
        // One to an earlier archive does not count.
        try File.remove(folder.current)
        try File.write(folder.current, "by hand")
        #expect(folder.foundInMirror == nil)
        #expect(try save("3") == 1 && folder.foundInMirror?.bytes == 1)
        let (discard, remove) = (folder.discard, folder.remove)
        let aside = { _ = try folder.setAside() }
        for takeAway in [{ try discard() }, aside, { try remove() }] as [() throws -> Void] {
            _ = try save("again")
            try takeAway()
            #expect(try File.list(base + "/archives/desk@").isEmpty)
        }
    }
}
