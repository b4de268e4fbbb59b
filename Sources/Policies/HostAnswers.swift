// SPDX-License-Identifier: Apache-2.0

internal import CPolicyWire
internal import TorporPolicyABI

/// Decodes the messages of a host process, without I/O. The policy's library in that process may have written every
/// byte: so each size, count and offset is checked, and no input can crash this process.
public enum HostAnswers {
    /// Decodes the host's answer to ``HostMessages/Load``.
    ///
    /// - Throws: ``PolicyFailure/refused(_:)`` with the host's sentence, or ``PolicyFailure/nonsense(_:)``.
    public static func description(_ bytes: UnsafeRawBufferPointer) throws(PolicyFailure) -> PolicyDescription {
        let header = try header(bytes)
        guard header.serial == 0, header.count == 0 else {
            throw .nonsense("an answer before a question")
        }
        let rest: UnsafeRawBufferPointer
        switch header.type {
        case TORPOR_POLICY_REFUSED.rawValue:
            rest = UnsafeRawBufferPointer(rebasing: bytes[MemoryLayout<torpor_policy_wire_header>.size...])
            var texts = Texts(rest)
            let sentence = try texts.next(limit: Int(TORPOR_POLICY_SENTENCE_LIMIT))
            guard texts.isAtEnd, !sentence.isEmpty else { throw .nonsense("a refusal without a reason") }
            throw .refused(sentence)
        case TORPOR_POLICY_LOADED.rawValue:
            break
        default:
            throw .nonsense("message \(header.type) before it was loaded")
        }
        guard bytes.count >= MemoryLayout<torpor_policy_wire_loaded>.size else { throw .nonsense("half a description") }
        let wire = bytes.loadUnaligned(as: torpor_policy_wire_loaded.self)
        var texts = Texts(
            UnsafeRawBufferPointer(rebasing: bytes[MemoryLayout<torpor_policy_wire_loaded>.size...])
        )
        let name = try texts.next(limit: Int(TORPOR_POLICY_NAME_LIMIT))
        let version = try texts.next(limit: Int(TORPOR_POLICY_NAME_LIMIT))
        let summary = try texts.next(limit: Int(TORPOR_POLICY_SENTENCE_LIMIT))
        guard !name.isEmpty else { throw .nonsense("a policy without a name") }
        // Each description takes at least one byte (its NUL), so a message cannot have more descriptions than bytes.
        guard wire.descriptions <= bytes.count else { throw .nonsense("more descriptions than fit into a message") }
        var descriptions: [String] = []
        for _ in 0..<wire.descriptions { descriptions.append(try texts.next(limit: Int(TORPOR_POLICY_SENTENCE_LIMIT))) }
        guard texts.isAtEnd else { throw .nonsense("extra bytes after a description") }
        return PolicyDescription(
            name: name,
            version: version,
            summary: summary,
            abi: wire.abi,
            events: wire.events,
            needs: wire.needs,
            options: PolicyOptionDescription.options(from: descriptions),
            confinement: PolicyConfinement(rawValue: wire.confinement)
        )
    }

    fileprivate static func header(_ bytes: UnsafeRawBufferPointer) throws(PolicyFailure) -> torpor_policy_wire_header {
        guard bytes.count >= MemoryLayout<torpor_policy_wire_header>.size else {
            throw .nonsense("a message of only \(bytes.count) bytes")
        }
        guard bytes.count <= HostMessages.largest else {
            throw .nonsense("a message of more than \(HostMessages.largest) bytes")
        }
        return bytes.loadUnaligned(as: torpor_policy_wire_header.self)
    }

    /// Reads texts that follow each other, each ending with NUL.
    private struct Texts {
        private var rest: UnsafeRawBufferPointer

        init(_ bytes: UnsafeRawBufferPointer) { rest = bytes }

        var isAtEnd: Bool { rest.isEmpty }

        mutating func next(limit: Int) throws(PolicyFailure) -> String {
            guard let end = rest.firstIndex(of: 0) else { throw .nonsense("a text without its NUL") }
            let text = PolicyText.clean(UnsafeRawBufferPointer(rebasing: rest[..<end]), limit: limit)
            rest = UnsafeRawBufferPointer(rebasing: rest[(end + 1)...])
            return text
        }
    }
}

