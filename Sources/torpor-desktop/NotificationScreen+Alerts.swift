// SPDX-License-Identifier: Apache-2.0

import DesktopProtocol
import DesktopRules
import EventLoop
import SystemBus

/// Single alerts: asks the notification server to show and close them, and handles what users do with them.
extension NotificationScreen {
    // MARK: One alert

    func present(_ shown: OpenAlert) {
        shown.isDue = true
        showDue()
    }

    /// Asks the server to show the alerts that are due, the oldest first. While the server does not answer, they wait.
    func showDue() {
        guard let server, let owner = service.owner, let connection = service.connection, !isSilent else { return }
        var free = Self.mostCalls - open.values.count { $0.call.map(isAwaited) ?? false }
        for id in open.keys.sorted() where free > 0 {
            guard let shown = open[id], shown.isDue, shown.call == nil, !shown.isLost else { continue }
            notify(shown, server, owner, connection)
            free -= 1
        }
        watchSilence()
    }

    private func notify(_ shown: OpenAlert, _ server: DesktopServer, _ owner: String, _ connection: BusConnection) {
        let isSilent = shown.wasShown || shown.alert.place != nil
        let content = NotificationContent(shown.alert, for: server, isSilent: isSilent)
        let hints = content.hints.sorted { $0.key < $1.key }.map { name, value in
            switch value {
            case .text(let text): (name, BusVariant.text(text))
            case .byte(let byte): (name, BusVariant.byte(byte))
            case .flag(let flag): (name, BusVariant.boolean(flag))
            }
        }
        let arguments: [BusArgument] = [
            .text(shown.alert.app), .number(numbered(shown) ?? 0), .text(""), .text(content.summary),
            .text(content.body), .texts(content.actions), .variants(hints), .signed(content.timeout),
        ]
        let call = NotifyCall(owner, since: loop.now)
        (shown.call, shown.isDue) = (call, false)
        // Wait for the reply without a timeout: a request whose reply is no longer awaited would stay in the
        // server's queue, and the alert would be shown twice after a retry.
        call.slot = connection.call(owner, Self.path, Self.name, "Notify", arguments, isPatient: true) {
            [weak self, weak shown, weak call] answer in
            guard let self, let call else { return }
            guard let shown, shown.call === call else {
                return self.answered(call, (try? answer.get())?.smallNumber())
            }
            shown.call = nil
            switch answer {
            case .success(let message):
                self.presented(shown, message.smallNumber())
                self.hasAnswered()
            case .failure(let error):
                let isLost = error.name.map(Self.isNoAnswer) ?? false
                self.refused(shown, error, isLost: isLost)
                if !isLost { self.hasAnswered() }
            }
            self.showDue()
            self.endIfEmpty()
        }
    }

    /// The server's number for an alert, perhaps from an earlier torpor-desktop; nil if it has none.
    func numbered(_ shown: OpenAlert) -> UInt32? {
        if let number = shown.number { return number }
        guard let place = shown.alert.place, let serverName, place.server.utf8.elementsEqual(serverName.utf8) else {
            return nil
        }
        return place.number
    }

    private func presented(_ shown: OpenAlert, _ number: UInt32?) {
        let id = shown.alert.id
        shown.number = number
        if shown.isClosed {
            open[id] = nil
            if let number { closeOnScreen(number) }
            return
        }
        (shown.wasShown, shown.failures, shown.hasFailed) = (true, 0, false)
        let place = serverName.flatMap { name in number.map { ScreenPlace(server: name, number: $0) } }
        report(.shown(id: id, place: place))
    }

    private func refused(_ shown: OpenAlert, _ error: BusError, isLost: Bool) {
        let id = shown.alert.id
        if shown.isClosed {
            open[id] = nil
            return
        }
        hasFailed(shown, Self.bounded(error.description))
        (shown.isDue, shown.isLost) = (false, isLost)
        guard !isLost else { return }
        shown.failures += 1
        if shown.failures < Self.mostFailures { retry?.arm(after: Self.retryDelay) }
    }

    /// Whether the error comes from the bus and not from the server: the request has timed out, or the server has left
    /// the bus.
    private static func isNoAnswer(_ name: String) -> Bool {
        ["NoReply", "TimedOut", "Timeout"].contains { name.utf8.elementsEqual("org.freedesktop.DBus.Error.\($0)".utf8) }
    }

    func hasFailed(_ shown: OpenAlert, _ reason: String) {
        guard !shown.hasFailed else { return }
        shown.hasFailed = true
        report(.failed(id: shown.alert.id, reason: reason))
    }

    func tryAgain() {
        retry?.disarm()
        for shown in open.values where shown.failures > 0 && shown.failures < Self.mostFailures { shown.isDue = true }
        showDue()
    }

    func closeOnScreen(_ number: UInt32) {
        guard let owner = service.owner, let connection = service.connection else { return }
        closings += 1
        ask(connection, owner, Self.path, Self.name, "CloseNotification", [.number(number)]) { [weak self] _ in
            self?.closings -= 1
            self?.endIfEmpty()
        }
    }

    // MARK: What a person does

    func heard(_ message: BusMessage) {
        let member = message.member ?? ""
        // The server sends signals about the notifications of all programs: ignore those with ids of other programs.
        guard let number = message.smallNumber(),
            let (id, shown) = open.first(where: { $0.value.number == number && !$0.value.isClosed })
        else { return }
        switch member {
        case "ActivationToken":
            if let token = message.text(), token.utf8.count <= Self.longestText { shown.token = token }
        case "ActionInvoked":
            guard let action = message.text() else { return }
            let isKnown =
                action.utf8.elementsEqual(NotificationContent.clicked.utf8)
                || shown.alert.actions.contains { $0.id.utf8.elementsEqual(action.utf8) }
            guard isKnown else { return }
            open[id] = nil
            end(id, .answered(id: id, action: action, token: shown.token))
            // Close the notification: some servers keep it on the screen after a click.
            closeOnScreen(number)
        case "NotificationClosed":
            // The server has removed the notification itself, so do not close it on the screen.
            open[id] = nil
            let reason = message.smallNumber()
            end(id, .closed(id: id, reason == 1 ? .expired : reason == 3 ? .closed : .dismissed))
        default: break
        }
    }
}
