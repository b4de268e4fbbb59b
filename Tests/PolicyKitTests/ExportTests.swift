// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import TorporPolicyKit

/// Does what its option says, and tells what it was asked.
private struct Echo: Policy {
    static let description = PolicyDescription(
        name: "echo",
        version: "1.2",
        summary: "For tests.",
        events: [.started, .eviction],
        needs: [.memory, .machine],
        options: [
            OptionDescription("mode", "string", default: "\"plain\"", "what to do"),
            OptionDescription("size", "integer", default: "0", "how long reasons are"),
        ],
        minimumABI: 1
    )

    enum Mode: String, CaseIterable {
        case plain
        case every
        case long
        case wrong
    }

    let mode: Mode
    let size: Int
    private let life = Life()

    init(options: Options) throws(PolicyError) {
        mode = try options.word("mode", default: .plain)
        size = try options.integer("size", default: 0, in: 0...1000)
        if mode == .wrong { throw options.error("mode", String(repeating: "ä", count: 100)) }
    }

    mutating func decide(_ event: Event, in view: View, advice: inout Advice) -> Verdict {
        guard let app = view[0] else {
            advice.askAgain(after: .seconds(1), because: "\(event)")
            return .decided
        }
        switch mode {
        case .plain:
            advice.send(app, to: .suspended, because: "\(event)".prefix { $0 != "(" }.description)
        case .every:
            advice.send(app, to: .background)
            advice.grant(app, .seconds(2), because: "b")
            advice.order(app, 3, because: "c")
            advice.admit(app)
            advice.delay(app, by: .milliseconds(4))
            advice.refuse(app)
            advice.restart(app, after: .seconds(5))
            advice.giveUp(app)
            advice.profile(app, of: .inactive)
            advice.askAgain(after: .seconds(6))
        case .long, .wrong:
            advice.send(app, to: .active, because: "a\n" + String(repeating: "é", count: size))
        }
        return advice.isFull ? .decided : .continue
    }
}

/// Counts the policies that live.
private final class Life {
    nonisolated(unsafe) static var count = 0
    init() { Self.count += 1 }
    deinit { Self.count -= 1 }
}

private struct Other: Policy {
    static let description = PolicyDescription(name: "other", version: "", summary: "", events: [])
    init(options: Options) throws(PolicyError) {}
    mutating func decide(_ event: Event, in view: View, advice: inout Advice) -> Verdict { .continue }
}

private struct Modern: Policy {
    static let description = PolicyDescription(name: "modern", version: "", summary: "", events: [], minimumABI: 9)
    init(options: Options) throws(PolicyError) {}
    mutating func decide(_ event: Event, in view: View, advice: inout Advice) -> Verdict { .continue }
}

/// Takes what is advised.
private final class Taker {
    var taken: [(kind: UInt32, app: UInt32, value: UInt32, time: Int64, reason: String?)] = []
    var room = Int.max

    func reply<Result>(_ body: (UnsafePointer<torpor_policy_reply>) -> Result) -> Result {
        var reply = torpor_policy_reply(
            size: UInt32(MemoryLayout<torpor_policy_reply>.size),
            reserved: 0,
            context: Unmanaged.passUnretained(self).toOpaque(),
            advise: { reply, advice in
                let taker = Unmanaged<Taker>.fromOpaque(reply!.pointee.context).takeUnretainedValue()
                guard taker.taken.count < taker.room else { return -1 }
                let given = advice!.pointee
                let reason = given.reason.map { String(cString: $0) }
                taker.taken.append((given.kind, given.app, given.value, given.time, reason))
                return 0
            }
        )
        return body(&reply)
    }
}

@Suite("What a library exports", .serialized)
struct ExportTests {
    private let table: torpor_policy

    init() throws { table = try #require(Echo.exported(to: 1)).pointee }

    private func make(
        _ values: KeyValuePairs<String, FakeOptions.Value>,
        room: Int = 1024
    ) -> (UnsafeMutableRawPointer?, String) {
        let fake = FakeOptions(values)
        var sentence = [CChar](repeating: 0x55, count: room)
        let made = table.create(fake.pointer, &sentence, room)
        return (
            made,
            made == nil
                ? String(decoding: sentence.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self) : ""
        )
    }

    private func ask(
        _ policy: UnsafeMutableRawPointer?,
        _ event: torpor_policy_event,
        of fake: FakeView,
        room: Int = .max
    ) -> (Int32, Taker) {
        let taker = Taker()
        taker.room = room
        let verdict = taker.reply { reply in
            withUnsafePointer(to: event) { table.decide(policy, fake.pointer, $0, reply) }
        }
        return (verdict, taker)
    }

    private func event(
        _ kind: UInt32,
        app: UInt32 = .max,
        from: UInt32 = 0,
        to: UInt32 = 0,
        delay: Int64 = .min
    ) -> torpor_policy_event {
        torpor_policy_event(
            size: UInt32(MemoryLayout<torpor_policy_event>.size),
            kind: kind,
            app: app,
            from: from,
            to: to,
            reason: 1,
            at: 0,
            delay: delay
        )
    }

    @Test("the table says of the policy what the policy says of itself")
    func description() {
        #expect(table.size == MemoryLayout<torpor_policy>.size)
        #expect(table.abi == TORPOR_POLICY_ABI)
        #expect(table.minimum_abi == 1)
        #expect(table.events == 1 << 0 | 1 << 9)
        #expect(table.needs == 1 << 0 | 1 << 3)
        #expect(
            [table.name, table.version, table.summary].map { String(cString: $0!) } == ["echo", "1.2", "For tests."]
        )
        var texts: [String] = []
        var next = table.options!
        while let text = next.pointee {
            texts.append(String(cString: text))
            next += 1
        }
        #expect(texts == ["mode", "string", "\"plain\"", "what to do", "size", "integer", "0", "how long reasons are"])
    }

