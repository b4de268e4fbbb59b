// SPDX-License-Identifier: Apache-2.0

import Engine
package import Lifecycle
package import TorporAPI

/// The tokens of the last requests that were accepted for an app, newest first. A client that has lost its connection
/// repeats its request with the same token, so torpord recognizes the request and does not carry it out twice.
///
/// The lowest bit of a stored token is set while it is unknown whether its request was carried out. Only requests that
/// cannot be carried out and recorded in one step need this bit, such as those to send a signal. Tokens with the lowest
/// bit 1 are stored in another form (``stored(_:)``), so that all bits of a token count.
package struct TakenTokens {
    /// How many tokens are stored for an app. A few are enough, because clients repeat only requests that were
    /// unanswered when the connection broke, and do so within seconds.
    static let capacity = 4

    private var values: [UInt64] = []
    /// How many of the last values are those of an earlier version, which stored odd tokens without their lowest bit.
    private var earlier = 0
    /// Whether the app's record contains all of these tokens.
    package internal(set) var isRecorded = true

    package init() {}

    /// Reads the tokens from a record. A 0 in the record stands for no token.
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

    /// The form in which a token is stored: its lowest bit is 0, and it is not 0.
    ///
    /// An even token is stored as it is, as earlier versions stored all tokens, so that their records can be read. An
    /// odd token is multiplied by an odd number, and the lowest bit of the product, which is always 1, is left out: two
    /// odd tokens are never stored alike. An odd token can only be stored like one even token, and neither of the two
    /// is small.
    private static func stored(_ token: RequestToken) -> UInt64 {
        guard token.value & 1 == 1 else { return token.value }
        // 2^64 divided by the golden ratio: the multiples of small numbers lie far from each other, and from 0.
        return max(2, token.value &* 0x9e37_79b9_7f4a_7c15 & ~1)
    }

    /// Says that an earlier version has written the record from which the tokens were read. An odd token is found there
    /// too, so that no request that is repeated after an upgrade is carried out twice; it is not told from the even
    /// token beside it, until newer tokens take the places of those from the record.
    mutating func areOfEarlierVersion() { earlier = values.count }

    /// The position of a token among the values; nil if it is not there.
    private func index(of token: RequestToken) -> Int? {
        let stored = Self.stored(token)
        if let index = values.firstIndex(where: { $0 & ~1 == stored }) { return index }
        return values.indices.suffix(earlier).first { values[$0] & ~1 == token.value & ~1 }
    }

    private mutating func remove(_ token: RequestToken) {
        guard let index = index(of: token) else { return }
        if index >= values.count - earlier { earlier -= 1 }
        values.remove(at: index)
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
        guard let token, let index = index(of: token) else { return .unknown }
        return values[index] & 1 == 0 ? .taken : .uncertain
    }

    package mutating func take(_ token: RequestToken?, isUncertain: Bool = false) {
        guard let token else { return }
        remove(token)
        values.insert(Self.stored(token) | (isUncertain ? 1 : 0), at: 0)
        isRecorded = false
        guard values.count > Self.capacity else { return }
        values.removeLast()
        earlier = max(0, earlier - 1)
    }

    /// Removes the token of a request that was refused and changed nothing.
    package mutating func giveBack(_ token: RequestToken?) {
        guard let token else { return }
        remove(token)
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
