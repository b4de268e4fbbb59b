// SPDX-License-Identifier: Apache-2.0

import EventLoop
import Foundation
import KeeperProtocol
import Linux
import Processes
import Testing

@Suite("The keeper", .serialized)
struct KeeperTests {
    @Test("an app starts with nothing of the keeper's")
    func cleanStart() throws {
        try withBench { bench in
            let extra = try File.open("/dev/zero")
            let (output, exit) = try bench.run {
                var plan = bench.shell(
                    """
                    ls /proc/$$/fd; echo end
                    grep -E 'Sig(Blk|Ign)|^NSsid' /proc/self/status; echo pid $$
                    readlink /proc/$$/fd/0 /proc/$$/fd/3; echo soft $(ulimit -n)
                    echo LISTEN_PID $LISTEN_PID WATCHDOG_PID $WATCHDOG_PID; umask; pwd; env
                    """,
                    output: $0
                )
                plan.passed = [extra.raw]
                plan.setListenPid = true
                plan.setWatchdogPid = true
                plan.environment.append("LISTEN_PID=1")
                plan.umask = 0o27
                plan.directory = "/usr"
                return plan
            }
            let lines = output.split(separator: "\n").map(String.init)
            // A shell keeps 10 and above for itself.
            let open = lines.prefix { $0 != "end" }.filter { $0.count == 1 }
            #expect(open == ["0", "1", "2", "3"], "\(output)")
            #expect(lines.contains("SigBlk:\t0000000000000000") && lines.contains("SigIgn:\t0000000000000000"))
            #expect(lines.contains("/dev/null") && lines.contains("/dev/zero"))
            #expect(lines.contains("pid \(exit.pid)") && lines.contains("NSsid:\t\(exit.pid)"), "\(output)")
            #expect(lines.contains("LISTEN_PID \(exit.pid) WATCHDOG_PID \(exit.pid)"))
            #expect(lines.contains("soft \(bench.keeper.appDescriptorLimit)"))
            #expect(lines.contains("0027") && lines.contains("/usr"))
            #expect(!output.contains("TORPOR_KEEPER"))
            #expect(exit.status == .exited(0))
        }
    }

    @Test("a launch that fails names the stage and the reason")
    func failures() throws { try withBench(Scenarios.launchFailures) }

    @Test("an app runs as the user that it was given, or says that it may not")
    func user() throws {
        try withBench { bench in
            var plan = bench.shell("id -u; id -g; id -G")
            plan.user = (uid: 65534, gid: 65534, groups: [65534, 4242])
            if !ThisProcess.isRoot { plan.user?.uid = 1 }
            if ThisProcess.isRoot {
                let (output, _) = try bench.run {
                    plan.standardOutput = $0
                    return plan
                }
                #expect(output == "65534\n65534\n65534 4242\n")
            } else {
                guard case .failure(let failure) = try bench.launch(plan) else {
                    Issue.record("an ordinary user became another")
                    return
                }
                #expect(failure.stage == .groups && failure.errno == .notPermitted)
            }
        }
    }

    @Test("exit codes and signals arrive as they were")
    func exits() throws { try withBench(Scenarios.exitsAndSignals) }

    @Test("an orphan of an app is reaped and attributed")
    func orphans() throws { try withBench(Scenarios.orphans) }

    @Test("an exit while torpord is dead is found by the next one, with what lives")
    func exitWhileAway() throws { try withBench(Scenarios.exitWhileAway) }

    @Test("held descriptors outlive torpord")
    func holding() throws { try withBench(Scenarios.holding) }

    @Test("what others launched is adopted, and its end known as far as the kernel tells", arguments: [false, true])
    func adoption(withoutInfo: Bool) throws {
        try withBench(environment: withoutInfo ? ["TORPOR_KEEPER_TEST_NO_PIDFD_INFO": "1"] : [:], Scenarios.adoption)
    }

    @Test("what is adopted and loses its parent is reaped like any other")
    func adoptedChild() throws { try withBench(Scenarios.adoptedChild) }

    @Test("launches that an earlier torpord began are told to the next one, to their end")
    func earlierLaunches() throws { try withBench(Scenarios.launchesOfAnEarlierOne) }

    @Test("the next torpord gets each process with its own pidfd, many at once or, by an old keeper, one by one")
    func manyLeftOver() throws {
        try withBench(Scenarios.manyLeftOver)
        try withBench(environment: ["TORPOR_KEEPER_TEST_OLD": "/"], Scenarios.manyLeftOver)
    }

