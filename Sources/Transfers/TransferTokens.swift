// SPDX-License-Identifier: Apache-2.0

/// Maps request tokens to transfers, so that a retried request does not start a second transfer. An app retries a
/// request if torpord died before it replied; the transfer may even have ended before the retry.
public struct TransferTokens: Sendable {
    /// The tokens of one app.
    private struct Own {
        var ids: [UInt64: Int64] = [:]
        /// The tokens from `first` on, the oldest first.
        var order: [UInt64] = []
        var first = 0

        mutating func note(_ token: UInt64, is id: Int64) {
            if ids.updateValue(id, forKey: token) == nil { order.append(token) }
            while order.count - first > TransferTokens.mostOfApp {
                ids[order[first]] = nil
                first += 1
            }
            if first > TransferTokens.mostOfApp {
                order.removeFirst(first)
                first = 0
            }
        }

        mutating func giveBack(_ token: UInt64) {
            guard ids.removeValue(forKey: token) != nil else { return }
            if let index = order[first...].lastIndex(of: token) { order.remove(at: index) }
        }
    }

    /// The most tokens of an app that are remembered, whatever other apps request. That is enough, because requests are
    /// retried within seconds.
    public static let mostOfApp = 2_048

    private var apps: [String: Own] = [:]

    /// Creates an empty map.
    public init() {}

    /// The number of an app's tokens.
    public func count(of app: String) -> Int { apps[app]?.ids.count ?? 0 }

    /// The number of the transfer that a token of an app started; nil for a new token.
    public subscript(token: UInt64, app: String) -> Int64? { apps[app]?.ids[token] }

    /// Records the token of a request. A token of 0 means that the request has none.
    public mutating func note(_ token: UInt64, of app: String, is id: Int64) {
        guard token != 0 else { return }
        apps[app, default: Own()].note(token, is: id)
    }

    /// Removes a token whose transfer was not started after all.
    public mutating func giveBack(_ token: UInt64, of app: String) { apps[app]?.giveBack(token) }

    /// Removes an app's tokens.
    public mutating func forget(_ app: String) { apps[app] = nil }
}
