// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

/// Users who cannot be found, and directories of users that do not answer.
@Suite(
    "Whom apps run as",
    .enabled(if: Users.effectiveUID == 0, "another user is needed, and only root can become one")
)
struct AccountTests {
    private static func toml(_ keys: String) -> String {
        """
        [apps.web]
        exec = ["sleep", "1000"]
        launch = "on-demand"
        restart = "never"
        \(keys)
        [apps.other]
        exec = ["/bin/sleep", "1000"]
        launch = "on-demand"

        """
    }

    @Test("A number without an entry runs with the group that is named for it, and without one not at all")
    func number() throws {
        try withDaemon(Self.toml("user = \"4242421\"\n")) { daemon in
            let result = try daemon.verb(.start, "web")
            #expect(!result.ok)
            let message = result.message ?? ""
            #expect(message.contains("4242421 has no entry in the user database") && message.contains("set group"))
        }
        try withDaemon(Self.toml("user = \"4242421\"\ngroup = \"4242422\"\n")) { daemon in
            try daemon.done(.start, "web")
            let main = try #require(try daemon.summary("web").pid)
            #expect(try ProcFS.statusField(main, "Uid") == "4242421\t4242421\t4242421\t4242421")
            #expect(try ProcFS.statusField(main, "Gid") == "4242422\t4242422\t4242422\t4242422")
            #expect(try ProcFS.statusField(main, "Groups")?.trimmingCharacters(in: .whitespaces) == "4242422")
        }
    }