    @Test("an exit that nobody forgot is told to each torpord")
    func keptExits() throws { try withBench(Scenarios.keptExits) }

    @Test("all that is held comes in one go")
    func takingAll() throws { try withBench(Scenarios.takingAll) }

    @Test("a hand-over is followed by the next torpord at once")
    func handOver() throws { try withBench(Scenarios.handOver) }

    @Test("the keeper replaces itself, and nothing that it cares for notices")
    func keeperReplaced() throws { try withBench(Scenarios.keeperReplaced) }

    @Test("a torpord that does not come up gives way to the one that worked before")
    func fallback() throws { try withBench(ownTorpord: true, Scenarios.fallback) }

    @Test("garbage from torpord does not hurt the keeper")
    func garbage() throws { try withBench(Scenarios.garbage) }

    @Test("launches that hang hold up nobody, and too many are refused")
    func inFlight() throws { try withBench(Scenarios.inFlight) }

    @Test("torpord is started again, at once and then ever later")
    func backOff() throws {
        try withBench { bench in
            for _ in 0..<3 {
                try bench.killTorpord()
                try bench.becomeTorpord()
            }
            #expect(bench.keeper.instance == 4)
            #expect(bench.log.contains("starting it again in 100 ms"))
            #expect(bench.log.contains("starting it again in 200 ms"))
            #expect(bench.log.components(separatedBy: "starting it again").count == 3, "the first is immediate")
        }
    }

    @Test("a loop that does not move is replaced, one that sleeps or always has something to do is left alone")
    func stuckLoop() throws {
        // A loop that moves may have to wait for a processor, but not for so long.
        let watch = 2_000
        try withBench(watch: watch) { bench in
            /// Turns the loop until the one of another bench, which nobody turns, was found out.
            func turn(_ timeout: Duration) throws {
                let found = try Descriptor.event()
                var isFound = false
                let source = try bench.loop.watch(found.raw, .readable) { _ in
                    isFound = true
                    _ = try? Descriptor.read(found.raw, maximum: 8)
                }
                defer { source.cancel() }
                let raw = found.raw
                Thread.detachNewThread {
                    try? withBench(watch: watch) { other in
                        _ = try other.launch(other.shell("exit 0")).get()
                        try other.becomeTorpord()
                    }
                    _ = try? Descriptor.write(raw, [1, 0, 0, 0, 0, 0, 0, 0])
                }
                let end = Clock.monotonic() + .seconds(60)
                while !isFound, Clock.monotonic() < end { try bench.loop.runOnce(timeout: timeout) }
                try #require(isFound, "the other one is not found out")
            }
            try turn(.seconds(60))
            #expect(!bench.log.contains("has not responded"), "an idle loop is no stuck loop")
            func again() { bench.loop.later(again) }
            again()
            try turn(.milliseconds(10))
            #expect(!bench.log.contains("has not responded"), "a busy loop is no stuck loop")
            let old = bench.standIn.pid
            _ = try bench.launch(bench.shell("exit 0")).get()
            // Nobody turns the loop any more.
            try bench.becomeTorpord()
            #expect(bench.standIn.pid != old && bench.keeper.instance == 2)
            #expect(bench.log.contains("has not responded for \(watch) ms"))
        }
    }

    @Test("an end that was meant ends the keeper with the same status")
    func bye() throws {
        try withBench { bench in
            bench.keeper.sayBye()
            try Sockets.send(bench.standIn.connection.raw, Array("3".utf8))
            #expect(try bench.status() == 3)
        }
    }

    @Test("an end that was meant ends the keeper with the status that was told, even if torpord is killed on the way")
    func byeAndKilled() throws {
        for status in [UInt8(8), 0, 255] {
            try withBench { bench in
                bench.keeper.sayBye(status: status)
                try bench.killTorpord()
                #expect(try bench.status() == Int32(status))
            }
        }
    }

    @Test("a torpord that cannot start is not started again")
    func firstStart() throws {
        try withBench(greet: false) { bench in
            try Sockets.send(bench.standIn.connection.raw, Array("2".utf8))
            #expect(try bench.status() == 2)
        }
    }

