// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestMachine
import Testing

/// All that is tested on a kernel with every controller, one after the other, on one machine in emulation.
@Suite(
    "On a kernel with every controller",
    .serialized,
    .enabled(if: Emulated.folder != nil, "a machine in emulation is needed: make test-vm")
)
enum Emulation {
    /// Emulation is slow, and what is tested is not how fast apps are.
    static let head = """
        [defaults]
        launch = "on-demand"
        launch_deadline = "60s"
        transition_deadline = "60s"
        background_deadline = "60s"
        suspend_deadline = "60s"
        grace = "30s"
        restart = "never"

        """

    /// Only serialized tests come here.
    nonisolated(unsafe) private static let shared = Result { try boot() }

    private static func boot() throws -> Emulated {
        let machine = try Emulated()
        try machine.write("/usr/local/bin/family", family, executable: true)
        try machine.write("/etc/torpor/torpor.toml", head + apps)
        try machine.done("systemctl start torpord || { journalctl -n 20 -u torpord; exit 1; }")
        return machine
    }

    /// The machine, on which the service runs with all apps, none of them up.
    static func machine() throws -> Emulated { try shared.get() }

    /// A process that says in /run/record what it hears, a child, and a grandchild in a session of its own.
    static let family = """
        #!/bin/sh
        [ "$1" = child ] && { setsid sleep infinity & exec sleep infinity; }
        trap 'echo "$TORPOR_APP SIGTERM" >>/run/record; exit 0' TERM
        trap 'echo "$TORPOR_APP SIGUSR1" >>/run/record' USR1
        "$0" child &
        systemd-notify --ready
        while :; do wait; done

        """

    /// Takes so many megabytes and keeps them.
    private static func memory(_ megabytes: Int) -> String {
        "exec = [\"/usr/bin/perl\", \"-e\", \"my $x = 'x' x (\(megabytes) << 20); sleep 1 while 1\"]"
    }

    static let apps = """
        [apps.signalled]
        exec = ["/usr/local/bin/family"]
        ready = "notify"
        signals = { didEnterBackground = "SIGUSR1" }
        [apps.frozen]
        exec = ["/usr/local/bin/family"]
        ready = "notify"
        suspend_with = "freezer"
        [apps.big]
        \(memory(40))
        [apps.greedy]
        \(memory(200))
        memory_limit = "48MiB"
        [apps.squeezed]
        exec = ["/usr/bin/perl", "-e", "my @x; while (@x < 60) { push @x, 'x' x (1 << 20); select undef, undef, undef, 0.2 } sleep 1 while 1"]
        resources.active = { memory_high = "16MiB" }
        [apps.front]
        \(memory(60))
        [apps.back]
        \(memory(60))
        [apps.asleep1]
        \(memory(300))
        [apps.asleep2]
        \(memory(200))
        [apps.asleep3]
        \(memory(100))
        page_out_after = "1s"
        [apps.own]
        exec = ["/bin/sleep", "infinity"]
        memory_limit = "64MiB"
        resources.background = { cpu_weight = 7, io_weight = 9 }
        [apps.forks]
        exec = ["/usr/bin/perl", "-e", "for (1..60) { my $pid = fork; last if defined $pid and $pid == 0 } sleep 1 while 1"]
        limits = { tasks = 40 }
        [apps.many]
        exec = ["/bin/sh", "-c", "i=0; while [ $i -lt 60 ]; do setsid sleep infinity & i=$((i+1)); done; wait"]
        [apps.inside]
        exec = ["/usr/local/bin/answers"]
        wake_on_connect = true
        memory_limit = "96MiB"
        [apps.inside.container]
        image = "localhost/empty"
        networks = ["host"]
        volumes = ["/usr:/usr:ro", "/bin:/bin:ro", "/lib:/lib:ro", "/lib64:/lib64:ro"]

        """

    /// An app's cgroup.
    static func cgroup(_ machine: Emulated, _ name: String) throws -> String {
        let pid = try #require(try machine.app(name).pid)
        let path = try machine.done("sed -n 's/^0:://p' /proc/\(pid)/cgroup")
        try #require(path.hasSuffix("/\(name)"), "\(path)")
        return "/sys/fs/cgroup" + path
    }

    /// Every process of an app's cgroup.
    static func processes(_ machine: Emulated, _ group: String) throws -> [Int] {
        try machine.run("cat '\(group)/cgroup.procs'").lines.compactMap { Int($0) }
    }
}
