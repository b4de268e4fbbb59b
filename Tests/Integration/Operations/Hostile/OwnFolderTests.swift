// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

/// What an app does with the paths of its configuration that lie where it may write itself.
@Suite(
    "Apps in folders of their own",
    .enabled(if: Users.effectiveUID == 0, "another user is needed, and only root can become one")
)
struct OwnFolderTests {
    private static let nobody: UInt32 = 65534

    private static func toml(_ keys: String) -> String {
        """
        [apps.web]
        exec = ["/usr/bin/python3", "-S", "@D/app.py"]
        user = "nobody"
        launch = "on-demand"
        restart = "never"
        \(keys)

        """
    }

    /// Tells what it was given, where the supervisor hears it.
    private static let program = """
        import os, sys, socket, time
        os.write(2, b"to standard error\\n")
        os.set_blocking(0, False)
        try:
            text = os.read(0, 100)
        except BlockingIOError:
            text = b"nothing yet"
        s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        s.sendto(b"READY=1\\nSTATUS=read " + text.strip() + b" and " + os.environb.get(b"SECRET", b"none"),
                 os.environ["NOTIFY_SOCKET"])
        time.sleep(1000)
        """

    private func run(_ keys: String, _ body: (Daemon, String) throws -> Void) throws {
        try withDaemon(Self.toml("ready = \"notify\"\n" + keys), files: ["app.py": Self.program]) { daemon in
            let home = daemon.directory + "/home"
            try File.makeDirectory(home)
            try File.makeDirectory(daemon.directory + "/root", mode: 0o700)
            try File.write(daemon.directory + "/root/secret", "SECRET=it\n", mode: 0o600)
            try body(daemon, home)
            // Whatever came of it, torpord is there.
            #expect(try daemon.status("web").summary.name == "web")
        }
    }

    /// The app's own by now, as is all that lies in it.
    private func giveAway(_ home: String) throws {
        for name in try File.list(home) { try File.setOwner(home + "/" + name, uid: Self.nobody, gid: Self.nobody) }
        try File.setOwner(home, uid: Self.nobody, gid: Self.nobody)
    }

    private func refused(_ daemon: Daemon) throws -> String {
        let torpord = try daemon.torpord()
        let result = try daemon.verb(.start, "web")
        #expect(!result.ok)
        #expect(try daemon.torpord() == torpord)
        return result.message ?? ""
    }

    @Test("A link that an app puts in place of its standard error makes and appends to nothing of root's")
    func errorLink() throws {
        try run("stderr = \"@D/home/err\"") { daemon, home in
            try File.link(home + "/err", to: daemon.directory + "/root/made")
            try giveAway(home)
            let message = try refused(daemon)
            #expect(message.contains("home/err, its standard error: Permission denied"), "\(message)")
            #expect(message.contains("it is opened as the app's user, nobody"), "\(message)")
            #expect(!File.exists(daemon.directory + "/root/made"))
            // A folder on the way is no better.
            try File.remove(home + "/err")
            try File.removeDirectory(home)
            try File.link(home, to: daemon.directory + "/root")
            try File.setOwner(home, uid: Self.nobody, gid: Self.nobody)
            #expect(try refused(daemon).contains("Permission denied"))
            #expect(try File.list(daemon.directory + "/root") == ["secret"])
        }
    }

    @Test("A link that an app puts in place of its standard input reads nothing of root's")
    func inputLink() throws {
        try run("stdin = \"@D/home/in\"") { daemon, home in
            try File.link(home + "/in", to: daemon.directory + "/root/secret")
            try giveAway(home)
            let message = try refused(daemon)
            #expect(message.contains("home/in, its standard input: Permission denied"), "\(message)")
        }
    }

    @Test("A link, a second name or a FIFO in place of an environment file hands nothing out", arguments: 0..<3)
    func variables(kind: Int) throws {
        try run("environment_file = \"@D/home/env\"") { daemon, home in
            let (secret, place) = (daemon.directory + "/root/secret", home + "/env")
            switch kind {
            case 0: try File.link(place, to: secret)
            case 1: guard Glibc.link(secret, place) == 0 else { throw Errno(rawValue: errno) }
            default: try File.makeFIFO(place)
            }
            if kind == 1 { try File.setOwner(home, uid: Self.nobody, gid: Self.nobody) } else { try giveAway(home) }
            let message = try refused(daemon)
            let why = ["is a symlink", "it has 2 names", "it is not a regular file"][kind]
            #expect(message.contains(why), "\(message)")
        }
    }

