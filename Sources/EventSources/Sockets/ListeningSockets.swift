// SPDX-License-Identifier: Apache-2.0

package import Configuration
package import Engine
import EventLoop
import Lifecycle
import Linux
import Processes

/// The sockets that torpord binds for apps (`sockets`). A socket stays bound as long as the configuration contains
/// it, and each run of the app gets a copy. While the app is suspended or does not run, torpord watches the socket,
/// but never accepts connections itself.
package final class ListeningSockets: EventRoom, EventSource {
    package unowned(unsafe) let wakes: Wakes
    var sets: [AppID: SocketSet] = [:]
    private var retryTimer: TimerSource?
    private var isLookingUp = false
    lazy var fileLookups = BackgroundWorker(loop, named: "socket files")
    /// Whether files of sockets are being looked up, and whether all must be looked up again after that. A lookup may
    /// hang for as long as its disk does, so no more than one question waits.
    var (isSeeking, seeksAgain) = (false, false)
    /// Finds those of the files that are gone.
    var findLost: @Sendable (Set<SocketFile>) -> LostFiles = { LostFiles(among: $0) }
    /// The apps that were removed while no torpord ran, and of which processes are left: nearly always none. Read
    /// before torpord ends these processes.
    private lazy var removed = host.leftApps.filter { coordinator.id(of: $0) == nil }.sorted()
    /// Whether torpord has found the apps that were running at its start. Before that, it must not bind missing
    /// sockets.
    private(set) var isRecovered = false
    var isBegun = false

    /// The delay before the first retry of a failed bind, and the longest delay.
    private static let delays = (first: Duration.milliseconds(250), last: Duration.seconds(60))

    package init(_ wakes: Wakes) { self.wakes = wakes }

    // MARK: Binding

    /// Takes over the sockets that an earlier torpord had bound. Binds no other sockets, because apps that still run
    /// and may have them are found only later.
    package func takeOver() {
        for app in apps { reconcile(app) }
    }

    /// Binds missing sockets, and closes sockets that no app uses any longer.
    package func configure() {
        isRecovered = true
        for app in apps { reconcile(app) }
        retryAll()
        guard isStarted else {
            for set in sets.values { withhold(set) }
            // Until the first launches have begun, it is unknown whether a connection may launch an app.
            return engine.whenStarted { [weak self] in
                self?.isBegun = true
                self?.lookAtAll()
                self?.tellTroubles()
                self?.seekLostFiles { $0.isInherited }
            }
        }
        for set in sets.values { set.refusal = nil }
        arrangeRetry()
        lookAtAll()
        seekLostFiles()
    }

    /// Reports the bind errors that occurred before torpord knew which apps run.
    private func tellTroubles() {
        for set in sets.values { for socket in set.sockets { tellTrouble(socket, of: set.app) } }
    }

    private func tellTrouble(_ socket: ListeningSocket, of app: AppRuntime) {
        guard isBegun, socket.descriptor == nil, let trouble = socket.trouble, socket.toldTrouble != trouble else {
            return
        }
        socket.toldTrouble = trouble
        tellPolicies(app)
        note(
            app,
            .socketNotBound,
            text:
                "cannot listen at \(socket.label): \(trouble); torpord retries, and does not launch the app without it"
        )
    }

    /// Makes policies evaluate the app again, because connections wake an app only at sockets that torpord has bound.
    func tellPolicies(_ app: AppRuntime) {
        let id = app.id
        loop.later { [weak self] in
            guard let self, self.sets[id] != nil, !self.isEnding else { return }
            self.engine.touch(id)
        }
    }

    /// An error text if a socket of the app is not bound, or has lost its file; nil if clients reach all sockets, or if
    /// they are closed because the app has failed or is not owned.
    package func trouble(of app: AppRuntime) -> String? {
        guard isBegun, let set = sets[app.id], set.refused == nil else { return nil }
        if let socket = set.sockets.first(where: \.isUnreached) { return lostFileTrouble(socket, of: app) }
        guard set.isTroubled else { return nil }
        let socket = set.sockets.first { $0.descriptor == nil && $0.trouble != nil && !$0.isPostponed }
        return socket.map { "cannot listen at \($0.label): \($0.trouble ?? "")" }
    }

    /// The sockets (``SocketSpecification/identity``) that torpord could not bind for the running app: connections
    /// reach the app, but do not wake it, unless the app is suspended and listens there itself (``lost(by:)``). Also
    /// those that no connection reaches, since their file is gone (``unreached(of:)``). Empty until torpord has tried
    /// to bind the sockets, and while they are closed on purpose.
    package func unbound(of app: AppRuntime) -> Set<String> {
        guard isBegun, let set = sets[app.id], set.refused == nil else { return [] }
        let own = set.isTroubled ? wakes.connectionWatch.ownPlaces(of: app) : []
        let silent = set.sockets.filter { socket in
            socket.isLost && !own.contains(socket.specification.plan.address.place) || socket.isUnreached
        }
        return Set(silent.map(\.specification.identity))
    }

    /// The places of the sockets that torpord could not bind, each with how a connection there wakes the app. The app
    /// itself may listen there: it got the socket from an earlier torpord that ended without leaving a copy, or was
    /// launched before its configuration had the socket. ``ConnectionWatch`` then watches the app's own socket.
    func lost(by app: AppRuntime) -> [UInt64: WakeManner] {
        guard isBegun, let set = sets[app.id], set.isTroubled, set.refused == nil else { return [:] }
        let lost = set.sockets.filter { $0.isLost && $0.specification.wake != .none }
        return Dictionary(lost.map { ($0.specification.plan.address.place, $0.specification.wake) }) { first, _ in first
        }
    }

    private func lookAtAll() { for set in Array(sets.values) { look(set) } }

    /// The sockets to bind for the app: those of its next launch, and those that its running processes still use.
    package func wanted(_ app: AppRuntime) -> [SocketSpecification] {
        if app.awaitsSettings { return [] }
        let next = app.next?.sockets ?? app.specification.sockets
        let kept = app.specification.sockets.filter { old in !next.contains { $0.identity == old.identity } }
        return next + kept
    }

    /// Makes the sockets of an app match its configuration.
    func reconcile(_ app: AppRuntime) {
        let wanted = wanted(app)
        guard !wanted.isEmpty || sets[app.id] != nil else { return }
        let set = sets[app.id] ?? SocketSet(app)
        guard set.specifications != wanted else { return }
        set.specifications = wanted
        sets[app.id] = wanted.isEmpty ? nil : set
        var leaving = set.sockets
        set.sockets = []
        for specification in wanted {
            if let index = leaving.firstIndex(where: { $0.specification.identity == specification.identity }) {
                let socket = leaving.remove(at: index)
                warn(app, socket.change(to: specification, host.socketAccounts))
                set.sockets.append(socket)
            } else {
                set.sockets.append(ListeningSocket(specification, app: app.name))
            }
        }
        let isClosing = !leaving.isEmpty
        for socket in leaving {
            makeRoom(socket)
            close(socket)
        }
        postpone(set)
        for socket in set.sockets where socket.descriptor == nil { bind(socket, of: app) }
        if isClosing { retryAll() }
        arrangeRetry()
        look(set)
    }

    /// Called when the app's settings have changed. Socket addresses may contain settings, so the sockets may change.
    package func settingsChanged(_ app: AppRuntime) { reconcile(app) }

    @discardableResult
    func bind(_ socket: ListeningSocket, of app: AppRuntime, isForLaunch: Bool = false) -> Bool {
        if let refusal = refusal(app.id, machine(app), isForLaunch: isForLaunch) {
            return refuse(socket, of: app, refusal)
        }
        if socket.isYielded || socket.isPostponed, !isForLaunch { return false }
        socket.isYielded = false
        socket.isPostponed = false
        if let held = host.inheritance.take(socket.heldName).first {
            socket.take(held)
            return true
        }
        if !isRecovered, takeFromRemoved(socket, for: app) { return true }
        guard isRecovered || isForLaunch else { return false }
        // torpor-keeper was lost, and with it its copies of sockets: copy the socket from the running app, which
        // still has it.
        if !isBegun, takeBack(socket, from: app) { return true }
        if let missing = host.socketAccounts.missing(socket.specification) {
            // If the owner is unknown, do not bind the socket: its file would belong to another user.
            socket.trouble = missing
            tellTrouble(socket, of: app)
            return false
        }
        do throws(BindFailure) {
            let warnings = try socket.bind(host.socketAccounts)
            if let descriptor = socket.descriptor { host.hold(socket.heldName, descriptor.raw) }
            warn(app, warnings)
            if socket.toldTrouble != nil {
                note(app, .socketBound, text: "listens at \(socket.label) now")
                tellPolicies(app)
            }
            socket.toldTrouble = nil
            if let set = sets[app.id] { withhold(set, isForLaunch: isForLaunch) }
            return true
        } catch {
            socket.trouble = error.sentence(socket.specification.plan) + ownListener(error, app)
            tellTrouble(socket, of: app)
            return false
        }
    }

    /// Why the sockets of an app are closed.
    enum Refusal: Equatable {
        case failed
        /// An app that it requires has failed.
        case missing(String)
        /// Another machine may own the app, and no process of the app runs on this machine.
        case unowned

        /// The reason as the end of a sentence about the app.
        var reason: String {
            switch self {
            case .failed: "it has failed"
            case .missing(let other): "\(other), which it requires, has failed"
            case .unowned: "this machine does not own it"
            }
        }

        func trouble(of app: String) -> String {
            switch self {
            case .failed: "\(app) has failed; ‘torpor start \(app)’ or ‘torpor reset \(app)’ opens it again"
            case .missing(let other):
                "\(other), which \(app) requires, has failed; ‘torpor start \(app)’ launches both and opens it again"
            case .unowned: "this machine does not own \(app); ‘torpor own \(app)’ opens it"
            }
        }
    }

    /// Why the app's sockets must be closed; nil if they may be open. An app that stands by (was launched although this
    /// machine does not own it) keeps its sockets open, but the kernel holds back connections and data
    /// (``ListeningSocket/withhold(_:standsBy:isUnproven:)``).
    private func refusal(_ app: AppID, _ machine: AppMachine, isForLaunch: Bool = false) -> Refusal? {
        if !machine.mayRun { return machine.isAlive || machine.isWaitingToLaunch || isForLaunch ? nil : .unowned }
        if machine.failed { return .failed }
        return isForLaunch ? nil : coordinator.failedRequirement(of: app).map { .missing(apps[$0].name) }
    }

    /// Closes a socket of an app that no connection launches now, so that clients do not wait for it. Returns false,
    /// since the socket is not bound.
    private func refuse(_ socket: ListeningSocket, of app: AppRuntime, _ refusal: Refusal) -> Bool {
        socket.trouble = refusal.trouble(of: app.name)
        socket.toldTrouble = socket.trouble
        close(socket)
        return false
    }

    /// If the app has failed or is not owned, closes its sockets. If it may be launched again, binds them again.
    func closeIfRefused(_ set: SocketSet, _ machine: AppMachine) {
        let refusal = refusal(set.app.id, machine)
        guard set.refused != refusal else { return }
        set.refused = refusal
        if let refusal {
            for socket in set.sockets where socket.descriptor != nil {
                _ = refuse(socket, of: set.app, refusal)
                note(set.app, .socketClosed, text: "no longer listens at \(socket.label), since \(refusal.reason)")
            }
            set.retryAt = nil
            // Another app may have waited for an address that is free now.
            return retryAll()
        }
        for socket in set.sockets where socket.descriptor == nil { bind(socket, of: set.app) }
        arrangeRetry()
    }

    /// Takes an equal socket that an earlier torpord had bound for an app of the same user which was removed since: the
    /// app of this socket takes its place, and the connections in the queue are not lost.
    private func takeFromRemoved(_ socket: ListeningSocket, for app: AppRuntime) -> Bool {
        guard !removed.isEmpty, mayInherit(socket, app), host.socketAccounts.missing(socket.specification) == nil
        else { return false }
        let identity = socket.specification.identity
        for old in removed where host.isLeft(old, ofUserOf: app) {
            let name = DescriptorName.socket(old, identity)
            guard let held = host.inheritance.take(name).first else { continue }
            warn(app, socket.take(ofRemoved: held, host.socketAccounts))
            host.hold(socket.heldName, held.raw)
            host.release(name)
            return true
        }
        return false
    }

    private func takeBack(_ socket: ListeningSocket, from app: AppRuntime) -> Bool {
        guard let tree = app.run.tree, let pidfd = tree.pidfd,
            let copy = Sockets.copy(socket.specification.plan, of: tree.main.pid, pidfd.raw)
        else { return false }
        socket.take(copy)
        host.hold(socket.heldName, copy.raw)
        return true
    }

    package func warn(_ app: AppRuntime, _ warnings: [String]) {
        for warning in warnings { log.warning("\(app.name): \(warning)") }
    }

    func close(_ socket: ListeningSocket, removesFile: Bool = false) {
        let isOpen = socket.descriptor != nil
        socket.close(removesFile: removesFile)
        // Afterwards: torpor-keeper has the socket closed last, since that may block.
        if isOpen { host.release(socket.heldName) }
    }

    // MARK: Trying again

    func arrangeRetry() {
        let next = sets.values.compactMap(\.retryAt).min()
        for set in sets.values where set.isTroubled && set.retryAt == nil {
            set.retryDelay = Self.delays.first
            set.retryAt = now + set.retryDelay
        }
        guard let at = sets.values.compactMap(\.retryAt).min(), at != next || retryTimer == nil else { return }
        if retryTimer == nil { retryTimer = try? loop.timer { [weak self] in self?.retryDue() } }
        retryTimer?.arm(at: at)
    }

    private func retryDue() {
        let now = now
        var lacking: [SocketSpecification] = []
        for set in Array(sets.values) {
            guard let at = set.retryAt, at <= now else { continue }
            retry(set)
            if set.isTroubled {
                set.retryDelay = min(set.retryDelay * 2, Self.delays.last)
                set.retryAt = now + set.retryDelay
                lacking += set.specifications.filter { host.socketAccounts.missing($0) != nil }
            }
        }
        retryTimer = nil
        arrangeRetry()
        if !lacking.isEmpty { lookUp(lacking) }
    }

    /// Looks up again the owners and groups that were not found, on a background thread.
    private func lookUp(_ specifications: [SocketSpecification]) {
        guard !isLookingUp else { return }
        isLookingUp = true
        let accounts = host.socketAccounts
        host.lookups.ask {
            accounts.lookingUp(specifications)
        } _: { [weak self] found in
            guard let self else { return }
            self.isLookingUp = false
            self.host.socketAccounts.add(found)
            let accounts = self.host.socketAccounts
            if specifications.contains(where: { accounts.missing($0) == nil }) { self.retryAll() }
        }
    }

    private func retry(_ set: SocketSet) {
        postpone(set)
        for socket in set.sockets where socket.descriptor == nil { bind(socket, of: set.app) }
        if !set.isTroubled { set.retryAt = nil }
        look(set)
    }

    /// Tries all failed binds again, because an address may be free now.
    private func retryAll() { for set in Array(sets.values) where set.isTroubled { retry(set) } }

    // MARK: Launches

    /// The names and descriptors of the sockets that the app gets at a launch, in the order of the configuration.
    /// Throws if a socket cannot be bound.
    ///
    /// - Parameter lost: those of ``files(of:)`` that are gone, so that their sockets must be bound again.
    package func passed(
        to app: AppRuntime,
        lost: Set<SocketFile> = []
    ) throws(LaunchError) -> [(name: String, descriptor: Int32)] {
        guard !app.specification.sockets.isEmpty else { return [] }
        reconcile(app)
        guard let set = sets[app.id] else { return [] }
        var passed: [(name: String, descriptor: Int32)] = []
        for specification in app.specification.sockets {
            guard let socket = set.sockets.first(where: { $0.specification.identity == specification.identity }) else {
                continue
            }
            let isLost = socket.file.map(lost.contains) ?? false
            if socket.isShutDown && socket.isBoundAnewAtOnce || isLost { close(socket) }
            closeIfForeign(socket, of: app)
            if socket.descriptor == nil { bind(socket, of: app, isForLaunch: true) }
            guard let descriptor = socket.descriptor else {
                arrangeRetry()
                throw LaunchError("cannot listen at \(socket.label): \(socket.trouble ?? "it is closed")")
            }
            socket.userAtLaunch = app.specification.user ?? ""
            try? Descriptor.setNonBlocking(descriptor.raw, specification.nonBlocking)
            passed.append((specification.name, descriptor.raw))
        }
        if !set.isTroubled { set.retryAt = nil }
        launches(set)
        return passed
    }

    /// The files of the app's bound sockets. Another program may have removed them (``SocketFile/isGone``).
    package func files(of app: AppRuntime) -> [SocketFile] { sockets(of: app).compactMap(\.file) }

    /// Closes the app's Unix sockets, with everything queued at them, so that the next launch binds new sockets. Call
    /// this before a launch with other permissions: the app may have queued descriptors there of files that it may no
    /// longer open.
    ///
    /// Abstract sockets stay open: while torpor-keeper closes an abstract name, any process could bind it. With
    /// Landlock since Linux 6.12, a sandboxed app cannot connect to abstract sockets that torpord has bound.
    package func closeOutdated(of app: AppRuntime) {
        for socket in sockets(of: app) where socket.hasFile {
            guard let descriptor = socket.descriptor else { continue }
            // torpor-keeper holds the old socket for a moment longer. Shut the socket down, so that no connection can
            // be made to it in that time.
            try? Sockets.shutDown(descriptor.raw)
            close(socket, removesFile: true)
        }
    }

    // MARK: The end

    package func forget(_ app: AppRuntime) {
        guard let set = sets.removeValue(forKey: app.id) else { return }
        for socket in set.sockets where !handOver(socket, of: app) {
            makeRoom(socket)
            close(socket)
        }
        for socket in set.sockets where socket.specification.plan.reusePort { share(socket.specification.plan) }
        // Sockets that waited for the end of this app are not counted as troubled.
        for set in Array(sets.values) where set.sockets.contains(where: \.isPostponed) { retry(set) }
        retryAll()
    }

    /// Closes all sockets, because torpord ends.
    package func closeAll() { for set in sets.values { for socket in set.sockets { socket.close() } } }

    /// The names in torpor-keeper and the descriptors of all bound sockets.
    package var held: [(name: String, descriptors: [Int32])] {
        sets.values.flatMap(\.sockets).compactMap { socket in
            socket.descriptor.map { (socket.heldName, [$0.raw]) }
        }
    }

    /// The sockets that torpord bound for the app.
    package func sockets(of app: AppRuntime) -> [ListeningSocket] { sets[app.id]?.sockets ?? [] }

    /// The places where the app's sockets accept connections (``SocketFacts/place``), each with how a connection wakes
    /// the app: those that torpord has bound, and ``lost(by:)``.
    func places(of app: AppRuntime) -> [UInt64: WakeManner] {
        var places: [UInt64: WakeManner] = [:]
        for socket in sockets(of: app) where socket.specification.plan.kind != .datagram {
            guard let descriptor = socket.descriptor, let place = try? SocketFacts(descriptor.raw).place else {
                continue
            }
            places[place] = socket.specification.wake
        }
        return places.merging(lost(by: app)) { bound, _ in bound }
    }

    /// The inode numbers of the sockets that torpord bound for the app.
    package func numbers(of app: AppRuntime) -> Set<UInt32> {
        Set(
            sockets(of: app).compactMap { socket in
                socket.descriptor.flatMap { try? File.status(descriptor: $0.raw).inode }.map(
                    UInt32.init(truncatingIfNeeded:)
                )
            }
        )
    }
}

extension AppMachine {
    /// Whether the kernel must hold back connections and data at the app's sockets, because this machine does not own
    /// the app; nil if the app needs no owner.
    var standsBySockets: Bool? { rules.owner == .external ? !mayRun : nil }
}

extension ListeningSocket {
    /// Whether torpord could not bind the socket.
    fileprivate var isLost: Bool { descriptor == nil && trouble != nil }
}

extension AppRuntime {
    /// Whether the addresses of the app's sockets depend on settings that are not known yet.
    package var awaitsSettings: Bool {
        get { slots[AwaitsSettingsSlot.self, default: false] }
        set { slots[AwaitsSettingsSlot.self] = newValue ? true : nil }
    }
}

private enum AwaitsSettingsSlot: Slot { typealias Value = Bool }
