// SPDX-License-Identifier: Apache-2.0

import CFuzzTargets
import KeeperProtocol

/// Messages of torpord to the keeper: each two bytes of length, a byte that says how many descriptors are beside it
/// (and with its high bit that there were more), and the message. The keeper's answers are read by torpord's side.
enum KeeperRequests: FuzzedParser {
    /// Three bytes may have 127 descriptors with them, each of which is closed.
    static let nanosecondsPerByte = 40_000

    static func run(_ bytes: [UInt8]) throws(Finding) {
        cfuzz_keeper_reset()
        var rest = bytes[...]
        var problem: String?
        var answers = 0
        while rest.count >= 3, problem == nil {
            let head = Array(rest.prefix(3))
            rest = rest.dropFirst(3)
            let message = Array(rest.prefix(Int(head[0]) | Int(head[1]) << 8))
            rest = rest.dropFirst(message.count)
            let descriptors = min(UInt32(head[2] & 0x7f), 253)
            withUnsafeMutablePointer(to: &problem) { problem in
                cfuzz_keeper_serve(
                    message,
                    message.count,
                    descriptors,
                    head[2] & 0x80 != 0,
                    { context, answer, size, count in
                        guard let context, let answer else { return }
                        let problem = context.assumingMemoryBound(to: String?.self)
                        let bytes = Array(UnsafeRawBufferPointer(start: answer, count: size))
                        problem.pointee = problem.pointee ?? KeeperRequests.look(bytes, Int(count))
                    },
                    problem
                )
            }
            answers += 1
        }
        cfuzz_keeper_reset()
        if let problem { throw Finding(problem) }
    }

    /// What is wrong with an answer.
    private static func look(_ bytes: [UInt8], _ descriptors: Int) -> String? {
        guard let (_, message) = KeeperMessage.decode(bytes) else { return "torpord cannot read an answer" }
        switch message {
        case .held(let part):
            let count = part.names.reduce(0) { $0 + $1.count }
            return count == descriptors ? nil : "\(descriptors) descriptors are held under names of \(count)"
        case .taken(_, let total):
            return descriptors <= total ? nil : "\(descriptors) descriptors of \(total)"
        case .unknown(let type): return "an answer has the type \(type)"
        default: return nil
        }
    }
}