/// Assembles the answer to one question from its messages.
public struct HostAnswerReader {
    private let serial: UInt64
    private let eventCount: Int
    private let adviceLimit: Int
    private var answer = PolicyAnswer()

    /// Starts to assemble the answer to the question with this serial and number of events.
    public init(serial: UInt64, eventCount: Int, adviceLimit: Int) {
        self.serial = serial
        self.eventCount = eventCount
        self.adviceLimit = adviceLimit
    }

    /// Adds a message to the answer. Returns the whole answer after the last message, nil before.
    ///
    /// - Throws: ``PolicyFailure/nonsense(_:)`` or ``PolicyFailure/flooded(limit:)``; after that, discard all further
    ///   messages.
    public mutating func take(_ bytes: UnsafeRawBufferPointer) throws(PolicyFailure) -> PolicyAnswer? {
        let header = try HostAnswers.header(bytes)
        guard header.serial == serial else {
            throw .nonsense("an answer to question \(header.serial) when \(serial) was asked")
        }
        switch header.type {
        case TORPOR_POLICY_ADVICE.rawValue:
            guard header.count > 0 else { throw .nonsense("an advice message without advice") }
            try takeAdvice(bytes, from: MemoryLayout<torpor_policy_wire_header>.size, count: Int(header.count))
            return nil
        case TORPOR_POLICY_ANSWERED.rawValue:
            return try finish(bytes)
        default:
            throw .nonsense("message \(header.type) as an answer")
        }
    }

    /// Reads the advice that follows a message's header; it must fill the rest of the message.
    private mutating func takeAdvice(
        _ bytes: UnsafeRawBufferPointer,
        from start: Int,
        count: Int
    ) throws(PolicyFailure) {
        let size = MemoryLayout<torpor_policy_wire_advice>.size
        var offset = start
        guard count <= (bytes.count - offset) / size else { throw .nonsense("less advice than it announced") }
        guard answer.advice.count + count <= adviceLimit else { throw .flooded(limit: adviceLimit) }
        if answer.advice.isEmpty { answer.advice.reserveCapacity(count) }
        for _ in 0..<count {
            guard bytes.count - offset >= size else { throw .nonsense("half a piece of advice") }
            let wire = bytes.loadUnaligned(fromByteOffset: offset, as: torpor_policy_wire_advice.self)
            offset += size
            guard wire.event < eventCount else {
                throw .nonsense("advice to event \(wire.event) of a question about \(eventCount)")
            }
            let reasonSize = Int(wire.reason_bytes)
            guard reasonSize <= Int(TORPOR_POLICY_REASON_LIMIT), bytes.count - offset >= (reasonSize + 7) / 8 * 8 else {
                throw .nonsense("a reason of \(reasonSize) bytes")
            }
            answer.advice.append(
                PolicyAdvice(
                    event: Int(wire.event),
                    kind: wire.kind,
                    app: wire.app,
                    value: wire.value,
                    time: wire.time,
                    reason: reasonSize == 0
                        ? ""
                        : PolicyText.clean(
                            UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + reasonSize]),
                            limit: Int(TORPOR_POLICY_REASON_LIMIT)
                        )
                )
            )
            offset += (reasonSize + 7) / 8 * 8
        }
        guard offset == bytes.count else { throw .nonsense("extra bytes after a piece of advice") }
    }

    private mutating func finish(_ bytes: UnsafeRawBufferPointer) throws(PolicyFailure) -> PolicyAnswer {
        let size = MemoryLayout<torpor_policy_wire_answered>.size
        guard bytes.count >= size else { throw .nonsense("half an answer") }
        let wire = bytes.loadUnaligned(as: torpor_policy_wire_answered.self)
        guard wire.flooded <= 1 else { throw .nonsense("an answer with an invalid flag") }
        if wire.flooded == 1 { throw .flooded(limit: adviceLimit) }
        try takeAdvice(bytes, from: size, count: Int(wire.header.count))
        guard wire.advice_count == answer.advice.count else {
            throw .nonsense("\(wire.advice_count) pieces of advice announced, and \(answer.advice.count) sent")
        }
        guard eventCount == 64 || wire.decided >> UInt64(eventCount) == 0 else {
            throw .nonsense("a decision about more events than the \(eventCount) that it was asked about")
        }
        answer.decided = wire.decided
        return answer
    }
}
