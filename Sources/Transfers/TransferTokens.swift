// SPDX-License-Identifier: Apache-2.0

/// Which transfer a request became, so that it becomes one however often it is asked: the answer may be lost with a torpord,
/// and the transfer be over before the request comes again.
public struct TransferTokens: Sendable {
    private struct Key: Hashable {
        let app: String
        let token: UInt64
    }

    /// So many are known; a request is repeated within seconds.
    public static let most = 16_384

    private var ids: [Key: Int64] = [:]
    /// In the order in which they came; what went before its time is skipped.
    private var order: [Key] = []
    private var first = 0

    /// None.
    public init() {}

    /// How many are known.
    public var count: Int { ids.count }

    /// What a request of an app became; nil where it is new.
    public subscript(token: UInt64, app: String) -> Int64? { ids[Key(app: app, token: token)] }

    /// Remembers one; 0 is no token.
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

    /// It became none after all.
    public mutating func giveBack(_ token: UInt64, of app: String) {
        let key = Key(app: app, token: token)
        guard ids.removeValue(forKey: key) != nil else { return }
        order[first...].lastIndex(of: key).map { _ = order.remove(at: $0) }
    }

    /// The app is gone for good.
    public mutating func forget(_ app: String) {
        order = order[first...].filter { $0.app != app }
        first = 0
        ids = ids.filter { $0.key.app != app }
    }
}
