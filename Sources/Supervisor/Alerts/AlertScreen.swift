// SPDX-License-Identifier: Apache-2.0

import DesktopProtocol

/// Shows alerts and badges in the user's desktop session.
///
/// No method blocks. While no notification server runs, alerts are kept, and they are shown when a server starts.
protocol AlertScreen: AnyObject {
    /// Called with each report from the screen. `shown`, `failed`, `closed` and `answered` report about an alert,
    /// `here` and `server` about the screen itself.
    var onReport: ((DesktopReport) -> Void)? { get set }
    /// Shows an alert. If an alert with the same number is shown, replaces it.
    func show(_ alert: DesktopAlert)
    /// Removes an alert from the screen.
    func close(_ id: Int64)
    /// Shows a number as the badge of an app's desktop entry; 0 removes the badge.
    func badge(_ entry: String, _ count: Int64)
    /// Confirms that the answer to an alert was stored, so that the screen does not report the answer again.
    func acknowledge(_ id: Int64)
}