    @Test("the table is made once, a library has one policy, and a supervisor that is too old gets none")
    func entry() throws {
        let first = try #require(Echo.exported(to: 1))
        #expect(Echo.exported(to: 7) == first)
        #expect(Other.exported(to: 1) == nil)
        #expect(Modern.exported(to: 8) == nil)
    }

    @Test("several policies of one library live side by side, and go when they are destroyed")
    func lives() {
        let before = Life.count
        let (first, _) = make([:])
        let (second, _) = make(["mode": "every"])
        #expect(first != nil && second != nil && first != second)
        #expect(Life.count == before + 2)
        table.destroy(first)
        table.destroy(second)
        table.destroy(nil)
        #expect(Life.count == before)
    }

    @Test("options that are wrong make no policy, and the sentence is whole characters in the room there is")
    func wrong() {
        #expect(make(["mod": "x"]).1 == "mod is not an option of this policy: did you mean mode?")
        #expect(make(["mode": "wrong"]).1 == "mode " + String(repeating: "ä", count: 100))
        #expect(make(["mode": "wrong"], room: 11).1 == "mode ää")
        #expect(make(["mode": "wrong"], room: 1).1 == "")
        let fake = FakeOptions(["mod": "x"])
        #expect(table.create(fake.pointer, nil, 0) == nil)
        let made = table.create(nil, nil, 0)
        #expect(made != nil)
        table.destroy(made)
    }

    @Test("advice arrives with all that it says")
    func advice() {
        let (policy, _) = make(["mode": "every"])
        defer { table.destroy(policy) }
        let fake = FakeView(places: 1)
        fake.put(0, "a")
        let (verdict, taker) = ask(policy, event(0), of: fake)
        #expect(verdict == Int32(TORPOR_CONTINUE.rawValue))
        #expect(taker.taken.map(\.kind) == Array(1...10))
        #expect(taker.taken.map(\.app) == [0, 0, 0, 0, 0, 0, 0, 0, 0, .max])
        #expect(taker.taken.map(\.value) == [3, 0, 3, 0, 0, 0, 0, 0, 1, 0])
        #expect(taker.taken.map(\.time) == [0, 2_000_000, 0, 0, 4_000, 0, 5_000_000, 0, 0, 6_000_000])
        #expect(taker.taken.map(\.reason) == [nil, "b", "c", nil, nil, nil, nil, nil, nil, nil])
    }

    @Test("when there is no room for more, nothing more is given")
    func full() {
        let (policy, _) = make(["mode": "every"])
        defer { table.destroy(policy) }
        let fake = FakeView(places: 1)
        fake.put(0, "a")
        let (verdict, taker) = ask(policy, event(0), of: fake, room: 3)
        #expect(verdict == Int32(TORPOR_DECIDED.rawValue))
        #expect(taker.taken.count == 3)
    }

    @Test(
        "a reason is one line of whole characters in 200 bytes",
        arguments: [(98, 98), (99, 99), (100, 99), (1000, 99)]
    )
    func reasons(size: Int, kept: Int) {
        let (policy, _) = make(["mode": "long", "size": .integer(Int64(size))])
        defer { table.destroy(policy) }
        let fake = FakeView(places: 1)
        fake.put(0, "a")
        let (_, taker) = ask(policy, event(0), of: fake)
        #expect(taker.taken.first?.reason == "a " + String(repeating: "é", count: kept))
    }

    @Test(
        "events are what the header says, and what is not known or about nobody is unknown",
        arguments: [
            (0, "started"), (1, "appsChanged"), (2, "stateChanged"), (3, "goalChanged"), (4, "timeUsed"), (5, "launch"),
            (6, "ended"), (7, "timer"), (8, "pressureChanged"), (9, "eviction"), (10, "unknown"),
            (4_000_000_000, "unknown"),
        ] as [(UInt32, String)]
    )
    func events(kind: UInt32, name: String) {
        let (policy, _) = make([:])
        defer { table.destroy(policy) }
        let fake = FakeView(places: 1)
        fake.put(0, "a")
        #expect(ask(policy, event(kind, app: 0, from: 1, to: 2), of: fake).1.taken.first?.reason == name)
        let isAboutApp = (2...6).contains(kind)
        let lost = ask(policy, event(kind, app: 1, from: 1, to: 2), of: fake).1.taken.first?.reason
        #expect(lost == (isAboutApp ? "unknown" : name))
        if [2, 3, 8].contains(kind) {
            #expect(ask(policy, event(kind, app: 0, from: 1, to: 99), of: fake).1.taken.first?.reason == "unknown")
        }
    }

    @Test("a question that is none is passed by")
    func nonsense() {
        let (policy, _) = make([:])
        defer { table.destroy(policy) }
        let fake = FakeView(places: 1)
        fake.put(0, "a")
        var short = event(0)
        short.size = 8
        #expect(ask(policy, short, of: fake).1.taken.isEmpty)
        #expect(ask(nil, event(0), of: fake).1.taken.isEmpty)
        fake.pointer.pointee.size = 4
        #expect(ask(policy, event(0), of: fake).1.taken.isEmpty)
        #expect(table.decide(policy, nil, nil, nil) == Int32(TORPOR_CONTINUE.rawValue))
    }
}
