// SPDX-License-Identifier: Apache-2.0

import DesktopProtocol

/// What a helper is to show and has not reported as over: from this follows what another helper must be told, and
/// whether one is needed.
struct DesktopLedger {
    /// Open alerts that this torpord has sent.
    private var open: [Int64: DesktopAlert] = [:]
    /// Open alerts and unacknowledged answers that the helper has from an earlier torpord.
    private var inherited: Set<Int64> = []
    /// Alerts whose answer is not acknowledged.
    private var answered: Set<Int64> = []
    private var badges: [String: Int64] = [:]

    /// Open alerts and badges. torpor-desktop takes no more either.
    static let most = 256

    var isEmpty: Bool { open.isEmpty && inherited.isEmpty && answered.isEmpty && badges.isEmpty }

    /// The open alerts that this torpord has sent.
    var ids: [Int64] { open.keys.sorted() }

    /// What a helper that knows nothing must be told.
    var commands: [DesktopCommand] {
        open.sorted { $0.key < $1.key }.map { .show($0.value) }
            + badges.sorted { $0.key < $1.key }.map { .badge(entry: $0.key, count: $0.value) }
    }

    /// False if there are too many.
    mutating func show(_ alert: DesktopAlert) -> Bool {
        guard open[alert.id] != nil || open.count < Self.most else { return false }
        open[alert.id] = alert
        inherited.remove(alert.id)
        return true
    }

    /// The alert is over, or torpord no longer needs its answer.
    mutating func forget(_ id: Int64) {
        open[id] = nil
        inherited.remove(id)
        answered.remove(id)
    }

    /// False if there are too many.
    mutating func badge(_ entry: String, _ count: Int64) -> Bool {
        guard count <= 0 || badges[entry] != nil || badges.count < Self.most else { return false }
        badges[entry] = count > 0 ? count : nil
        return true
    }

    /// The helper has reported what it knows. Returns all that is on the screen, or is to be.
    mutating func greeted(_ ids: [Int64]) -> [Int64] {
        inherited = Set(ids.prefix(2 * Self.most)).subtracting(open.keys)
        return inherited.union(open.keys).sorted()
    }

    /// A person has answered. False if no torpord has asked.
    mutating func answer(_ id: Int64) -> Bool {
        guard open[id] != nil || inherited.contains(id) || answered.contains(id) else { return false }
        forget(id)
        answered.insert(id)
        return true
    }

    /// The helper is gone. What only the helper knew is lost.
    mutating func helperEnded() { (inherited, answered) = ([], []) }
}
