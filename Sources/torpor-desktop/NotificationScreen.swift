// SPDX-License-Identifier: Apache-2.0

import DesktopProtocol
import DesktopRules
import EventLoop
import Linux
import SystemBus

/// Shows alerts through the session's notification server (org.freedesktop.Notifications), and badges in docks.
///
/// The bus and the server may end and be started again. Open alerts are kept, and shown again by the next server. A
/// server that does not answer now may do so later, and would then show an alert once for each request. So each request
/// waits for its answer as long as the server is on the bus, and while the server does not answer, no further requests
/// are sent to it.
final class NotificationScreen {
    var report: (DesktopReport) -> Void = { _ in }

    let loop: EventLoop
    let service: BusService
    /// The server's description of itself; nil until the server has sent it.
    private(set) var server: DesktopServer?
    /// The server's name, which no other server has on any bus; nil until the bus has reported its id.
    private(set) var serverName: String?
    /// The pending request for the server's capabilities; nil once the server has answered.
    private var identity: BusSlot?
    /// Fires when a server that has ended is to be started again.
    private var restart: TimerSource?
    private var restartDelay = NotificationScreen.firstRestart
    private var appearedAt = Duration.zero
    var open: [Int64: OpenAlert] = [:]
    /// Unanswered requests to servers that have lost the bus name. If such a server shows an alert later,
    /// ``answered(_:_:)`` closes it.
    private var orphans: [NotifyCall] = []
    /// Reports of closed and answered alerts that torpord has not acknowledged, the oldest first.
    private var endings: [(id: Int64, report: DesktopReport)] = []
    private var badges: [String: Int64] = [:]
    private var signals: [BusSlot?] = []
    /// Pending requests to the bus or the server, and requests whose reply is not used.
    private var questions: [BusSlot?] = []
    var retry: TimerSource?
    /// Whether the server has not answered for ``longestSilence``.
    private(set) var isSilent = false
    private var silence: TimerSource?
    /// When the server last answered.
    private var answeredAt = Duration.zero
    /// Whether a request is pending whose only purpose is to find out whether the server answers.
    private var isProbed = false
    /// Requests that were sent before this time may remain unanswered, because the server has answered a later one.
    private var excusedUntil = Duration.zero
    /// How many requests to close a notification are pending.
    var closings = 0
    /// Called when the screen is empty, so that torpor-desktop can end.
    private var whenEmpty: (() -> Void)?
    /// Why an alert would not be seen now, as last reported; nil if an alert would be seen.
    private var problem: String?

    static let name = "org.freedesktop.Notifications"
    static let path = "/org/freedesktop/Notifications"
    private static let bus = "org.freedesktop.DBus"
    private static let busPath = "/org/freedesktop/DBus"
    private static let unknownService = "org.freedesktop.DBus.Error.ServiceUnknown"
    private static let noServer = "there is no notification server in the session"
    private static let launcher = "com.canonical.Unity.LauncherEntry"
    /// The most open alerts, the most badges, and the most unacknowledged reports.
    private static let most = 256
    /// A new server shows an alert again only if torpord asked for the alert within this time.
    private static let memory = Duration.seconds(3600)
    static let retryDelay = Duration.seconds(5)
    /// A server that has not answered for this long counts as hung.
    static let longestSilence = Duration.seconds(10)
    /// The most pending requests to show an alert.
    static let mostCalls = 32
    /// A server that ends is started again after this time. The time grows if the server soon ends again.
    private static let firstRestart = Duration.seconds(1)
    private static let longestRestart = Duration.seconds(300)
    /// A server that has run for this long counts as working.
    private static let stableAfter = Duration.seconds(60)
    /// How long to wait for the server when torpor-desktop ends.
    private static let patience = Duration.seconds(1)
    static let mostFailures = 5
    /// The longest token that is accepted from the server, in bytes.
    static let longestText = 1024

    init(_ loop: EventLoop, bus: String) {
        self.loop = loop
        service = BusService(loop, Self.name, address: bus, renews: true)
        service.onConnect = { [weak self] in self?.connected($0) }
        service.onAppear = { [weak self] in self?.appeared($0) }
        service.onDisappear = { [weak self] in self?.disappeared() }
        service.onChange = { [weak self] in self?.assess() }
        retry = try? loop.timer { [weak self] in self?.tryAgain() }
        restart = try? loop.timer { [weak self] in self?.startAgain() }
        silence = try? loop.timer { [weak self] in self?.hasBeenSilent() }
    }

    // MARK: Commands

