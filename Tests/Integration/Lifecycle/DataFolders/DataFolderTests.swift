// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

/// Apps with folders for what they keep, what they can make again, and what is in the way of the next run.
@Suite("Data folders") struct DataFolderTests {
    static let head = """
        [apps.web]
        exec = ["/usr/bin/python3", "-S", "@D/app.py"]
        launch = "on-demand"
        ready = "notify"
        restart = "never"
        data_folders = true

        """

    /// Records what it found, then does as told.
    static let program = """
        import json, os
        from tp import *
        options = json.loads(os.environ["TORPOR_LAUNCH_OPTIONS"])
        def tree(name):
            top = os.environ[name]
            return sorted(os.path.relpath(os.path.join(at, one), top) for at, d, f in os.walk(top) for one in d + f)
        record("launch %s %s" % (options["first_launch"], options["updated_from"]))
        record("library %s" % tree("TORPOR_LIBRARY"))
        record("tmp %s" % tree("TMPDIR"))
        if os.path.exists(HERE + "/broken"):
            os._exit(3)
        """ + "\n" + NotifyApps.obedient.replacingOccurrences(of: #"tp.record("up")"#, with: "tp.notify('READY=1')")

    static func with(
        _ keys: String = "",
        supervisor: String = "",
        files: [String: String] = [:],
        _ body: (Daemon) throws -> Void
    ) throws {
        let all = ["app.py": program].merging(files) { $1 }
        try withRecovery(supervisor + head + keys, files: all) { daemon throws in
            try File.makeDirectories(daemon.directory + "/initial/sub")
            for name in ["a", "sub/b"] { try File.write(daemon.directory + "/initial/" + name, "new") }
            try body(daemon)
        }
    }

    static func last(_ daemon: Daemon, _ word: String) -> String? {
        daemon.records("web").last { $0.hasPrefix(word + " ") }.map { String($0.dropFirst(word.count + 1)) }
    }

    static func path(_ daemon: Daemon, _ part: String = "") -> String { daemon.directory + "/s/data/web/" + part }

    static func start(_ daemon: Daemon) throws {
        try daemon.done(.start, "web")
    }

    static func end(_ daemon: Daemon) throws {
        kill(try #require(try daemon.summary("web").pid), SIGKILL)
        try daemon.waitFor("web", "not-running")
    }

    @Test("They are there at the first launch, tmp is empty at each one, and the rest stays")
    func folders() throws {
        try Self.with { daemon throws in
            try Self.start(daemon)
            #expect(Self.last(daemon, "launch") == "True None")
            #expect(try daemon.status("web").dataFolder.map { $0 + "/" } == Self.path(daemon))
            for part in ["", "documents", "library", "caches", "tmp"] {
                let status = try File.status(Self.path(daemon, part))
                #expect(status.kind == .directory && status.mode == 0o700, "\(part)")
            }
            try daemon.tell(
                "1",
                """
                for one in ("TORPOR_DOCUMENTS", "TORPOR_LIBRARY", "TORPOR_CACHES", "TMPDIR"):
                    open(os.environ[one] + "/kept", "w").write("x")
                os.makedirs(os.environ["TMPDIR"] + "/a/b"); os.chmod(os.environ["TMPDIR"] + "/a", 0)
                os.symlink(os.environ["TORPOR_DOCUMENTS"], os.environ["TMPDIR"] + "/documents")
                """
            )
            for verb in [Verb.stop, .kill] {
                try daemon.done(verb, "web")
                try Self.start(daemon)
                #expect(Self.last(daemon, "launch") == "False None")
                #expect(Self.last(daemon, "library") == "['kept']")
                #expect(Self.last(daemon, "tmp") == "[]")
            }
            for part in ["documents", "library", "caches"] { #expect(File.exists(Self.path(daemon, part + "/kept"))) }
        }
    }

    @Test("A first launch is one until it has come up; its data is there before, and overwrites nothing")
    func firstLaunch() throws {
        try Self.with("first_launch = \"@D/initial\"\nversion = \"1.0\"\n", files: ["broken": ""]) { daemon throws in
            #expect(try daemon.verb(.start, "web").ok == false)
            try daemon.waitFor("web", "not-running")
            #expect(Self.last(daemon, "library") == "['a', 'sub', 'sub/b']")
            try File.remove(daemon.directory + "/broken")
            try File.remove(Self.path(daemon, "library/a"))
            try File.write(Self.path(daemon, "library/sub/b"), "mine")
            try Self.start(daemon)
            #expect(Self.last(daemon, "launch") == "True None")
            #expect(try File.readString(Self.path(daemon, "library/a")) == "new")
            #expect(try File.readString(Self.path(daemon, "library/sub/b")) == "mine")
            #expect(
                try daemon.events("web").contains {
                    $0.text.contains("of first_launch in its library before its first launch")
                }
            )
            // From then on it is the app's: what it removes stays removed.
            try File.remove(Self.path(daemon, "library/a"))
            try Self.end(daemon)
            try Self.start(daemon)
            #expect(Self.last(daemon, "launch") == "False None")
            #expect(Self.last(daemon, "library") == "['sub', 'sub/b']")
        }
    }

    @Test("The first launch of a version gets what is new in it, and is told the version before")
    func update() throws {
        let keys = "first_launch = \"@D/initial\"\nversion = \"1.0\"\n"
        try Self.with(keys) { daemon throws in
            try Self.start(daemon)
            try daemon.done(.stop, "web")
            try File.remove(Self.path(daemon, "library/a"))
            try File.write(daemon.directory + "/initial/c", "new")
            try daemon.apply(Self.head + keys.replacingOccurrences(of: "1.0", with: "2.0"))
            try Self.start(daemon)
            #expect(Self.last(daemon, "launch") == "False 1.0")
            #expect(Self.last(daemon, "library") == "['a', 'c', 'sub', 'sub/b']")
            try Self.end(daemon)
            try Self.start(daemon)
            #expect(Self.last(daemon, "launch") == "False None")
            let info = try #require(try daemon.data().first)
            #expect(info.version == "2.0" && info.isConfigured && info.isWhole && info.library > 0)
        }
    }

    @Test("A folder that is not there or cannot be read fails the launch in words, and the next one goes on")
    func missing() throws {
        try Self.with("first_launch = \"@D/nothing\"\n") { daemon throws in
            let result = try daemon.verb(.start, "web")
            #expect(!result.ok && result.message?.contains("first_launch") == true, "\(result)")
            #expect(try daemon.summary("web").lastExit?.reason == "launch-failed")
            try File.makeDirectory(daemon.directory + "/nothing")
            try Self.start(daemon)
            #expect(Self.last(daemon, "launch") == "True None")
        }
    }

    @Test("Commands that come before it are told where its data is, and find tmp empty")
    func hooks() throws {
        let command =
            "before_start = [[\"/bin/sh\", \"-c\", \"ls -A $TMPDIR | wc -l > $TORPOR_LIBRARY/seen; touch $TMPDIR/left\"]]\n"
        try Self.with(command) { daemon throws in
            for _ in 0..<2 {
                try Self.start(daemon)
                #expect(Self.last(daemon, "tmp") == "['left']")
                #expect(try File.readString(Self.path(daemon, "library/seen")) == "0\n")
                try daemon.done(.stop, "web")
            }
        }
    }

    @Test("Links that a hostile app planted lead nowhere: nothing outside changes")
    func hostile() throws {
        try Self.with("first_launch = \"@D/initial\"\n") { daemon throws in
            let outside = daemon.directory + "/outside"
            try File.makeDirectories(outside + "/sub")
            try File.write(outside + "/sub/b.old", "precious")
            try Self.start(daemon)
            try daemon.done(.stop, "web")
            let files = try Self.census(outside)
            try daemon.call(.purgeData(PurgeDataRequest(app: "web")))
            #expect(!File.exists(Self.path(daemon)))
            try File.makeDirectory(Self.path(daemon), mode: 0o700)
            for part in ["documents", "caches", "tmp", ".first-launch"] {
                try File.link(Self.path(daemon, part), to: outside)
            }
            try File.makeDirectory(Self.path(daemon, "library"), mode: 0o700)
            try File.link(Self.path(daemon, "library/sub"), to: outside + "/sub")
            try File.link(Self.path(daemon, "library/a"), to: outside + "/new")
            try Self.start(daemon)
            #expect(try File.kind(Self.path(daemon, "tmp")) == .directory)
            #expect(try File.kind(Self.path(daemon, ".first-launch")) == nil)
            #expect(try File.kind(Self.path(daemon, "library/a")) == .link)
            try daemon.done(.stop, "web")
            #expect(try Self.census(outside) == files)
            // A library elsewhere is the person's own business, but nothing is copied into it.
            try File.removeTree(Self.path(daemon, "library"))
            try File.link(Self.path(daemon, "library"), to: outside)
            try daemon.call(.purgeData(PurgeDataRequest(app: "web", folders: ["library", "caches"])))
            #expect(try Self.census(outside) == files)
            try daemon.call(.purgeData(PurgeDataRequest(app: "web")))
            #expect(try Self.census(outside) == files && !File.exists(Self.path(daemon)))
        }
    }

    static func census(_ folder: String) throws -> [String] {
        try (FileManager.default.subpathsOfDirectory(atPath: folder)).sorted()
    }

    @Test("Another user gets what the one before had, and nothing else", .enabled(if: Users.isRoot, "needs two users"))
    func users() throws {
        try Self.with("user = \"daemon\"\nfirst_launch = \"@D/initial\"\n") { daemon throws in
            try File.setMode(daemon.directory, 0o777)
            try Self.start(daemon)
            let user = try #require(Users.lookup("daemon"))
            #expect(try File.status(Self.path(daemon)).uid == user.uid)
            #expect(try File.status(Self.path(daemon, "library/a")).uid == user.uid)
            #expect(try File.status(daemon.directory + "/s/data").mode == 0o711)
            try daemon.tell(
                "1",
                "import os; os.symlink('/etc/hostname', os.environ['TORPOR_DOCUMENTS'] + '/link');"
                    + "open(os.environ['TORPOR_DOCUMENTS'] + '/mine', 'w').write('x')"
            )
            try daemon.done(.stop, "web")
            let host = try File.status("/etc/hostname")
            // Both write what they saw into one file.
            try File.setMode(daemon.directory + "/rec.web", 0o666)
            try daemon.apply(Self.head + "user = \"nobody\"\n")
            try Self.start(daemon)
            let other = try #require(Users.lookup("nobody"))
            for part in ["", "documents", "documents/mine", "documents/link", "library/sub/b", "tmp"] {
                #expect(try File.status(Self.path(daemon, part), followLinks: false).uid == other.uid, "\(part)")
            }
            #expect(try File.status("/etc/hostname") == host)
            #expect(Self.last(daemon, "launch") == "False None")
        }
    }

    @Test("What leaves the configuration keeps its documents, and what is asked for is removed; none of a running app")
    func removal() throws {
        try Self.with { daemon throws in
            try Self.start(daemon)
            let refusal = #expect(throws: (any Error).self) {
                try daemon.call(.purgeData(PurgeDataRequest(app: "web")))
            }
            #expect("\(refusal as Any)".contains("is running"))
            for part in ["documents", "library", "caches", "tmp"] {
                try File.write(Self.path(daemon, part + "/f"), "x")
            }
            try daemon.apply("[apps.other]\nexec = [\"/bin/true\"]\nlaunch = \"on-demand\"\n")
            try daemon.eventually("caches and tmp are empty") {
                try File.list(Self.path(daemon, "caches")).isEmpty && File.list(Self.path(daemon, "tmp")).isEmpty
            }
            #expect(File.exists(Self.path(daemon, "documents/f")) && File.exists(Self.path(daemon, "library/f")))
            let info = try #require(try daemon.data().first)
            #expect(info.app == "web" && !info.isConfigured)
            try daemon.call(.purgeData(PurgeDataRequest(app: "web", folders: ["library"])))
            #expect(!File.exists(Self.path(daemon, "library/f")) && File.exists(Self.path(daemon, "documents/f")))
            try daemon.call(.purgeData(PurgeDataRequest(app: "web")))
            #expect(try !File.exists(Self.path(daemon)) && daemon.data().isEmpty)
            for name in ["web", "../web", ".launches", ""] {
                #expect(throws: (any Error).self, "\(name)") {
                    try daemon.call(.purgeData(PurgeDataRequest(app: name)))
                }
            }
            try daemon.apply(Self.head)
            try Self.start(daemon)
            #expect(Self.last(daemon, "launch") == "True None")
        }
    }
}

extension Daemon {
    /// The data folders that there are.
    func data(_ apps: [String] = []) throws -> [DataFoldersInfo] {
        try (call(.data(apps: apps))["data"]?.arrayValue ?? []).map { try DataFoldersInfo(json: $0) }
    }
}
