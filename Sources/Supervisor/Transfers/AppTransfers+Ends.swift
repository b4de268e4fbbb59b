// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EventLoop
import Lifecycle
import Linux
import Mailbox
import Store
import TransferProtocol
import Transfers

/// Handles the reports of torpor-transfer, and the ends of transfers.
extension AppTransfers {
    /// Larger numbers of bytes in reports are reduced to this one, because no file is larger.
    private static let mostBytes: Int64 = 1 << 60

    /// Handles a report of an app's helper. Reports about other apps' transfers are ignored.
    func take(_ report: TransferReport, of name: String) {
        switch report {
        case .here(let ids, let version):
            // Compare the helper's transfers only if an earlier torpord has launched it. Otherwise torpord knows them.
            if helpers[name]?.isAdopted ?? false { goOn(with: ids, version, of: name) }
        case .head(let id, let validator, let offset):
            guard isRunning(id, of: name), bound(offset) == offset, validator.condition?.utf8.count ?? 0 <= 4096 else {
                return
            }
            queue.update(id) {
                $0.order.validator = TransferValidator(
                    condition: validator.condition,
                    total: validator.total.map(bound),
                    version: validator.version.flatMap { $0.utf8.count <= 4096 ? $0 : nil }
                )
                $0.bytes = offset
            }
            heard[id] = (now, offset)
            goOn(id, of: name)
        case .source(let id, let source):
            guard isRunning(id, of: name) else { return }
            // The helper has begun to send the file.
            queue.update(id) { ($0.order.source, $0.mayBeSent) = (source, true) }
            heard[id] = (now, 0)
            goOn(id, of: name)
        case .progress(let id, let bytes, _):
            guard isRunning(id, of: name) else { return }
            let bytes = bound(bytes)
            let before = heard[id]
            heard[id] = (now, bytes)
            if let transfer = queue[id] { count(bytes, of: transfer) }
            queue.update(id) { transfer in
                transfer.bytes = bytes
                if let before, bytes > before.bytes { transfer.failures = 0 }
                guard let before, now > before.at else { return }
                let seconds = (now - before.at).inSeconds
                transfer.rate = max(0, Int64(Double(bytes - before.bytes) / seconds))
            }
        case .ended(let id, let end):
            // A transfer that torpord has just stopped may have finished at the same time: then accept its result.
            let isWanted = isRunning(id, of: name) || end.outcome == .done && isQueued(id, of: name)
            if isWanted { take(end, of: id) }
            settle(id, end.outcome, of: name)
            guard isWanted else { return }
            restIfIdle(name)
            schedule()
        }
    }

    private func isRunning(_ id: Int64, of name: String) -> Bool {
        guard let transfer = queue[id], transfer.app.utf8.elementsEqual(name.utf8) else { return false }
        return transfer.state == .running
    }

    private func isQueued(_ id: Int64, of name: String) -> Bool {
        guard let transfer = queue[id], transfer.app.utf8.elementsEqual(name.utf8) else { return false }
        return transfer.state == .queued
    }

    private func bound(_ bytes: Int64) -> Int64 { min(max(0, bytes), Self.mostBytes) }

    private func bound(_ text: String?) -> String? { text.map(Transfer.bounded) }

    /// Stores what a helper has reported about a transfer. When the report is durable, tells the helper to continue.
    private func goOn(_ id: Int64, of name: String) {
        works(name)
        foundWay(id)
        save(id)
        supervisor.store.sync { [weak self] problem in
            // If the report cannot be stored, the transfer continues all the same, because a crash would only cause
            // work to be repeated. The exception is a POST that must not be sent twice: it waits until torpord can
            // store that the POST was sent.
            guard let self, self.isRunning(id, of: name), let transfer = self.queue[id] else { return }
            if problem != nil, transfer.mayBeSent, transfer.order.method == "POST", !transfer.retriesPost {
                self.helpers[name]?.send(.stop(id: id))
                self.queue.update(id) { $0.mayBeSent = false }
                self.queue.set(id, .waiting(.space, until: Clock.realtimeMicroseconds() + 60_000_000))
                return self.schedule()
            }
            self.helpers[name]?.send(.go(id: id))
        }
    }

