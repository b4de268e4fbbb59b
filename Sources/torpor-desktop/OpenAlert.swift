// SPDX-License-Identifier: Apache-2.0

import DesktopProtocol
import SystemBus

/// An alert that is on the screen or waits to be shown.
final class OpenAlert {
    var alert: DesktopAlert
    /// When torpord last asked for this alert.
    var since: Duration
    /// The notification server's id for this alert.
    var number: UInt32?
    /// Whether any server has shown this alert.
    var wasShown = false
    /// The unanswered request to show this alert; nil if there is none.
    var call: NotifyCall?
    /// Whether the server must be asked to show this alert, for the first time or since it has changed. While a request
    /// is pending, the next one must wait, since it needs the id that the server assigns.
    var isDue = false
    /// Whether the bus reported an error instead of the server's answer. The server may have shown the alert, so the
    /// request is not repeated.
    var isLost = false
    /// Whether torpord closed the alert while the request was pending. If so, the alert is closed on the screen once
    /// the server replies with its id.
    var isClosed = false
    /// The activation token that the server has sent. With it, the app may bring its window to the front.
    var token: String?
    var failures = 0
    /// Whether a failure was reported since torpord last asked for this alert. Further failures are not reported.
    var hasFailed = false

    init(_ alert: DesktopAlert, _ since: Duration) { (self.alert, self.since) = (alert, since) }
}

/// A request to show an alert that a server has not answered.
final class NotifyCall {
    /// The unique name of the server.
    let owner: String
    /// When the server was asked.
    let since: Duration
    /// Keeps the request alive.
    var slot: BusSlot?

    init(_ owner: String, since: Duration) { (self.owner, self.since) = (owner, since) }
}
