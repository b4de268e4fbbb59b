// SPDX-License-Identifier: Apache-2.0

/// What the coordinator needs to know of an app.
public struct AppDefinition: Sendable, Hashable {
    /// The app's name.
    public var name: String
    /// The rules that the app's state machine follows.
    public var rules: AppRules
    /// The names of the apps that must be ready before this app starts, and that are stopped only after it.
    public var requires: [String]
    /// The names of apps that must be launched before this app, if they are about to be launched at the same time.
    public var after: [String]
    /// Whether the app is launched into the foreground when another app requires it.
    public var launchesIntoForeground: Bool
    /// Whether the app's launch waits for ``Coordinator/admitMemory(_:now:)``: because the app needs much memory, or
    /// because the number of live scenes is limited.
    public var needsMemory: Bool

    /// An app, with the names of the apps that it depends on.
    public init(
        name: String,
        rules: AppRules = AppRules(),
        requires: [String] = [],
        after: [String] = [],
        launchesIntoForeground: Bool = true,
        needsMemory: Bool = false
    ) {
        self.name = name
        self.rules = rules
        self.requires = requires
        self.after = after
        self.launchesIntoForeground = launchesIntoForeground
        self.needsMemory = needsMemory
    }
}

/// The index of an app in the coordinator.
public typealias AppID = Int

/// An action that the caller has to carry out for an app.
public struct AppAction: Sendable, Hashable {
    /// The app that the action is for.
    public let app: AppID
    /// What to do for the app.
    public let action: Action
}

/// The state machines of all apps, and the order of their launches and stops.
///
/// A launch waits until every app that the app requires is up (ready), and no app in its `after` is about to be
/// launched. A stop waits until every app that requires the app is gone. A crash does not affect the dependents. An app
/// that waits is checked again when one of its neighbours in the dependency graph changes, never by polling.
///
/// This is a class, not a struct, although it has no side effects. A struct that is stored in a class would be copied
/// on each call, with all its contents.
public final class Coordinator {
    @usableFromInline var nodes: [Node]
    var graph: DependencyGraph
    var ids: [String: AppID] = [:]
    private var outputs: [AppAction] = []
    private var touched: Set<AppID> = []
    private var unrecorded: Set<AppID> = []
    private var putOff: Set<AppID> = []
    var changed: [AppID] = []
    /// Apps that the configuration no longer names and that may still have processes.
    var leaving: Set<AppID> = []
    /// `launching` contains apps that wait for their launch, `waking` apps that must be woken. They are lists, so that
    /// a long chain of dependencies does not cause a deep recursion.
    var launching: [AppID] = []
    var waking: [AppID] = []
    var pacing = LaunchPacing()
    var admission = LaunchAdmission()
    /// Permissions for launches that wait until there is memory for the app.
    var memoryAdmission = LaunchAdmission(isNeeded: true)
    /// Whether torpord is shutting down, so that every app is terminated for good.
    public internal(set) var isShuttingDown = false

    /// An app. A class, because a structure would be copied whenever one of its properties is read from another module.
    @usableFromInline
    final class Node {
        var definition: AppDefinition
        @usableFromInline var machine: AppMachine
        var standing: Standing = .declared
        /// The rules of a newer configuration, which apply once the running incarnation has ended; nil if there are
        /// none.
        var nextRules: AppRules?
        /// Set if the app was removed from the configuration and added again before its pending stop began. It says how
        /// to launch the app after the stop: into the foreground (`true`) or background (`false`).
        var comesBack: Bool?
        /// Whether the app was removed from the configuration and added again while it was terminating. If so, events
        /// may still launch the app, although it was stopped.
        var forgetsEnding = false
        /// A stop or restart that waits until the apps that require this one are gone.
        var pendingStop: Request?
        /// A request that waits until the apps that this one requires are awake.
        var pendingGoal: Request?
        /// Set if the app's launch failed because of a dependency, or if it was stopped because a dependency was
        /// evicted or ended: whether the launch to retry is into the foreground (`true`) or background (`false`).
        var retry: Bool?
        /// Whether the app was up (ready) at the last check. When this changes to true, the coordinator retries failed
        /// launches of the app's dependents.
        var wasUp = false
        /// The `goalGeneration` at which a dependent woke the app from suspension or eviction. If nothing sets a newer
        /// goal, the app is suspended again when its dependents are suspended.
        var broughtBy: Int?
        /// Apps that are leaving, for whose end the launch of this app waits (``AppChange/follows``).
        var follows: [AppID] = []
        /// Whether the launch of this app waits until the processes of removed apps are gone that an earlier torpord
        /// has left: it had not ended these apps yet (``Coordinator/orphansAreGone(now:)``).
        var followsOrphans = false
        /// Whether the launch that waits, or is retried, has launched the apps that this one requires. It does so once:
        /// one of them that has done its work since is not launched again.
        var hasLaunchedRequirements = false

