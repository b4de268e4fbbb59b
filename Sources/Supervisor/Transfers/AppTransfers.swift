// SPDX-License-Identifier: Apache-2.0

import CalendarTime
import Configuration
package import Engine
import EventLoop
import EventSources
import Lifecycle
import Linux
import Mailbox
package import Store
import TransferProtocol
import Transfers
import Varlink
import WireText

/// What is downloaded and uploaded for apps, also while they sleep or do not run.
///
/// A transfer is in the store until it is over. Its end is mail: that is there before the transfer goes from the store, so
/// that a torpord that is killed in between is followed by one that finds both, and knows by the mail that it is over.
package final class AppTransfers: ShellRoom, LifecycleObserver {
    package unowned(unsafe) let supervisor: Supervisor
    var queue = TransferQueue()
    /// What an earlier torpord had is known.
    private(set) var isLoaded = false
    private var afterLoad: [() -> Void] = []
    var helpers: [String: TransferHelper] = [:]
    /// What is found for a start; commands wait.
    var starting: Set<String> = []
    /// Processes of an earlier torpord, until the transfers are known.
    var found: [String: FoundHelper] = [:]
    /// In which they are.
    var cgroupsFound: Set<String> = []
    /// Processes that are not gone.
    var processCount = 0
    /// Waits for them at the end, so long.
    var endTimer: TimerSource?
    var isPastWaiting = false
    /// When a helper has had nothing to do for so long, it goes.
    var idle: [String: TimerSource] = [:]
    private var timer: TimerSource?
    private var lastID: Int64 = 0
    /// Whom servers were told of that asked; in no file.
    var logins: [Int64: TransferCredentials] = [:]
    /// Which transfer a request became, so that it becomes one.
    var tokens = TransferTokens()
    /// Those that had no way to their server in their last try that is over.
    var withoutWay: Set<Int64> = []
    /// Of each that runs, what it had when it was heard of last.
    var heard: [Int64: (at: Duration, bytes: Int64)] = [:]
    /// Apps whose subscriptions are not looked at: no event would launch them.
    private var heldBack: Set<String> = []
    /// By which the wall's clock is heard being set.
    private var clockWatch: ClockWatch?
    private var clockSource: IOSource?
    /// Starts that failed in a row, by app.
    var failedStarts: [String: Int64] = [:]
    /// Makes folders, removes parts.
    let disk: BackgroundWorker
    private(set) lazy var network = TransferNetwork(loop) { [weak self] in
        self?.timeHasCome()
    } onWay: { [weak self] in
        self?.tryAgain()
    }

    /// So often it is looked whether what waits for a good moment may begin.
    private static let look = Duration.seconds(60)

    package init(_ supervisor: Supervisor) {
        self.supervisor = supervisor
        disk = BackgroundWorker(supervisor.loop, named: "transfers")
    }

    // MARK: The beginning and the end

    /// What the store has, after the mail that it has.
    package func load(_ contents: StoreContents) {
        guard !isLoaded else { return }
        isLoaded = true
        var over: Set<Int64> = []
        for app in apps {
            for mail in supervisor.mailboxes.transferMail(of: app) {
                guard let id = TransferMail.transfer(in: mail) else { continue }
                lastID = max(lastID, id)
                // What asks again for one that is over meanwhile gets that one.
                tokens.note(TransferMail.token(in: mail), of: app.name, is: id)
                if mail.draft.message == Message.transferDidFinish.rawValue { over.insert(id) }
            }
        }
        for row in contents.transfers.values.sorted(by: { $0.id < $1.id }) {
            lastID = max(lastID, row.id)
            guard coordinator.id(of: row.app) != nil else { continue }
            let isOver = over.contains(row.id)
            let transfer = (try? JSON.parse(row.json)).flatMap { try? Transfer(json: $0) }
            if let transfer { tokens.note(transfer.token, of: row.app, is: row.id) }
            guard !isOver, let transfer else {
                if !isOver { log.error("\(row.app): its transfer \(row.id) cannot be read, and is dropped") }
                supervisor.store.removeTransfer(row.id, of: row.app)
                continue
            }
            queue.add(transfer)
        }
        matchFeeds()
        judgeWaits()
        // Nobody has heard whether there is a way meanwhile.
        for transfer in queue.waiting(for: .network) { queue.set(transfer.id, .queued) }
        // Of those that were force-quit in the last moment of an earlier torpord.
        touched(Array(apps))
        adoptHelpers()
        sweepAllParts()
        for body in afterLoad { body() }
        afterLoad = []
        schedule()
    }

    /// Does something when it is known what there is; at once, but in the first moments of a supervisor.
    package func whenLoaded(_ body: @escaping () -> Void) {
        if isLoaded { body() } else { afterLoad.append(body) }
    }

    /// Has everything saved again: the file that had it was lost.
    func keepAll() {
        for app in queue.apps { for transfer in queue.transfers(of: app) { save(transfer.id) } }
    }

    func nextID() -> Int64 {
        lastID = max(lastID + 1, Clock.realtimeMicroseconds())
        return lastID
    }

    func save(_ id: Int64) {
        guard let transfer = queue[id] else { return }
        supervisor.store.save(
            StoredTransfer(id: id, app: transfer.app, json: String(wire: transfer.json.serialised()))
        )
    }

    /// Those of an app that a person force-quits are over, also where it does not run. Who hurries the supervisor's own end
    /// means no app.
    package func touched(_ apps: [AppRuntime]) {
        guard isLoaded, queue.count > 0, !supervisor.recovery.isShuttingDown else { return }
        if apps.contains(where: { heldBack.contains($0.name) && machine($0).blocksWaking == nil }) { schedule() }
        for app in apps where machine(app).isForceQuit {
            let ids = queue.ids(of: app.name).subtracting(queue.feeds(of: app.name))
            guard !ids.isEmpty else { continue }
            let isAlone = helpers[app.name] == nil
            for id in ids.sorted() { drop(id, keepsPart: isAlone) }
            if isAlone { sweepParts(of: app.name) }
            note(app, .transfer, text: "was force-quit: its \(Readable.count(ids.count, "transfer")) will not continue")
        }
    }

    /// All of it goes.
    package func added(_ app: AppRuntime) {
        guard isLoaded, !app.specification.subscriptions.isEmpty else { return }
        matchFeeds(of: app)
        schedule()
    }

    package func forget(_ app: AppRuntime) {
        for transfer in queue.transfers(of: app.name) { drop(transfer.id, keepsPart: true) }
        endHelper(of: app.name)
        failedStarts[app.name] = nil
        tokens.forget(app.name)
        let places = [parts(of: app.name), feedsPlace(of: app.name)]
        disk.ask(
            { for place in places where File.exists(place.path) { _ = try? place.purge([], TreeWork()) } },
            { _ in }
        )
    }

    // MARK: What runs

    private var limits: TransferQueue.Limits {
        let rules = supervisor.configuration.supervisor.transfers
        return TransferQueue.Limits(connections: rules.connections, perApp: rules.perApp, perServer: rules.perHost)
    }

    /// Why discretionary transfers of an app wait now; nil where they need not.
    ///
    /// - Parameter isMetered: whether the network costs money.
    func obstacle(_ app: AppRuntime, weakness: MachineWeakness?, isMetered: Bool) -> Transfer.Cause? {
        switch weakness {
        case .memory: return .memory
        case .battery: return .power
        case .load: return .load
        case nil: break
        }
        let rules = app.specification.transfers
        if let window = rules.window {
            let time = LocalTime(Clock.realtimeMicroseconds(), in: supervisor.wakes.timers.zone)
            if !window.contains(minute: time.hour * 60 + time.minute) { return .window }
        }
        return isMetered && !rules.usesMeteredLinks ? .metered : nil
    }

    /// When it is to be looked again whether what stands in the way of something is over.
    private func look(for cause: Transfer.Cause, _ kind: Transfer.Kind, _ app: AppRuntime) -> Duration {
        if cause == .window, let window = app.specification.transfers.window {
            let time = LocalTime(Clock.realtimeMicroseconds(), in: supervisor.wakes.timers.zone)
            // Not to the second; in time zones that put the clock forward, an hour late at most.
            let minutes = (window.start - time.hour * 60 - time.minute + 1440) % 1440
            return .seconds(max(1, minutes) * 60)
        }
        return kind == .feed ? Self.look * 5 : Self.look
    }

    /// Begins with what may run now, and looks again when that may be otherwise.
    func schedule() {
        guard isLoaded, !isEnding, !supervisor.isKeeperLost else { return }
        guard queue.count > 0 else {
            timer?.disarm()
            network.followLink(false)
            network.followWays(false)
            return
        }
        var weakness: MachineWeakness??
        var obstacles: [String: Transfer.Cause?] = [:]
        var looks: [Duration] = []
        var asksForLink = false
        heldBack = []
        let limits = limits
        while true {
            let next = queue.next(limits) { name in
                coordinator.id(of: name).map { machine(apps[$0]).state }.map { $0 == .active || $0 == .inactive }
                    ?? false
            } mayRun: { name, kind in
                // What it does already is not known yet.
                if found[name] != nil || helpers[name]?.isUnheard ?? false { return false }
                guard kind != .prompt else { return true }
                if kind == .feed, coordinator.id(of: name).map({ machine(apps[$0]).blocksWaking != nil }) ?? true {
                    heldBack.insert(name)
                    return false
                }
                if weakness == nil { weakness = .some(supervisor.wakes.timers.weakness()) }
                guard let app = coordinator.id(of: name).map({ apps[$0] }) else { return false }
                if !app.specification.transfers.usesMeteredLinks {
                    asksForLink = true
                    network.followLink(true)
                }
                // As long as it is not known, nothing begins that may cost money.
                let isMetered = network.isMetered ?? true
                let cause = obstacles[name] ?? obstacle(app, weakness: weakness ?? nil, isMetered: isMetered)
                obstacles[name] = .some(cause)
                // Of the link one is told.
                if let cause, cause != .metered || network.isMetered == nil {
                    looks.append(look(for: cause, kind, app))
                }
                return cause == nil
            }
            guard let next else { break }
            begin(next)
        }
        var wait = queue.nextAlarm.map { Duration.microseconds(max(0, $0 - Clock.realtimeMicroseconds())) }
        // Whether one can be paused is known when its server has answered.
        if queue.running.contains(where: { $0.kind == .discretionary && $0.order.direction == .download }) {
            looks.append(Self.look)
            asksForLink = true
        }
        network.followLink(asksForLink)
        network.followWays(!withoutWay.isEmpty)
        if let soonest = looks.min() { wait = min(wait ?? soonest, soonest) }
        if timer == nil { timer = try? loop.timer { [weak self] in self?.timeHasCome() } }
        guard let wait else {
            timer?.disarm()
            return
        }
        timer?.arm(after: wait)
        followClock()
    }

    /// What is waited for is of the wall's clock, which may be set, and goes on while the machine sleeps and the loop's does not.
    private func followClock() {
        guard clockSource == nil, let made = try? ClockWatch() else { return }
        clockSource = try? loop.watch(made.descriptor.raw, .readable) { [weak self] _ in self?.clockWasSet() }
        clockWatch = consume made
    }

    private func clockWasSet() {
        do throws(Errno) {
            try clockWatch?.again()
        } catch {
            clockSource = nil
            clockWatch = nil
        }
        judgeWaits()
        timeHasCome()
    }

    /// Nothing waits longer than it would if what the wall's clock shows now had always been true: it may have been wrong when
    /// something began to wait.
    private func judgeWaits() {
        let longest = Clock.realtimeMicroseconds() + RetryDelay.longestAsked * 1_000_000
        for cause in Transfer.Cause.allCases {
            for transfer in queue.waiting(for: cause) {
                guard case .waiting(_, .some(let until)) = transfer.state else { continue }
                if let feed = transfer.feed, cause == .interval {
                    queue.set(transfer.id, waiting(feed))
                } else if until > longest {
                    queue.set(transfer.id, .waiting(cause, until: longest))
                }
            }
        }
    }

    /// What had no way to its server may have one now: its series of tries begins anew. So does that of what is being tried in
    /// this moment, which began before.
    private func tryAgain() {
        for id in withoutWay { queue.update(id) { $0.failures = min($0.failures, Self.failuresOfNewWay) } }
        for transfer in queue.waiting(for: .network) { queue.set(transfer.id, .queued) }
        schedule()
    }

    /// Names cannot be resolved yet, or a server is not up, in the first moments: then it is tried in seconds.
    private static let failuresOfNewWay: Int64 = 2

    private func timeHasCome() {
        let (_, expired) = queue.due(at: Clock.realtimeMicroseconds())
        for id in expired {
            guard let transfer = queue[id] else { continue }
            let result = TransferResult(
                of: transfer,
                reason: "resource-time",
                error: "it has taken longer than resource_time allows" + (transfer.error.map { ": \($0)" } ?? "")
            )
            finish(id, result)
            discardPart(of: transfer)
            restIfIdle(transfer.app)
        }
        pause()
        schedule()
    }

    /// Has discretionary downloads wait again whose good moment is over, where what came of them is not lost by that. The
    /// load, which they have a part in, stops none.
    private func pause() {
        guard queue.running.contains(where: \.order.isDiscretionary) else { return }
        let weakness = supervisor.wakes.timers.weakness()
        let isMetered = network.isMetered ?? false
        for transfer in queue.running where transfer.order.isDiscretionary && transfer.canGoOnLater {
            guard let app = coordinator.id(of: transfer.app).map({ apps[$0] }),
                let cause = obstacle(app, weakness: weakness, isMetered: isMetered), cause != .load
            else { continue }
            helpers[transfer.app]?.send(.stop(id: transfer.id))
            heard[transfer.id] = nil
            queue.set(transfer.id, .queued)
            save(transfer.id)
            restIfIdle(transfer.app)
        }
    }

    private func begin(_ transfer: Transfer) {
        guard let id = coordinator.id(of: transfer.app) else { return drop(transfer.id) }
        let app = apps[id]
        queue.set(transfer.id, .running)
        queue.update(transfer.id) { $0.attempts += 1 }
        save(transfer.id)
        idle[transfer.app]?.disarm()
        guard let helper = helpers[transfer.app] else { return startHelper(of: app) }
        // What it is sent then is lost with it, and sent to the next one.
        if helper.manner != manner(of: app) { helper.replace() }
        helper.send(.start(order(queue[transfer.id] ?? transfer, app, helper)))
    }

    func order(_ transfer: Transfer, _ app: AppRuntime, _ helper: TransferHelper) -> TransferOrder {
        var order = transfer.order
        let rules = app.specification.transfers
        order.sizeLimit = rules.sizeLimit.map { Int64(clamping: $0) }
        order.minimumFree = helper.minimumFree
        if let address = WebAddress(order.url) {
            order.authority = rules.authorities[address.host]
            order.credentials = logins[transfer.id] ?? configured(rules.credentials[address.host], app)
        }
        func proxy(_ url: String?) -> TransferProxy? {
            guard var proxy = url.map({ TransferProxy(url: $0) }) else { return nil }
            proxy.credentials = configured(proxy.host.flatMap { rules.credentials[$0] }, app)
            return proxy
        }
        let proxies = TransferProxies(of: app.specification)
        (order.proxy, order.secureProxy, order.noProxy) = (proxy(proxies.plain), proxy(proxies.secure), proxies.none)
        // What a subscription is at, a person has written.
        if transfer.feed == nil { order.allow = rules.allow.map(\.text) }
        order.isDoubtful = transfer.mayBeSent && order.method == "POST" && !transfer.retriesPost
        if let feed = transfer.feed { self.order(feed, &order, of: app) }
        return order
    }

    private func configured(_ login: TransferLogin?, _ app: AppRuntime) -> TransferCredentials? {
        guard let login, let setting = app.specification.setting(login.secret),
            let password = supervisor.settings.values(of: app).effective(setting)
        else { return nil }
        return TransferCredentials(user: login.user, password: password)
    }

    /// Other rules are in force.
    package func configure() {
        if supervisor.configuration.supervisor.transfers.rate == nil {
            for helper in helpers.values { helper.send(.rate(nil)) }
        }
        shareRate()
        matchFeeds()
        for (name, helper) in helpers {
            guard let id = coordinator.id(of: name) else { continue }
            if helper.manner != manner(of: apps[id]) { helper.replace() }
            helper.profile = apps[id].specification.profile(in: .background)
        }
        schedule()
    }
}