    @Test("signals to the keeper reach torpord, as soon as it listens")
    func forwarding() throws {
        try withBench { bench in
            for name in ["USR2", "TERM"] {
                try Signal.send(try #require(Signal.number(named: name)), to: bench.process.processIdentifier)
                if name == "USR2" {
                    // The answer comes after the signal was taken in, which torpord would not have survived.
                    _ = try bench.keeper.held()
                    #expect(try !Descriptor.wait(bench.standIn.connection.raw, timeout: .milliseconds(50)))
                    bench.keeper.settled()
                }
                #expect(try Descriptor.wait(bench.standIn.connection.raw, timeout: .seconds(60)))
                let heard = try Sockets.receive(bench.standIn.connection.raw, maximum: 16)
                #expect(heard?.bytes == Array(name.utf8))
            }
        }
    }

    @Test("a SIGTERM whose torpord dies before it has finished is asked of the next one")
    func carriedOver() throws {
        try withBench { bench in
            bench.keeper.settled()
            try Signal.send(Signal.terminate, to: bench.process.processIdentifier)
            #expect(try Descriptor.wait(bench.standIn.connection.raw, timeout: .seconds(60)))
            try bench.killTorpord()
            try bench.becomeTorpord()
            #expect(
                try !Descriptor.wait(bench.standIn.connection.raw, timeout: .milliseconds(50)),
                "before it has settled it may not listen yet"
            )
            bench.keeper.settled()
            #expect(try Descriptor.wait(bench.standIn.connection.raw, timeout: .seconds(60)))
            #expect(try Sockets.receive(bench.standIn.connection.raw, maximum: 16)?.bytes == Array("TERM".utf8))
        }
    }

    @Test("a SIGTERM is not forgotten when one torpord after the other dies")
    func endsAtLast() throws {
        try withBench { bench in
            let one = try bench.launch(bench.shell("exec sleep 60")).get()
            try bench.settle()
            try Signal.send(Signal.terminate, to: bench.process.processIdentifier)
            #expect(try Descriptor.wait(bench.standIn.connection.raw, timeout: .seconds(60)))
            try bench.killTorpord()
            try bench.becomeTorpord()
            try bench.killTorpord()
            #expect(try bench.status() == 0)
            #expect(Pidfd.hasEnded(one.pidfd.raw))
        }
    }

    @Test("without a torpord, SIGTERM ends the apps and the keeper")
    func termination() throws {
        try withBench { bench in
            let one = try bench.launch(bench.shell("exec sleep 60")).get()
            // The sixth death is answered only 1,600 ms later: time enough, on any machine, to find nobody there.
            for _ in 0..<5 {
                try bench.killTorpord()
                try bench.becomeTorpord()
            }
            try bench.killTorpord()
            let deadline = Clock.monotonic() + .seconds(60)
            while !bench.log.contains("in 1600 ms"), Clock.monotonic() < deadline {
                try bench.loop.runOnce(timeout: .milliseconds(5))
            }
            try Signal.send(Signal.terminate, to: bench.process.processIdentifier)
            #expect(try bench.status() == 0)
            #expect(Pidfd.hasEnded(one.pidfd.raw))
        }
    }

    @Test("only the keeper speaks to the service manager")
    func manager() throws {
        let path = NSTemporaryDirectory() + "torpor-notify-\(UUID().uuidString.prefix(8))"
        let socket = try Sockets.bindDatagram(path: path)
        defer { try? File.remove(path) }
        try withBench(environment: ["NOTIFY_SOCKET": path, "WATCHDOG_USEC": "100000"]) { bench in
            #expect(bench.keeper.isUnderManager)
            let names = bench.standIn.environment.split(separator: "\n")
            #expect(!names.contains("NOTIFY_SOCKET") && !names.contains("WATCHDOG_USEC"))
            bench.keeper.tellManager("READY=1\nSTATUS=here")
            var heard: Set<String> = []
            while heard.count < 2, try Descriptor.wait(socket.raw, timeout: .seconds(60)) {
                let message = try #require(try Sockets.receive(socket.raw, maximum: 4096))
                #expect(message.sender?.pid == bench.process.processIdentifier)
                heard.insert(String(decoding: message.bytes, as: UTF8.self))
            }
            #expect(heard == ["READY=1\nSTATUS=here", "WATCHDOG=1"])
        }
    }

    @Test("torpord learns at once that the keeper is gone")
    func lost() throws {
        try withBench { bench in
            var isLost = false
            bench.keeper.onLost = { isLost = true }
            try Signal.send(Signal.kill, to: bench.process.processIdentifier)
            #expect(try bench.turn { isLost })
            guard case .failure(let failure) = try bench.launch(bench.shell("exit 0")) else {
                Issue.record("launched without a keeper")
                return
            }
            #expect(failure.stage == .keeper)
            #expect(failure.description == "could not run /bin/sh (keeper): the keeper is gone")
        }
    }
}

extension ThisProcess {
    static var isRoot: Bool { geteuid() == 0 }
}
