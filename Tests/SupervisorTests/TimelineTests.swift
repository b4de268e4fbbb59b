// SPDX-License-Identifier: Apache-2.0

import Lifecycle
import Linux
import Testing

@testable import Engine
@testable import Supervisor

@Suite("The timeline of an incarnation")
struct TimelineTests {
    private static let launch: [Moment] = [
        .planned, .began(.launching), .executed, .entered(.inactive), .contact, .told(.willFinishLaunching),
        .answered(.willFinishLaunching, .done), .ready, .told(.didBecomeActive), .entered(.active),
    ]

    private static func moments(_ timeline: Timeline) -> [Moment] {
        timeline.all.compactMap { entry in
            if case .moment(let moment, _) = entry { moment } else { nil }
        }
    }

    private static func gaps(_ timeline: Timeline) -> [Int] {
        timeline.all.compactMap { entry in
            if case .gap(let count) = entry { count } else { nil }
        }
    }

    @Test("gives back every kind of moment, with its time to the microsecond")
    func whole() {
        var moments: [Moment] = [.planned, .executed, .contact, .ready, .saidStopping, .supervisorReplaced]
        moments += AppState.allCases.map { .entered($0) }
        moments += Transition.allCases.map { .began($0) }
        moments += [.told(.performFetch), .mainChanged, .exited, .signalled(64), .taskBegan(255), .taskEnded(0)]
        moments += Moment.Answer.allCases.map { .answered(.openURL, $0) }
        moments += [.missed(.launch), .missed(.grace)]
        var timeline = Timeline()
        for (index, moment) in moments.enumerated() {
            timeline.add(moment, at: .microseconds(Int64(index) * 1_000_003))
        }
        #expect(
            timeline.all == moments.enumerated().map { .moment($1, .microseconds(Int64($0) * 1_000_003)) }
        )
        #expect(timeline.time(of: .contact) == .microseconds(2 * 1_000_003))
        for message in Message.allCases {
            timeline = Timeline()
            timeline.add(.told(message), at: .seconds(8 * 365 * 86_400))
            #expect(timeline.all == [.moment(.told(message), .seconds(8 * 365 * 86_400))])
            #expect(timeline.firstMessage == .seconds(8 * 365 * 86_400))
        }
        for deadline in DeadlineKind.allCases {
            timeline = Timeline()
            timeline.add(.missed(deadline), at: .zero)
            #expect(timeline.all == [.moment(.missed(deadline), .zero)])
        }
    }

    @Test("has each milestone of the launch once, the first")
    func milestones() {
        var timeline = Timeline()
        for number in 1...100 { timeline.add(.contact, at: .milliseconds(number)) }
        #expect(timeline.all == [.moment(.contact, .milliseconds(1))])
    }

    @Test("of a long life keeps the launch, the end, and how much there was between")
    func long() {
        var timeline = Timeline()
        for moment in Self.launch { timeline.add(moment, at: .milliseconds(1)) }
        for number in 0..<1000 {
            timeline.add(.signalled(Int32(number % 64)), at: .seconds(number + 1))
            if number % 10 == 9 { timeline.rest() }
            #expect(timeline.all.count <= Timeline.most)
        }
        #expect(timeline.all.count <= Timeline.mostAtRest)
        let kept = Self.moments(timeline)
        #expect(kept.prefix(5) == [.planned, .executed, .contact, .told(.willFinishLaunching), .ready])
        #expect(kept.suffix(8) == (992..<1000).map { .signalled(Int32($0 % 64)) }[...])
        #expect(Self.gaps(timeline).count == 1)
        #expect(Self.gaps(timeline)[0] + kept.count == Self.launch.count + 1000)
        #expect(timeline.firstMessage == .milliseconds(1))
    }

    @Test("of an app that does nothing takes less than 200 bytes")
    func small() {
        var timeline = Timeline()
        for _ in 0..<50 {
            for moment in Self.launch { timeline.add(moment, at: .milliseconds(1)) }
            timeline.rest()
        }
        // An array's header is 32 bytes.
        #expect(32 + 8 * Timeline.mostAtRest <= 200)
        #expect(timeline.all.count <= Timeline.mostAtRest)
        // The allocator gives 8 bytes more than a multiple of 16, and 16 more where the rest is too small to be free.
        #expect(timeline.capacity <= Timeline.mostAtRest + 3 && 32 + 8 * timeline.capacity <= 200)
    }

    @Test("survives the supervisor as what its launch took")
    func recorded() {
        var timeline = Timeline()
        timeline.add(.planned, at: .zero)
        timeline.add(.executed, at: .microseconds(1234))
        timeline.add(.ready, at: .seconds(3))
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: LaunchMoments.recordBytes, alignment: 8)
        defer { memory.deallocate() }
        var writer = RecordWriter(memory)
        LaunchMoments(of: timeline).encode(into: &writer)
        #expect(writer.count == LaunchMoments.recordBytes && !writer.isOverfull)
        var reader = RecordReader(UnsafeRawBufferPointer(memory))
        let moments = LaunchMoments(from: &reader).moments
        #expect(moments.map(\.0) == [.planned, .executed, .ready])
        #expect(moments.map(\.1) == [.microseconds(1), .microseconds(1234), .seconds(3)])
    }
}

@Suite("What eu-stack writes")
struct StackLookTests {
    @Test("is read by thread, functions with their files, an address where there is no name")
    func parse() {
        let text = """
            PID 12 - process
            TID 12:
            #0  0x00007f9806de8503 clock_nanosleep@GLIBC_2.2.5 - /usr/lib/x86_64-linux-gnu/libc.so.6
            #1  0x00000000005d64b4 - /usr/bin/python3.11
            #2  0x00000000005d64b4     A::b(int, char) - 1 - /opt/a - b/prog
            TID 13:
            #0  0x000055f6fa3e312d
            eu-stack: tid 12: shown max number of frames (5, use -n 0 for unlimited)
            """
        let stacks = StackSampler.parse(text)
        #expect(stacks[12]?.first == "clock_nanosleep@GLIBC_2.2.5 (libc.so.6)")
        #expect(stacks[12]?.dropFirst().first == "0x00000000005d64b4 (python3.11)")
        #expect(stacks[12]?.last?.hasPrefix("A::b(int, char)") ?? false)
        #expect(stacks[13] == ["0x000055f6fa3e312d"])
        #expect(StackSampler.parse("").isEmpty && StackSampler.parse("#0  0x1 x\nTID x:\n#0 y").isEmpty)
    }
}
