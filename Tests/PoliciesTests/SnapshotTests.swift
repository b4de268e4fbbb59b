// SPDX-License-Identifier: Apache-2.0

import Linux
import Policies
import PolicyLibraries
import Testing
import TorporPolicyABI

struct SnapshotTests {
    /// Shows the changes in another view, as a recording does.
    private func replay(_ changes: [PolicyChange], into view: PolicyView) {
        for change in changes {
            if let identity = change.identity { view.put(change.place, name: identity.name, tags: identity.tags) }
            for value in change.values {
                #expect(view.put(value.numbers, as: value.field, intoApp: change.place), "\(value.field.name)")
            }
            if view[change.place].flags & TORPOR_APP_PRESENT == 0 { view.remove(change.place) }
        }
    }

    private func expectSame(_ one: PolicyView, _ other: PolicyView) {
        #expect(one.count == other.count)
        for place in 0..<one.count {
            #expect(one.name(place) == other.name(place) && one.tags(place) == other.tags(place))
            var (first, second) = (one[place], other[place])
            (first.name, first.tags, second.name, second.tags) = (0, 0, 0, 0)
            let isSame = withUnsafeBytes(of: first) { first in
                withUnsafeBytes(of: second) { second in first.elementsEqual(second) }
            }
            #expect(isSame, "place \(place)")
        }
    }

    @Test func everyFieldOfTheRecordsIsToldAndCanBePutBack() throws {
        let view = try PolicyView()
        let copy = try PolicyView()
        var snapshot = PolicySnapshot()
        for (place, name) in ["web", "db", ""].enumerated() { view.put(place, name: name, tags: ["a", "b\(place)"]) }
        // A different number in each byte that a field may have, and what means never and unknown.
        for place in 0..<3 {
            withUnsafeMutableBytes(of: &view[place]) { record in
                // Behind size, flags and strings: the fields have no holes.
                for offset in 20..<record.count where place != 2 {
                    record[offset] = UInt8(truncatingIfNeeded: offset * 3 + place)
                }
            }
            // The most that a recording can say.
            view[place].memory = UInt64(Int64.max) - UInt64(place)
            view[place].cpu_time = 17
        }
        view[1].cpu_permille = UInt32.max
        view[1].state_since = (Int64.min, 0, -1, Int64.max, 5)
        replay(snapshot.takeChanges(of: view), into: copy)
        expectSame(view, copy)
        #expect(snapshot.takeChanges(of: view).isEmpty)
    }

    @Test func onlyWhatIsOtherIsTold() throws {
        let view = try PolicyView()
        let copy = try PolicyView()
        var snapshot = PolicySnapshot()
        for place in 0..<100 { view.put(place, name: "app-\(place)", tags: []) }
        replay(snapshot.takeChanges(of: view), into: copy)
        view[7].state = 3
        view[7].state_since.3 = 99
        let changes = snapshot.takeChanges(of: view)
        #expect(changes.map(\.place) == [7] && changes[0].identity == nil)
        #expect(changes[0].values.map(\.field.name) == ["state", "state_since"])
        replay(changes, into: copy)
        view.remove(8)
        view.put(9, name: "another", tags: ["new"])
        let gone = snapshot.takeChanges(of: view)
        #expect(gone.map(\.place) == [8, 9] && gone[1].identity?.name == "another")
        #expect(gone[1].identity?.tags == ["new"])
        replay(gone, into: copy)
        expectSame(view, copy)
    }

