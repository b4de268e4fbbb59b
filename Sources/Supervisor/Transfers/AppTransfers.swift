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

/// Downloads and uploads for apps, including apps that sleep or do not run.
///
/// A transfer is in the store until it has ended. Mail reports its end to the app, and is stored before the transfer is
/// removed from the store. If torpord is killed between these two steps, the next torpord finds both, and concludes
/// from the mail that the transfer has ended.
package final class AppTransfers: ShellRoom, LifecycleObserver {
    package unowned(unsafe) let supervisor: Supervisor
    var queue = TransferQueue()
    /// Whether the stored transfers are loaded.
    private(set) var isLoaded = false
    var helpers: [String: TransferHelper] = [:]
    /// Apps whose helper (a torpor-transfer process) is being prepared: a background thread is looking up the helper's
    /// account and making its folders. The transfers of these apps wait until then.
    var starting: Set<String> = []
    /// Helpers that an earlier torpord has left running, by app. The entries are removed when the stored transfers are
    /// loaded.
    var found: [String: FoundCompanion] = [:]
    /// The cgroups of the helpers (torpor-transfer processes) that an earlier torpord left.
    var cgroupsFound: Set<String> = []
    private(set) lazy var processes = CompanionCount(supervisor)
    /// Timers that end helpers (torpor-transfer processes) which have had no transfer for some time, by app.
    var idle: [String: TimerSource] = [:]
    private var timer: TimerSource?
    private var lastID: Int64 = 0
    /// The logins that apps have given because a server asked for one, by transfer. Logins are never stored in a file.
    var logins: [Int64: TransferCredentials] = [:]
    /// The transfer that each request has started, so that a repeated request does not start a second one.
    var tokens = TransferTokens()
    /// Transfers whose last attempt has found no route to the server.
    var withoutWay: Set<Int64> = []
    /// For each running transfer, the number of bytes in its last report, and the time of that report.
    var heard: [Int64: (at: Duration, bytes: Int64)] = [:]
    /// Apps whose subscriptions are not checked, because no event may launch these apps now.
    private var heldBack: Set<String> = []
    /// Apps whose transfers wait because this machine does not own the app.
    private var unowned: Set<String> = []
    /// Reports when the wall clock is set.
    private var clockWatch: ClockWatch?
    private var clockSource: IOSource?
    /// Consecutive failed starts of the helper, by app.
    var failedStarts: [String: Int64] = [:]
    /// A background thread that makes folders, and removes files of transfers.
    let disk: BackgroundWorker
    private(set) lazy var network = TransferNetwork(loop) { [weak self] in
        self?.timeHasCome()
    } onWay: { [weak self] in
        self?.tryAgain()
    }

    /// The interval at which torpord checks whether discretionary transfers may begin.
    private static let look = Duration.seconds(60)

    package init(_ supervisor: Supervisor) {
        self.supervisor = supervisor
        disk = BackgroundWorker(supervisor.loop, named: "transfers")
    }

    // MARK: The beginning and the end

    /// Loads the stored transfers. Call it only after the stored mail was loaded.
    package func load(_ contents: StoreContents) {
        guard !isLoaded else { return }
        isLoaded = true
        take(contents, of: Array(apps))
        matchFeeds()
        judgeWaits()
        // Retry transfers that had no route to their server, because there may be one now.
        for transfer in queue.waiting(for: .network) { queue.set(transfer.id, .queued) }
        // Drop the transfers of apps that a user has force-quit just before an earlier torpord ended.
        touched(Array(apps))
        adoptHelpers()
        for app in apps where !machine(app).mayRun { halt(app) }
        sweepAllParts()
        schedule()
    }

    /// Loads the stored transfers of an app that was not in the configuration when the store was read.
    package func load(_ contents: StoreContents, of app: AppRuntime) {
        take(contents, of: [app])
        matchFeeds(of: app)
        judgeWaits()
        touched([app])
        schedule()
    }

    private func take(_ contents: StoreContents, of apps: [AppRuntime]) {
        var over: Set<Int64> = []
        for app in apps {
            for mail in supervisor.mailboxes.transferMail(of: app) {
                guard let id = TransferMail.transfer(in: mail) else { continue }
                lastID = max(lastID, id)
                // Store the number, so that a repeated request for a transfer that has ended gets the number of that
                // transfer.
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
    }

    /// Saves all transfers again, because the store's file was lost.
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

    /// Drops the transfers of apps that a user has force-quit, even if such an app was not running. A force quit by a
    /// second stop signal to the supervisor does not count.
    package func touched(_ apps: [AppRuntime]) {
        guard isLoaded, queue.count > 0, !supervisor.recovery.isShuttingDown else { return }
        for app in apps where !machine(app).mayRun { halt(app) }
        if apps.contains(where: { app in
            heldBack.contains(app.name) && machine(app).blocksWaking == nil
                || unowned.contains(app.name) && machine(app).mayRun
        }) {
            schedule()
        }
        for app in apps where machine(app).isForceQuit {
            let ids = queue.ids(of: app.name).subtracting(queue.feeds(of: app.name))
            guard !ids.isEmpty else { continue }
            let isAlone = helpers[app.name] == nil
            for id in ids.sorted() { drop(id, keepsPart: isAlone) }
            if isAlone { sweepParts(of: app.name) }
            note(app, .transfer, text: "was force-quit: its \(Readable.count(ids.count, "transfer")) will not continue")
        }
    }

    /// Stops the running transfers of an app that this machine does not own, because another machine may own the app
    /// and run the same transfers. They continue when this machine owns the app.
    private func halt(_ app: AppRuntime) {
        let ids = queue.running(of: app.name)
        guard !ids.isEmpty else { return }
        endHelper(of: app.name)
        for id in ids {
            heard[id] = nil
            queue.set(id, .queued)
            save(id)
        }
        schedule()
    }

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

    /// Why discretionary transfers of the app must wait now; nil if they need not. Discretionary transfers are those
    /// that may wait for good conditions.
    ///
    /// - Parameter isMetered: whether the network is metered.
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

    /// The time until the next check of whether a transfer must still wait for this cause.
    private func look(for cause: Transfer.Cause, _ kind: Transfer.Kind, _ app: AppRuntime) -> Duration {
        if cause == .window, let window = app.specification.transfers.window {
            let time = LocalTime(Clock.realtimeMicroseconds(), in: supervisor.wakes.timers.zone)
            // The time is exact to the minute. When summer time begins, it is an hour late at most.
            let minutes = (window.start - time.hour * 60 - time.minute + 1440) % 1440
            return .seconds(max(1, minutes) * 60)
        }
        return kind == .feed ? Self.look * 5 : Self.look
    }

    /// Starts the transfers that may run now, and arms the timer for the next check.
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
        unowned = []
        let limits = limits
        while true {
            let next = queue.next(limits) { name in
                coordinator.id(of: name).map { machine(apps[$0]).state }.map { $0 == .active || $0 == .inactive }
                    ?? false
            } user: { name in
                coordinator.id(of: name).flatMap { apps[$0].specification.user } ?? ""
            } mayRun: { name, kind in
                // Start nothing until the app's helper has reported which transfers it is running.
                if found[name] != nil || helpers[name]?.isUnheard ?? false { return false }
                if let id = coordinator.id(of: name), !machine(apps[id]).mayRun {
                    unowned.insert(name)
                    return false
                }
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
                // While it is not known whether the network is metered, treat it as metered, so that no transfer causes
                // costs.
                let isMetered = network.isMetered ?? true
                let cause = obstacles[name] ?? obstacle(app, weakness: weakness ?? nil, isMetered: isMetered)
                obstacles[name] = .some(cause)
                // The end of a metered connection is reported by an event, so no check at intervals is needed.
                if let cause, cause != .metered || network.isMetered == nil {
                    looks.append(look(for: cause, kind, app))
                }
                return cause == nil
            }
            guard let next else { break }
            begin(next)
        }
        var wait = queue.nextAlarm.map { Duration.microseconds(max(0, $0 - Clock.realtimeMicroseconds())) }
        // Check running downloads at intervals: whether a download can be paused is known only after its server has
        // answered.
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

    /// Starts to watch for changes of the wall clock. The waits of transfers end at times of the wall clock, but timers
    /// use the event loop's clock, which is never set and stands still while the machine sleeps.
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

    /// Shortens waits that are too long because the wall clock was wrong when they began.
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

    /// Called when there may be a new route. Retries transfers that had no route to their server. For transfers whose
    /// retry is in progress, reduces the delay before the next one, because the attempt may have begun before the route
    /// existed.
    private func tryAgain() {
        for id in withoutWay { queue.update(id) { $0.failures = min($0.failures, Self.failuresOfNewWay) } }
        for transfer in queue.waiting(for: .network) { queue.set(transfer.id, .queued) }
        schedule()
    }

    /// After a new route, at most this many failures count for the delay of a retry. So retries come within seconds,
    /// because name resolution or the server may not be ready at once.
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

    /// Pauses discretionary downloads that must wait again, unless a pause would lose the bytes that they have
    /// received. High load does not pause them, because the downloads themselves cause a part of the load.
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
        // If the helper is replaced now, the start command below is lost with the old process. torpord then sends it
        // again to the new one.
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
        // `transfers.allow` does not apply to a subscription, because its URL comes from the configuration.
        if transfer.feed == nil { order.allow = rules.allow.map(\.text) }
        // Set the ports now: since the request, a user's answer about permissions may have changed them.
        order.ports = Self.ports(of: app)
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

    /// Applies the transfer rules of the configuration in force.
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
