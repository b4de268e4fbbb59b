// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
import MeasuredProgram
import Processes
import Testing
import TorporPolicyABI

@testable import Supervisor

extension Measurements {
    fileprivate subscript(program: MeasuredProgram) -> AppMeasurement? { measurement(of: 0, program.tree) }
}

/// Time that goes by only when a test says so.
final class TestClock {
    private(set) var now = Duration.seconds(1_000)

    func advance(by time: Duration) { now += time }
}

@Suite("What is measured of apps", .serialized) struct MeasurementsTests {
    @Test("Memory, processes, processor time and the share of it since the last time")
    func usage() throws {
        let program = try MeasuredProgram()
        let clock = TestClock()
        var measurements = Measurements(clock: { clock.now })
        #expect(measurements[program] == nil)
        measurements.measure([program.app()], [.memory, .processor])
        let first = try #require(measurements[program])
        #expect(first.usage.memoryBytes > 1 << 20 && first.usage.processes == 1)
        #expect(first.processorPermille == nil && first.connections == nil && first.lastTraffic == nil)

        try program.run("a = bytearray(64 << 20); a[::4096] = b'x' * len(a[::4096]); os.fork() or time.sleep(1000)")
        try program.run("spin(0.3)")
        clock.advance(by: .milliseconds(400))
        measurements.measure([program.app()], [.memory, .processor])
        let second = try #require(measurements[program])
        #expect(second.usage.memoryBytes > first.usage.memoryBytes + 60 << 20 && second.usage.processes == 2)
        #expect(second.processorTime - first.processorTime >= .milliseconds(290))
        #expect(second.measuredAt > first.measuredAt)
        let span = (second.measuredAt - first.measuredAt).inSeconds
        let permille = Int(try #require(second.processorPermille))
        let expected = Int((second.processorTime - first.processorTime).inSeconds / span * 1000)
        #expect(permille > 0 && abs(permille - expected) <= 1)

        clock.advance(by: .milliseconds(400))
        measurements.measure([program.app()], [.memory, .processor])
        #expect(try #require(measurements[program]?.processorPermille) < 200, "it rests")
    }

    @Test("A share is not reckoned from two readings that are close together")
    func close() throws {
        let program = try MeasuredProgram()
        let clock = TestClock()
        var measurements = Measurements(clock: { clock.now })
        measurements.measure([program.app()], .processor)
        clock.advance(by: .milliseconds(199))
        measurements.measure([program.app()], .processor)
        #expect(try #require(measurements[program]).processorPermille == nil)
        clock.advance(by: .milliseconds(1))
        measurements.measure([program.app()], .processor)
        #expect(try #require(measurements[program]).processorPermille != nil)
    }

    @Test("Processor time never goes back, though that of a child that nobody waited for is gone")
    func neverBack() throws {
        let program = try MeasuredProgram()
        var measurements = Measurements()
        try program.run("signal.signal(signal.SIGCHLD, signal.SIG_IGN); r, w = os.pipe(); s, v = os.pipe()")
        try program.run("(child := os.fork()) or (spin(0.5), os.write(w, b'x'), os.read(s, 1), os._exit(0))")
        try program.run("os.read(r, 1)")
        measurements.measure([program.app()], .processor)
        let before = try #require(measurements[program])
        #expect(before.processorTime >= .milliseconds(490))
        try program.run("os.write(v, b'x')")
        try eventually("the child ends") { program.tree.members().count == 1 }
        measurements.measure([program.app()], .processor)
        let after = try #require(measurements[program])
        #expect(after.usage.processorTime < before.usage.processorTime - .milliseconds(300))
        #expect(after.processorTime >= before.processorTime)
        try program.run("spin(0.2)")
        measurements.measure([program.app()], .processor)
        #expect(try #require(measurements[program]).processorTime >= after.processorTime + .milliseconds(190))
    }

    @Test("Another incarnation in the same place begins anew, and an app without processes is forgotten")
    func incarnations() throws {
        let (one, two) = (try MeasuredProgram(), try MeasuredProgram())
        let clock = TestClock()
        var measurements = Measurements(clock: { clock.now })
        measurements.measure([one.app()], .memory)
        #expect(measurements[one] != nil && measurements[two] == nil)
        clock.advance(by: .milliseconds(400))
        measurements.measure([two.app()], .memory)
        #expect(measurements[one] == nil)
        #expect(try #require(measurements[two]).processorPermille == nil)
        measurements.measure([], .memory)
        #expect(measurements[two] == nil)
    }

    @Test("In steps of no time at all the result is the same")
    func steps() throws {
        let programs = try (0..<3).map { _ in try MeasuredProgram() }
        var measurements = Measurements()
        let apps = programs.enumerated().map { $1.app($0) }
        measurements.begin(apps, [.memory, .connections])
        var steps = 1
        while !measurements.step(for: .zero) { steps += 1 }
        let isOver = measurements.step()
        #expect(steps > 6 && isOver)
        for (id, program) in programs.enumerated() {
            let found = try #require(measurements.measurement(of: id, program.tree))
            #expect(found.usage.processes == 1 && found.usage.memoryBytes > 1 << 20 && found.connections == 0)
        }
    }

    @Test("A round that is given up does no harm to the next")
    func givenUp() throws {
        let program = try MeasuredProgram()
        var measurements = Measurements()
        for _ in 0..<3 {
            measurements.begin([program.app()], [.memory, .connections])
            let isOver = measurements.step(for: .zero)
            #expect(!isOver)
        }
        measurements.measure([program.app()], [.memory, .connections])
        #expect(try #require(measurements[program]).connections == 0)
    }

    @Test("Nobody's needs are nobody's work")
    func needs() throws {
        let program = try MeasuredProgram()
        var measurements = Measurements()
        measurements.measure([program.app()], [])
        #expect(measurements[program] == nil && measurements.system == nil)
        measurements.measure([program.app()], .system)
        #expect(measurements[program] == nil && measurements.system?.memory != nil)
    }

    @Test("What a suspended app has is not looked at again, and it uses no processor")
    func suspended() throws {
        let program = try MeasuredProgram()
        let clock = TestClock()
        var measurements = Measurements(clock: { clock.now })
        measurements.measure([program.app()], [.memory, .processor])
        try eventually("it stops") { program.tree.stopPass() == .stopped }
        clock.advance(by: .milliseconds(1))
        let since = clock.now
        clock.advance(by: .milliseconds(400))
        measurements.measure([program.app(suspendedSince: since)], [.memory, .processor])
        let first = try #require(measurements[program])
        #expect(first.usage.processes == 1)
        // That nothing is read shows when there is nothing left to read.
        program.end()
        clock.advance(by: .milliseconds(400))
        measurements.measure([program.app(suspendedSince: since)], [.memory, .processor])
        let second = try #require(measurements[program])
        #expect(second.usage == first.usage && second.processorTime == first.processorTime)
        #expect(second.processorPermille == 0 && second.measuredAt > first.measuredAt)
        // Suspended again since: it ran in between, so it is looked at.
        measurements.measure([program.app(suspendedSince: clock.now)], [.memory, .processor])
        #expect(try #require(measurements[program]).usage.processes == 0)
    }

    @Test("In a cgroup, an app that did nothing is not looked at, one that did is")
    func cgroup() throws {
        let cgroups: CgroupTree
        do throws(CgroupsUnavailable) {
            cgroups = try CgroupTree(instance: UUID().uuidString)
        } catch {
            return print("skipped: \(error)")
        }
        defer { cgroups.removeAll() }
        let (path, _, _) = try cgroups.create("web")
        let program = try MeasuredProgram(cgroup: path)
        defer { program.end() }
        // A process that somebody puts there takes no processor time of the app's as long as it sleeps.
        let stranger = try MeasuredProgram()
        defer { stranger.end() }
        for one in [program, stranger] { try eventually("it sleeps") { try one.sleeps() } }
        // It stands still: on a busy machine a look might be old before the next.
        let clock = TestClock()
        var measurements = Measurements(busyLook: .zero, clock: { clock.now })
        var patient = Measurements(clock: { clock.now })
        func measure() throws -> [Int] {
            measurements.measure([program.app()], [.memory, .processor])
            patient.measure([program.app()], [.memory, .processor])
            return [measurements, patient].compactMap { $0[program]?.usage.processes }
        }
        #expect(try measure() == [1, 1])
        try Cgroup.add(path, pid: stranger.pid)
        #expect(try measure() == [1, 1], "nothing was done: nothing is looked at")
        let before = try #require(patient[program]).processorTime
        try program.run("spin(0.05)")
        #expect(try measure() == [2, 1], "a look a moment ago is good enough")
        #expect(try #require(patient[program]).processorTime - before >= .milliseconds(45))
    }
}

@Suite("What policies see of what is measured") struct MeasurementViewTests {
    @Test("An app's measurements stand in its record, and nothing else is touched")
    func app() throws {
        let program = try MeasuredProgram()
        var measurements = Measurements()
        measurements.measure([program.app()], [.memory, .processor, .connections])
        let found = try #require(measurements[program])
        var view = torpor_policy_app()
        view.state = 3
        found.fill(&view)
        #expect(view.measured_at == found.measuredAt.microseconds && view.memory == found.usage.memoryBytes)
        #expect(view.processes == 1 && view.cpu_time == UInt64(found.processorTime.microseconds))
        #expect(view.cpu_permille == .max && view.connections == 0 && view.last_traffic == .min && view.state == 3)
        AppMeasurement.clear(&view)
        #expect(view.measured_at == .min && view.processes == 0 && view.connections == .max && view.state == 3)
    }