    @Test("A file of root's that an app moves to where its environment file is hands nothing out")
    func moved() throws {
        try run("environment_file = \"@D/home/env\"\nicon = \"@D/home/env\"") { daemon, home in
            try File.write(home + "/backup", "SECRET=hunter2\n", mode: 0o600)
            try File.setOwner(home, uid: Self.nobody, gid: Self.nobody)
            try File.rename(home + "/backup", home + "/env")
            let message = try refused(daemon)
            #expect(message.contains("home/env: user nobody may not read it"), "\(message)")
            let icon = try AppIcon(json: daemon.call(.icon(app: "web")))
            #expect(icon.data.isEmpty && icon.trouble?.contains("user nobody may not read it") ?? false)
            try File.setMode(home + "/env", 0o644)
            try daemon.done(.start, "web")
            #expect(try daemon.status("web").summary.status == "read  and hunter2")
        }
    }

    @Test("Folders of root's are not listed or watched for an app that leads its paths there, and status says so")
    func paths() throws {
        let keys = """
            ready = "notify"
            topics = { "*" = { keep = true } }
            settings_files = ["@D/home/s"]
            paths = [{ name = "w", exists = "@D/home/w/*" }, { name = "own", exists = "@D/home/own" }]
            """
        try withDaemon(Self.toml(keys), files: ["app.py": Self.program]) { daemon in
            let home = daemon.directory + "/home"
            try File.makeDirectory(home)
            try File.makeDirectory(daemon.directory + "/root", mode: 0o700)
            try File.write(daemon.directory + "/root/secret", "SECRET=it\n", mode: 0o600)
            try File.link(home + "/w", to: daemon.directory + "/root")
            try File.link(home + "/s", to: daemon.directory + "/root/secret")
            try giveAway(home)
            let trouble = "user nobody may not read \(daemon.directory)/root:"
            try daemon.eventually("status says what is not watched") {
                let status = try daemon.status("web").notWokenBy
                return status.contains { $0.hasPrefix("path w (\(trouble)") }
                    && status.contains { $0.hasPrefix("changes of \(home)/s (\(trouble)") }
            }
            try File.write(daemon.directory + "/root/hidden", "")
            // What comes after it is heard.
            try File.write(home + "/own", "")
            #expect(try daemon.waitForEvent("web", "woken by the existence of").text.contains("home/own"))
            let status = try daemon.status("web")
            #expect(!status.notWokenBy.contains { $0.hasPrefix("path own") })
        }
    }

    @Test("Whether there is a file of root's is not told by a link to it that says that an app is ready")
    func readiness() throws {
        let keys = "launch_deadline = \"2s\"\nready = { file = \"@D/home/go\", interval = \"10ms\" }"
        try withDaemon(Self.toml(keys), files: ["app.py": Self.program]) { daemon in
            let home = daemon.directory + "/home"
            try File.makeDirectory(home)
            try File.makeDirectory(daemon.directory + "/root", mode: 0o700)
            try File.write(daemon.directory + "/root/secret", "SECRET=it\n", mode: 0o600)
            try File.link(home + "/go", to: daemon.directory + "/root/secret")
            try giveAway(home)
            _ = try refused(daemon)
            try File.remove(home + "/go")
            try File.write(home + "/go", "")
            try daemon.done(.start, "web")
        }
    }

    @Test("A FIFO that nobody reads or writes holds up nobody but the app")
    func fifos() throws {
        try run("stderr = \"@D/home/err\"") { daemon, home in
            try File.makeFIFO(home + "/err")
            try giveAway(home)
            #expect(try refused(daemon).contains("its standard error: No such device or address"))
        }
        try run("stdin = \"@D/home/in\"") { daemon, home in
            try File.makeFIFO(home + "/in")
            try giveAway(home)
            try daemon.done(.start, "web")
            #expect(try daemon.status("web").summary.status == "read  and none")
        }
    }

