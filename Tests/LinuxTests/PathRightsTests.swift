// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import Linux

@Suite("Paths in folders of others", .enabled(if: Users.isRoot, "another user is needed, and only root can become one"))
struct PathRightsTests {
    private static let nobody: UInt32 = 65534

    /// A folder of root's, `root`, and one of nobody's, `home`, gone with the test.
    private func withFolders(_ body: (_ root: String, _ home: String) throws -> Void) throws {
        let folder = NSTemporaryDirectory() + "torpor-rights-" + UUID().uuidString
        try File.makeDirectory(folder)
        defer { try? File.removeTree(folder) }
        try File.makeDirectory(folder + "/root")
        try File.makeDirectory(folder + "/home")
        try File.setOwner(folder + "/home", uid: Self.nobody, gid: Self.nobody)
        try body(folder + "/root", folder + "/home")
    }

    private func ownLink(_ place: String, to target: String) throws {
        try File.link(place, to: target)
        try File.setOwner(place, uid: Self.nobody, gid: Self.nobody)
    }

    private func plan(_ path: String) -> SocketPlan { SocketPlan(.stream, .path(path)) }

    @Test("whose rights are used is the owner's of the last folder that others can lead elsewhere")
    func owners() throws {
        try withFolders { root, home in
            #expect(PathRights.owner(ofWayTo: root + "/s") == nil)
            #expect(PathRights.owner(ofWayTo: root + "/not/there") == nil)
            #expect(PathRights.owner(ofWayTo: home + "/s")?.uid == Self.nobody)
            #expect(PathRights.owner(ofWayTo: home + "/not/there")?.uid == Self.nobody)
            try ownLink(home + "/link", to: root)
            #expect(PathRights.owner(ofWayTo: home + "/link/s")?.uid == Self.nobody)
            try File.link(root + "/link", to: home)
            #expect(PathRights.owner(ofWayTo: root + "/link/s")?.uid == Self.nobody)
            // Below a folder of a group, though it is root's.
            try File.makeDirectory(root + "/group")
            try File.makeDirectory(root + "/group/mine")
            try File.setMode(root + "/group", 0o775)
            try File.setOwner(root + "/group", uid: 0, gid: 7)
            let who = PathRights.owner(ofWayTo: root + "/group/mine/s")
            #expect(who?.uid == Self.nobody && who?.gid == 7)
            // In a sticky one nobody replaces what is root's.
            try File.setMode(root + "/group", 0o1777)
            #expect(PathRights.owner(ofWayTo: root + "/group/mine/s") == nil)
            // But for files and links of root's, which others can have moved there.
            try File.link(root + "/group/moved", to: root)
            #expect(PathRights.owner(ofWayTo: root + "/group/moved/s")?.uid == Self.nobody)
            try ownLink(root + "/group/theirs", to: root)
            #expect(PathRights.owner(ofWayTo: root + "/group/theirs/s")?.uid == Self.nobody)
        }
    }

    @Test("where everybody may write nobody's rights are used, and no group's; the owner's folder's group is not")
    func groups() throws {
        try withFolders { root, home in
            try File.makeDirectory(root + "/all")
            try File.makeDirectory(root + "/all/mine")
            try File.setMode(root + "/all", 0o777)
            let who = PathRights.owner(ofWayTo: root + "/all/mine/s")
            #expect(who?.uid == Self.nobody && who?.gid == Self.nobody)
            try File.setOwner(home, uid: Self.nobody, gid: 0)
            #expect(PathRights.owner(ofWayTo: home + "/s")?.gid == Self.nobody)
        }
    }

