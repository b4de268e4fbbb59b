// SPDX-License-Identifier: Apache-2.0

import Engine
package import Lifecycle
package import TorporAPI

/// The tokens of the last requests that an app took, the newest first: a request that is asked again because its
/// client lost the connection is not carried out again.
///
/// A token is kept with its lowest bit set while what it asked for may or may not have been done, which only matters
/// for what cannot be taken in and recorded in one step: a signal.
package struct TakenTokens {
    /// How many are kept: clients ask again within seconds, and only those whose request was in flight.
    static let capacity = 4

    private var values: [UInt64] = []
    /// Whether the app's record has all of them.
    package internal(set) var isRecorded = true

    /// None.
    package init() {}

    /// As a record has them; 0 is none.
    package init(from record: inout RecordReader) {
        for _ in 0..<Self.capacity {
            let value = record.take(UInt64.self)
            if value > 1 { values.append(value) }
        }
    }

    /// Always of the same size.
    package func encode(into record: inout RecordWriter) {
        for index in 0..<Self.capacity { record.put(index < values.count ? values[index] : UInt64(0)) }
    }

    package enum Standing: Hashable {
        /// Never seen, or so long ago that it is forgotten.
        case unknown
        /// Taken, and nobody knows whether it came to be done.
        case uncertain
        /// Taken and done, or on its way to be.
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

    /// What the token asked for was refused: nothing has changed.
    package mutating func giveBack(_ token: RequestToken?) {
        guard let token else { return }
        values.removeAll { $0 & ~1 == token.value }
        isRecorded = false
    }
}

extension TakenTokens: Equatable {
    /// The same tokens, whether or not they are recorded.
    package static func == (left: TakenTokens, right: TakenTokens) -> Bool { left.values == right.values }
}

extension AppRuntime {
    /// What it was asked last, so that nothing is carried out twice.
    package var tokens: TakenTokens {
        get { slots[TokensSlot.self, default: TakenTokens()] }
        _modify { yield &slots[TokensSlot.self, default: TakenTokens()] }
    }
}

private enum TokensSlot: Slot { typealias Value = TakenTokens }
