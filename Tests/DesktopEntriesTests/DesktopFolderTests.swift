// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
import Testing
import TorporAPI

@testable import DesktopEntries

@Suite("The folder of desktop entries") struct DesktopFolderTests {
    private func withFolder(_ body: (String) throws -> Void) throws {
        let folder = NSTemporaryDirectory() + "torpor-entries-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try body(folder)
    }

    private func entries(_ names: [String], title: String = "T", socket: String = "/s") -> DesktopEntries {
        let apps = names.map { name in
            var app = DesktopApp(name: name)
            app.title = title
            return app
        }
        return DesktopEntries(of: apps, DesktopEntry.Command(), socket: socket)
    }

    private func names(_ folder: String) throws -> [String] { try File.list(folder).sorted() }

    @Test("Entries are written once, changed, and removed with their apps") func life() throws {
        try withFolder { path in
            let folder = DesktopFolder(path + "/share/applications")
            let (a, b) = ("io.torpor.a.desktop", "io.torpor.b.desktop")
            var changes = try folder.sync(entries(["b", "a"]), isTrial: true)
            #expect(changes.written == [a, b] && !File.exists(path))
            changes = try folder.sync(entries(["b", "a"]))
            #expect(changes == DesktopFolder.Changes(written: [a, b]))
            #expect(try names(path + "/share/applications") == [a, b])
            let file = path + "/share/applications/" + a
            #expect(try File.status(file).mode == 0o644 && File.readString(file).contains("\nX-Torpor-App=a\n"))
            #expect(try folder.sync(entries(["a", "b"])) == DesktopFolder.Changes(unchanged: [a, b]))
            changes = try folder.sync(entries(["a"], title: "U"), isTrial: true)
            #expect(changes == DesktopFolder.Changes(written: [a], removed: [b]))
            #expect(try File.readString(file).contains("Name=T\n") && File.exists(path + "/share/applications/" + b))
            #expect(try folder.sync(entries(["a"], title: "U")) == changes)
            #expect(try File.readString(file).contains("Name=U\n"))
            #expect(try names(path + "/share/applications") == [a])
            #expect(try folder.sync(entries([])).removed == [a])
        }
    }

    @Test("What others have made is left as it is, also under the name of an app") func others() throws {
        try withFolder { path in
            try File.makeDirectories(path)
            let folder = DesktopFolder(path)
            _ = try folder.sync(entries(["theirs", "gone"], socket: "/other"))
            let target = path + "/target"
            try File.write(target, "[Desktop Entry]\nX-Torpor-App=link\nX-Torpor-Socket=/s\n")
            try File.link(path + "/io.torpor.link.desktop", to: target)
            try File.link(path + "/io.torpor.old.desktop", to: target)
            try File.makeFIFO(path + "/io.torpor.pipe.desktop")
            try File.makeDirectory(path + "/io.torpor.folder.desktop")
            try File.write(path + "/io.torpor.hand.desktop", "[Desktop Entry]\nName=Mine\n")
            try File.write(path + "/firefox.desktop", "[Desktop Entry]\nX-Torpor-App=x\nX-Torpor-Socket=/s\n")
            try File.write(path + "/io.torpor.large.desktop", [UInt8](repeating: 0x0a, count: 2 << 20))
            let before = try names(path)
            let apps = ["link", "pipe", "folder", "hand", "theirs", "large"]
            let changes = try folder.sync(entries(apps))
            #expect(changes.refused.map(\.app) == apps.sorted() && changes.written.isEmpty && changes.removed.isEmpty)
            #expect(try names(path) == before)
            let reasons = Dictionary(changes.refused.map { ($0.app, $0.reason) }, uniquingKeysWith: { $1 })
            #expect(reasons["link"] == "is not a file that can be read" && reasons["hand"] == "was not made by Torpor")
            #expect(reasons["theirs"] == "belongs to another supervisor, the one with the socket /other")
            #expect(try File.readString(path + "/io.torpor.hand.desktop") == "[Desktop Entry]\nName=Mine\n")
            #expect(try File.readString(target).hasPrefix("[Desktop Entry]\nX-Torpor-App=link\n"))
        }
    }

    @Test("A draft of a process that was killed is removed, and one that is being written stays") func drafts() throws {
        try withFolder { path in
            try File.makeDirectories(path)
            // Above the largest pid that Linux gives.
            try File.write(path + "/.torpor-entry-4194999-0", "x")
            try File.write(path + "/.torpor-entry-1-0", "x")
            _ = try DesktopFolder(path).sync(entries(["a"]))
            #expect(try names(path) == [".torpor-entry-1-0", "io.torpor.a.desktop"])
        }
    }

    @Test("Root writes into no folder of another user, and follows no symlink to one", .enabled(if: Users.isRoot))
    func foreign() throws {
        try withFolder { path in
            try File.makeDirectories(path + "/real")
            try File.link(path + "/link", to: path + "/real")
            #expect(throws: DesktopFolder.Failure.self) { try DesktopFolder(path + "/link").sync(entries(["a"])) }
            try File.setOwner(path + "/real", uid: 65534, gid: nil)
            #expect(throws: DesktopFolder.Failure.self) { try DesktopFolder(path + "/real").sync(entries(["a"])) }
            #expect(try names(path + "/real").isEmpty)
            try File.write(path + "/file", "")
            #expect(throws: DesktopFolder.Failure.self) { try DesktopFolder(path + "/file").sync(entries(["a"])) }
        }
    }

    @Test("Of files that it opens, an app is offered those whose media types are known") func types() {
        var app = DesktopApp(name: "a")
        app.files = ["text/markdown", "text/a;b", "*.no-such-ending", "a*.md", "TEXT", "text/markdown"]
        let entries = DesktopEntries(of: [app], DesktopEntry.Command(), socket: "/s")
        #expect(entries.entries[0].text.contains("\nMimeType=text/markdown;\n"))
        #expect(entries.remarks.count == 4 && entries.remarks[0].contains("text/a;b"), "\(entries.remarks)")
    }
}