    @Test("The machine's stand in its record, and what the kernel does not say is said to be unknown")
    func system() throws {
        let root = NSTemporaryDirectory() + "torpor-measured-" + UUID().uuidString
        defer { try? File.removeTree(root) }
        for (path, text) in [
            ("/proc/meminfo", "MemTotal: 4 kB\nMemAvailable: 3 kB\nSwapTotal: 2 kB\nSwapFree: 1 kB\n"),
            ("/proc/loadavg", "0.01 0.02 0.03 1/2 3\n"),
            ("/proc/pressure/memory", "some avg10=1.00 total=0\nfull avg10=2.00 total=0\n"),
            ("/proc/pressure/cpu", "some avg10=3.00 total=0\n"),
            ("/proc/pressure/io", "some avg10=4.00 total=0\nfull avg10=5.00 total=0\n"),
            ("/sys/class/power_supply/BAT0/type", "Battery\n"),
            ("/sys/class/power_supply/BAT0/status", "Discharging\n"),
            ("/sys/class/power_supply/BAT0/capacity", "42\n"),
        ] {
            try File.makeDirectories(try #require(File.parent(of: root + path)))
            try File.write(root + path, text)
        }
        var view = torpor_policy_system()
        view.pressure = 2
        let measured = SystemMeasurement(root: root)
        measured.fill(&view)
        #expect(view.memory_total == 4096 && view.memory_available == 3072)
        #expect(view.swap_total == 2048 && view.swap_free == 1024)
        #expect(view.memory_some == 100 && view.memory_full == 200 && view.cpu_some == 300)
        #expect(view.io_some == 400 && view.io_full == 500)
        #expect(view.load_1 == 1 && view.load_5 == 2 && view.load_15 == 3)
        #expect(view.power == TORPOR_POWER_BATTERY && view.battery == 42 && view.pressure == 2)
        #expect(view.measured_at == measured.measuredAt.microseconds)

        // Power is not asked for each time, the rest is.
        SystemMeasurement(after: measured, root: "/nonexistent").fill(&view)
        #expect(view.power == TORPOR_POWER_BATTERY && view.memory_total == 0 && view.memory_some == .max)
        SystemMeasurement(root: "/nonexistent").fill(&view)
        #expect(view.power == TORPOR_POWER_UNKNOWN && view.battery == .max && view.io_full == .max)
    }
}
