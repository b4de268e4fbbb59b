// SPDX-License-Identifier: Apache-2.0

package import Engine
import EventLoop
import EventSources
import Lifecycle
package import Mailbox
import Varlink

/// Sends apps the results of transfers as mail, which waits while the app sleeps, is delivered once, and survives the
/// end of the app, a restart of torpord and a reboot. `AppTransfers` limits how many results there may be.
extension Mailboxes {
    /// Sends the app mail about transfers. If `wakes`, wakes the app into the background, if the app may be woken.
    package func tellTransfer(_ draft: MailDraft, wakes: Bool, _ app: AppRuntime) {
        var draft = draft
        if wakes { draft.wake = .background }
        _ = try? add(draft, for: app, limits: Mailbox.Limits(count: .max, bytes: .max))
        guard wakes else { return deliver(to: app) }
        let session = draft.payload["session"]?.stringValue ?? ""
        _ = host.wake(
            app,
            WakeEvent(.transfer, session, "its transfers of the session \(session)", mail: draft, at: loop.now)
        )
    }

    /// The mail about transfers that waits for the app.
    package func transferMail(of app: AppRuntime) -> [Mail] {
        (boxes[app.id]?.items ?? []).filter { $0.draft.topic == TransferMail.topic }
    }

    /// The limits of the app's mailbox, raised by the size of its mail about transfers, so that mail about transfers
    /// takes no space from other mail; nil if there is no mail about transfers.
    func limitsBesideTransfers(of app: AppRuntime) -> Mailbox.Limits? {
        let mail = transferMail(of: app)
        guard !mail.isEmpty else { return nil }
        var limits = Self.limits(of: app)
        limits.count += mail.count
        let (bytes, isTooMuch) = limits.bytes.addingReportingOverflow(mail.reduce(0) { $0 + $1.size })
        limits.bytes = isTooMuch ? .max : bytes
        return limits
    }

    /// Removes the mail about a transfer, unless the delivery of that mail has begun.
    package func forgetTransfer(_ transfer: Int64, _ app: AppRuntime) {
        for mail in transferMail(of: app) where TransferMail.transfer(in: mail) == transfer && !mail.isInFlight {
            acknowledged(mail.id, by: app)
        }
    }
}
