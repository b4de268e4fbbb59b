// SPDX-License-Identifier: Apache-2.0

import Schedules
import Testing

@Suite("A timetable")
struct TimetableTests {
    /// Timers that come every so many seconds, each with its accuracy in seconds.
    private func table(_ timers: [(every: Int, accuracy: Int)], _ clock: VirtualClock) throws -> Timetable<Int> {
        var table = Timetable<Int>()
        for (index, timer) in timers.enumerated() {
            let rule = try rule {
                $0.every = .seconds(timer.every)
                $0.accuracy = .seconds(timer.accuracy)
            }
            table[index] = .timer(TimerState(rule, nil, goesOn: false, now: clock.now))
        }
        return table
    }

    @Test("looks at one timer exactly when it is due, however inaccurate it may be")
    func one() throws {
        let clock = VirtualClock()
        #expect(try table([(100, 60)], clock).wakeTime(now: clock.now) == clock.now.running + .seconds(100))
        #expect(Timetable<Int>().wakeTime(now: clock.now) == nil)
    }

    @Test("looks once at all that may come together, when the last of them is due")
    func together() throws {
        var clock = VirtualClock()
        var table = try table([(100, 60), (130, 1), (159, 60), (162, 60), (400, 60)], clock)
        // The second must come by 131.
        #expect(table.wakeTime(now: clock.now) == clock.now.running + .seconds(130))
        clock.pass(.seconds(130))
        #expect(table.arrive(now: clock.now).map(\.key) == [0, 1])
        #expect(table.wakeTime(now: clock.now) == clock.now.running + .seconds(70))
        clock.pass(.seconds(70))
        #expect(table.arrive(now: clock.now).map(\.key) == [2, 3, 0])
        #expect(table.arrive(now: clock.now).isEmpty)
    }

    @Test("lets nothing come before it is due or after its accuracy, in as few looks as there can be")
    func random() throws {
        var generator = SystemRandomNumberGenerator()
        for _ in 0..<50 {
            var clock = VirtualClock()
            let begin = clock.now.running
            let timers = (0..<20).map { _ in
                (every: Int.random(in: 5...300, using: &generator), accuracy: Int.random(in: 0...60, using: &generator))
            }
            var table = try table(timers, clock)
            var due = timers.map { begin + .seconds($0.every) }
            var looks = 0
            var singly: Set<Duration> = []
            while let time = table.wakeTime(now: clock.now), time < begin + .seconds(3_600) {
                clock.pass(to: max(time, clock.now.running))
                let come = table.arrive(now: clock.now)
                looks += 1
                #expect(!come.isEmpty)
                for key in come.map(\.key) {
                    let late = clock.now.running - due[key]
                    #expect(late >= .zero && late <= .seconds(timers[key].accuracy), "\(timers)")
                    singly.insert(due[key])
                    // In step; what an accuracy longer than the interval has skipped is skipped.
                    let every = timers[key].every
                    due[key] += .seconds((Int(late.components.seconds) / every + 1) * every)
                }
            }
            #expect(looks <= singly.count)
        }
    }

    @Test("has a thousand timers that are due at different times come in few looks")
    func thousand() throws {
        var clock = VirtualClock()
        var table = try table((0..<1_000).map { (every: 3_600 + $0 % 600, accuracy: 60) }, clock)
        var looks = 0
        var come = 0
        let end = clock.now.running + .seconds(4_300)
        while let time = table.wakeTime(now: clock.now), time < end {
            clock.pass(to: time)
            come += table.arrive(now: clock.now).count
            looks += 1
        }
        #expect(come == 1_000)
        #expect(looks <= 10)
    }

    @Test("forgets what is taken out")
    func removal() throws {
        let clock = VirtualClock()
        var table = try table([(100, 0), (50, 0)], clock)
        table[1] = nil
        #expect(table.wakeTime(now: clock.now) == clock.now.running + .seconds(100))
    }

    @Test("lets a fetch whose time is near come along, and none whose time is not")
    func fetches() throws {
        var clock = VirtualClock()
        var table = try table([(800, 0)], clock)
        table[10] = .fetch(FetchState(minimum: .seconds(900), nil, lastWall: nil, now: clock.now))
        var learned = FetchState.FetchHistory(interval: .seconds(1_000))
        learned.counts = [.noData: 1]
        table[11] = .fetch(FetchState(minimum: .seconds(600), learned, lastWall: clock.now.wall, now: clock.now))
        clock.pass(.seconds(800))
        // 900 s are the least of the first; three quarters of the second's 1,000 s are over.
        #expect(table.arrive(now: clock.now).map(\.key).sorted() == [0, 11])
    }
}