    @Test("A launch as another user gets the saved state in a file that the former user does not own")
    func formerState() throws {
        try withDaemon(Self.toml("user = \"4242421\"\ngroup = \"4242422\"\n")) { daemon in
            let archive = daemon.archive()
            try File.makeDirectories(try #require(File.parent(of: archive)))
            try File.write(archive, "state")
            try File.setOwner(archive, uid: 4_242_423, gid: 4_242_423)
            let before = try File.status(archive)
            try daemon.done(.start, "web")
            let after = try File.status(archive)
            #expect(after.uid == 4_242_421 && after.inode != before.inode)
            #expect(try File.readString(archive) == "state")
            let main = try #require(try daemon.summary("web").pid)
            #expect(try File.readString("/proc/\(main)/environ").contains(archive))
        }
    }

    @Test("A launch as another user gets no descriptors that the former one has stored")
    func formerDescriptors() throws {
        let program = """
            import os, tp
            tp.record("got " + os.environ.get("LISTEN_FDNAMES", "none"))
            tp.notify("FDSTORE=1\\nFDNAME=kept", [os.memfd_create("kept")])
            tp.notify("READY=1")
            tp.wait()
            """
        let toml = Self.toml("ready = \"notify\"\n").replacing(
            "exec = [\"sleep\", \"1000\"]",
            with: "exec = [\"/usr/bin/python3\", \"-S\", \"@D/app.py\"]"
        )
        let asUser = toml.replacing("ready =", with: "user = \"4242421\"\ngroup = \"4242422\"\nready =")
        try withDaemon(asUser, files: ["app.py": program]) { daemon throws in
            // Where the app writes down what it gets.
            chmod(daemon.directory, 0o777)
            try daemon.done(.start, "web")
            try daemon.done(.restart, "web")
            #expect(daemon.records("web") == ["got none", "got kept"])
            _ = try daemon.apply(toml) { $0.restart = true }
            try daemon.eventually("it is launched as root") { daemon.records("web").count == 3 }
            #expect(daemon.records("web").last == "got none")
            try daemon.waitFor("web", "active")
        }
    }

    @Test("What a former user has written into the folder of an app's container deletes nothing")
    func formerContainer() throws {
        let folder = try Daemon.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let (place, pulled, other) = (folder + "/container", folder + "/torpor-pull-1", folder + "/other")
        for path in [place, pulled, other] { try File.makeDirectories(path) }
        func removes(_ path: String) throws -> Bool {
            try File.write(place + "/pull", path + "\n")
            let run = try Spawn.run([Built.path("torpor-container"), "remove", place])
            #expect(run.code == 0, "\(run.output)")
            return !File.exists(path)
        }
        try File.setOwner(place, uid: 4_242_423, gid: 4_242_423)
        #expect(try !removes(pulled), "another user's folder is obeyed")
        try File.setOwner(place, uid: 0, gid: 0)
        #expect(try !removes(other), "what no pull has made is deleted")
        #expect(try removes(pulled))
    }

    @Test("A launch as another user gets a folder for its container that the former user does not own")
    func formerContainerFolder() throws {
        let toml = Self.toml("user = \"4242421\"\ngroup = \"4242422\"\n").replacing(
            "exec = [\"sleep\", \"1000\"]",
            with: "container = { image = \"localhost/none\", pull = \"never\" }"
        )
        try withDaemon(toml) { daemon in
            let place = daemon.runtime + "/apps/web/container"
            try File.makeDirectories(place)
            try File.write(place + "/id", "--all\n")
            try File.setOwner(place, uid: 4_242_423, gid: 4_242_423)
            // There is no such image, and perhaps no podman.
            #expect(try !daemon.verb(.start, "web").ok)
            #expect(try File.status(place).uid == 4_242_421 && !File.exists(place + "/id"))
        }
    }

    @Test(
        "One account that is not there fails the launch of one app at the start; the others are launched",
        arguments: [
            "user = \"nobdy\"", "group = \"nobdy\"", "supplementary_groups = [\"nobdy\"]",
            "sockets = [{ stream = \"@D/web.sock\", owner = \"nobdy\" }]",
            "sockets = [{ stream = \"@D/web.sock\", group = \"nobdy\" }]",
        ]
    )
    func missing(keys: String) throws {
        let toml = Self.toml(keys + "\n").replacingOccurrences(of: "launch = \"on-demand\"", with: "")
        try withDaemon(toml) { daemon in
            try daemon.waitFor("other", "active")
            let what = keys.contains("group") ? "group" : "user"
            try daemon.waitForEvent("web", "there is no \(what) nobdy, or it cannot be looked up now")
            try daemon.waitFor("web", "not-running")
            #expect(!File.exists(daemon.directory + "/web.sock"))
            // Whatever else changes is applied, and the name is told.
            let reply = try ApplyReply(json: daemon.call(.apply(ApplyRequest())))
            #expect(reply.warnings.contains { $0.message.hasPrefix("there is no \(what) \"nobdy\" on this machine") })
        }
    }

    @Test(
        "An account that comes later is found at the next launch, also as the owner of a socket",
        .enabled(if: Namespaces.areAllowed),
        arguments: ["user = \"late\"\n", ""]
    )
    func late(user: String) throws {
        try withDatabase(user + "sockets = [{ stream = \"@D/web.sock\", owner = \"late\" }]\n") { daemon, torpord in
            let result = try daemon.verb(.start, "web")
            #expect(!result.ok && result.message?.contains("there is no user late") == true, "\(result)")
            let text = "root:x:0:0:root:/root:/bin/sh\nlate:x:4242421:4242422::/:/bin/sh\n"
            try File.write(daemon.directory + "/passwd", text)
            try mount(["/bin/mount", "--bind", daemon.directory + "/passwd", "/etc/passwd"], torpord)
            try daemon.done(.start, "web")
            #expect(try File.status(daemon.directory + "/web.sock").uid == 4_242_421)
            let main = try #require(try daemon.summary("web").pid)
            #expect(try ProcFS.statusField(main, "Uid")?.hasPrefix(user.isEmpty ? "0\t" : "4242421\t") == true)
        }
    }

    @Test(
        "All commands of a launch run as the user that this launch has looked up, not as that of an earlier one",
        .enabled(if: Namespaces.areAllowed)
    )
    func commands() throws {
        func note(_ name: String) -> String {
            "\(name) = [[\"/bin/sh\", \"-c\", \": > @D/$TORPOR_INCARNATION-\(name)-$(id -u)-$(id -g)\"]]\n"
        }
        let keys = "user = \"late\"\n" + note("before_start") + note("after_stop")
        try withDatabase(keys) { daemon, torpord in
            // Where the commands write down as whom they run.
            chmod(daemon.directory, 0o777)
            func know(_ users: String) throws {
                try File.write(daemon.directory + "/passwd", "root:x:0:0:root:/root:/bin/sh\n" + users)
                try mount(["/bin/mount", "--bind", daemon.directory + "/passwd", "/etc/passwd"], torpord)
            }
            try know("late:x:4242421:4242422::/:/bin/sh\n")
            try daemon.done(.start, "web")
            let former = try #require(try daemon.summary("web").pid)
            #expect(try ProcFS.statusField(former, "Uid")?.hasPrefix("4242421\t") == true)
            let state = daemon.directory + "/s/apps/web"
            try File.write(state + "/db", "mine")
            try File.setOwner(state + "/db", uid: 4_242_421, gid: 4_242_422)
            // The user is removed and made again, and another one gets its number.
            try mount(["/bin/umount", "--lazy", "/etc/passwd"], torpord)
            try know("late:x:4242431:4242432::/:/bin/sh\nother:x:4242421:4242422::/:/bin/sh\n")
            try daemon.done(.restart, "web")
            let main = try #require(try daemon.summary("web").pid)
            #expect(try ProcFS.statusField(main, "Uid")?.hasPrefix("4242431\t") == true)
            #expect(try File.status(state).uid == 4_242_431)
            #expect(try File.status(state + "/db").uid == 4_242_431)
            try daemon.done(.stop, "web")
            let notes = try File.list(daemon.directory).filter { $0.contains("-424") }
            #expect(
                notes.sorted() == [
                    "1-after_stop-4242421-4242422", "1-before_start-4242421-4242422",
                    "2-after_stop-4242431-4242432", "2-before_start-4242431-4242432",
                ]
            )
        }
    }

