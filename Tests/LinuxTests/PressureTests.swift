// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import Linux

@Suite("Triggers of pressure", .serialized) struct PressureTests {
    /// A trigger, or nil with the reason printed where the kernel keeps no pressure, or not for this user.
    private func trigger(_ make: () throws(Errno) -> PressureTrigger) -> PressureTrigger? {
        do throws(Errno) {
            return try make()
        } catch {
            print("skipped: \(error)")
            return nil
        }
    }

    /// What the descriptor is ready for, within a time.
    private func wait(_ trigger: PressureTrigger, _ time: Duration) throws -> IOEvents? {
        var waiting = pollfd(fd: trigger.descriptor.raw, events: Int16(POLLPRI), revents: 0)
        let count = poll(&waiting, 1, Int32(time.microseconds / 1000))
        return count > 0 ? IOEvents(rawValue: UInt32(UInt16(bitPattern: waiting.revents))) : nil
    }

    @Test("it tells within its window when work has to wait for a processor")
    func fires() throws {
        let make = { () throws(Errno) in
            try PressureTrigger(on: .cpu, stall: .milliseconds(5), window: PressureTrigger.ordinaryWindow)
        }
        guard let trigger = trigger(make) else { return }
        let busy = (0..<(2 * ThisProcess.processorCount + 2)).map { _ in
            let process = Process()
            process.executableURL = URL(fileURLWithPath: "/bin/sh")
            process.arguments = ["-c", "while :; do :; done"]
            return process
        }
        for process in busy { try process.run() }
        defer {
            for process in busy {
                kill(process.processIdentifier, SIGKILL)
                process.waitUntilExit()
            }
        }
        let events = try #require(try wait(trigger, .seconds(60)))
        #expect(events.contains(.priority) && !events.contains(.error))
    }

    @Test("one that asks for what does not happen stays silent, and nonsense is refused")
    func silent() throws {
        // Of an empty cgroup: the whole machine may really come to a standstill among all the other tests.
        guard let mount = Cgroup.mount, Users.isRoot else { return print("skipped: no cgroups for this user") }
        let path = mount + "/torpor-silent-" + UUID().uuidString
        try Cgroup.create(path)
        defer { try? Cgroup.remove(path) }
        let make = { () throws(Errno) in
            let window = PressureTrigger.ordinaryWindow
            return try PressureTrigger(of: path, on: .io, .full, stall: .milliseconds(1999), window: window)
        }
        guard let trigger = trigger(make) else { return }
        #expect(try wait(trigger, .milliseconds(100)) == nil)
        #expect(throws: Errno.self) { try PressureTrigger(on: .memory, stall: .seconds(3), window: .seconds(2)) }
        #expect(throws: Errno.self) { try PressureTrigger(on: .memory, stall: .seconds(1), window: .seconds(60)) }
    }

    @Test("that of a cgroup ends with an error when the cgroup goes")
    func cgroup() throws {
        guard let mount = Cgroup.mount, Users.isRoot else { return print("skipped: no cgroups for this user") }
        let path = mount + "/torpor-pressure-" + UUID().uuidString
        try Cgroup.create(path)
        defer { try? Cgroup.remove(path) }
        let make = { () throws(Errno) in
            try PressureTrigger(of: path, on: .cpu, stall: .milliseconds(100), window: PressureTrigger.ordinaryWindow)
        }
        guard let trigger = trigger(make) else { return }
        #expect(try wait(trigger, .milliseconds(50)) == nil, "nobody is in it")
        try Cgroup.remove(path)
        #expect(try wait(trigger, .seconds(60))?.contains(.error) == true)
    }
}