    @Test("Files of an app's own, and root's for it, are what it is given")
    func given() throws {
        let keys = "stdin = \"@D/root/secret\"\nstderr = \"@D/home/err\"\nenvironment_file = \"@D/home/env\""
        try run(keys) { daemon, home in
            try File.write(home + "/env", "SECRET=of its own\n", mode: 0o600)
            try File.setOwner(home + "/env", uid: Self.nobody, gid: Self.nobody)
            try File.setOwner(home, uid: Self.nobody, gid: Self.nobody)
            try daemon.done(.start, "web")
            // Where only root may write, root's rights open it.
            #expect(try daemon.status("web").summary.status == "read SECRET=it and of its own")
            #expect(try File.readString(home + "/err") == "to standard error\n")
            #expect(try File.status(home + "/err").uid == Self.nobody)
        }
        try run("stderr = \"web.err\"") { daemon, _ in
            try daemon.done(.start, "web")
            #expect(try File.readString(daemon.directory + "/l/web.err") == "to standard error\n")
            #expect(try File.status(daemon.directory + "/l/web.err").uid == 0)
        }
    }

    @Test("A picture is no way to read what is root's")
    func icon() throws {
        try run("icon = \"@D/home/icon.svg\"") { daemon, home in
            try File.link(home + "/icon.svg", to: daemon.directory + "/root/secret")
            try giveAway(home)
            let icon = try AppIcon(json: daemon.call(.icon(app: "web")))
            #expect(icon.data.isEmpty && icon.trouble?.contains("is a symlink") ?? false)
        }
    }

