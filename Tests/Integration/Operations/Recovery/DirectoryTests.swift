// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import SystemPackage
import Testing
import TorporAPI

/// What is in the runtime directory is used by names; the daemon itself must not need the names.
@Suite("Recovery: a runtime directory that is removed") struct DirectoryTests {
    private static let toml = """
        [apps.web]
        exec = ["@B/torpor-test-app", "--ready", "0", "--beat", "50", "--period", "3000"]
        ready = "notify"
        watchdog = "2s"
        [apps.later]
        exec = ["@B/torpor-test-app", "--ready", "0", "--period", "3000"]
        ready = "notify"
        launch = "on-demand"
        """

    /// Removes what is there; torpord may be quicker to make it again than this is to come to the end.
    private func remove(_ directory: String) throws {
        do { try File.removeTree(directory) } catch Errno.directoryNotEmpty {}
    }

    @Test("Under a running daemon: sockets and FIFOs come back, apps run on, and nothing they write is lost")
    func removed() throws {
        try withRecovery(Self.toml) { daemon throws in
            try daemon.waitFor("web", "active")
            let pid = try daemon.summary("web").pid
            try remove(daemon.runtime)
            try daemon.eventually("it answers again") { (try? daemon.list()) != nil }
            #expect(try daemon.summary("web").pid == pid)
            // Its notifications arrive: it is known by a later number.
            let said = try daemon.truth("web").statusNumber
            try daemon.eventually("what it says is heard") {
                (try daemon.summary("web").status).flatMap { UInt64($0) } ?? 0 > said
            }
            try daemon.done(.start, "later")
            try daemon.eventually("it writes") { (try? daemon.truth("later").accepted) ?? 0 > 3 }
            try daemon.expectWholeLog("later")
            try daemon.expectWholeLog("web")
            try daemon.done(.restart, "web")
            try daemon.eventually("it writes") { (try? daemon.truth("web", 2).accepted) ?? 0 > 3 }
            try daemon.expectWholeLog("web", 2)
        }
    }

    @Test("The control socket alone comes back, and no app is said to be reached by a stranger")
    func controlSocket() throws {
        try withRecovery(Self.toml) { daemon throws in
            try daemon.waitFor("web", "active")
            try File.remove(daemon.socket)
            try daemon.eventually("it answers again") { (try? daemon.list()) != nil }
            try daemon.done(.restart, "web")
            #expect(try daemon.events("web").allSatisfy { !$0.text.contains("refused process") })
        }
    }

    @Test("And torpord dies then: everything is found in the keeper", arguments: [Loss.killed, .keeper, .upgraded])
    func removedAndLost(loss: Loss) throws {
        try withRecovery(Self.toml) { daemon throws in
            try daemon.waitFor("web", "active")
            try daemon.done(.start, "later")
            try daemon.done(.suspend, "later")
            let pids = try daemon.list().map(\.pid)
            try remove(daemon.runtime)
            try daemon.lose(loss)
            #expect(try daemon.list().map(\.pid) == pids)
            try daemon.waitFor("later", "suspended")
            try daemon.done(.resume, "later")
            try daemon.done(.stop, "later")
            try daemon.expectWholeLog("later")
            try daemon.expectWholeLog("web")
            #expect(try daemon.summary("web").incarnation == 1)
        }
    }

    @Test("A configuration in force that cannot be written there is the next torpord's all the same")
    func unwritable() throws {
        try withRecovery(Self.toml) { daemon throws in
            try daemon.waitFor("web", "active")
            // Nothing can be renamed to the path of a directory.
            let path = daemon.runtime + "/configuration"
            try daemon.eventually("a directory is in its place") {
                try? File.remove(path)
                return (try? File.makeDirectory(path)) != nil
            }
            try daemon.apply(Self.toml.replacing("@B", with: Built.folder) + "\n" + Apps.sleeper("new"))
            try daemon.waitFor("new", "active")
            let pids = try daemon.list().map(\.pid)
            try daemon.lose(.killed)
            #expect(try daemon.list().map(\.name).contains("new"))
            #expect(try daemon.list().map(\.pid) == pids)
            try File.removeTree(path)
        }
    }

    /// A torpord that dies while it makes the directory again leaves sockets of which only the names are there.
    @Test("What is left of a torpord that died over it is made once more")
    func halfMade() throws {
        try withRecovery(Self.toml) { daemon throws in
            try daemon.waitFor("web", "active")
            let pid = try daemon.summary("web").pid
            try daemon.lose(.killed) {
                for name in ["io.torpor", "apps/web/notify", "apps/web/app"] {
                    let path = daemon.runtime + "/" + name
                    try File.remove(path)
                    let kind: Sockets.Kind = name.hasSuffix("notify") ? .datagram : .stream
                    try bindAndClose(path, kind)
                    #expect(!Sockets.isServed(path: path, kind: kind))
                }
                // As it was when that one began; RecoveryFile has the flags at 20.
                let recovery = try File.open(daemon.runtime + "/recovery", .readWrite)
                try File.write(recovery.raw, at: 20, [64, 0, 0, 0])
            }
            #expect(try daemon.summary("web").pid == pid)
            let said = try daemon.truth("web").statusNumber
            try daemon.eventually("what it says is heard") {
                (try daemon.summary("web").status).flatMap { UInt64($0) } ?? 0 > said
            }
            try daemon.eventually("its own socket is served") {
                Sockets.isServed(path: daemon.runtime + "/apps/web/app")
            }
            try daemon.expectWholeLog("web")
        }
    }

