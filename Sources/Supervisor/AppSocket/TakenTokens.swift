// SPDX-License-Identifier: Apache-2.0

import Engine
package import Lifecycle
package import TorporAPI

/// The tokens of the last requests that were accepted for an app, newest first. A client that has lost its connection
/// repeats its request with the same token, so torpord recognizes the request and does not carry it out twice.
///
/// The lowest bit of a stored token is set while it is unknown whether its request was carried out. Only requests to
/// send a signal need this bit: sending a signal and recording that cannot be done in one step.
package struct TakenTokens {
    /// How many tokens are stored for an app. A few are enough, because clients repeat only requests that were
    /// unanswered when the connection broke, and do so within seconds.
    static let capacity = 4

    private var values: [UInt64] = []
    /// Whether the app's record contains all of these tokens.
    package internal(set) var isRecorded = true

    package init() {}

    /// Reads the tokens of a record; 0 marks an empty place.
    package init(from record: inout RecordReader) {
        for _ in 0..<Self.capacity {
            let value = record.take(UInt64.self)
            if value > 1 { values.append(value) }
        }
    }

    /// Writes the tokens, always as the same number of bytes.
    package func encode(into record: inout RecordWriter) {
        for index in 0..<Self.capacity { record.put(index < values.count ? values[index] : UInt64(0)) }
    }

    package enum Standing: Hashable {
        /// The token was never seen, or was dropped because newer ones came.
        case unknown
        /// The request with this token was accepted, but it is unknown whether the request was carried out.
        case uncertain
        /// The token's request was accepted, and was carried out or is about to be.
        case taken
    }

    package func standing(of token: RequestToken?) -> Standing {
        guard let token, let value = values.first(where: { $0 & ~1 == token.value }) else { return .unknown }
        return value & 1 == 0 ? .taken : .uncertain
    }

    package mutating func take(_ token: RequestToken?, isUncertain: Bool = false) {
        guard let token else { return }
        values.removeAll { $0 & ~1 == token.value }
        values.insert(token.value | (isUncertain ? 1 : 0), at: 0)
        isRecorded = false
        if values.count > Self.capacity { values.removeLast() }
    }

    /// Removes the token of a request that was refused and changed nothing.
    package mutating func giveBack(_ token: RequestToken?) {
        guard let token else { return }
        values.removeAll { $0 & ~1 == token.value }
        isRecorded = false
    }
}

extension TakenTokens: Equatable {
    /// Compares only the tokens, not whether they are recorded.
    package static func == (left: TakenTokens, right: TakenTokens) -> Bool { left.values == right.values }
}

extension AppRuntime {
    /// The tokens of the last requests that were accepted for the app.
    package var tokens: TakenTokens {
        get { slots[TokensSlot.self, default: TakenTokens()] }
        _modify { yield &slots[TokensSlot.self, default: TakenTokens()] }
    }
}

private enum TokensSlot: Slot { typealias Value = TakenTokens }
