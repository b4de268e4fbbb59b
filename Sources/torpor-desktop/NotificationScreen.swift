// SPDX-License-Identifier: Apache-2.0

import DesktopProtocol
import DesktopRules
import EventLoop
import Linux
import SystemBus

/// Shows alerts through the session's notification server (org.freedesktop.Notifications), and badges in docks.
///
/// The bus and the server may end and return. Open alerts are kept, and shown again by the next server.
final class NotificationScreen {
    /// An alert that is on the screen or waits to be shown.
    private final class OpenAlert {
        var alert: DesktopAlert
        /// When torpord last asked for this alert.
        var since: Duration
        /// The notification server's id for this alert.
        var number: UInt32?
        /// Whether any server has shown this alert.
        var wasShown = false
        /// The pending request to show this alert.
        var pending: BusSlot?
        /// Whether the alert was changed while the request was pending: then the alert is shown again.
        var isOutdated = false
        /// Whether torpord closed the alert while the request was pending: the alert is closed once the server
        /// replies with its id.
        var isClosed = false
        /// The activation token from the server: with it, the app may raise its window.
        var token: String?
        var failures = 0
        /// Whether a failure was reported since torpord last asked for this alert. Further failures are not reported.
        var hasFailed = false

        init(_ alert: DesktopAlert, _ since: Duration) { (self.alert, self.since) = (alert, since) }
    }

    var report: (DesktopReport) -> Void = { _ in }

    private let loop: EventLoop
    private let service: BusService
    /// What the server can do; nil until the server has said so.
    private var server: DesktopServer?
    /// The server by a name that no other has; nil until the bus has told its id.
    private var serverName: String?
    /// Starts a server again that has ended.
    private var restart: TimerSource?
    private var restartDelay = NotificationScreen.firstRestart
    private var appearedAt = Duration.zero
    private var open: [Int64: OpenAlert] = [:]
    /// Reports of closed and answered alerts that torpord has not acknowledged, the oldest first.
    private var endings: [(id: Int64, report: DesktopReport)] = []
    private var badges: [String: Int64] = [:]
    private var signals: [BusSlot?] = []
    /// Pending requests to the bus or the server, and requests whose reply is not used.
    private var questions: [BusSlot?] = []
    private var retry: TimerSource?
    /// Why an alert would not be seen now, as last reported; nil if it would be.
    private var problem: String?

    private static let name = "org.freedesktop.Notifications"
    private static let path = "/org/freedesktop/Notifications"
    private static let bus = "org.freedesktop.DBus"
    private static let busPath = "/org/freedesktop/DBus"
    private static let unknownService = "org.freedesktop.DBus.Error.ServiceUnknown"
    private static let noServer = "there is no notification server in the session"
    private static let launcher = "com.canonical.Unity.LauncherEntry"
    /// The most open alerts, the most badges and the most unacknowledged reports.
    private static let most = 256
    /// A new server shows an alert again only if torpord asked for the alert within this time.
    private static let memory = Duration.seconds(3600)
    private static let retryDelay = Duration.seconds(5)
    /// A server that ends is started again after this time, and later each time if it ends soon.
    private static let firstRestart = Duration.seconds(1)
    private static let longestRestart = Duration.seconds(300)
    /// A server that has run for this long counts as working.
    private static let stableAfter = Duration.seconds(60)
    /// How long to wait for the server at the end.
    private static let patience = Duration.seconds(1)
    private static let mostFailures = 5
    /// The longest token that is accepted from the server, in bytes.
    private static let longestText = 1024

    init(_ loop: EventLoop, bus: String) {
        self.loop = loop
        service = BusService(loop, Self.name, address: bus, renews: true)
        service.onConnect = { [weak self] in self?.connected($0) }
        service.onAppear = { [weak self] in self?.appeared($0) }
        service.onDisappear = { [weak self] in self?.disappeared() }
        service.onChange = { [weak self] in self?.assess() }
        retry = try? loop.timer { [weak self] in self?.tryAgain() }
        restart = try? loop.timer { [weak self] in self?.startAgain() }
    }