        init(definition: AppDefinition, machine: AppMachine) {
            self.definition = definition
            self.machine = machine
        }
    }

    /// The standing of an app id: whether the configuration names its app.
    enum Standing: Sendable, Hashable {
        /// The configuration names the app.
        case declared
        /// The configuration no longer names the app, which may still have processes.
        case leaving
        /// No app has the id.
        case vacant
    }

    /// A coordinator of these apps, none of them running.
    ///
    /// - Throws: ``DependencyError`` when a dependency is unknown or forms a cycle.
    public init(_ apps: [AppDefinition]) throws(DependencyError) {
        graph = try DependencyGraph(apps)
        nodes = []
        nodes.reserveCapacity(apps.count)
        for (i, app) in apps.enumerated() {
            nodes.append(Node(definition: app, machine: AppMachine(rules: app.rules, seed: UInt64(i) &* 7919 &+ 1)))
            ids[app.name] = i
        }
    }

    /// The number of ids, including vacant ones. Every id is less than this number.
    public var count: Int { nodes.count }

    /// The id of the app with that name; nil if there is none.
    public func id(of name: String) -> AppID? { ids[name] }

    /// The app's definition.
    public func definition(_ app: AppID) -> AppDefinition { nodes[app].definition }

    /// A copy of the app's state machine, to read.
    public func machine(_ app: AppID) -> AppMachine { nodes[app].machine }

    /// The app's state machine, to read one of its properties. This copies nothing, whereas a copy of the whole machine
    /// counts references to all that it contains.
    @inlinable
    public subscript(app: AppID) -> AppMachine {
        _read { yield nodes[app].machine }
    }

    /// When ``handle(_:of:now:)`` must be called with ``AppEvent/deadline`` for the app; nil for never.
    public func nextDeadline(_ app: AppID) -> Duration? { nodes[app].machine.nextDeadline }

    /// Whether a request for the app waits for other apps.
    public func isHeld(_ app: AppID) -> Bool {
        nodes[app].pendingStop != nil || nodes[app].pendingGoal != nil
    }

    /// The names of the apps that this app's launch or transition waits for.
    public func blockers(_ app: AppID) -> [String] {
        guard nodes[app].machine.isWaitingForPermission || nodes[app].pendingGoal != nil else { return [] }
        let missing = missingRequirements(of: app)
        let earlier = graph.after[app].filter { !missing.contains($0) && isAboutToLaunch($0) }
        return (missing + earlier + nodes[app].follows).map { nodes[$0].definition.name }
    }

    /// Whether the app's launch waits for the end of removed apps that the coordinator does not know: an earlier torpord
    /// has left their processes (``orphansAreGone(now:)``).
    public func awaitsOrphans(_ app: AppID) -> Bool {
        nodes[app].machine.isWaitingForPermission && nodes[app].followsOrphans
    }

    /// Whether the app will be launched again when an app that it requires becomes ready, because the required app
    /// caused it to end or its launch to fail.
    public func comesBackWithRequirement(_ app: AppID) -> Bool { nodes[app].retry != nil }

    /// Whether other apps are launched again when this one, which they require, becomes ready.
    public func bringsOthersBack(_ app: AppID) -> Bool { graph.requiredBy[app].contains { nodes[$0].retry != nil } }

    /// The apps that this one requires.
    public func requirements(of app: AppID) -> [AppID] { graph.requires[app] }

    /// The apps that this one requires and that are not up.
    public func missingRequirements(of app: AppID) -> [AppID] { graph.requires[app].filter { !isUpOrDone($0) } }

    /// Whether no app has a process.
    public var isEverythingGone: Bool { nodes.allSatisfy { !$0.machine.isAlive } }

