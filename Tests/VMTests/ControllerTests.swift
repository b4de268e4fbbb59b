// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestMachine
import Testing

extension Emulation {
    @Suite("The controllers", .serialized) struct ControllerTests {
        @Test("The scope of the apps is delegated with every controller that profiles need") func delegated() throws {
            let machine = try Emulation.machine()
            defer { _ = try? machine.run("torpor kill own") }
            try machine.done("torpor start own")
            let group = try cgroup(machine, "own")
            #expect(group.contains("/torpor-apps.scope/"), "\(group)")
            let controllers = try machine.done("cat \(group)/cgroup.controllers").split(separator: " ")
            for wanted in ["cpu", "io", "memory", "pids"] {
                #expect(controllers.contains(Substring(wanted)), "\(controllers)")
            }
            #expect(try machine.run("torpor doctor").ok)
        }

        @Test("An app's own share and limits are there, and a share that is changed by an apply") func own() throws {
            let machine = try Emulation.machine()
            defer { _ = try? machine.run("torpor kill own") }
            try machine.done("torpor start --background own")
            let group = try cgroup(machine, "own")
            #expect(try machine.done("cat \(group)/cpu.weight") == "7")
            #expect(try machine.done("cat \(group)/io.weight") == "default 9")
            #expect(try machine.done("cat \(group)/memory.max") == "\(64 << 20)")
            let changed = (Emulation.head + Emulation.apps).replacingOccurrences(
                of: "cpu_weight = 7",
                with: "cpu_weight = 8"
            )
            try machine.write("/etc/torpor/torpor.toml", changed)
            try machine.done("torpor apply")
            #expect(try machine.done("cat \(group)/cpu.weight") == "8")
        }

        @Test("With BFQ, a block device's own scheduler has the weight too") func bfq() throws {
            let machine = try Emulation.machine()
            defer { _ = try? machine.run("torpor kill own") }
            let answer = try machine.run(
                """
                cd /usr/lib/torpor-test && insmod ./brd.ko rd_nr=1 rd_size=1024; insmod ./bfq.ko || exit
                cat /sys/block/*/queue/scheduler
                """
            )
            #expect(answer.ok, "\(answer.output)")
            try machine.done("torpor start --background own")
            let group = try cgroup(machine, "own")
            let weight = try machine.done("cat \(group)/io.weight; cat \(group)/io.bfq.weight")
            print("io.weight and io.bfq.weight: \(weight)")
            #expect(weight.contains("default 9"))
        }

        @Test("An app beyond its memory limit ends with that as the reason") func memoryLimit() throws {
            let machine = try Emulation.machine()
            _ = try machine.run("torpor start greedy")
            try machine.waitFor("greedy", "has ended") { $0.state == "not-running" && $0.lastExit != nil }
            #expect(try machine.app("greedy").lastExit?.reason == "memory-limit")
            let report = try machine.done("torpor report greedy")
            #expect(report.contains("memory-limit"), "\(report)")
        }

        @Test("What an app is said to use is what its cgroup counts") func memory() throws {
            let machine = try Emulation.machine()
            defer { _ = try? machine.run("torpor kill big") }
            try machine.done("torpor start big")
            let group = try cgroup(machine, "big")
            try machine.eventually("it has its memory") {
                (Int(try machine.done("cat \(group)/memory.current")) ?? 0) > 40 << 20
            }
            let current = Double(try machine.done("cat \(group)/memory.current")) ?? 0
            try machine.eventually("torpor list says the same") {
                let said = Double(try machine.app("big").memory ?? 0)
                return abs(said - current) < current * 0.1
            }
        }

        @Test("An app has no more processes than its limit") func pids() throws {
            let machine = try Emulation.machine()
            defer { _ = try? machine.run("torpor kill forks") }
            _ = try machine.run("torpor start forks")
            let group = try cgroup(machine, "forks")
            #expect(try machine.done("cat \(group)/pids.max") == "40")
            try machine.eventually("the limit was met") {
                try machine.done("cat \(group)/pids.events") != "max 0"
            }
            #expect(Int(try machine.done("cat \(group)/pids.peak")) ?? .max <= 40)
        }

        @Test("A force quit ends sixty processes in sessions of their own at once") func killAll() throws {
            let machine = try Emulation.machine()
            try machine.done("torpor start many")
            let group = try cgroup(machine, "many")
            try machine.eventually("all are there") { try processes(machine, group).count == 61 }
            let pids = try processes(machine, group)
            try machine.done("torpor kill many")
            #expect(try processes(machine, group).isEmpty)
            let left = try machine.run(
                "for pid in \(pids.map(String.init).joined(separator: " ")); do test -d /proc/$pid && echo $pid; done"
            )
            #expect(left.text == "")
        }

        @Test("A pressure trigger on an app's cgroup fires when the app waits for memory") func pressure() throws {
            let machine = try Emulation.machine()
            defer { _ = try? machine.run("torpor kill squeezed") }
            // Perl's select tells of POLLPRI as an exception.
            let watch = """
                use Fcntl;
                sysopen(my $file, shift, O_RDWR) or die "open: $!";
                syswrite($file, "some 50000 1000000") or die "write: $!";
                my $set = "";
                vec($set, fileno($file), 1) = 1;
                my $fired = select(undef, undef, $set, 60);
                print "fired $fired\\n";
                """
            try machine.write("/run/watch.pl", watch)
            try machine.done("torpor start squeezed")
            let group = try cgroup(machine, "squeezed")
            #expect(try machine.done("cat \(group)/memory.high") == "\(16 << 20)")
            let answer = try machine.run("perl /run/watch.pl \(group)/memory.pressure")
            #expect(answer.text == "fired 1", "\(answer.output)")
        }
    }
}
