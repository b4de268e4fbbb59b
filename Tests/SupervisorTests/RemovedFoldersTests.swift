// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
import Supervisor
import Testing

@Suite("Folders of users in torpord's own, when they are removed") struct RemovedFoldersTests {
    private let base = NSTemporaryDirectory() + "torpor-removed-\(UUID().uuidString.prefix(8))"
    private var app: String { base + "/apps/web" }
    private var mine: String { app + "/container" }
    private var removed: RemovedFolders { RemovedFolders(path: base + "/removed") }

    private func make() throws {
        try File.makeDirectories(mine + "/below")
        try File.makeDirectories(base + "/other")
        for path in [app + "/notify", mine + "/state", mine + "/below/file", base + "/other/precious"] {
            try File.write(path, "")
        }
        try FileManager.default.createSymbolicLink(atPath: mine + "/link", withDestinationPath: base + "/other")
    }

    @Test("what is no folder goes at once, a folder is moved away, and emptied later; a link is not followed")
    func moved() throws {
        defer { try? File.removeTree(base) }
        try make()
        #expect(try removed.take(app))
        #expect(!File.exists(app), "the next app of that name finds nothing")
        let waiting = try File.list(removed.path)
        #expect(waiting.count == 1)
        #expect(try File.status(removed.path).mode & 0o777 == 0o700, "its user reaches it by no path")
        #expect(File.exists(removed.path + "/\(waiting[0])/below/file"), "that is not done at once")
        removed.clear()
        #expect(!removed.isThere && File.exists(base + "/other/precious"))
        #expect(try !removed.take(app), "it is gone")
        try File.makeDirectories(app)
        try File.write(app + "/notify", "")
        #expect(try !removed.take(app), "nothing waits")
        #expect(!File.exists(app) && !removed.isThere)
    }

    @Test("what is left when the time is over is removed the next time")
    func late() throws {
        defer { try? File.removeTree(base) }
        try make()
        #expect(try removed.take(app))
        removed.clear(until: .zero)
        #expect(removed.isThere)
        removed.clear()
        #expect(!removed.isThere)
    }

    @Test(
        "a folder is emptied with the rights of its owner: what that user could not remove stays",
        .enabled(if: Users.isRoot, "another user is needed")
    )
    func rights() throws {
        defer { try? File.removeTree(base) }
        try make()
        // As if its user had moved the folder of another one there.
        try File.setOwner(mine, uid: 65534, gid: 65534)
        #expect(try removed.take(app))
        let place = try removed.path + "/" + #require(try File.list(removed.path).first)
        removed.clear()
        #expect(File.exists(place + "/below/file") && !File.exists(place + "/state"))
        #expect(File.exists(base + "/other/precious"))
    }
}
