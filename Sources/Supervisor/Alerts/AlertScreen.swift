// SPDX-License-Identifier: Apache-2.0

import DesktopProtocol

/// Shows alerts and badges in the user's desktop session.
///
/// No method waits. As long as no notification server runs, alerts are kept; they are shown once one runs.
protocol AlertScreen: AnyObject {
    /// Called with each report: `shown`, `failed`, `closed` and `answered` about alerts; `here` and `server` about
    /// the screen.
    var onReport: ((DesktopReport) -> Void)? { get set }
    /// Shows an alert. It replaces the shown alert of the same number, if there is one.
    func show(_ alert: DesktopAlert)
    /// Removes an alert.
    func close(_ id: Int64)
    /// Shows a number at the desktop entry of an app; 0 removes the number.
    func badge(_ entry: String, _ count: Int64)
    /// The answer to an alert was stored durably, so it need not be reported again.
    func acknowledge(_ id: Int64)
}
