// SPDX-License-Identifier: Apache-2.0

import CPolicyWire
import Policies
import Testing
import TorporPolicyABI

/// What comes from a host process is believed in nothing: wrong messages are failures, whatever is wrong with them.
struct HostMessagesTests {
    /// A message being written.
    private struct Message {
        var bytes: [UInt8] = []

        init(_ type: torpor_policy_wire_type, count: UInt32 = 0, serial: UInt64 = 0) {
            add(torpor_policy_wire_header(type: type.rawValue, count: count, serial: serial))
        }

        mutating func add<Value: BitwiseCopyable>(_ value: Value) {
            withUnsafeBytes(of: value) { bytes.append(contentsOf: $0) }
        }

        mutating func add(text: String) { bytes += Array(text.utf8) + [0] }
    }

    private func loaded(descriptions: UInt32 = 0, texts: [String], behind: [UInt8] = []) -> [UInt8] {
        var message = Message(TORPOR_POLICY_LOADED)
        for value: UInt32 in [3, descriptions] { message.add(value) }
        for value: UInt64 in [5, 7] { message.add(value) }
        for value: UInt32 in [3, 0] { message.add(value) }
        for text in texts { message.add(text: text) }
        return message.bytes + behind
    }

    private func advice(_ entries: [(event: UInt32, reason: String)], serial: UInt64 = 9) -> [UInt8] {
        Message(TORPOR_POLICY_ADVICE, count: UInt32(entries.count), serial: serial).bytes + self.entries(entries)
    }

    private func entries(_ entries: [(event: UInt32, reason: String)]) -> [UInt8] {
        var message = Message(TORPOR_POLICY_ADVICE)
        message.bytes = []
        for entry in entries {
            let reason = Array(entry.reason.utf8)
            message.add(
                torpor_policy_wire_advice(
                    event: entry.event,
                    kind: 1,
                    app: 2,
                    value: 3,
                    time: 4,
                    reason_bytes: UInt32(reason.count),
                    reserved: 0
                )
            )
            message.bytes += reason + [UInt8](repeating: 0, count: (8 - reason.count % 8) % 8)
        }
        return message.bytes
    }

    private func answered(
        decided: UInt64 = 0,
        count: UInt32,
        flooded: UInt32 = 0,
        serial: UInt64 = 9,
        with advice: [(event: UInt32, reason: String)] = []
    ) -> [UInt8] {
        var message = Message(TORPOR_POLICY_ANSWERED, count: UInt32(advice.count), serial: serial)
        message.add(decided)
        message.add(count)
        message.add(flooded)
        return message.bytes + entries(advice)
    }