    @Test("a way that cannot be followed is nobody's")
    func endless() throws {
        try withFolders { root, _ in
            try File.link(root + "/one", to: root + "/two")
            try File.link(root + "/two", to: root + "/one")
            #expect(PathRights.owner(ofWayTo: root + "/one/s")?.uid == Self.nobody)
            #expect(
                PathRights.owner(ofWayTo: root + "/" + String(repeating: "n", count: 300) + "/s")?.uid == Self.nobody
            )
        }
    }

    @Test("a thread has its rights back afterwards, also after an error")
    func givenBack() throws {
        try withFolders { root, home in
            #expect(throws: Errno.permissionDenied) {
                try PathRights.acting(at: home + "/x") { () throws(Errno) in try File.write(root + "/made", "") }
            }
            try File.write(root + "/made", "")
            #expect(try File.status(root + "/made").uid == 0)
            try PathRights.acting(at: home + "/x") { () throws(Errno) in try File.write(home + "/x", "") }
            #expect(try File.status(home + "/x").uid == Self.nobody)
        }
    }

    @Test("a socket in such a folder is made there, with the owner and the mode that were asked for")
    func bound() throws {
        try withFolders { root, home in
            var node = SocketNode()
            node.mode = 0o640
            let first = try Sockets.bound(plan(home + "/run/s"), node: node, backlog: 8)
            #expect(try File.status(home + "/run").uid == Self.nobody)
            var status = try File.status(home + "/run/s")
            #expect(status.uid == 0 && status.mode == 0o640)
            // What nobody answers at is replaced, though root's.
            first.close()
            node.uid = 1
            node.gid = 2
            let second = try Sockets.bound(plan(home + "/run/s"), node: node, backlog: 8)
            status = try File.status(home + "/run/s")
            #expect(status.uid == 1 && status.gid == 2 && status.mode == 0o640)
            _ = try Sockets.connect(path: home + "/run/s")
            second.close()
        }
    }

    @Test("a folder that becomes a link again and again leads root nowhere: nothing is made or removed there")
    func swapped() throws {
        try withFolders { root, home in
            // What root would remove, since nobody answers there.
            let victim = try Sockets.bound(plan(root + "/s"), backlog: 1)
            victim.close()
            let inode = try File.status(root + "/s").inode
            try File.makeDirectory(home + "/run")
            try File.setOwner(home + "/run", uid: Self.nobody, gid: Self.nobody)
            try ownLink(home + "/link", to: root)
            let isOver = Monitor(false)
            let hasEnded = Monitor(false)
            try WorkerThread.start(named: "swaps") {
                while !isOver.withLock({ $0 }) {
                    try? File.rename(home + "/run", home + "/aside")
                    try? File.rename(home + "/link", home + "/run")
                    try? File.rename(home + "/run", home + "/link")
                    try? File.rename(home + "/aside", home + "/run")
                }
                hasEnded.withLock { $0 = true }
                hasEnded.wake()
            }
            for name in ["s", "other"] {
                for _ in 1...300 { (try? Sockets.bound(plan(home + "/run/" + name), backlog: 1))?.close() }
            }
            isOver.withLock { $0 = true }
            _ = hasEnded.wait { hasEnded, _ in hasEnded ? true : nil }
            #expect(try File.list(root) == ["s"])
            #expect(try File.status(root + "/s").inode == inode)
        }
    }

    /// What another user may read of these.
    private func read(_ path: String, groups: [UInt32] = []) throws -> String {
        let reader = try #require(FileRights(name: "nobody", uid: Self.nobody, gid: Self.nobody, groups: groups))
        return String(decoding: try OwnedFile.read(path, for: reader, limit: 1000), as: UTF8.self)
    }

    private func write(_ path: String, _ text: String, mode: UInt32, uid: UInt32 = 0, gid: UInt32 = 0) throws {
        try File.write(path, text, mode: mode)
        try File.setMode(path, mode)
        try File.setOwner(path, uid: uid, gid: gid)
    }

    @Test("a file in another's folder is read as that user, whosever it is; one in root's own as root")
    func ownedFiles() throws {
        let denied = OwnedFile.Failure.notAllowed(user: "nobody")
        try withFolders { root, home in
            try write(root + "/secret", "root's", mode: 0o600)
            #expect(try read(root + "/secret") == "root's")
            try File.rename(root + "/secret", home + "/env")
            #expect(throws: denied) { try read(home + "/env") }
            try File.setMode(home + "/env", 0o644)
            #expect(try read(home + "/env") == "root's")
            try write(home + "/group", "a group's", mode: 0o640, gid: 7)
            #expect(throws: denied) { try read(home + "/group") }
            #expect(try read(home + "/group", groups: [7]) == "a group's")
            try write(home + "/own", "its own", mode: 0o400, uid: Self.nobody)
            #expect(try read(home + "/own") == "its own")
            // A folder of root's there is no way either.
            try File.makeDirectory(home + "/closed", mode: 0o700)
            try write(home + "/closed/env", "for all", mode: 0o644)
            #expect(throws: denied) { try read(home + "/closed/env") }
            // A sticky folder is one to which root's file may have been moved; but not a folder of root's.
            try File.makeDirectory(root + "/all")
            try File.setMode(root + "/all", 0o1777)
            try write(root + "/all/env", "root's", mode: 0o600)
            #expect(throws: denied) { try read(root + "/all/env") }
            try File.makeDirectory(root + "/all/mine", mode: 0o700)
            try write(root + "/all/mine/env", "root's", mode: 0o600)
            #expect(try read(root + "/all/mine/env") == "root's")
            // Nothing of it stays with this thread.
            #expect(try File.readString(home + "/env") == "root's")
        }
    }

    @Test("a file that is another one at each look gives nothing of root's")
    func ownedFileSwapped() throws {
        try withFolders { _, home in
            try write(home + "/env", "its own", mode: 0o600, uid: Self.nobody)
            try write(home + "/other", "root's", mode: 0o600)
            let isOver = Monitor(false)
            let hasEnded = Monitor(false)
            try WorkerThread.start(named: "swaps") {
                while !isOver.withLock({ $0 }) {
                    try? File.rename(home + "/env", home + "/aside")
                    try? File.rename(home + "/other", home + "/env")
                    try? File.rename(home + "/env", home + "/other")
                    try? File.rename(home + "/aside", home + "/env")
                }
                hasEnded.withLock { $0 = true }
                hasEnded.wake()
            }
            for _ in 1...1000 {
                if let text = try? read(home + "/env") { #expect(text == "its own") }
            }
            isOver.withLock { $0 = true }
            _ = hasEnded.wait { hasEnded, _ in hasEnded ? true : nil }
        }
    }
}
