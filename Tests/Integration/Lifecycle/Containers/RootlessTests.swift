// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import TestAddresses
import Testing
import TorporAPI

/// A user without rights, known in a mount namespace alone, with a podman, a cgroup and a torpord of its own.
private struct RootlessUser {
    private static let usual: UInt32 = 54321
    static let isPossible =
        Podman.isThere && File.exists("/etc/subuid") && File.exists("/etc/subgid")
        && ["newuidmap", "slirp4netns", "setpriv"].allSatisfy { File.isExecutable("/usr/bin/\($0)") }
        && File.exists("/dev/net/tun") && mayHaveNamespaces

    /// Some machines allow users no namespaces.
    private static let mayHaveNamespaces: Bool = {
        let user = ["/usr/bin/setpriv", "--reuid=\(usual)", "--regid=\(usual)", "--clear-groups"]
        return (try? Spawn.run(user + ["/usr/bin/unshare", "--user", "/bin/true"]).code) == 0
    }()

    /// The user's ID. What waits for the other podmans of its user gets one of its own.
    let number: UInt32
    let folder: String
    let cgroup: String

    init(_ folder: String, _ number: UInt32 = usual) throws {
        self.number = number
        self.folder = folder
        cgroup = "tp-rootless-" + (folder.split(separator: "/").last ?? "")
        for name in ["home", "run", "image"] { try File.makeDirectories(folder + "/" + name) }
        chmod(folder + "/run", 0o700)
        try File.write(
            folder + "/storage.conf",
            "[storage]\ndriver = \"vfs\"\n"
        )
        try File.write(
            folder + "/containers.conf",
            "[engine]\nevents_logger = \"none\"\nlock_type = \"file\"\nruntime = \"crun\"\n"
        )
        try File.write(folder + "/app.c", Podman.program)
        let (code, output) = try Spawn.run(["/usr/bin/gcc", "-static", "-o", folder + "/image/app", folder + "/app.c"])
        guard code == 0 else { throw Trouble(output) }
        try File.write(folder + "/subids", "tpuser:1000000:65536\n")
        try File.write(
            folder + "/passwd",
            try File.readString("/etc/passwd") + "tpuser:x:\(number):\(number)::\(folder)/home:/bin/sh\n"
        )
        // The next podman makes a new one, in torpord's namespaces.
        defer { endPause() }
        try podman(["import", "image.tar", "localhost/small"])
    }

    var environment: [String: String] {
        [
            "TMPDIR": folder + "/home", "HOME": folder + "/home", "XDG_RUNTIME_DIR": folder + "/run", "USER": "tpuser",
            "CONTAINERS_STORAGE_CONF": folder + "/storage.conf", "CONTAINERS_CONF": folder + "/containers.conf",
            "DBUS_SESSION_BUS_ADDRESS": "unix:path=/nowhere",
        ]
    }

    /// Words that start a program as this user, where it sees cgroup v2 alone.
    var wrapper: [String] {
        let own = Podman.wrapper(hasNetwork: false)
        return Array(own.dropLast(2)) + [
            """
            [ "$(stat -f -c %T /sys/fs/cgroup)" = cgroup2fs ] || {
                umount -R /sys/fs/cgroup
                mount -t cgroup2 none /sys/fs/cgroup
            }
            cd '\(folder)'
            mount --bind passwd /etc/passwd
            mount --bind subids /etc/subuid
            mount --bind subids /etc/subgid
            [ -e image.tar ] || tar -C image -cf image.tar .
            mkdir -p '/sys/fs/cgroup/\(cgroup)'
            chown -R \(number):\(number) '/sys/fs/cgroup/\(cgroup)' '\(folder)'
            [ ! -d '@D' ] || chown -R \(number):\(number) '@D'
            echo $$ > '/sys/fs/cgroup/\(cgroup)/cgroup.procs'
            exec setpriv --reuid=\(number) --regid=\(number) --clear-groups "$@"
            """, "sh",
        ]
    }

    @discardableResult
    func podman(_ words: [String]) throws -> String {
        let (code, output) = try Spawn.run(
            wrapper + ["/usr/bin/podman", "--cgroup-manager=cgroupfs"] + words,
            environment: environment
        )
        guard code == 0 else { throw Trouble("podman \(words) ended with \(code): \(output)") }
        return output
    }

    /// The process that holds podman's user namespace.
    var pause: Int32? {
        guard let text = try? File.readString(folder + "/run/libpod/tmp/pause.pid") else { return nil }
        return Int32(text.prefix { $0 != "\n" }).flatMap { (try? ProcFS.realUser($0)) == number ? $0 : nil }
    }

    func endPause() {
        if let pause {
            kill(pause, SIGKILL)
            // Its cgroup cannot be removed before it is gone.
            let end = Clock.monotonic() + Daemon.bound
            while Truth.isAlive(pause), Clock.monotonic() < end { usleep(2_000) }
        }
        unlink(folder + "/run/libpod/tmp/pause.pid")
    }

    func removeCgroup() {
        for mount in ["/sys/fs/cgroup/unified/", "/sys/fs/cgroup/"] { try? Cgroup.removeTree(mount + cgroup) }
    }
}

