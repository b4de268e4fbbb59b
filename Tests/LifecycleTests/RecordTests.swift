// SPDX-License-Identifier: Apache-2.0

import Lifecycle
import Testing

/// What a daemon that dies leaves, and the next one goes on from.
@Suite("Records")
struct RecordTests {
    @Test("whatever an older or a broken writer left is taken or refused, and never traps", arguments: 1...4)
    func anyBytes(seed: Int) {
        var dice = Dice(seed: UInt64(seed) &+ 77)
        var walk = Walk(seed: UInt64(seed))
        for _ in 0..<20 {
            walk.renew()
            for _ in 0..<30 { try? walk.step() }
            let bytes = Record.of(walk.machine)
            for length in 0...bytes.count {
                bytes[..<length].withUnsafeBytes { memory in
                    var reader = RecordReader(memory)
                    _ = AppMachine(rules: walk.machine.rules, from: &reader)
                }
            }
            for _ in 0..<50 {
                var broken = bytes
                broken[dice.below(broken.count)] = UInt8(dice.below(256))
                broken.withUnsafeBytes { memory in
                    var reader = RecordReader(memory)
                    _ = AppMachine(rules: walk.machine.rules, from: &reader)
                }
            }
        }
    }

    @Test("a launch that is made again is another incarnation; one whose process is known is not made again")
    func repeatedLaunch() throws {
        var machine = AppMachine(rules: AppRules())
        #expect(machine.repeatLaunch().isEmpty)
        _ = try machine.request(.start(background: false), now: .zero)
        #expect(machine.repeatLaunch().isEmpty, "it waits for what it requires")
        _ = machine.permitLaunch(now: .zero)
        let first = machine.incarnation
        #expect(machine.repeatLaunch() == [.launch(machine.launchOrder)])
        #expect(machine.incarnation == first + 1 && machine.launchOrder.incarnation == first + 1)
        #expect(machine.launchOrder.foreground)
        _ = machine.handle(.launched, now: .zero)
        #expect(machine.repeatLaunch().isEmpty && machine.incarnation == first + 1)
    }

    @Test("a stop or restart of which not all records were written is whole under the next one, or not begun")
    func halfWritten() throws {
        for request in [Request.restart, .stop(.stopped)] {
            for count in 0...3 {
                var fleet = try CoordinatorTests.tower()
                try fleet.ask(.start(background: false), "web")
                let ids = Array(0..<fleet.coordinator.count)
                let before = try Record.again(fleet.coordinator, ids)
                _ = fleet.coordinator.takeUnrecorded()
                let actions = try fleet.coordinator.request(request, of: fleet.id("db"), now: fleet.now)
                let order = fleet.coordinator.takeUnrecorded()
                #expect(order.map { fleet.name($0) } == ["db", "api", "web"])
                let written = Array(order.prefix(count))
                fleet.coordinator = try Record.again(before, ids, later: fleet.coordinator, written: written)
                fleet.log = []
                // Actions that were recorded are carried out by the next one, too.
                fleet.settle(actions.filter { written.contains($0.app) })
                fleet.settle(fleet.coordinator.carryOn(shuttingDown: false, now: fleet.now))
                let isBegun = count > 0
                let stopped = isBegun ? ["web stop", "api stop", "db stop"] : []
                #expect(fleet.log.filter { $0.hasSuffix(" stop") } == stopped)
                let launched = isBegun && request == .restart ? ["db", "api", "web"] : []
                #expect(fleet.takeLog("launch") == launched, "\(request) after \(count) records")
                for name in ["web", "api", "db"] {
                    #expect((fleet.state(name) == .active) == (!isBegun || request == .restart))
                }
            }
        }
    }

    @Test("a code that no writer has is refused")
    func unknownCode() {
        var bytes = Record.of(AppMachine(rules: AppRules()))
        bytes[0] = 200
        bytes.withUnsafeBytes { memory in
            var reader = RecordReader(memory)
            #expect(AppMachine(rules: AppRules(), from: &reader) == nil)
        }
    }