    @Test("Apps that make one file of standard error together all get it")
    func sharedError() throws {
        let names = (1...8).map { "web@\($0)" }
        let toml = """
            [apps.web]
            exec = ["/bin/sh", "-c", "echo $TORPOR_APP >&2; exec sleep 1000"]
            stderr = "@D/shared"
            instances = 8
            launch = "on-demand"

            """
        try withDaemon(toml) { daemon in
            for result in try daemon.verbs(.start, names) { #expect(result.ok, "\(result.message ?? "")") }
            try daemon.eventually("all have written") {
                try Set(File.readString(daemon.directory + "/shared").split(separator: "\n").map(String.init))
                    == Set(names)
            }
        }
    }

    /// A file system at the folder that it is given, in which all belongs to root and every name is a link to the other one.
    private static let forger = """
        import ctypes, os, struct, sys
        place, target = (word.encode() for word in sys.argv[1:])
        device = os.open("/dev/fuse", os.O_RDWR)
        options = b"fd=%d,rootmode=40000,user_id=65534,group_id=65534,allow_other" % device
        if ctypes.CDLL(None).mount(b"forger", place, b"fuse", 6, options) != 0:
            sys.exit("cannot mount")
        print("mounted", flush=True)

        def attributes(node):
            mode = 0o40755 if node == 1 else 0o120777
            return struct.pack("<6Q10I", node, len(target), 0, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)

        while True:
            try:
                message = os.read(device, 1 << 20)
            except OSError:
                break
            _, code, unique, node = struct.unpack_from("<IIQQ", message)
            error, body = 0, b""
            if code == 26: body = struct.pack("<IIIIHHIIHHI7I", 7, 31, 0, 0, 16, 12, 4096, 1, 0, 0, *[0] * 8)
            elif code == 1: body = struct.pack("<QQQQII", 2, 0, 0, 0, 0, 0) + attributes(2)
            elif code == 3: body = struct.pack("<QII", 0, 0, 0) + attributes(node)
            elif code == 5: body = target
            elif code == 17: body = bytes(80)
            elif code in (2, 36, 42): continue
            else: error = -38
            os.write(device, struct.pack("<IiQ", 16 + len(body), error, unique) + body)
        """

    @Test(
        "A file system of a user's, which says that all in it is root's, leads nowhere",
        .enabled(if: Namespaces.areAllowed && File.exists("/dev/fuse"), "needs namespaces and FUSE"),
        arguments: [
            ("stderr = \"@D/home/err\"", "made"), ("stdin = \"@D/home/in\"", "secret"),
            ("environment_file = \"@D/home/env\"", "secret"),
        ]
    )
    func forged(keys: String, target: String) throws {
        let daemon = try Daemon(
            Self.toml("ready = \"notify\"\n" + keys),
            files: ["app.py": Self.program, "forger.py": Self.forger],
            wrapper: ["/usr/bin/unshare", "--mount", "--propagation", "private"]
        )
        try daemon.waitUntilItAnswers()
        let torpord = try daemon.torpord()
        try File.makeDirectory(daemon.directory + "/home")
        try File.makeDirectory(daemon.directory + "/root", mode: 0o700)
        try File.write(daemon.directory + "/root/secret", "SECRET=it\n", mode: 0o600)
        let said = daemon.directory + "/said"
        let words = ["/usr/bin/python3", "-S", daemon.directory + "/forger.py", daemon.directory + "/home"]
        let forger = try Spawn.start(
            ["/usr/bin/nsenter", "--target", "\(torpord)", "--mount"] + words + [daemon.directory + "/root/" + target],
            environment: [:],
            output: said
        )
        defer {
            kill(forger, SIGKILL)
            waitpid(forger, nil, 0)
        }
        try daemon.eventually("it is mounted") { try File.readString(said) == "mounted\n" }
        _ = try refused(daemon)
        #expect(!File.exists(daemon.directory + "/root/made"))
        try daemon.stop()
    }

    /// A file system at the folder that it is given, which answers nothing.
    private static let silent = """
        import ctypes, os, struct, sys
        device = os.open("/dev/fuse", os.O_RDWR)
        options = b"fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other" % device
        if ctypes.CDLL(None).mount(b"silent", sys.argv[1].encode(), b"fuse", 6, options) != 0:
            sys.exit("cannot mount")
        print("mounted", flush=True)
        while True:
            message = os.read(device, 1 << 20)
            _, code, unique, _ = struct.unpack_from("<IIQQ", message)
            if code == 26:
                body = struct.pack("<IIIIHHIIHHI7I", 7, 31, 0, 0, 16, 12, 4096, 1, 0, 0, *[0] * 8)
                os.write(device, struct.pack("<IiQ", 16 + len(body), 0, unique) + body)
            elif code in (1, 3):
                print("asked", flush=True)
        """

    @Test(
        "A folder that never answers whether an app is ready keeps nobody waiting",
        .enabled(if: Namespaces.areAllowed && File.exists("/dev/fuse"), "needs namespaces and FUSE")
    )
    func silentReadiness() throws {
        let other = "[apps.other]\nexec = [\"/bin/sleep\", \"1000\"]\n"
        let daemon = try Daemon(
            Self.toml("ready = { file = \"@D/home/go\", interval = \"10ms\" }\n") + other,
            files: ["app.py": Self.program, "silent.py": Self.silent],
            wrapper: ["/usr/bin/unshare", "--mount", "--propagation", "private"]
        )
        try daemon.waitUntilItAnswers()
        let torpord = try daemon.torpord()
        try File.makeDirectory(daemon.directory + "/home")
        let said = daemon.directory + "/said"
        let words = ["/usr/bin/python3", "-S", daemon.directory + "/silent.py", daemon.directory + "/home"]
        let silent = try Spawn.start(
            ["/usr/bin/nsenter", "--target", "\(torpord)", "--mount"] + words,
            environment: [:],
            output: said
        )
        defer {
            kill(silent, SIGKILL)
            waitpid(silent, nil, 0)
        }
        try daemon.eventually("it is mounted") { try File.readString(said).hasPrefix("mounted\n") }
        let start = try Spawn.start(
            [Built.path("torpor"), "start", "web", "--socket", daemon.socket],
            environment: ["TPTEST": daemon.directory],
            output: "/dev/null"
        )
        defer {
            kill(start, SIGKILL)
            waitpid(start, nil, 0)
        }
        try daemon.eventually("somebody looks for the file") { try File.readString(said).contains("asked") }
        try daemon.done(.start, "other")
        try daemon.done(.suspend, "other")
        #expect(try daemon.torpord() == torpord)
        // A process ends only when the kernel has its threads back.
        kill(silent, SIGKILL)
        try daemon.stop()
    }
}