    /// The apps that changed since the last call of this function.
    public func takeTouched() -> Set<AppID> {
        defer { touched.removeAll(keepingCapacity: true) }
        return touched
    }

    /// The apps for which only ``nextDeadline(_:)`` changed since the last call of this function.
    public func takePutOff() -> Set<AppID> {
        defer { putOff.removeAll(keepingCapacity: true) }
        return putOff
    }

    /// The apps that changed since the last call and must be recorded before any action is carried out, each after those
    /// that it requires: if torpord dies in between, the next one knows the stop of an app, and passes it on to the apps
    /// that require it, but knows no stop of these without that of the app.
    public func takeUnrecorded() -> [AppID] {
        defer { unrecorded.removeAll(keepingCapacity: true) }
        guard unrecorded.count > 1 else { return Array(unrecorded) }
        var order: [AppID] = []
        order.reserveCapacity(unrecorded.count)
        var left = unrecorded
        for first in unrecorded {
            // Not recursive, since a chain of apps may be long.
            var path = [(app: first, hasItsOwn: false)]
            while let (app, hasItsOwn) = path.popLast() {
                if hasItsOwn { order.append(app) }
                guard !hasItsOwn, left.remove(app) != nil else { continue }
                path.append((app, true))
                for other in graph.requires[app] where left.contains(other) { path.append((other, false)) }
            }
        }
        return order
    }

    /// Frees memory that the coordinator needed only for a burst of changes.
    public func trim() {
        if touched.isEmpty { touched = [] }
        if unrecorded.isEmpty { unrecorded = [] }
        if outputs.isEmpty { outputs = [] }
        if launching.isEmpty { launching = [] }
        if changed.isEmpty { changed = [] }
        if waking.isEmpty { waking = [] }
    }

    func touch(_ app: AppID) {
        touched.insert(app)
        unrecorded.insert(app)
    }

    // MARK: What comes in

    /// Applies an event.
    public func handle(_ event: AppEvent, of app: AppID, now: Duration) -> [AppAction] {
        if event == .heartbeat {
            // A heartbeat is by far the most frequent event. It only moves a deadline, on which no other app depends.
            _ = nodes[app].machine.handle(event, now: now)
            unrecorded.insert(app)
            putOff.insert(app)
            return []
        }
        absorb(nodes[app].machine.handle(event, now: now), of: app, now: now)
        return finish(now: now)
    }

    /// Applies a request.
    ///
    /// - Throws: ``RequestError`` when the request is not legal now; then nothing changes.
    public func request(_ request: Request, of app: AppID, now: Duration) throws(RequestError) -> [AppAction] {
        try requireDeclared(app, for: request)
        try nodes[app].machine.requireOwner(for: request, now: now)
        switch request {
        case .own, .standby, .start, .foreground, .restart, .wake, .scene(_, .active), .scene(_, .background):
            if isShuttingDown {
                throw RequestError("is not started, since torpord is shutting down: start torpord again")
            }
        case .background, .suspend, .forceSuspend, .resume, .interrupt:
            if isShuttingDown {
                throw RequestError("is being ended, since torpord is shutting down: start torpord again")
            }
        case .stop, .forceQuit, .evict, .reset, .hold, .release, .mode, .cover, .scene(_, .unattached), .disown,
            .runUnowned:
            break
        }
        switch request {
        case .wake, .interrupt, .reset, .hold, .release, .mode, .cover, .scene, .own, .runUnowned: break
        case .disown, .standby, .start, .foreground, .restart, .background, .suspend, .forceSuspend, .resume, .stop,
            .forceQuit, .evict:
            nodes[app].machine.comesBack = false
        }
        if let stop = nodes[app].pendingStop, try requestWhileHeld(app, request, by: stop, now: now) {
            return finish(now: now)
        }
        switch request {
        case .stop(let reason) where !reason.wasAskedFor && !reason.isReplacement:
            // The app is terminated for something that it did. As with a crash, its dependents are not affected.
            let goal = nodes[app].machine.goal
            absorb(try nodes[app].machine.request(request, now: now), of: app, now: now)
            if reason == .dependencyFailed, nodes[app].machine.isAlive {
                nodes[app].retry = goal == .active || goal == .inactive
            }
        case .stop, .restart:
            if request == .restart { forgiveRequirements(of: app, now: now) }
            stop([app], request, now: now)
        case .start, .foreground:
            forgiveRequirements(of: app, now: now)
            try bring(app, request, now: now)
        case .resume, .background, .wake, .scene(_, .active), .scene(_, .background):
            try bring(app, request, now: now)
        case .disown:
            let actions = try nodes[app].machine.request(request, now: now)
            forgetWakes(of: app)
            absorb(actions, of: app, now: now)
        case .suspend, .forceSuspend, .forceQuit, .evict, .standby:
            let actions = try nodes[app].machine.request(request, now: now)
            forgetPending(app)
            absorb(actions, of: app, now: now)
        case .cover(let begin):
            absorb(try nodes[app].machine.request(request, now: now), of: app, now: now)
            guard !begin, nodes[app].machine.comesBack else { break }
            nodes[app].machine.comesBack = false
            let machine = nodes[app].machine
            if machine.isAlive || machine.isWaitingToLaunch, !isShuttingDown { try bring(app, .foreground, now: now) }
        case .interrupt, .reset, .hold, .release, .mode, .scene(_, .unattached), .own, .runUnowned:
            absorb(try nodes[app].machine.request(request, now: now), of: app, now: now)
        }
        return finish(now: now)
    }