@Suite(
    "Apps in containers of a user without rights",
    .enabled(
        if: RootlessUser.isPossible,
        "podman, crun, gcc, uidmap, slirp4netns, /dev/net/tun and namespaces for users are needed"
    ),
    .enabled(if: Users.isRoot, "root makes the user, in a mount namespace")
)
struct RootlessTests {
    @Test("It sleeps, is woken by a request to its published port, is healthy by a command inside, and leaves nothing")
    func life() throws {
        let port = try TestAddress.port()
        let folder = try Daemon.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let user = try RootlessUser(folder)
        defer {
            user.endPause()
            user.removeCgroup()
        }
        let toml = """
            [apps.web]
            exec = ["80"]
            wake_on_connect = true
            background_time = "1min"
            event_time = "1min"
            launch = "on-demand"
            launch_deadline = "1min"
            [apps.web.container]
            image = "localhost/small"
            entrypoint = ["/app"]
            ports = ["127.0.0.1:\(port):80"]
            health = ["/app", "check"]
            """
        let daemon = try Daemon(toml, environment: user.environment, nested: true, wrapper: user.wrapper)
        try daemon.waitUntilItAnswers()
        try daemon.done(.start, "web")
        let status = try daemon.status("web")
        let main = try #require(status.summary.pid)
        #expect(try ProcFS.realUser(main) == user.number)
        let conmon = try #require(ProcFS.children(main).first { try ProcFS.stat($0).comm == "conmon" })
        let first = try #require(ProcFS.children(conmon).first)
        #expect(try get(port) == "request 1")
        for request in 2...3 {
            try daemon.done(.suspend, "web")
            #expect(try ProcFS.stat(first).state == "T")
            #expect(try ProcFS.stat(conmon).state != "T")
            #expect(try get(port) == "request \(request)")
        }
        // What holds the user namespace of all containers is not the app's.
        let pause = try #require(user.pause)
        #expect(try !daemon.status("web").processes.contains { $0.pid == pause })
        try daemon.done(.stop, "web")
        #expect(Truth.isAlive(pause))
        #expect(!Truth.isAlive(first) && !Truth.isAlive(conmon))
        #expect(try user.podman(["ps", "--all", "--format={{.Names}}"]) == "")
        user.endPause()
        try daemon.endEverything()
    }

    @Test("A request to the port of a pod wakes the pod, whose helpers forward it, and then the app that listens there")
    func pod() throws {
        let port = try TestAddress.port()
        let folder = try Daemon.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let user = try RootlessUser(folder)
        defer {
            user.endPause()
            user.removeCgroup()
        }
        let toml = """
            [defaults]
            wake_on_connect = true
            background_time = "1min"
            event_time = "1min"
            launch = "on-demand"
            launch_deadline = "1min"
            [apps.pod.container]
            image = "localhost/small"
            entrypoint = ["/app"]
            ports = ["127.0.0.1:\(port):80"]
            [apps.web]
            exec = ["80"]
            requires = ["pod"]
            [apps.web.container]
            image = "localhost/small"
            entrypoint = ["/app"]
            networks = ["container:torpor-pod"]
            """
        let daemon = try Daemon(toml, environment: user.environment, nested: true, wrapper: user.wrapper)
        try daemon.waitUntilItAnswers()
        try daemon.done(.start, "web")
        let first = try ContainerTests.inside(daemon)
        #expect(try ContainerTests.get(port, isFirst: true) == "request 1")
        for request in 2...3 {
            for app in ["web", "pod"] { try daemon.done(.suspend, app) }
            #expect(try ProcFS.stat(first).state == "T")
            #expect(try get(port) == "request \(request)")
        }
        try daemon.done(.stop, "pod")
        #expect(try user.podman(["ps", "--all", "--format={{.Names}}"]) == "")
        user.endPause()
        try daemon.endEverything()
    }

    @Test("A network namespace that a killed podman left is removed where podman has mounted it")
    func leftBehind() throws {
        let folder = try Daemon.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let user = try RootlessUser(folder, 54322)
        defer {
            user.endPause()
            user.removeCgroup()
        }
        try File.makeDirectories(folder + "/home/web/container")
        try File.write(folder + "/home/web/container/begun", "torpor-web\n")
        try File.write(folder + "/home/web/container/namespaces", "netns-before\n")
        try File.write(
            folder + "/home/mount",
            """
            mkdir "$XDG_RUNTIME_DIR/netns"
            cd "$XDG_RUNTIME_DIR/netns"
            touch netns-left netns-before
            unshare --net=netns-left true
            grep -q netns-left /proc/self/mountinfo

            """
        )
        // A podman of another user, which takes longer than the removal would wait for one of this user.
        try FileManager.default.copyItem(atPath: "/bin/sleep", toPath: folder + "/podman")
        let other = try Spawn.start([folder + "/podman", "1000"], environment: [:], output: "/dev/null")
        defer {
            kill(other, SIGKILL)
            waitpid(other, nil, 0)
        }
        let script = """
            podman unshare sh -e '\(folder)/home/mount'
            '\(Built.path("torpor-container"))' remove '\(folder)/home/web/container'
            ls '\(folder)/run/netns'
            podman unshare cat /proc/self/mountinfo
            """
        let (code, output) = try Spawn.run(
            user.wrapper + ["/bin/sh", "-ec", script],
            environment: user.environment
        )
        #expect(code == 0 && !output.contains("netns-left") && output.contains("netns-before"), "\(output)")
        #expect(!File.exists(folder + "/home/web/container/begun"))
    }

    private func get(_ port: UInt16) throws -> String {
        let (code, output) = try Spawn.run([
            "/usr/bin/curl", "-sS", "--max-time", "60", "http://127.0.0.1:\(port)/",
        ])
        guard code == 0 else { throw Trouble("curl ended with \(code): \(output)") }
        return output
    }
}
