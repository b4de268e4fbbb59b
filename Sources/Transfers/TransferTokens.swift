// SPDX-License-Identifier: Apache-2.0

/// Maps request tokens to transfers, so that a retried request does not start a second transfer. An app retries a
/// request if torpord died before it replied; the transfer may even have ended before the retry.
public struct TransferTokens: Sendable {
    private struct Key: Hashable {
        let app: String
        let token: UInt64
    }

    /// The most tokens that are remembered. That is enough, because requests are retried within seconds.
    public static let most = 16_384

    private var ids: [Key: Int64] = [:]
    /// The keys, the oldest first. Keys that were removed earlier are still in this array, and are skipped.
    private var order: [Key] = []
    private var first = 0

    /// Creates an empty map.
    public init() {}

    /// The number of tokens.
    public var count: Int { ids.count }

    /// The number of the transfer that a token of an app started; nil for a new token.
    public subscript(token: UInt64, app: String) -> Int64? { ids[Key(app: app, token: token)] }

    /// Records the token of a request. A token of 0 means that the request has none.
    public mutating func note(_ token: UInt64, of app: String, is id: Int64) {
        guard token != 0 else { return }
        let key = Key(app: app, token: token)
        if ids.updateValue(id, forKey: key) == nil { order.append(key) }
        while order.count - first > Self.most {
            ids[order[first]] = nil
            first += 1
        }
        if first > Self.most {
            order.removeFirst(first)
            first = 0
        }
    }

    /// Removes a token whose transfer was not started after all.
    public mutating func giveBack(_ token: UInt64, of app: String) {
        let key = Key(app: app, token: token)
        guard ids.removeValue(forKey: key) != nil else { return }
        order[first...].lastIndex(of: key).map { _ = order.remove(at: $0) }
    }

    /// Removes an app's tokens.
    public mutating func forget(_ app: String) {
        order = order[first...].filter { $0.app != app }
        first = 0
        ids = ids.filter { $0.key.app != app }
    }
}
