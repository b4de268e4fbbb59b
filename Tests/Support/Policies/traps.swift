// SPDX-License-Identifier: Apache-2.0

// Calculates with more than an Int holds, which ends a Swift program.

import TorporPolicyABI

nonisolated(unsafe) private var table = torpor_policy()
nonisolated(unsafe) private let policy = UnsafeMutablePointer<Int>.allocate(capacity: 1)

/// The entry point.
@c(torpor_policy_entry)
public func entry(_ abi: UInt32) -> UnsafePointer<torpor_policy>? {
    table.size = UInt32(MemoryLayout<torpor_policy>.size)
    table.abi = 1
    table.minimum_abi = 1
    table.events = .max
    let name: StaticString = "traps"
    table.name = UnsafeRawPointer(name.utf8Start).assumingMemoryBound(to: CChar.self)
    table.create = { _, _, _ in
        policy.initialize(to: .max)
        return UnsafeMutableRawPointer(policy)
    }
    table.decide = { policy, _, event, reply in
        guard let policy, let event, let reply else { return 0 }
        let number = policy.assumingMemoryBound(to: Int.self).pointee
        var advice = torpor_policy_advice()
        advice.size = UInt32(MemoryLayout<torpor_policy_advice>.size)
        advice.kind = UInt32(TORPOR_ADVISE_GOAL.rawValue)
        let words = ["no", "trap", "yet"].map { $0.uppercased() }.joined(separator: " ")
        _ = words.withCString {
            advice.reason = $0
            return reply.pointee.advise(reply, &advice)
        }
        return event.pointee.kind == TORPOR_EVENT_TIMER.rawValue ? Int32(truncatingIfNeeded: number + 1) : 1
    }
    return withUnsafePointer(to: &table) { $0 }
}