    /// Tells the helper to forget a transfer that has ended.
    private func settle(_ id: Int64, _ outcome: TransferEnd.Outcome, of name: String) {
        // If the transfer is still in the queue, it will be retried. Acknowledge the end of this attempt at once,
        // without waiting until it is stored: the helper accepts no order to retry before it gets the acknowledgement,
        // and a slow or full disk could delay that beyond the time of the retry.
        if let transfer = queue[id] {
            // Each check of a subscription starts from the beginning, so the helper discards the partial file.
            helpers[name]?.send(transfer.feed == nil ? .acknowledge(id: id) : .discard(id: id))
            return
        }
        supervisor.store.sync { [weak self] problem in
            guard problem == nil else { return }
            // If the transfer has failed, the helper also removes the partial file.
            self?.helpers[name]?.send(outcome == .done ? .acknowledge(id: id) : .discard(id: id))
        }
    }

    private func take(_ end: TransferEnd, of id: Int64) {
        heard[id] = nil
        if let transfer = queue[id] { count(bound(end.bytes), of: transfer) }
        if end.isWithoutWay { withoutWay.insert(id) } else { foundWay(id) }
        queue.update(id) { transfer in
            transfer.mayBeSent = false
            transfer.bytes = bound(end.bytes)
            transfer.status = end.status.flatMap { (100...999).contains($0) ? $0 : nil }
            (transfer.reason, transfer.error) = (bound(end.reason), bound(end.message))
            transfer.failures = end.hasGained ? 1 : transfer.failures + 1
        }
        guard let transfer = queue[id] else { return }
        let wall = Clock.realtimeMicroseconds()
        let error = transfer.error ?? "it failed"
        if transfer.feed != nil { return looked(end, at: id) }
        switch end.outcome {
        case .done:
            let sum = end.sha256.flatMap { Self.isSHA256($0) ? $0 : nil }
            finish(id, TransferResult(bytes: transfer.bytes, status: transfer.status, sha256: sum))
        case .failed: finish(id, TransferResult(of: transfer, reason: transfer.reason ?? "failed", error: error))
        case .retry:
            if transfer.order.method == "POST", !transfer.retriesPost {
                let sentence = "\(error); a POST is not retried unless the app asked for it"
                return finish(id, TransferResult(of: transfer, reason: transfer.reason ?? "failed", error: sentence))
            }
            queue.set(id, .waiting(cause(of: end), until: wall + delay(after: end, transfer.failures)))
            save(id)
        case .space:
            // Wait a minute, because space must be freed first.
            queue.set(id, .waiting(.space, until: wall + 60_000_000))
            save(id)
        case .login:
            logins[id] = nil
            queue.update(id) { ($0.realm, $0.scheme) = (bound(end.realm), bound(end.scheme)) }
            queue.set(id, .waiting(.login, until: nil))
            save(id)
            askForLogin(id)
        }
    }

    /// What a transfer waits for before its retry. It is the end of a delay, or, if there was no route to the server,
    /// also a new route.
    func cause(of end: TransferEnd) -> Transfer.Cause { end.isWithoutWay ? .network : .retry }

    /// The delay before the next attempt of a transfer after this many consecutive failures, in microseconds.
    func delay(after end: TransferEnd, _ failures: Int64) -> Int64 {
        RetryDelay.microseconds(failures: failures, asked: end.retryAfter, chance: .random(in: 0...1))
    }

    /// Called when a transfer has reached its server, so that it no longer waits for a route.
    private func foundWay(_ id: Int64) {
        guard withoutWay.remove(id) != nil else { return }
        network.wayWasFound()
        network.followWays(!withoutWay.isEmpty)
    }

    static func isSHA256(_ text: String) -> Bool {
        text.utf8.count == 64
            && text.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
    }

