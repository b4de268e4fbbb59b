// SPDX-License-Identifier: Apache-2.0

import DesktopProtocol

/// The alerts that a helper must show until they are closed or answered, and the badges. They determine whether a
/// helper is needed, and which commands a new helper gets.
struct DesktopLedger {
    /// Open alerts that this torpord has sent to the helper.
    private var open: [Int64: DesktopAlert] = [:]
    /// Open alerts and unacknowledged answers that a helper has reported and that come from an earlier torpord.
    private var inherited: Set<Int64> = []
    /// Alerts that a user has answered, and whose answers were not acknowledged yet.
    private var answered: Set<Int64> = []
    private var badges: [String: Int64] = [:]

    /// The most open alerts, and the most badges, since torpor-desktop accepts no more.
    static let most = 256

    var isEmpty: Bool { open.isEmpty && inherited.isEmpty && answered.isEmpty && badges.isEmpty }

    /// The open alerts that this torpord has sent.
    var ids: [Int64] { open.keys.sorted() }

    /// The commands for a new helper, which shows nothing yet.
    var commands: [DesktopCommand] {
        open.sorted { $0.key < $1.key }.map { .show($0.value) }
            + badges.sorted { $0.key < $1.key }.map { .badge(entry: $0.key, count: $0.value) }
    }

    /// Adds an alert to show, or replaces it. Returns false if too many are open.
    mutating func show(_ alert: DesktopAlert) -> Bool {
        guard open[alert.id] != nil || open.count < Self.most else { return false }
        open[alert.id] = alert
        inherited.remove(alert.id)
        return true
    }

    /// Stores where the screen shows an alert, so that a later helper can replace the alert there.
    mutating func isShown(_ id: Int64, at place: ScreenPlace?) {
        if let place { open[id]?.place = place }
    }

    /// Forgets an alert that was closed, or whose answer was acknowledged.
    mutating func forget(_ id: Int64) {
        open[id] = nil
        inherited.remove(id)
        answered.remove(id)
    }

    /// Sets the badge of a desktop entry; 0 removes it. Returns false if there are too many badges.
    mutating func badge(_ entry: String, _ count: Int64) -> Bool {
        guard count <= 0 || badges[entry] != nil || badges.count < Self.most else { return false }
        badges[entry] = count > 0 ? count : nil
        return true
    }

    /// Called with the alerts that the helper reports in reply to `hello`. Returns all alerts that are on the screen or
    /// must be shown there.
    mutating func greeted(_ ids: [Int64]) -> [Int64] {
        inherited = Set(ids.prefix(2 * Self.most)).subtracting(open.keys)
        return inherited.union(open.keys).sorted()
    }

    /// Records that a user has answered an alert. Returns false if no torpord has shown that alert.
    mutating func answer(_ id: Int64) -> Bool {
        guard open[id] != nil || inherited.contains(id) || answered.contains(id) else { return false }
        forget(id)
        answered.insert(id)
        return true
    }

    /// Called when the helper has ended. Alerts and answers that only the helper knew are lost.
    mutating func helperEnded() { (inherited, answered) = ([], []) }
}
