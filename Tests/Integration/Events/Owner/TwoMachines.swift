// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing

/// Two machines that only the real ssh joins: each has a network, a supervisor and a home of its own, and its programs
/// do not see the folder of the other. `south` is the name of the second at the first.
final class TwoMachines {
    let here: Daemon
    let there: Daemon
    /// sshd of the second machine.
    private var server: Int32?
    private var commands = 0

    static let obstacle: Comment? = {
        guard Users.isRoot else { return "only root can make networks and start sshd" }
        let programs = ["/usr/sbin/sshd", "/usr/bin/ssh", "/usr/bin/ssh-keygen", "/usr/sbin/ip"]
        guard programs.allSatisfy({ File.exists($0) }) else {
            return "openssh-server, openssh-client and iproute2 are needed: make test installs them"
        }
        let pair = ["/usr/bin/unshare", "-n", "/usr/sbin/ip", "link", "add", "type", "veth"]
        guard (try? Spawn.run(pair))?.code == 0 else { return "the kernel joins no networks here (veth)" }
        return nil
    }()

    private static let apart = [
        "/usr/bin/unshare", "-n", "/bin/sh", "-ec", "/usr/sbin/ip link set lo up; exec \"$@\"", "sh",
    ]
    /// TEST-NET-1, which no network uses; nothing beside the two machines is in theirs.
    private static let address = (here: "192.0.2.1", there: "192.0.2.2")

    /// Runs a scenario with both, and stops them in the end.
    static func with(_ toml: String, files: [String: String], _ body: (TwoMachines) throws -> Void) throws {
        let machines = try TwoMachines(toml, files: files)
        try body(machines)
        machines.stopServer()
        try machines.here.stop()
        try machines.there.stop()
    }

    private init(_ toml: String, files: [String: String]) throws {
        here = try Daemon(toml, files: files, wrapper: Self.apart)
        there = try Daemon(toml, files: files, wrapper: Self.apart)
        for daemon in [here, there] {
            try daemon.waitUntilItAnswers()
            try Self.writeAccounts(daemon)
        }
        try Self.ip("link add link0 type veth peer name link0 netns \(there.pid)", here)
        for (daemon, address) in [(here, Self.address.here), (there, Self.address.there)] {
            try Self.ip("addr add \(address)/30 dev link0", daemon)
            try Self.ip("link set link0 up", daemon)
        }
        try makeKey(Self.secrets(here) + "/id_ed25519")
        try makeKey(there.directory + "/host_key")
        let key = try File.readString(there.directory + "/host_key.pub")
        try File.write(Self.secrets(here) + "/known_hosts", "\(Self.address.there) \(key)")
        try File.write(Self.secrets(here) + "/config", "Host south\n    HostName \(Self.address.there)\n")
        try acceptKey(true)
        try startServer()
    }

    deinit { stopServer() }

    /// The folder in which ssh and sshd look for root's files.
    private static func secrets(_ daemon: Daemon) -> String { daemon.directory + "/home/.ssh" }

    /// Root has the home of this machine and may log in, whatever its account on the machine of the tests is.
    private static func writeAccounts(_ daemon: Daemon) throws {
        try File.makeDirectories(secrets(daemon))
        let rows = try File.readString("/etc/passwd").split(separator: "\n").map { row in
            row.hasPrefix("root:") ? "root:x:0:0:root:\(daemon.directory)/home:/bin/sh" : String(row)
        }
        try File.write(daemon.directory + "/passwd", rows.joined(separator: "\n") + "\n")
        try File.write(daemon.directory + "/shadow", "root:*:1::::::\nsshd:*:1::::::\n")
    }