    func greet() {
        let ids = Set(open.filter { !$0.value.isClosed }.keys).union(endings.map(\.id))
        report(.here(ids: ids.sorted(), server: isSilent ? nil : server))
        report(.unseen(problem: problem))
        for ending in endings { report(ending.report) }
    }

    func show(_ alert: DesktopAlert) {
        for ending in endings where ending.id == alert.id {
            // A user has answered this alert, but torpord did not know that yet when it requested the alert.
            if case .answered = ending.report { return report(ending.report) }
        }
        acknowledge(alert.id)
        let shown: OpenAlert
        if let known = open[alert.id] {
            shown = known
            // A restarted torpord requests all alerts again. If the request for this alert is pending, its answer is
            // enough.
            let isPending = known.call != nil && !known.isClosed && known.alert == alert
            (shown.alert, shown.since, shown.isClosed) = (alert, loop.now, false)
            (shown.failures, shown.hasFailed) = (0, false)
            if isPending { return }
        } else {
            guard open.values.count(where: { !$0.isClosed }) < Self.most else {
                return report(.failed(id: alert.id, reason: "\(Self.most) alerts are open already"))
            }
            shown = OpenAlert(alert, loop.now)
            open[alert.id] = shown
        }
        if isSilent { hasFailed(shown, silentServer) }
        guard server != nil else {
            if service.owner == nil { startServer() }
            return
        }
        present(shown)
    }

    func close(_ id: Int64) {
        guard let shown = open[id], !shown.isClosed else { return }
        if shown.call != nil {
            shown.isClosed = true
            forgetClosed()
        } else {
            open[id] = nil
            if let number = numbered(shown) { closeOnScreen(number) }
        }
        end(id, .closed(id: id, .closed))
    }

    /// If a server leaves too many requests unanswered, forgets the oldest of the alerts that were closed while their
    /// request was pending.
    private func forgetClosed() {
        let closed = open.filter(\.value.isClosed).keys
        if closed.count > Self.most, let oldest = closed.min() { open[oldest] = nil }
    }

    /// Takes all alerts off the screen, and calls `then` when the server has answered, or when ``patience`` has passed.
    func closeAll(_ then: @escaping () -> Void) {
        restart?.disarm()
        whenEmpty = then
        for (id, shown) in open {
            if shown.call != nil {
                shown.isClosed = true
            } else {
                open[id] = nil
                if let number = numbered(shown) { closeOnScreen(number) }
            }
        }
        retry = try? loop.timer { then() }
        retry?.arm(after: Self.patience)
        endIfEmpty()
    }

    func endIfEmpty() {
        guard let whenEmpty, closings <= 0 || service.owner == nil, !open.values.contains(where: { $0.call != nil })
        else { return }
        self.whenEmpty = nil
        whenEmpty()
    }

    func acknowledge(_ id: Int64) { endings.removeAll { $0.id == id } }

    func badge(_ entry: String, _ count: Int64) {
        guard Markup.isEntry(entry), badges[entry] != nil || badges.count < Self.most else { return }
        badges[entry] = max(0, count)
        if let connection = service.connection { emit(entry, connection) }
        if count <= 0 { badges[entry] = nil }
    }

    func end(_ id: Int64, _ report: DesktopReport) {
        acknowledge(id)
        if endings.count >= Self.most { endings.removeFirst() }
        endings.append((id, report))
        self.report(report)
    }

    // MARK: Bus and server