    @Test("numbers of messages and reasons are those that other versions wrote, and those that are gone are refused")
    func numbers() {
        let messages: [Message: UInt8] = [
            .willFinishLaunching: 0, .taskExpiring: 11, .significantTimeChange: 14, .performFetch: 16,
            .didReceiveRemoteNotification: 19, .protectedDataDidBecomeAvailable: 22,
            .handleEventsForBackgroundTransfer: 23, .transferNeedsLogin: 25, .sceneWillConnect: 26,
            .didDiscardScenes: 32, .didReceiveLocalNotification: 33, .refresh: 34,
            .willContinueActivity: 35, .continueActivity: 36, .didFailToContinueActivity: 37, .activityWasContinued: 38,
        ]
        for (message, number) in messages { #expect(message.number == number) }
        for message in Message.allCases { #expect(Message(number: message.number) == message) }
        for gone in [15, 20, 39, 255] as [UInt8] { #expect(Message(number: gone) == nil) }
        let reasons: [TerminationReason: UInt8] = [
            .exitSuccess: 0, .unresponsive: 14, .wakeStorm: 16, .evicted: 19, .launchFailed: 24, .permissionChanged: 25,
            .gpuInBackground: 26, .protectedDataOpen: 27, .noPurposeString: 28,
        ]
        for (reason, number) in reasons { #expect(reason.number == number) }
        #expect(Set(TerminationReason.allCases.map(\.number)).count == TerminationReason.allCases.count)
    }

    @Test("a record that does not fit says so")
    func overfull() {
        var memory = [UInt8](repeating: 0, count: 20)
        memory.withUnsafeMutableBytes { bytes in
            var writer = RecordWriter(bytes)
            AppMachine(rules: AppRules()).encode(into: &writer)
            #expect(writer.isOverfull)
            #expect(writer.count <= 20)
        }
    }

    @Test("the ledger of restarts goes on counting where it was")
    func ledger() throws {
        var rules = AppRules()
        rules.backoff.limit = 3
        var machine = AppMachine(rules: rules)
        var now = Duration.seconds(100)
        _ = try machine.request(.start(background: false), now: now)
        var endings: [Ending.Next] = []
        for _ in 0..<4 {
            _ = machine.permitLaunch(now: now)
            _ = machine.handle(.launched, now: now)
            now += .milliseconds(5)
            _ = machine.handle(.mainExited(.exited(code: 1)), now: now)
            machine = try #require(Record.again(machine))
            for action in machine.handle(.allGone, now: now) {
                if case .ended(let ending) = action { endings.append(ending.next) }
            }
            machine = try #require(Record.again(machine))
            now = machine.nextDeadline ?? now
            _ = machine.handle(.deadline, now: now)
        }
        #expect(endings.last == .gaveUp)
        #expect(endings.count == 4)
        #expect(machine.failed)
        #expect(machine.restarts == 3)
    }

    @Test("text is cut where there is no room, and read back")
    func text() {
        var memory = [UInt8](repeating: 0, count: 8)
        memory.withUnsafeMutableBytes { bytes in
            var writer = RecordWriter(bytes)
            writer.put("hello, world")
            #expect(!writer.isOverfull)
        }
        memory.withUnsafeBytes { bytes in
            var reader = RecordReader(bytes)
            #expect(reader.takeText() == "hello, ")
        }
    }
}

/// Records of machines, for tests.
enum Record {
    static func of(_ machine: AppMachine) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: 2_048) { buffer, count in
            var writer = RecordWriter(UnsafeMutableRawBufferPointer(buffer))
            machine.encode(into: &writer)
            machine.encodeLater(into: &writer)
            machine.encodeWake(into: &writer)
            count = writer.count
        }
    }

    /// The machine as a record and back; nil when it is not the same.
    static func again(_ machine: AppMachine) -> AppMachine? {
        let bytes = of(machine)
        let again = bytes.withUnsafeBytes { memory in
            var reader = RecordReader(memory)
            var again = AppMachine(rules: machine.rules, from: &reader)
            again?.restoreLater(from: &reader)
            again?.restoreWake(from: &reader)
            // Names are kept elsewhere.
            again?.restore(tasks: machine.tasks, holds: machine.holds)
            return again
        }
        return again.flatMap { of($0) == bytes ? $0 : nil }
    }

    /// A coordinator of the apps in some places, in this order, that has taken over everything from records. Those of
    /// `written` are of a later time, at which the coordinator was `later`.
    static func again(
        _ coordinator: Coordinator,
        _ places: [AppID],
        later: Coordinator? = nil,
        written: [AppID] = []
    ) throws -> Coordinator {
        let fresh = try Coordinator(places.map { coordinator.definition($0) })
        for (app, place) in places.enumerated() {
            let coordinator = written.contains(place) ? later ?? coordinator : coordinator
            let bytes = [UInt8](unsafeUninitializedCapacity: 2_048) { buffer, count in
                var writer = RecordWriter(UnsafeMutableRawBufferPointer(buffer))
                coordinator.encode(place, into: &writer)
                coordinator.encodeLater(place, into: &writer)
                coordinator.encodeWake(place, into: &writer)
                coordinator.encodeWait(place, into: &writer)
                count = writer.count
            }
            let taken = bytes.withUnsafeBytes { memory in
                var reader = RecordReader(memory)
                guard fresh.restore(app, from: &reader) else { return false }
                fresh.restoreLater(app, from: &reader)
                fresh.restoreWake(app, from: &reader)
                fresh.restoreWait(app, from: &reader)
                let machine = coordinator.machine(place)
                fresh.restore(app, tasks: machine.tasks, holds: machine.holds)
                return true
            }
            guard taken else { throw Violation("\(place) was not taken back") }
        }
        return fresh
    }
}
