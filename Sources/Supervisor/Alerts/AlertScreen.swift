// SPDX-License-Identifier: Apache-2.0

import DesktopProtocol

/// The screen of the session, on which alerts and badges are shown.
///
/// Nothing here waits: what cannot be shown yet, since no notification server is there, is shown when one is.
protocol AlertScreen: AnyObject {
    /// What became of the alerts: `shown`, `failed`, `closed`, `answered`; and `here` and `server`.
    var onReport: ((DesktopReport) -> Void)? { get set }
    /// Shows an alert, or replaces the one of the same number.
    func show(_ alert: DesktopAlert)
    /// Removes an alert.
    func close(_ id: Int64)
    /// Shows a number, or with 0 none, at the entry of an app.
    func badge(_ entry: String, _ count: Int64)
    /// The answer to an alert is durable, and need not be reported again.
    func acknowledge(_ id: Int64)
}