    private func connected(_ connection: BusConnection) {
        (questions, orphans) = ([], [])
        signals = [
            connection.subscribe("type='signal',path='\(Self.path)',interface='\(Self.name)'") {
                [weak self] message in
                guard let self, let owner = self.service.owner, let sender = message.sender,
                    sender.utf8.elementsEqual(owner.utf8)
                else { return }
                self.heard(message)
            },
            // A dock that has just started does not know the badges: send all badges again.
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

    /// Determines whether an alert would be seen now, and reports if that has changed.
    private func assess() {
        guard service.isAnswered, let connection = service.connection else {
            if let trouble = service.trouble {
                isUnseen("the session's bus cannot be used: \(Self.bounded(trouble, 300))")
            }
            return
        }
        guard service.owner == nil else { return isUnseen(isSilent ? silentServer : nil) }
        // No server is running. Ask whether the bus can start one: many servers are started only for the first
        // notification.
        ask(connection, Self.bus, Self.busPath, Self.bus, "ListActivatableNames", []) { [weak self] answer in
            guard let self, self.service.isAnswered, self.service.owner == nil else { return }
            let names = (try? answer.get())?.values().first?.list ?? []
            let canStart = names.contains { $0.text?.utf8.elementsEqual(Self.name.utf8) ?? false }
            self.isUnseen(canStart ? nil : Self.noServer)
        }
    }

    private var silentServer: String {
        "the notification server \(server.map { $0.name + " " } ?? "")does not answer"
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
            // If a server is installed, a later try may succeed.
            if error.name != Self.unknownService { self.startLater() }
            for shown in self.open.values.filter({ !$0.wasShown }).sorted(by: { $0.alert.id < $1.alert.id }) {
                self.hasFailed(shown, Self.noServer)
            }
        }
    }

    /// Whether an alert is open that must be shown by the next server.
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

    func ask(
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
        identity = connection.call(owner, Self.path, Self.name, "GetServerInformation", isPatient: true) {
            [weak self] answer in
            guard let self, self.service.owner == owner else { return }
            let words = ((try? answer.get())?.values() ?? []).prefix(3).map { $0.text ?? "" }
            let name = words.count == 3 ? "\(words[0]) \(words[2])" : "a server without a name"
            self.identity = connection.call(owner, Self.path, Self.name, "GetCapabilities", isPatient: true) {
                [weak self] answer in
                guard let self, self.service.owner == owner else { return }
                self.identity = nil
                let list = (try? answer.get())?.values().first?.list ?? []
                let capabilities = list.compactMap(\.text).filter { $0.utf8.count <= 64 }.prefix(64)
                self.hasAnswered()
                self.canShow(DesktopServer(name: Self.bounded(name), capabilities: Array(capabilities)))
            }
            self.hasAnswered()
        }
        watchSilence()
    }

    static func bounded(_ text: String, _ most: Int = 80) -> String {
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
        silence?.disarm()
        questions = []
        let wasThere = server != nil && !isSilent
        (server, serverName, identity) = (nil, nil, nil)
        (isSilent, isProbed, closings) = (false, false, 0)
        for (id, shown) in open {
            if let call = shown.call { orphans.append(call) }
            (shown.number, shown.call, shown.isDue, shown.isLost, shown.token) = (nil, nil, false, false, nil)
            if shown.isClosed { open[id] = nil }
        }
        // If the connection to the bus was lost, drop the unanswered requests to show alerts: their answers can no
        // longer arrive.
        orphans = service.isAnswered ? orphans.suffix(Self.most) : []
        if wasThere { report(.server(nil)) }
        if loop.now - appearedAt >= Self.stableAfter { restartDelay = Self.firstRestart }
        startLater()
        endIfEmpty()
    }

    /// Closes a notification that a server has shown late, after it had lost the bus name.
    func answered(_ call: NotifyCall, _ number: UInt32?) {
        orphans.removeAll { $0 === call }
        guard let number, let connection = service.connection else { return }
        ask(connection, call.owner, Self.path, Self.name, "CloseNotification", [.number(number)]) { _ in }
    }

    // MARK: Silence

    /// Whether an answer of the server to this request is still expected.
    func isAwaited(_ call: NotifyCall) -> Bool { call.since > excusedUntil }

    /// Called when the server has answered something.
    func hasAnswered() {
        answeredAt = loop.now
        if isSilent {
            isSilent = false
            assess()
            if let server { report(.server(server)) }
        }
        watchSilence()
    }

    /// Sets the timer for the time when the oldest request has waited too long.
    func watchSilence() {
        guard !isSilent else { return }
        var requests = open.values.compactMap(\.call).filter(isAwaited).map(\.since)
        if identity != nil { requests.append(appearedAt) }
        guard let oldest = requests.min() else {
            silence?.disarm()
            return
        }
        silence?.arm(at: max(oldest, answeredAt) + Self.longestSilence)
    }

    private func hasBeenSilent() {
        silence?.disarm()
        guard let owner = service.owner, let connection = service.connection else { return }
        isSilent = true
        if server != nil { report(.server(nil)) }
        assess()
        for id in open.keys.sorted() {
            if let shown = open[id], !shown.wasShown, !shown.isClosed { hasFailed(shown, silentServer) }
        }
        // The server may have lost one request. Send it another request, to find out whether it answers that one.
        guard identity == nil, !isProbed else { return }
        isProbed = true
        let askedAt = loop.now
        identity = connection.call(owner, Self.path, Self.name, "GetServerInformation", isPatient: true) {
            [weak self] _ in
            guard let self, self.service.owner == owner else { return }
            (self.identity, self.isProbed, self.excusedUntil) = (nil, false, askedAt)
            self.hasAnswered()
            self.showDue()
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