    @Test("An app's socket whose file was removed while there was no torpord is made again")
    func lostSocket() throws {
        try withRecovery(Self.toml) { daemon throws in
            try daemon.waitFor("web", "active")
            let pid = try daemon.summary("web").pid
            let socket = daemon.runtime + "/apps/web/app"
            try daemon.lose(.killed) { try File.remove(socket) }
            try daemon.eventually("its own socket is served") { Sockets.isServed(path: socket) }
            #expect(try daemon.summary("web").pid == pid)
        }
    }

    private func bindAndClose(_ path: String, _ kind: Sockets.Kind) throws {
        let socket =
            kind == .datagram ? try Sockets.bindDatagram(path: path, mode: 0o600) : try Sockets.listen(path: path)
        socket.close()
    }

    @Test("What cannot be restored is said once, however often it is tried, and again when it is different")
    func saidOnce() throws {
        try withRecovery(Self.toml) { daemon throws in
            try daemon.waitFor("web", "active")
            // Another lock in the place of torpord's: as long as this process holds it, nothing can be restored.
            let path = daemon.runtime + "/lock"
            try File.write(path + ".other", "\(ThisProcess.pid)\n", mode: 0o600)
            let other = try File.open(path + ".other", .readWrite)
            try #require(try Locks.tryLock(other.raw))
            let inotify = try Inotify()
            let opened = Inotify.Events(rawValue: UInt32(IN_OPEN))
            // With the closes between them, two opens are two events.
            let events = Inotify.Events(rawValue: UInt32(IN_OPEN | IN_CLOSE_WRITE | IN_CLOSE_NOWRITE))
            _ = try Inotify.watch(inotify.descriptor.raw, path + ".other", events)
            try File.rename(path + ".other", path)
            try File.remove(daemon.runtime + "/recovery")
            var count = 0
            // Each attempt opens it up to four times.
            try daemon.eventually("it was tried again") {
                count += inotify.read().count { $0.events.contains(opened) }
                return count >= 8
            }
            func said(_ text: String) -> Int { daemon.log.components(separatedBy: text).count - 1 }
            #expect(said("cannot be restored") == 1)
            #expect(said("directory was damaged") == 1)
            // Something else is missing.
            try File.remove(daemon.runtime + "/configuration")
            try daemon.eventually("that is said") { said("directory was damaged") == 2 }
            #expect(said("cannot be restored") == 1)
            other.close()
            try daemon.eventually("all is restored") {
                ["recovery", "configuration"].allSatisfy { File.exists(daemon.runtime + "/" + $0) }
            }
            try daemon.lose(.killed)
            #expect(try daemon.summary("web").incarnation == 1)
            try daemon.expectWholeLog("web")
        }
    }

    @Test("An app whose socket cannot be restored is heard as soon as it can")
    func heardAgain() throws {
        try withRecovery(Self.toml.replacing("watchdog = \"2s\"\n", with: "")) { daemon throws in
            try daemon.waitFor("web", "active")
            let folder = daemon.runtime + "/apps/web"
            try remove(folder)
            try File.write(folder, "no directory")
            try File.remove(daemon.runtime + "/recovery")
            try daemon.eventually("that is said") { daemon.log.contains("web cannot send notifications for now: ") }
            try File.remove(folder)
            let said = try daemon.truth("web").statusNumber
            try daemon.eventually("what it says is heard") {
                (try daemon.summary("web").status).flatMap { UInt64($0) } ?? 0 > said
            }
            #expect(daemon.log.components(separatedBy: "web cannot send notifications for now: ").count == 2)
            try daemon.done(.restart, "web")
        }
    }

    @Test("Again and again, with deaths in between")
    func often() throws {
        try withRecovery(Self.toml, environment: ["TORPOR_RESTART_DELAY_CAP_MS": "0"]) { daemon throws in
            try daemon.waitFor("web", "active")
            let pid = try daemon.summary("web").pid
            for _ in 0..<3 {
                try remove(daemon.runtime)
                try daemon.lose(.killed)
                try remove(daemon.runtime)
                try daemon.eventually("it answers again") { (try? daemon.list()) != nil }
            }
            #expect(try daemon.summary("web").pid == pid)
            try daemon.expectWholeLog("web")
        }
    }
}