@Suite("The fetch mode's interval")
struct FetchStateTests {
    private func fetched(_ results: [FetchResult], minimum: Duration = .seconds(900)) -> FetchState {
        var clock = VirtualClock()
        var state = FetchState(minimum: minimum, nil, lastWall: nil, now: clock.now)
        for result in results {
            clock.pass(to: max(state.due, clock.now.running))
            state.begin(now: clock.now)
            clock.pass(.seconds(1))
            state.end(result)
        }
        return state
    }

    @Test("becomes longer while there is nothing new, shorter while there is, and keeps its bounds")
    func learns() {
        #expect(fetched([]).interval == .seconds(900))
        #expect(fetched([.noData]).interval == .seconds(1_350))
        #expect(fetched([.noData, .noData, .newData]).interval == .seconds(1_350))
        #expect(fetched([.newData, .newData]).interval == .seconds(900))
        #expect(fetched(Array(repeating: .noData, count: 50)).interval == .seconds(900 * 32))
        #expect(fetched(Array(repeating: .noData, count: 50), minimum: .seconds(7_200)).interval == .seconds(86_400))
        #expect(fetched([.newData], minimum: .seconds(2 * 86_400)).interval == .seconds(2 * 86_400))
    }

    @Test("is not changed by failures, after which the next try waits longer each time")
    func failures() {
        var clock = VirtualClock()
        var state = FetchState(minimum: .seconds(900), nil, lastWall: nil, now: clock.now)
        var waits: [Duration] = []
        for _ in 0..<7 {
            state.begin(now: clock.now)
            state.end(.failed)
            waits.append(state.due - clock.now.running)
            #expect(state.opportunity >= state.due)
            clock.pass(to: state.due)
        }
        #expect(waits.prefix(3) == [.seconds(1_800), .seconds(3_600), .seconds(7_200)])
        #expect(waits.last == .seconds(900 * 32))
        #expect(state.interval == .seconds(900))
        state.begin(now: clock.now)
        state.end(.noData)
        #expect(state.due == clock.now.running + .seconds(1_350))
    }

    @Test("finds the pace of what is new: about twice as often as it comes")
    func pace() {
        var clock = VirtualClock()
        var state = FetchState(minimum: .seconds(900), nil, lastWall: nil, now: clock.now)
        let begin = clock.now.running
        var seen: Int64 = 0
        var intervals: [Duration] = []
        for _ in 0..<200 {
            clock.pass(to: state.due)
            state.begin(now: clock.now)
            // Something new every two hours.
            let there = (clock.now.running - begin).components.seconds / 7_200
            state.end(there > seen ? .newData : .noData)
            seen = there
            intervals.append(state.interval)
        }
        let late = intervals.suffix(100)
        let mean = late.reduce(Duration.zero, +) / late.count
        #expect(mean > .seconds(2_700) && mean < .seconds(7_200), "\(mean)")
    }

    @Test("waits while the machine has no strength to spare, and looks again after a while")
    func putOff() {
        var clock = VirtualClock()
        var state = FetchState(minimum: .seconds(900), nil, lastWall: nil, now: clock.now)
        clock.pass(to: state.due)
        state.putOff(now: clock.now)
        #expect(state.due == clock.now.running + .seconds(225))
        for _ in 0..<30 {
            clock.pass(to: state.due)
            state.putOff(now: clock.now)
        }
        #expect(state.due == clock.now.running + .seconds(1_800))
        state.begin(now: clock.now)
        state.end(.newData)
        #expect(state.due == clock.now.running + .seconds(900))
    }

    @Test("outlives the supervisor, with what was learned")
    func learned() {
        var clock = VirtualClock()
        var state = fetched([.noData, .noData, .failed])
        clock.pass(.seconds(1_000_000))
        state = FetchState(minimum: .seconds(900), state.learned, lastWall: clock.now.wall, now: clock.now)
        #expect(state.interval == .seconds(2_025))
        #expect(state.failures == 1)
        #expect(state.counts == [.noData: 2, .failed: 1])
        clock.pass(.seconds(500))
        let later = FetchState(minimum: .seconds(900), state.learned, lastWall: state.lastWall, now: clock.now)
        #expect(later.due == state.due)
    }
}
