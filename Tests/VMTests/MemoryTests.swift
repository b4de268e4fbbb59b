// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestMachine
import Testing

extension Emulation {
    /// Memory that really runs short, of the kernel's own word: PSI, the memory controller, zram.
    @Suite("Short memory", .serialized) struct MemoryTests {
        /// Takes so many MiB in steps of four, each a part of a second after the last, says so, and keeps them.
        private static let eater = """
            my ($size, $pause) = @ARGV;
            my ($step, @food) = (4 << 20);
            while (@food * 4 < $size) { push @food, "y" x $step; select undef, undef, undef, $pause }
            open my $file, ">", "/run/eaten" and close $file;
            sleep 1 while 1;
            """

        private static let apps = ["front", "back", "asleep1", "asleep2", "asleep3"]

        /// One active, one in the background, three suspended, each with its memory.
        private func bringUp(_ machine: Emulated) throws {
            try machine.write("/run/eater.pl", Self.eater)
            try machine.done("rm -f /run/eaten; torpor start \(Self.apps.joined(separator: " "))")
            for (app, megabytes) in zip(Self.apps, [60, 60, 300, 200, 100]) {
                let group = try cgroup(machine, app)
                try machine.eventually("\(app) has its memory", within: 60) {
                    (Int(try machine.done("cat \(group)/memory.current")) ?? 0) >= megabytes << 20
                }
            }
            try machine.done("torpor background back && torpor suspend asleep1 asleep2 asleep3")
        }

        private func clearUp(_ machine: Emulated) {
            _ = try? machine.run("systemctl stop eater; torpor kill \(Self.apps.joined(separator: " "))")
        }

        private func number(_ machine: Emulated, _ file: String, _ name: String) throws -> Int {
            try #require(Int(try machine.done("sed -n 's/^\(name):* *\\([0-9]*\\).*/\\1/p' \(file)")))
        }

        /// Has a program that is no app take that much more than is available.
        private func eat(_ machine: Emulated, beyond megabytes: Int) throws {
            let available = try number(machine, "/proc/meminfo", "MemAvailable") >> 10
            try machine.done(
                "systemd-run --unit=eater --collect -p OOMScoreAdjust=0 perl /run/eater.pl \(available + megabytes) 0.02"
            )
        }

        /// What of the memory of all programs is in swap, in MiB.
        private func swappedOfPrograms(_ machine: Emulated) throws -> Int {
            try machine.done("cat /sys/fs/cgroup/*/memory.swap.current").split(separator: "\n").reduce(0) {
                $0 + (Int($1) ?? 0)
            } >> 20
        }

        private func pid(_ machine: Emulated, _ app: String) throws -> Int? { try machine.app(app).pid }

        @Test("A program that is no app eats all memory: who sleeps goes, who is active lives, the kernel ends nobody")
        func eaten() throws {
            let machine = try Emulation.machine()
            defer { clearUp(machine) }
            try bringUp(machine)
            let front = try pid(machine, "front")
            let killed = try number(machine, "/proc/vmstat", "oom_kill")
            try eat(machine, beyond: 250)
            try machine.eventually("it has eaten", within: 120) { try machine.run("test -e /run/eaten").ok }
            let events = try machine.done("torpor events")
            #expect(try number(machine, "/proc/vmstat", "oom_kill") == killed, "\(events)")
            #expect(try machine.run("systemctl is-active eater").text == "active")
            #expect(try pid(machine, "front") == front && machine.app("front").state == "active")
            let asleep = try machine.app("asleep1")
            #expect(asleep.state == "not-running" && asleep.lastExit?.reason == "evicted", "the largest goes first")
            // Nobody who runs went before all who sleep.
            if try machine.app("back").state == "not-running" {
                for app in ["asleep2", "asleep3"] { #expect(try machine.app(app).state == "not-running", "\(app)") }
            }
            #expect(events.contains("memory is short") && events.contains("more are available without asleep1"))
            try machine.done("systemctl stop eater")
            try machine.eventually("memory is enough again") {
                try machine.done("torpor events").contains("memory is no longer short")
            }
            try machine.done("torpor foreground asleep1")
        }

        @Test("With zram as swap, who sleeps is paged out before anybody is ended") func pagedOut() throws {
            let machine = try Emulation.machine()
            defer {
                clearUp(machine)
                _ = try? machine.run("swapoff /dev/zram0; echo 1 >/sys/block/zram0/reset; rmmod zram")
            }
            let swap = try machine.run(
                """
                cd /usr/lib/torpor-test
                for module in lzo_compress lzo_decompress lzo lzo-rle zsmalloc zram; do
                    test -e $module.ko && insmod ./$module.ko
                done
                echo 1G >/sys/block/zram0/disksize && mkswap /dev/zram0 && swapon /dev/zram0
                """
            )
            try #require(swap.ok, "\(swap.output)")
            try bringUp(machine)
            let front = try pid(machine, "front")
            let killed = try number(machine, "/proc/vmstat", "oom_kill")
            let evicted = try machine.done("torpor events").components(separatedBy: "is evicted").count
            func swapped(_ app: String) throws -> Int {
                let group = try cgroup(machine, app)
                return (Int(try machine.done("cat \(group)/memory.swap.current")) ?? 0) >> 20
            }
            // This one by itself, after a second.
            try machine.eventually("asleep3 is in swap", within: 30) {
                try machine.done("torpor events").contains("asleep3: is paged out") && swapped("asleep3") > 80
            }
            #expect(try swapped("asleep1") < 50 && swapped("front") < 50)
            let before = try (programs: swappedOfPrograms(machine), sleepers: swapped("asleep1") + swapped("asleep2"))
            // Well more than a kernel keeps free at one time and not at another, which is some 70 MiB here.
            try eat(machine, beyond: 300)
            try machine.eventually("it has eaten", within: 180) { try machine.run("test -e /run/eaten").ok }
            let events = try machine.done("torpor events")
            #expect(try number(machine, "/proc/vmstat", "oom_kill") == killed, "\(events)")
            #expect(try pid(machine, "front") == front && machine.app("front").state == "active")
            #expect(try machine.app("back").state == "background")
            // What is taken from somebody is taken from those who sleep, and nobody is ended for it.
            #expect(events.components(separatedBy: "is evicted").count == evicted, "\(events)")
            let ofSleepers = try swapped("asleep1") + swapped("asleep2") - before.sleepers
            let ofAll = try swappedOfPrograms(machine) - before.programs
            #expect(ofSleepers > 100, "\(ofSleepers) MiB\n\(events)")
            // The kernel's own reclaim takes from all, as fast as the machine lets it: how much depends on the moment.
            #expect(ofSleepers > ofAll - ofSleepers, "\(ofSleepers) of \(ofAll) MiB")
            #expect(try swapped("front") < 30)
            // Wanted again, it is there as it was.
            let asleep = try pid(machine, "asleep3")
            try machine.done("torpor foreground asleep3", within: 120)
            #expect(try pid(machine, "asleep3") == asleep)
        }
    }
}
