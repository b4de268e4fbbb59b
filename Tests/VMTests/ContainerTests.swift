// SPDX-License-Identifier: Apache-2.0

import TestMachine
import Testing

extension Emulation {
    /// podman leaves a container in the cgroup of its app: what counts there is seen in the kernel's own files, and with
    /// every controller.
    @Suite("Containers", .serialized) struct ContainerTests {
        /// Answers each connection with the number of its requests, and takes 200 MiB for the request “eat”.
        private static let program = """
            #!/usr/bin/perl
            use IO::Socket::INET;
            $SIG{TERM} = sub { exit 7 };
            if (fork == 0) { sleep 1 while 1 }
            my $listener = IO::Socket::INET->new(LocalAddr => "127.0.0.1", LocalPort => 8080, Listen => 16, ReuseAddr => 1) or die $!;
            my $count = 0;
            while (my $client = $listener->accept) {
                my $size = <$client> eq "eat\\n" ? 200 << 20 : 0;
                my $memory = "x" x $size;
                print $client "answer ", ++$count, "\\n";
                close $client;
            }

            """

        /// The files of the machine are in a tmpfs, on which podman's overlay does not work, and which is not left by
        /// pivot_root(2).
        private static let settings = """
            mkdir -p /etc/containers /run/empty
            printf '[storage]\\ndriver = "vfs"\\ngraphroot = "/var/lib/containers/storage"\\n' >/etc/containers/storage.conf
            echo 'runroot = "/run/containers/storage"' >>/etc/containers/storage.conf
            printf '[engine]\\nno_pivot_root = true\\nevents_logger = "none"\\nruntime = "crun"\\n' >/etc/containers/containers.conf
            tar -C /run/empty -cf /run/empty.tar . && podman import /run/empty.tar localhost/empty
            """

        private func request(_ machine: Emulated, _ word: String = "count") throws -> Answer {
            let client =
                #"my $s = IO::Socket::INET->new("127.0.0.1:8080") or exit 1; print $s "\#(word)\n"; print scalar <$s>"#
            return try machine.run("perl -MIO::Socket::INET -e '\(client)'")
        }

        /// Starts it and waits until it answers.
        private func start(_ machine: Emulated) throws -> Container {
            try machine.done("torpor start inside", within: 120)
            try machine.eventually("it answers") { try request(machine).text == "answer 1" }
            let group = try cgroup(machine, "inside")
            let script =
                "for pid in $(cat \(group)/cgroup.procs); do echo $pid $(cat /proc/$pid/comm /proc/$pid/cgroup); done"
            let lines = try machine.done(script).split(separator: "\n").map { $0.split(separator: " ") }
            var container = Container(group: group)
            for line in lines where line.count == 3 {
                // No process, conmon included, is in another cgroup than the app's.
                #expect("/sys/fs/cgroup" + line[2].dropFirst("0::".count) == group, "\(lines)")
                let isOutside = line[1] == "conmon" || line[1].hasPrefix("torpor-contain")
                if isOutside {
                    container.outside.append(Int(line[0]) ?? 0)
                } else {
                    container.inside.append(Int(line[0]) ?? 0)
                }
            }
            #expect(container.outside.count == 2 && container.inside.count == 2, "\(lines)")
            return container
        }

        private struct Container {
            var group: String
            /// torpor-container and conmon.
            var outside: [Int] = []
            var inside: [Int] = []
        }

        private func letters(_ machine: Emulated, _ pids: [Int]) throws -> [String] { try pids.map(machine.letter) }

        /// Of an ended container there is no record, no cgroup and no process.
        private func expectNothing(_ machine: Emulated, _ container: Container, reason: String) throws {
            try machine.waitFor("inside", in: "not-running")
            #expect(try machine.app("inside").lastExit?.reason == reason)
            #expect(try machine.done("podman ps --all --quiet") == "")
            let left = container.outside + container.inside
            let script =
                "find /sys/fs/cgroup -path '*/inside*'; cd /proc; ls -d \(left.map(String.init).joined(separator: " "))"
            #expect(try machine.run(script + " 2>/dev/null").text == "")
        }

        @Test(
            "Its cgroup holds a container with conmon, its limit and its sleep count, and no end leaves anything of it"
        )
        func life() throws {
            let machine = try Emulation.machine()
            defer { _ = try? machine.run("torpor kill inside") }
            try machine.write("/usr/local/bin/answers", Self.program, executable: true)
            try machine.done(Self.settings)

            var container = try start(machine)
            let files = ["memory.max", "cpu.weight"].map { "\(container.group)/\($0)" }.joined(separator: " ")
            #expect(try machine.done("cat \(files); find \(container.group) -mindepth 1 -type d") == "\(96 << 20)\n100")
            try machine.done("torpor suspend inside")
            #expect(try machine.done("cat \(files)") == "\(96 << 20)\n1")
            #expect(try letters(machine, container.inside) == ["T", "T"])
            #expect(try !letters(machine, container.outside).contains("T"))
            #expect(try request(machine).text == "answer 2")
            #expect(try machine.app("inside").state == "background")
            // What ends in its sleep is evicted.
            try machine.done("torpor suspend inside && kill -KILL \(try #require(container.inside.first))")
            try expectNothing(machine, container, reason: "evicted")

            container = try start(machine)
            try machine.done("torpor suspend inside")
            _ = try request(machine, "eat")
            try expectNothing(machine, container, reason: "memory-limit")

            container = try start(machine)
            let stopped = try machine.done("torpor suspend inside && torpor stop inside")
            #expect(stopped.contains("exited with status 7"), "\(stopped)")
            try expectNothing(machine, container, reason: "stopped")
        }
    }
}