    private func askForLogin(_ id: Int64) {
        guard let transfer = queue[id], let app = coordinator.id(of: transfer.app).map({ apps[$0] }) else { return }
        let mail = supervisor.mailboxes
        let sleeps = sleeps(app) && transfer.events
        if sleeps { mail.tellTransfer(sessionOver(transfer), wakes: false, app) }
        mail.tellTransfer(
            TransferMail.needsLogin(
                as: Message.transferNeedsLogin.rawValue,
                transfer: id,
                session: transfer.session,
                url: transfer.order.url,
                realm: transfer.realm,
                scheme: transfer.scheme
            ),
            wakes: sleeps,
            app
        )
        note(app, .transfer, text: "has a transfer that waits for a login: \(Self.short(transfer.order.url))")
    }

    private func sessionOver(_ transfer: Transfer) -> MailDraft {
        let message = Message.handleEventsForBackgroundTransfer
        return TransferMail.sessionOver(as: message.rawValue, session: transfer.session)
    }

    /// Whether the app is suspended or does not run. Such an app handles mail only if torpord wakes it.
    private func sleeps(_ app: AppRuntime) -> Bool {
        let machine = machine(app)
        let ends = machine.transition == .terminating && !machine.isWaitingToLaunch
        return machine.state == .suspended || machine.state == .notRunning || machine.transition == .suspending || ends
    }

    /// A URL for an event's text: it may have 8 KiB.
    private static func short(_ url: String) -> String { Readable.bounded(url, to: 200) }

    /// Ends a transfer and sends its app mail about the end. Wakes the app if this was the last transfer of its session
    /// (a group of transfers, named by the app).
    func finish(_ id: Int64, _ result: TransferResult) {
        guard let transfer = queue[id] else { return }
        guard let app = coordinator.id(of: transfer.app).map({ apps[$0] }) else { return drop(id) }
        app.transferCounters.count(
            result.error == nil ? .done : result.reason == TransferResult.cancelled ? .cancelled : .failed
        )
        let mail = supervisor.mailboxes
        // Mail that asks for a login for this transfer may still wait, unless this was the first attempt: remove that
        // mail.
        if transfer.attempts > 1 || transfer.state != .running { mail.forgetTransfer(id, app) }
        let isLast = queue.count(of: transfer.session, transfer.app) == 1
        let wakes = isLast && queue.wantsEvents(of: transfer.session, transfer.app) && sleeps(app)
        let ended = TransferMail.ended(
            as: Message.transferDidFinish.rawValue,
            transfer: id,
            session: transfer.session,
            direction: transfer.order.direction.rawValue,
            url: transfer.order.url,
            path: path(transfer, app),
            bytes: result.bytes,
            status: result.status,
            sha256: result.sha256,
            reason: result.reason,
            error: result.error,
            total: transfer.total,
            attempts: transfer.attempts,
            token: transfer.token
        )
        // Send the mail before the transfer is removed. If torpord is killed in between, the app is told twice, which
        // is better than never.
        if wakes { mail.tellTransfer(sessionOver(transfer), wakes: false, app) }
        mail.tellTransfer(ended, wakes: wakes, app)
        if let error = result.error {
            note(
                app,
                .transfer,
                text: "has a transfer that failed: \(Self.short(transfer.order.url)): \(error)",
                reason: result.reason
            )
        }
        remove(transfer)
    }

    private func remove(_ transfer: Transfer) {
        queue.remove(transfer.id)
        logins[transfer.id] = nil
        withoutWay.remove(transfer.id)
        heard[transfer.id] = nil
        supervisor.store.removeTransfer(transfer.id, of: transfer.app)
    }

    /// Removes a transfer, without mail to its app.
    func drop(_ id: Int64, keepsPart: Bool = false) {
        guard let transfer = queue[id] else { return }
        remove(transfer)
        if !keepsPart { discardPart(of: transfer) }
        restIfIdle(transfer.app)
    }
}