    @Test("Another user gets the former user's files in the state directory, and nothing outside of it")
    func formerFiles() throws {
        let toml = Self.toml("user = \"4242421\"\ngroup = \"4242422\"\n")
        try withDaemon(toml) { daemon in
            try daemon.done(.start, "web")
            let (state, outside) = (daemon.directory + "/s/apps/web", daemon.directory + "/outside")
            try File.makeDirectories(state + "/sub")
            for path in [outside, state + "/db", state + "/sub/file", state + "/foreign"] { try File.write(path, "x") }
            #expect(link(outside, state + "/again") == 0 && symlink(outside, state + "/link") == 0)
            for path in [outside, state + "/db", state + "/sub", state + "/sub/file", state + "/link"] {
                try File.setOwner(path, uid: 4_242_421, gid: 4_242_422)
            }
            func owner(_ name: String) throws -> UInt32 { try File.status(state + name, followLinks: false).uid }
            let new = toml.replacing("4242421", with: "4242431").replacing("4242422", with: "4242432")
            for (toml, uid) in [(new, UInt32(4_242_431)), (Self.toml(""), 0)] {
                _ = try daemon.apply(toml) { $0.restart = true }
                try daemon.eventually("it is launched as \(uid)") {
                    guard let main = try daemon.summary("web").pid else { return false }
                    return (try? ProcFS.statusField(main, "Uid"))?.hasPrefix("\(uid)\t") == true
                }
                for name in ["", "/db", "/sub", "/sub/file", "/link"] {
                    #expect(try owner(name) == uid, "\(name) as \(uid)")
                }
                #expect(try owner("/foreign") == 0 && File.status(outside).uid == 4_242_421)
                // The sockets and the FIFO of the app too, and a launch as the same user leaves them to it.
                try daemon.done(.restart, "web")
                for name in ["app", "notify", "out"] {
                    let node = try File.status(daemon.runtime + "/apps/web/" + name)
                    #expect(node.uid == uid, "\(name) as \(uid)")
                }
            }
            try daemon.waitForEvent("web", "has 1 file in \(state) that still belong to user 4242421 (again:")
        }
    }