    // MARK: Commands

    func greet() {
        let ids = Set(open.filter { !$0.value.isClosed }.keys).union(endings.map(\.id))
        report(.here(ids: ids.sorted(), server: server))
        report(.unseen(problem: problem))
        for ending in endings { report(ending.report) }
    }

    func show(_ alert: DesktopAlert) {
        for ending in endings where ending.id == alert.id {
            // A user has answered this alert, but torpord did not know that yet when it asked.
            if case .answered = ending.report { return report(ending.report) }
        }
        acknowledge(alert.id)
        let shown: OpenAlert
        if let known = open[alert.id] {
            shown = known
            (shown.alert, shown.since, shown.isClosed) = (alert, loop.now, false)
            (shown.failures, shown.hasFailed) = (0, false)
        } else {
            guard open.count < Self.most else {
                return report(.failed(id: alert.id, reason: "\(Self.most) alerts are open already"))
            }
            shown = OpenAlert(alert, loop.now)
            open[alert.id] = shown
        }
        guard server != nil else {
            if service.owner == nil { startServer() }
            return
        }
        present(shown)
    }

    func close(_ id: Int64) {
        guard let shown = open[id], !shown.isClosed else { return }
        if shown.pending != nil {
            shown.isClosed = true
        } else {
            open[id] = nil
            if let number = numbered(shown) { closeOnScreen(number) }
        }
        end(id, .closed(id: id, .closed))
    }

    /// Takes all alerts off the screen, and calls `then` when the server has answered, or after a while.
    func closeAll(_ then: @escaping () -> Void) {
        let numbers = open.values.compactMap { numbered($0) }.sorted()
        guard !numbers.isEmpty, let owner = service.owner, let connection = service.connection else { return then() }
        open = [:]
        restart?.disarm()
        retry = try? loop.timer { then() }
        retry?.arm(after: Self.patience)
        var left = numbers.count
        for number in numbers {
            ask(connection, owner, Self.path, Self.name, "CloseNotification", [.number(number)]) { _ in
                left -= 1
                if left == 0 { then() }
            }
        }
    }

    func acknowledge(_ id: Int64) { endings.removeAll { $0.id == id } }

    func badge(_ entry: String, _ count: Int64) {
        guard Markup.isEntry(entry), badges[entry] != nil || badges.count < Self.most else { return }
        badges[entry] = max(0, count)
        if let connection = service.connection { emit(entry, connection) }
        if count <= 0 { badges[entry] = nil }
    }

    private func end(_ id: Int64, _ report: DesktopReport) {
        acknowledge(id)
        if endings.count >= Self.most { endings.removeFirst() }
        endings.append((id, report))
        self.report(report)
    }

    // MARK: Bus and server

    private func connected(_ connection: BusConnection) {
        questions = []
        signals = [
            connection.subscribe("type='signal',path='\(Self.path)',interface='\(Self.name)'") {
                [weak self] message in
                guard let self, let owner = self.service.owner, let sender = message.sender,
                    sender.utf8.elementsEqual(owner.utf8)
                else { return }
                self.heard(message)
            },
            // A dock that has just started does not know the badges: send all again.
            connection.subscribe(
                "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',"
                    + "member='NameOwnerChanged',arg0='com.canonical.Unity'"
            ) { [weak self] message in
                guard let self, message.sender.map({ $0.utf8.elementsEqual("org.freedesktop.DBus".utf8) }) ?? false,
                    let connection = self.service.connection
                else { return }
                for entry in self.badges.keys.sorted() { self.emit(entry, connection) }
            },
        ]
        for entry in badges.keys.sorted() { emit(entry, connection) }
        if open.values.contains(where: { !$0.wasShown }) { startServer() }
    }

