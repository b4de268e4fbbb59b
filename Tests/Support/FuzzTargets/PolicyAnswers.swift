// SPDX-License-Identifier: Apache-2.0

import Policies

/// What a policy's process says: messages with two bytes of length before each. The first byte says how many events were
/// asked about; a message may be the first one, which describes the policy, or one of an answer to question 7.
enum PolicyAnswers: FuzzedParser {
    static func run(_ bytes: [UInt8]) throws(Finding) {
        guard let first = bytes.first else { return }
        var reader = HostAnswerReader(serial: 7, eventCount: 1 + Int(first % 64), adviceLimit: 256)
        var isOver = false
        var rest = bytes.dropFirst()
        while rest.count >= 2 {
            let head = Array(rest.prefix(2))
            rest = rest.dropFirst(2)
            let message = Array(rest.prefix(Int(head[0]) | Int(head[1]) << 8))
            rest = rest.dropFirst(message.count)
            if let description = try? message.withUnsafeBytes(HostAnswers.description) {
                try look(description.name, 63)
                try look(description.version, 63)
                try look(description.summary, 1_023)
                try expect(description.options.count <= message.count, "\(description.options.count) options")
            }
            guard !isOver else { continue }
            do throws(PolicyFailure) {
                let answer = try take(&reader, message)
                isOver = answer != nil
                for advice in answer?.advice ?? [] where advice.reason.utf8.count > 200 || advice.event >= 64 {
                    throw .nonsense("advice beyond its limits was taken")
                }
            } catch {
                if case .nonsense("advice beyond its limits was taken") = error { throw Finding("\(error)") }
                isOver = true
            }
        }
    }

    private static func take(_ reader: inout HostAnswerReader, _ bytes: [UInt8]) throws(PolicyFailure) -> PolicyAnswer?
    {
        let result: Result<PolicyAnswer?, PolicyFailure> = bytes.withUnsafeBytes { raw in
            do throws(PolicyFailure) {
                return .success(try reader.take(raw))
            } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }

    private static func look(_ text: String, _ limit: Int) throws(Finding) {
        try expect(text.utf8.count <= limit, "a text of \(text.utf8.count) bytes")
        let isPlain = text.unicodeScalars.allSatisfy { $0.value >= 0x20 && !(0x7f..<0xa0).contains($0.value) }
        try expect(isPlain, "a control character")
    }
}