    @Test("Files that an earlier version left with a former user are told once, and stay whose they are")
    func leftFiles() throws {
        let daemon = try Daemon(Self.toml("user = \"4242421\"\ngroup = \"4242422\"\n"))
        let state = daemon.directory + "/s/apps/web"
        try daemon.waitUntilItAnswers()
        try daemon.done(.start, "web")
        try File.makeDirectories(state + "/sub")
        for path in [state + "/db", state + "/own"] { try File.write(path, "x") }
        try File.setOwner(state + "/own", uid: 4_242_421, gid: 4_242_422)
        try daemon.lose(.killed)
        for _ in 0..<2 {
            try daemon.done(.restart, "web")
            let told = try daemon.events("web").map(\.text).filter { $0.contains("of other users in") }
            #expect(told.count == 1)
            #expect(told.first?.contains("has 2 files of other users in \(state) (") == true)
            #expect(told.first?.contains("‘chown -hR 4242421:4242422 \(state)’ gives them to 4242421") == true)
        }
        for name in ["db", "sub"] { #expect(try File.status(state + "/" + name).uid == 0) }
        try daemon.stop()
    }

    /// A daemon that sees a user database of its own, which the test can take away.
    private func withDatabase(_ keys: String, _ body: (Daemon, Int32) throws -> Void) throws {
        let wrapper = ["/usr/bin/unshare", "--mount", "--propagation", "private"]
        let daemon = try Daemon(Self.toml(keys), wrapper: wrapper)
        try daemon.waitUntilItAnswers()
        let torpord = try daemon.torpord()
        try body(daemon, torpord)
        #expect(try daemon.torpord() == torpord)
        try daemon.stop()
    }

    /// Mounts something where only torpord and its apps see it.
    private func mount(_ words: [String], _ torpord: Int32) throws {
        let run = try Spawn.run(["/usr/bin/nsenter", "--target", "\(torpord)", "--mount"] + words)
        #expect(run.code == 0, "\(words): \(run.output)")
    }

    @Test("An app whose user is not to be found any more does not run as root", .enabled(if: Namespaces.areAllowed))
    func gone() throws {
        // Nobody is known without the database too (nss-systemd(8)).
        try withDatabase("user = \"daemon\"\n") { daemon, torpord in
            try daemon.done(.start, "web")
            let main = try #require(try daemon.summary("web").pid)
            #expect(try ProcFS.statusField(main, "Uid")?.hasPrefix("1\t") == true)
            try File.write(daemon.directory + "/passwd", "root:x:0:0:root:/root:/bin/sh\n")
            try mount(["/bin/mount", "--bind", daemon.directory + "/passwd", "/etc/passwd"], torpord)
            let result = try daemon.verb(.restart, "web")
            #expect(!result.ok)
            #expect(result.message?.contains("there is no user daemon, or it cannot be looked up now") == true)
        }
    }

    /// A user database that answers when the test says so. Its readers wait until a writer opens it.
    private func silence(_ daemon: Daemon, _ torpord: Int32) throws -> () throws -> Void {
        let silent = daemon.directory + "/passwd"
        try File.makeFIFO(silent)
        try mount(["/bin/mount", "--bind", silent, "/etc/passwd"], torpord)
        return {
            try mount(["/bin/umount", "--lazy", "/etc/passwd"], torpord)
            // A lookup still waits for its open. It reads nothing: glibc closes a database that cannot be sought in.
            try File.open(silent, .write).close()
        }
    }

    private func waitForThread(_ name: String, of torpord: Int32, _ daemon: Daemon) throws {
        try daemon.eventually("a thread \(name) looks a user up") {
            try ProcFS.tasks(torpord).contains { task in
                (try? File.readString("/proc/\(torpord)/task/\(task)/comm")) == name + "\n"
            }
        }
    }

    @Test(
        "A directory of users that does not answer holds one launch, which can be taken back, and nothing else",
        .enabled(if: Namespaces.areAllowed),
        arguments: ["", "before_start = [\"true\"]\n"]
    )
    func silent(_ hooks: String) throws {
        try withDatabase("user = \"nobody\"\nlaunch_deadline = \"5min\"\n" + hooks) { daemon, torpord in
            let answer = try silence(daemon, torpord)
            try daemon.done(.start, "web") { $0.wait = false }
            try waitForThread("launches", of: torpord, daemon)
            for _ in 0..<3 {
                try daemon.done(.start, "other")
                try daemon.done(.stop, "other")
            }
            // Taken back, asked for again, taken back before it has begun, and asked for again.
            for _ in 0..<2 {
                try daemon.done(.stop, "web")
                #expect(try daemon.summary("web").state == "not-running")
                try daemon.done(.start, "web") { $0.wait = false }
            }
            try answer()
            try daemon.waitFor("web", "active")
            #expect(try daemon.events("web").count { $0.text.hasPrefix("launched as process") } == 1)
            let main = try #require(try daemon.summary("web").pid)
            #expect(try ProcFS.statusField(main, "Uid")?.hasPrefix("65534\t") == true)
        }
    }

    @Test(
        "A directory of users that does not answer holds an apply, and nothing else",
        .enabled(if: Namespaces.areAllowed)
    )
    func apply() throws {
        try withDatabase("") { daemon, torpord in
            try daemon.done(.start, "web")
            _ = try Daemon.writeConfiguration(Self.toml("user = \"nobody\"\n"), in: daemon.directory)
            let answer = try silence(daemon, torpord)
            let apply = try Spawn.start(
                [Built.path("torpor"), "--socket", daemon.socket, "apply", "--restart"],
                environment: ["TPTEST": daemon.directory],
                output: daemon.directory + "/apply"
            )
            try waitForThread("configuration", of: torpord, daemon)
            for _ in 0..<3 {
                try daemon.done(.start, "other")
                try daemon.done(.stop, "other")
            }
            let before = try #require(try daemon.summary("web").pid)
            #expect(try ProcFS.statusField(before, "Uid")?.hasPrefix("0\t") == true)
            try answer()
            var status: Int32 = 0
            waitpid(apply, &status, 0)
            let output = try File.readString(daemon.directory + "/apply")
            #expect(status == 0, "\(output)")
            let main = try #require(try daemon.summary("web").pid)
            #expect(try ProcFS.statusField(main, "Uid")?.hasPrefix("65534\t") == true)
            // What was made for the one before is the new user's now.
            for name in ["notify", "app", "out"] {
                #expect(try File.status(daemon.runtime + "/apps/web/" + name).uid == 65534, "\(name)")
            }
        }
    }
}