    /// Determines whether an alert would be seen now, and reports a change of that.
    private func assess() {
        guard service.isAnswered, let connection = service.connection else {
            if let trouble = service.trouble {
                isUnseen("the session's bus cannot be used: \(Self.bounded(trouble, 300))")
            }
            return
        }
        guard service.owner == nil else { return isUnseen(nil) }
        // The bus can start many notification servers when the first notification is sent.
        ask(connection, Self.bus, Self.busPath, Self.bus, "ListActivatableNames", []) { [weak self] answer in
            guard let self, self.service.isAnswered, self.service.owner == nil else { return }
            let names = (try? answer.get())?.values().first?.list ?? []
            let canStart = names.contains { $0.text?.utf8.elementsEqual(Self.name.utf8) ?? false }
            self.isUnseen(canStart ? nil : Self.noServer)
        }
    }

    private func isUnseen(_ problem: String?) {
        guard problem != self.problem else { return }
        self.problem = problem
        report(.unseen(problem: problem))
    }

    /// Asks the bus to start a notification server. That fails if none is installed that the bus can start.
    private func startServer() {
        guard let connection = service.connection else { return }
        let arguments: [BusArgument] = [.text(Self.name), .number(0)]
        ask(connection, Self.bus, Self.busPath, Self.bus, "StartServiceByName", arguments) { [weak self] answer in
            guard let self, case .failure(let error) = answer, self.service.owner == nil else { return }
            self.isUnseen(Self.noServer)
            // One that is installed may start the next time.
            if error.name != Self.unknownService { self.startLater() }
            for shown in self.open.values.filter({ !$0.wasShown }).sorted(by: { $0.alert.id < $1.alert.id }) {
                self.hasFailed(shown, Self.noServer)
            }
        }
    }

    /// Whether an alert is open that another server is to show.
    private var needsServer: Bool {
        open.values.contains { !$0.isClosed && (!$0.wasShown || loop.now - $0.since <= Self.memory) }
    }

    private func startLater() {
        guard needsServer, service.isAnswered else { return }
        restart?.arm(after: restartDelay)
        restartDelay = min(restartDelay * 2, Self.longestRestart)
    }

    private func startAgain() {
        restart?.disarm()
        if needsServer, service.owner == nil { startServer() }
    }

    private func ask(
        _ connection: BusConnection,
        _ destination: String,
        _ path: String,
        _ interface: String,
        _ member: String,
        _ arguments: [BusArgument],
        _ answer: @escaping (Result<BusMessage, BusError>) -> Void
    ) {
        // Requests stay in this list after their reply: if it is full, remove the older half.
        if questions.count >= Self.most { questions.removeFirst(Self.most / 2) }
        questions.append(connection.call(destination, path, interface, member, arguments, answer))
    }

    private func appeared(_ connection: BusConnection) {
        guard let owner = service.owner else { return }
        restart?.disarm()
        appearedAt = loop.now
        ask(connection, Self.bus, Self.busPath, Self.bus, "GetId", []) { [weak self] answer in
            guard let self, self.service.owner == owner else { return }
            self.serverName = (try? answer.get())?.text().map { "\(Self.bounded($0)) \(Self.bounded(owner))" }
        }
        ask(connection, owner, Self.path, Self.name, "GetServerInformation", []) { [weak self] answer in
            guard let self, self.service.owner == owner else { return }
            let words = ((try? answer.get())?.values() ?? []).prefix(3).map { $0.text ?? "" }
            let name = words.count == 3 ? "\(words[0]) \(words[2])" : "a server without a name"
            self.ask(connection, owner, Self.path, Self.name, "GetCapabilities", []) { [weak self] answer in
                guard let self, self.service.owner == owner else { return }
                let list = (try? answer.get())?.values().first?.list ?? []
                let capabilities = list.compactMap(\.text).filter { $0.utf8.count <= 64 }.prefix(64)
                self.canShow(DesktopServer(name: Self.bounded(name), capabilities: Array(capabilities)))
            }
        }
    }