    private func describe(_ bytes: [UInt8]) throws(PolicyFailure) -> PolicyDescription {
        // As large as it is, not a byte more: what reads behind it ends the test.
        let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: max(bytes.count, 1), alignment: 1)
        defer { copy.deallocate() }
        copy.copyBytes(from: bytes)
        return try HostAnswers.description(UnsafeRawBufferPointer(rebasing: copy[..<bytes.count]))
    }

    private func read(
        _ messages: [[UInt8]],
        events: Int = 4,
        limit: Int = 5
    ) throws(PolicyFailure) -> PolicyAnswer? {
        var reader = HostAnswerReader(serial: 9, eventCount: events, adviceLimit: limit)
        var answer: PolicyAnswer?
        for message in messages {
            let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: max(message.count, 1), alignment: 1)
            defer { copy.deallocate() }
            copy.copyBytes(from: message)
            answer = try reader.take(UnsafeRawBufferPointer(rebasing: copy[..<message.count]))
        }
        return answer
    }

    @Test func aDescriptionIsReadAsItIs() throws {
        let texts = ["name", "1.0", "What it does.", "key", "integer", "4", "What it is for.", "rest"]
        #expect(
            try describe(loaded(descriptions: 5, texts: texts))
                == PolicyDescription(
                    name: "name",
                    version: "1.0",
                    summary: "What it does.",
                    abi: 3,
                    events: 5,
                    needs: 7,
                    options: [
                        PolicyOptionDescription(
                            key: "key",
                            type: "integer",
                            defaultValue: "4",
                            meaning: "What it is for."
                        )
                    ],
                    confinement: [.files, .systemCalls]
                )
        )
    }

    @Test func aRefusalIsItsSentence() throws {
        var message = Message(TORPOR_POLICY_REFUSED)
        message.add(text: "it does not want to\nreally")
        #expect(throws: PolicyFailure.refused("it does not want to really")) { try describe(message.bytes) }
    }

    @Test func wrongDescriptionsMakeNoSense() {
        let texts = ["name", "1.0", "What it does."]
        var wrong: [[UInt8]] = [
            [], [1, 2, 3], Message(TORPOR_POLICY_LOADED).bytes, Message(TORPOR_POLICY_REFUSED).bytes,
            Message(TORPOR_POLICY_REFUSED).bytes + [0], Message(TORPOR_POLICY_REFUSED).bytes + [65],
            Message(TORPOR_POLICY_REFUSED).bytes + [65, 0, 66], Message(TORPOR_POLICY_ANSWERED).bytes,
            Message(TORPOR_POLICY_LOAD).bytes, loaded(texts: ["", "1.0", "What it does."]), loaded(texts: []),
            loaded(texts: ["name", "1.0"]), loaded(texts: texts, behind: [65]), loaded(texts: texts, behind: [0]),
            loaded(descriptions: 1, texts: texts), loaded(descriptions: .max, texts: texts),
            loaded(texts: texts + [String(repeating: "x", count: 40000)]),
        ]
        let whole = loaded(texts: texts)
        for size in 0..<whole.count { wrong.append(Array(whole[..<size])) }
        for bytes in wrong {
            let failure = #expect(throws: PolicyFailure.self) { try describe(bytes) }
            guard case .nonsense(let what) = failure else {
                Issue.record("\(bytes) is \(String(describing: failure))")
                continue
            }
            #expect(!what.isEmpty)
        }
    }

    @Test func anAnswerComesInParts() throws {
        #expect(try read([answered(decided: 0b1001, count: 0)]) == PolicyAnswer(decided: 0b1001))
        let entry = { PolicyAdvice(event: $0, kind: 1, app: 2, value: 3, time: 4, reason: $1) }
        #expect(
            try read([advice([(0, "one"), (3, "")]), advice([(1, "12345678")]), answered(count: 3)])
                == PolicyAnswer(advice: [entry(0, "one"), entry(3, ""), entry(1, "12345678")])
        )
        // The last part, or all of it, comes with its end.
        #expect(
            try read([answered(decided: 1, count: 2, with: [(0, "one"), (3, "")])])
                == PolicyAnswer(decided: 1, advice: [entry(0, "one"), entry(3, "")])
        )
        #expect(
            try read([advice([(0, "one")]), answered(count: 2, with: [(3, "two")])])
                == PolicyAnswer(advice: [entry(0, "one"), entry(3, "two")])
        )
        // All 64 events of a question may be decided.
        #expect(try read([answered(decided: .max, count: 0)], events: 64)?.decided == .max)
    }

    @Test func moreAdviceThanAllowedIsAFlood() {
        let six = [(UInt32(0), "")] + [(UInt32, String)](repeating: (1, ""), count: 5)
        #expect(throws: PolicyFailure.flooded(limit: 5)) { try read([advice(six)]) }
        #expect(throws: PolicyFailure.flooded(limit: 5)) {
            try read([advice(Array(six[..<3])), advice(Array(six[3...]))])
        }
        #expect(throws: PolicyFailure.flooded(limit: 5)) { try read([answered(count: 6, with: six)]) }
        #expect(throws: PolicyFailure.flooded(limit: 5)) { try read([answered(count: 0, flooded: 1)]) }
    }

    @Test func wrongAnswersMakeNoSense() {
        let good = advice([(0, "a reason")])
        var tooLong = good
        tooLong[40] = 201
        var longReason = advice([(0, String(repeating: "x", count: 200))])
        longReason[40] = 208
        var many = good
        many[4] = 2
        var none = good
        none[4] = 0
        var wrong: [[[UInt8]]] = [
            [[]], [answered(count: 1)], [good, answered(count: 0)], [answered(count: 0, serial: 8)],
            [advice([(0, "")], serial: 10)], [advice([(4, "")])], [advice([(.max, "")])], [good + [0]],
            [good + [UInt8](repeating: 0, count: 8)], [tooLong], [longReason], [many], [none], [advice([])],
            [answered(count: 0) + [0]], [answered(count: 2, with: [(0, "")])], [answered(count: 0, with: [(0, "")])],
            [answered(count: 1, with: [(4, "")])], [answered(count: 1, with: [(0, "")]) + [0]],
            [advice([(0, "")]), answered(count: 1, with: [(0, "")])], [answered(decided: 0b10000, count: 0)],
            [answered(decided: .max, count: 0)],
            [answered(count: 0, flooded: 2)], [Message(TORPOR_POLICY_ANSWERED, count: 1, serial: 9).bytes],
            [Message(TORPOR_POLICY_LOADED, serial: 9).bytes], [Message(TORPOR_POLICY_ASK, serial: 9).bytes],
            [Message(TORPOR_POLICY_ADVICE, count: .max, serial: 9).bytes],
            [[UInt8](repeating: 0, count: 40000)],
        ]
        for size in 0..<good.count { wrong.append([Array(good[..<size])]) }
        let whole = answered(count: 0)
        for size in 0..<whole.count { wrong.append([Array(whole[..<size])]) }
        let full = answered(count: 1, with: [(0, "a reason")])
        for size in 0..<full.count { wrong.append([Array(full[..<size])]) }
        for messages in wrong {
            let failure = #expect(throws: PolicyFailure.self) { try read(messages) }
            guard case .nonsense(let what) = failure else {
                Issue.record("\(messages) is \(String(describing: failure))")
                continue
            }
            #expect(!what.isEmpty)
        }
    }

    /// Bytes of no meaning, and messages with a few bytes changed, end in a failure or an answer within the bounds.
    @Test func randomBytesDoNoHarm() {
        var random = SeededGenerator(seed: 42)
        let models = [
            loaded(descriptions: 4, texts: ["name", "1.0", "What it does.", "a", "b", "c", "d"]),
            advice([(0, "one"), (1, "a longer reason"), (2, ""), (3, "ä")]), answered(decided: 3, count: 0),
            answered(decided: 3, count: 2, with: [(0, "one"), (1, "a longer reason")]),
            Message(TORPOR_POLICY_REFUSED).bytes + [65, 0],
        ]
        var (described, answers, failures) = (0, 0, 0)
        for _ in 0..<60000 {
            var bytes = models[Int.random(in: 0..<models.count, using: &random)]
            switch Int.random(in: 0..<4, using: &random) {
            case 0:
                bytes = (0..<Int.random(in: 0..<128, using: &random)).map { _ in
                    UInt8.random(in: .min ... .max, using: &random)
                }
            case 1:
                bytes.removeLast(Int.random(in: 0..<bytes.count, using: &random))
            case 2:
                bytes += (0..<Int.random(in: 0..<64, using: &random)).map { _ in
                    .random(in: .min ... .max, using: &random)
                }
            default:
                for _ in 0..<Int.random(in: 1...4, using: &random) {
                    bytes[Int.random(in: 0..<bytes.count, using: &random)] =
                        [0, 1, 0x7F, 0x80, 0xFF, .random(in: .min ... .max, using: &random)].randomElement(
                            using: &random
                        )!
                }
            }
            do {
                let description = try describe(bytes)
                described += 1
                #expect(!description.name.isEmpty && description.name.utf8.count <= 63)
            } catch { failures += 1 }
            do {
                if let answer = try read([bytes, answered(count: 0)]) { answers += answer.advice.isEmpty ? 1 : 0 }
            } catch { failures += 1 }
        }
        // Each way was taken.
        #expect(described > 100 && failures > 10000 && answers >= 0)
    }

    @Test func questionsAreWrittenAsTheWireHasThem() {
        var event = torpor_policy_event()
        event.kind = 7
        event.at = -1
        var bytes: [UInt8] = [1, 2, 3]
        HostMessages.encodeQuestion(serial: 77, [event, event], into: &bytes)
        let stride = MemoryLayout<torpor_policy_event>.stride
        #expect(bytes.count == MemoryLayout<torpor_policy_wire_ask>.size + 2 * stride)
        bytes.withUnsafeBytes { raw in
            let ask = raw.loadUnaligned(as: torpor_policy_wire_ask.self)
            #expect(ask.header.type == 2 && ask.header.count == 2 && ask.header.serial == 77)
            #expect(ask.event_size == stride)
            let second = raw.loadUnaligned(fromByteOffset: bytes.count - stride, as: torpor_policy_event.self)
            #expect(second.size == stride && second.kind == 7 && second.at == -1)
        }
    }

    @Test func textsOfPoliciesAreFitForTerminals() {
        #expect(PolicyText.clean("plain", limit: 200) == "plain")
        #expect(PolicyText.clean("a\tb\r\nc\u{2028}d", limit: 200) == "a b  c d")
        #expect(
            PolicyText.clean("\u{1B}[2J\u{7F}\u{9B}\u{202E}x", limit: 200) == "\u{FFFD}[2J\u{FFFD}\u{FFFD}\u{FFFD}x"
        )
        // Never longer than its limit, never half a character.
        #expect(PolicyText.clean("äöü", limit: 4) == "äö")
        #expect(PolicyText.clean("äöü", limit: 5).utf8.count <= 5)
        #expect(PolicyText.clean("\0\0\0", limit: 4) == "\u{FFFD}")
    }

    @Test func theLastLineIsTheLastThatSaysSomething() {
        func last(_ parts: String...) -> String {
            var lines = PolicyLines()
            for part in parts { _ = Array(part.utf8).withUnsafeBytes { lines.take($0) } }
            _ = lines.finish()
            return lines.last
        }
        #expect(last() == "" && last("\n\n") == "")
        #expect(last("one\ntwo\n \n") == "two")
        #expect(last("on", "e\ntw", "o") == "two")
        #expect(last("  what():  boom\n") == "what():  boom")
        #expect(last(String(repeating: "x", count: 5000)).count == 512)
        #expect(last(String(repeating: "x\n", count: 5000), "end") == "end")
    }

    @Test func linesComeWhenTheyEnd() {
        var lines = PolicyLines()
        func take(_ text: String) -> [String] { Array(text.utf8).withUnsafeBytes { lines.take($0) } }
        #expect(take("one\n\n  tw") == ["one"])
        #expect(take("o\r\nthree\u{1B}[2J\nfour") == ["two", "three\u{FFFD}[2J"])
        let ends = [lines.finish(), lines.finish()]
        #expect(ends == ["four", nil] && lines.last == "four")
        #expect(take(String(repeating: "x", count: 9000) + "\nnext\n").map(\.utf8.count) == [512, 4])
    }
}
