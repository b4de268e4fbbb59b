// SPDX-License-Identifier: Apache-2.0

import Configuration
import Gateway
import HTTPServing

/// The objects that all sources of messages share.
struct GatewayContext: Sendable {
    let queue: PostQueue
    let log: GatewayLog
    let owners: OwnerWatch
    let secrets: Secrets
    let maxPayload: Int
    let stop: Stop
}

/// The delay before a retry: from a second to a minute.
struct Backoff {
    private var last = Duration.zero

    mutating func next() -> Duration {
        last = min(max(.seconds(1), last * 2), .seconds(60))
        return last
    }

    mutating func reset() { last = .zero }
}