    private func makeKey(_ path: String) throws {
        let (code, output) = try Spawn.run(["/usr/bin/ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path])
        guard code == 0 else { throw Trouble("ssh-keygen: \(output)") }
    }

    private static func ip(_ words: String, _ daemon: Daemon) throws {
        let command = ["/usr/bin/nsenter", "-t", "\(daemon.pid)", "-n", "/usr/sbin/ip"]
        let (code, output) = try Spawn.run(command + words.split(separator: " ").map(String.init))
        guard code == 0 else { throw Trouble("ip \(words): \(output)") }
    }

    /// The command that runs a script on one machine.
    private static func on(_ daemon: Daemon, without other: Daemon, _ script: String) -> [String] {
        let mounts = """
            mount -t tmpfs none \(other.directory)
            mount --bind \(daemon.directory)/passwd /etc/passwd
            mount --bind \(daemon.directory)/shadow /etc/shadow

            """
        return [
            "/usr/bin/nsenter", "-t", "\(daemon.pid)", "-n", "/usr/bin/unshare", "-m", "--propagation", "private",
            "/bin/sh", "-ec", mounts + script,
        ]
    }

    /// Whether sshd lets this machine's root in from now on.
    func acceptKey(_ accepts: Bool) throws {
        let key = accepts ? try File.readString(Self.secrets(here) + "/id_ed25519.pub") : ""
        try File.replace(Self.secrets(there) + "/authorized_keys", Array(key.utf8))
    }

    /// - Parameter path: where commands find torpor.
    func startServer(path: String = Built.folder) throws {
        let (file, log) = (there.directory + "/sshd_config", there.directory + "/sshd.log")
        // The folder of a test is below one in which all may write, which StrictModes refuses.
        try File.write(
            file,
            """
            ListenAddress \(Self.address.there)
            HostKey \(there.directory)/host_key
            StrictModes no
            PidFile none
            UsePAM no
            PasswordAuthentication no
            KbdInteractiveAuthentication no
            PermitRootLogin prohibit-password
            SetEnv PATH=\(path):/usr/bin:/bin TORPOR_MANAGER_SOCKET=\(there.socket)

            """
        )
        try? File.remove(log)
        // A machine has one folder for sshd's children, which this one may not have.
        let script = "mount -t tmpfs none /run; mkdir /run/sshd; exec /usr/sbin/sshd -D -e -f \(file)"
        let pid = try Spawn.start(Self.on(there, without: here, script), environment: [:], output: log)
        server = pid
        try here.eventually("sshd listens") {
            let text = (try? File.readString(log)) ?? ""
            if waitpid(pid, nil, WNOHANG) == pid {
                server = nil
                throw Trouble("sshd has ended: \(text)")
            }
            return text.contains("Server listening")
        }
    }

    func stopServer() {
        guard let pid = server else { return }
        server = nil
        // The process of a session ends a moment after its client.
        func sessions() -> [Int32] { (try? ProcFS.children(pid)) ?? [] }
        let end = Clock.monotonic() + .seconds(20)
        while !sessions().isEmpty, Clock.monotonic() < end { usleep(2_000) }
        for session in sessions() { kill(session, SIGKILL) }
        kill(pid, SIGTERM)
        waitpid(pid, nil, 0)
    }

    /// Runs a command line of a user of the first machine; returns its exit status and what it printed.
    ///
    /// - Parameter meanwhile: what the test does while it runs.
    func run(_ line: String, meanwhile: () throws -> Void = {}) throws -> (code: Int32, output: String) {
        commands += 1
        let output = here.directory + "/command-\(commands)"
        let pid = try Spawn.start(
            Self.on(here, without: there, "exec /bin/sh -c \"$1\"") + ["sh", line],
            environment: [
                "PATH": Built.folder + ":/usr/bin:/bin", "TORPOR_MANAGER_SOCKET": here.socket, "SSH_AUTH_SOCK": "",
                "TPTEST": here.directory,
            ],
            output: output
        )
        try meanwhile()
        var status: Int32 = 0
        try here.eventually("‘\(line)’ ends", within: .seconds(150)) { waitpid(pid, &status, WNOHANG) == pid }
        return (status & 0x7f == 0 ? (status >> 8) & 0xff : -(status & 0x7f), try File.readString(output))
    }
}