    private static func bounded(_ text: String, _ most: Int = 80) -> String {
        String(text.unicodeScalars.prefix(most).map(Character.init))
    }

    private func canShow(_ server: DesktopServer) {
        self.server = server
        report(.server(server))
        for id in open.keys.sorted() {
            guard let shown = open[id] else { continue }
            if shown.wasShown, loop.now - shown.since > Self.memory {
                open[id] = nil
                end(id, .closed(id: id, .expired))
            } else {
                present(shown)
            }
        }
    }

    private func disappeared() {
        retry?.disarm()
        questions = []
        let wasThere = server != nil
        (server, serverName) = (nil, nil)
        for (id, shown) in open {
            (shown.number, shown.pending, shown.isOutdated, shown.token) = (nil, nil, false, nil)
            if shown.isClosed { open[id] = nil }
        }
        if wasThere { report(.server(nil)) }
        if loop.now - appearedAt >= Self.stableAfter { restartDelay = Self.firstRestart }
        startLater()
    }

    // MARK: One alert

    private func present(_ shown: OpenAlert) {
        guard let server, let owner = service.owner, let connection = service.connection else { return }
        guard shown.pending == nil else {
            shown.isOutdated = true
            return
        }
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
        shown.pending = connection.call(owner, Self.path, Self.name, "Notify", arguments) {
            [weak self, weak shown] answer in
            guard let self, let shown else { return }
            shown.pending = nil
            switch answer {
            case .success(let message): self.presented(shown, message.smallNumber())
            case .failure(let error): self.refused(shown, error.description)
            }
        }
    }

    /// The server's number for an alert, which an earlier helper may have learnt; nil if it has none.
    private func numbered(_ shown: OpenAlert) -> UInt32? {
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
        let isOutdated = shown.isOutdated
        (shown.wasShown, shown.isOutdated, shown.failures, shown.hasFailed) = (true, false, 0, false)
        let place = serverName.flatMap { name in number.map { ScreenPlace(server: name, number: $0) } }
        report(.shown(id: id, place: place))
        if isOutdated { present(shown) }
    }

    private func refused(_ shown: OpenAlert, _ reason: String) {
        let id = shown.alert.id
        if shown.isClosed {
            open[id] = nil
            return
        }
        shown.isOutdated = false
        shown.failures += 1
        hasFailed(shown, Self.bounded(reason))
        if shown.failures < Self.mostFailures { retry?.arm(after: Self.retryDelay) }
    }

    private func hasFailed(_ shown: OpenAlert, _ reason: String) {
        guard !shown.hasFailed else { return }
        shown.hasFailed = true
        report(.failed(id: shown.alert.id, reason: reason))
    }

    private func tryAgain() {
        retry?.disarm()
        for id in open.keys.sorted() {
            guard let shown = open[id], shown.failures > 0, shown.failures < Self.mostFailures else { continue }
            present(shown)
        }
    }

    private func closeOnScreen(_ number: UInt32) {
        guard let owner = service.owner, let connection = service.connection else { return }
        ask(connection, owner, Self.path, Self.name, "CloseNotification", [.number(number)]) { _ in }
    }

    // MARK: What a person does

    private func heard(_ message: BusMessage) {
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
            // A server may keep a notification on the screen after a click.
            closeOnScreen(number)
        case "NotificationClosed":
            // The server closes the earlier version when it replaces it.
            open[id] = nil
            let reason = message.smallNumber()
            end(id, .closed(id: id, reason == 1 ? .expired : reason == 3 ? .closed : .dismissed))
        default: break
        }
    }

    // MARK: Badges

    private func emit(_ entry: String, _ connection: BusConnection) {
        let count = badges[entry] ?? 0
        connection.emit(
            "/io/torpor/desktop",
            Self.launcher,
            "Update",
            [
                .text("application://\(entry).desktop"),
                .variants([("count", .integer(count)), ("count-visible", .boolean(count > 0))]),
            ]
        )
    }
}