    /// Launches an app at the start of the supervisor.
    public func launch(_ app: AppID, foreground: Bool, now: Duration) -> [AppAction] {
        launch([(app, foreground)], now: now)
    }

    /// Launches apps at the start of the supervisor. The order that `after` prescribes applies among these apps.
    public func launch(_ apps: [(app: AppID, foreground: Bool)], now: Duration) -> [AppAction] {
        guard !isShuttingDown else { return [] }
        // `finish` takes apps from the end of `launching`, so add the first app last.
        for (app, foreground) in apps.reversed() {
            absorb(nodes[app].machine.launch(foreground: foreground, reason: .boot, now: now), of: app, now: now)
        }
        return finish(now: now)
    }

    /// Terminates every app, dependents first.
    public func shutDown(now: Duration) -> [AppAction] {
        isShuttingDown = true
        for app in nodes.indices where nodes[app].standing != .vacant {
            forgetPending(app)
            nodes[app].pendingStop = .stop(.shutdown)
        }
        for app in nodes.indices { stopWhenFree(app, now: now) }
        return finish(now: now)
    }

    // MARK: Carrying on

    func absorb(_ actions: [Action], of app: AppID, now: Duration) {
        touch(app)
        changed.append(app)
        if !nodes[app].machine.isWaitingForPermission {
            admission.forget(app)
            if nodes[app].definition.needsMemory { memoryAdmission.forget(app) }
        }
        if pacing.isUnderWay(app), !nodes[app].machine.isComingToExec { pacing.end(app) }
        for action in actions {
            if action == .requestLaunch {
                nodes[app].hasLaunchedRequirements = false
                launching.append(app)
            } else {
                outputs.append(AppAction(app: app, action: action))
            }
            if case .ended = action { takeNextDefinition(app) }
            if action == .report(.ownershipExpired) { forgetWakes(of: app) }
        }
    }

    /// Continues all apps that may have waited for the apps that changed, and returns the resulting actions.
    func finish(now: Duration) -> [AppAction] {
        while true {
            if let app = launching.popLast() {
                tryLaunch(app, isFirst: true, now: now)
                continue
            }
            if let app = waking.popLast() {
                wake(app, now: now)
                continue
            }
            guard let app = changed.popLast() else {
                guard let next = pacing.next() else { break }
                tryLaunch(next, isFirst: false, now: now)
                continue
            }
            // The launch may have waited until a pending stop of the app was over.
            if nodes[app].machine.isWaitingForPermission { tryLaunch(app, isFirst: true, now: now) }
            bringWhenAwake(app, now: now)
            // What the app requires may have become ready while the app was still ending.
            if nodes[app].retry != nil, graph.requires[app].allSatisfy({ isUp($0) }) { retryLaunch(app, now: now) }
            let up = isUp(app)
            let cameUp = up && !nodes[app].wasUp
            nodes[app].wasUp = up
            let out = isOut(app)
            for other in graph.requiredBy[app] {
                if cameUp { retryLaunch(other, now: now) }
                if !up, out || !nodes[app].machine.mayRun, nodes[other].machine.isWaitingForPermission {
                    failDependency(other, now: now)
                }
                bringWhenAwake(other, now: now)
            }
            for other in graph.before[app] where nodes[other].machine.isWaitingForPermission {
                tryLaunch(other, isFirst: false, now: now)
            }
            letSleep(app, now: now)
            for other in graph.requires[app] { letSleep(other, now: now) }
            stopWhenFree(app, now: now)
            for other in isShuttingDown ? graph.after[app] : graph.requires[app] { stopWhenFree(other, now: now) }
        }
        defer { outputs.removeAll(keepingCapacity: true) }
        return outputs
    }