    @Test func theMachineIsToldWholeAndThenWhatIsOther() throws {
        let view = try PolicyView()
        let copy = try PolicyView()
        var snapshot = PolicySnapshot()
        view.system.memory_total = 1 << 40
        view.system.battery = UInt32.max
        view.system.power = 2
        view.system.measured_at = 12
        let all = snapshot.takeSystemChanges(of: view)
        #expect(all.map(\.field.name) == PolicyField.ofSystem.map(\.name))
        for value in all { #expect(copy.putSystem(value.numbers, as: value.field)) }
        let isSame = withUnsafeBytes(of: view.system) { one in
            withUnsafeBytes(of: copy.system) { other in one.elementsEqual(other) }
        }
        #expect(isSame)
        view.system.now = 5
        #expect(snapshot.takeSystemChanges(of: view).isEmpty)
        view.system.load_1 = 7
        #expect(snapshot.takeSystemChanges(of: view).map(\.field.name) == ["load_1"])
    }

    @Test func fieldsTakeNoNumbersThatTheyCannotHave() throws {
        let view = try PolicyView()
        view.put(0, name: "web", tags: [])
        func put(_ name: String, _ numbers: Int64?...) throws -> Bool {
            view.put(numbers, as: try #require(PolicyField.byNameOfApps[name]), intoApp: 0)
        }
        #expect(try !put("state", -1) && !put("state", nil) && !put("state", 1 << 32) && !put("state", 1, 2))
        #expect(try !put("priority", 1 << 31) && !put("memory", -1) && !put("state_since", 1))
        #expect(view[0].state == 0 && view[0].memory == 0)
        #expect(try put("connections", nil) && put("last_use", nil) && put("priority", -5))
        #expect(view[0].connections == UInt32.max && view[0].last_use == Int64.min && view[0].priority == -5)
    }

    @Test func eachNumberOfTheHeaderHasAWord() {
        #expect(PolicyWords.event(TORPOR_EVENT_STARTED.rawValue) == "started")
        #expect(PolicyWords.event(TORPOR_EVENT_EVICTION.rawValue) == PolicyWords.events.last)
        #expect(PolicyWords.event(TORPOR_EVENT_TIME_USED.rawValue) == "time-used")
        #expect(PolicyWords.state(TORPOR_STATE_SUSPENDED.rawValue) == PolicyWords.states.last)
        #expect(PolicyWords.states.count == Int(TORPOR_STATE_COUNT))
        #expect(PolicyWords.advice(TORPOR_ADVISE_ASK_AGAIN.rawValue) == PolicyWords.advice.last)
        #expect(PolicyWords.advice(TORPOR_ADVISE_GIVE_UP.rawValue) == "give-up")
        #expect(PolicyWords.reason(TORPOR_REASON_NO_PURPOSE_STRING.rawValue) == PolicyWords.reasons.last)
        #expect(PolicyWords.reason(TORPOR_REASON_LAUNCH_FAILED.rawValue) == "launch-failed")
        #expect(PolicyWords.reason(TORPOR_REASON_REPLACED.rawValue) == "replaced")
        #expect(PolicyWords.reason(16) == "16")
        #expect(PolicyWords.launch(TORPOR_LAUNCH_BY_POLICY.rawValue) == PolicyWords.launches.last)
        #expect(PolicyWords.pressure(TORPOR_PRESSURE_CRITICAL) == PolicyWords.pressures.last)
        for kind in 0..<UInt32(12) {
            #expect(PolicyWords.event(named: PolicyWords.event(kind)) == kind)
            #expect(PolicyWords.advice(named: PolicyWords.advice(kind)) == kind)
        }
        #expect(PolicyWords.event(named: "nonsense") == nil)
    }

    @Test func aLibraryIsOpenedAnywayByWhoeverWantsTo() throws {
        let path = try Libraries.makeFolder("anyway") + "/liba.so"
        try File.write(path, "no library")
        try File.setMode(path, 0o666)
        #expect(throws: PolicyFailure.self) { try LibraryTrust.open(path) }
        #expect(try LibraryTrust.openAnyway(path).path == path)
        let gone = #expect(throws: PolicyFailure.self) { try LibraryTrust.openAnyway(path + "x") }
        #expect(gone == .refused("\(path)x is not there"))
        #expect(throws: PolicyFailure.self) { try LibraryTrust.openAnyway("/") }
    }
}