    /// Requests a policy's decision about the app's launch.
    func askForAdmission(of app: AppID) {
        touch(app)
        outputs.append(AppAction(app: app, action: .askForAdmission(nodes[app].machine.launchReason)))
    }

    /// Requests a check whether there is memory for the app.
    func askForMemory(for app: AppID) {
        touch(app)
        outputs.append(AppAction(app: app, action: .askForMemory))
    }

    /// Suspends an app again that was woken only for its dependents, once they no longer need the app and its
    /// background time is over.
    private func letSleep(_ app: AppID, now: Duration) {
        guard let goal = nodes[app].broughtBy else { return }
        guard goal == nodes[app].machine.goalGeneration else {
            nodes[app].broughtBy = nil
            return
        }
        let isNeeded = graph.requiredBy[app].contains { isAwake($0) }
        if nodes[app].machine.sleepAgain(!isNeeded, now: now) { touch(app) }
    }

    /// Whether the app is awake or about to be, so that the apps that it requires must be awake too.
    private func isAwake(_ app: AppID) -> Bool {
        let machine = nodes[app].machine
        return nodes[app].pendingGoal != nil || machine.isWaitingToLaunch
            || machine.isAlive && (machine.state != .suspended || machine.transition != nil)
    }

    func isUp(_ app: AppID) -> Bool { nodes[app].machine.isUp && nodes[app].pendingStop == nil }

    /// Whether the app is up, or has exited with success and is not restarted: then it has done its work, and the apps
    /// that require it need not launch it again while they run. Only a launch of such an app launches it again.
    func isUpOrDone(_ app: AppID) -> Bool {
        if isUp(app) { return true }
        return isResting(app) && nodes[app].machine.lastEnding == .exitSuccess && !nodes[app].machine.failed
            && nodes[app].machine.mayRun && nodes[app].pendingStop == nil
    }

    func isResting(_ app: AppID) -> Bool {
        !nodes[app].machine.isAlive && !nodes[app].machine.isWaitingToLaunch
    }

    /// Whether the app's goal is `suspended`, and no later request is pending that would wake the app.
    func isAsleep(_ app: AppID) -> Bool {
        nodes[app].machine.goal == .suspended && nodes[app].pendingGoal == nil
    }

    /// Whether the app has failed and has no process, so that only a user can start it again.
    func isLost(_ app: AppID) -> Bool { isResting(app) && nodes[app].machine.failed }

    /// Whether the app is being launched or restarted. If so, launches of apps that must come after it wait.
    func isAboutToLaunch(_ app: AppID) -> Bool {
        let machine = nodes[app].machine
        if machine.isWaitingForPermission || machine.transition == .launching { return true }
        if machine.transition == .terminating, machine.isWaitingToLaunch || machine.isBeingReplaced { return true }
        return nodes[app].pendingStop.map(Self.comesBack) ?? false
    }

    /// Drops requests that would launch or wake an app that this machine no longer owns. A stop that waits for other
    /// apps is kept.
    func forgetWakes(of app: AppID) {
        if let stop = nodes[app].pendingStop, Self.comesBack(after: stop) { nodes[app].pendingStop = nil }
        nodes[app].pendingGoal = nil
        nodes[app].retry = nil
    }

    func forgetPending(_ app: AppID) {
        nodes[app].pendingStop = nil
        nodes[app].pendingGoal = nil
        nodes[app].retry = nil
        nodes[app].comesBack = nil
        nodes[app].forgetsEnding = false
    }
}
