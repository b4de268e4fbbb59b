// SPDX-License-Identifier: Apache-2.0

/// An app of a new configuration, and what its new definition changes while it runs.
public struct AppChange: Sendable, Hashable {
    /// The app's new definition. Its dependencies apply at once, its rules from the next launch on.
    public var definition: AppDefinition
    /// The rules for the running incarnation. They differ from its current rules only where a rule can change while the
    /// app runs.
    public var liveRules: AppRules
    /// Whether the running incarnation is terminated and launched again with the new definition. An app that is down
    /// (``AppMachine/isDown``) is launched as a new app would be.
    public var isReplaced = false
    /// How a new app is launched: `true` for the foreground, `false` for the background, `nil` for not at all.
    public var launchesNew: Bool?
    /// The names of apps without which the new configuration is, and for whose end the first launch of a new app waits:
    /// both would need the same address, for example since the app was renamed.
    public var follows: [String] = []
    /// The stored values of a new app; nil if none are stored.
    public var remembered: RememberedApp?

    /// A change that applies the rules of `definition` to the running incarnation at once.
    public init(_ definition: AppDefinition, launchesNew: Bool? = nil) {
        self.definition = definition
        self.liveRules = definition.rules
        self.launchesNew = launchesNew
    }
}

/// Applies a new configuration to running apps.
///
/// An app that the configuration no longer names is *leaving*: it is stopped as if by a user, and nothing launches it.
/// It keeps its id until it has stopped. Then ``takeForgotten()`` returns the id once, after which the id is vacant and
/// may be given to another app. If the configuration names a leaving app again, the app keeps its id, and is launched
/// once it has stopped.
extension Coordinator {
    /// Applies a new configuration. Apps with an unchanged definition are left alone.
    ///
    /// - Parameters:
    ///   - apps: all apps of the new configuration. Apps that are not among them leave.
    ///   - reason: why apps with a changed definition are terminated and launched again.
    ///   - now: the current time.
    /// - Throws: ``DependencyError`` when a dependency is unknown or forms a cycle; then nothing changes.
    public func reconfigure(
        _ apps: [AppChange],
        replacing reason: TerminationReason = .replaced,
        now: Duration
    ) throws(DependencyError) -> [AppAction] {
        _ = try DependencyGraph(apps.map(\.definition))
        guard !isShuttingDown else { return [] }
        let before = nodes.map(\.definition)
        var launches: [(app: AppID, foreground: Bool)] = []
        var replaced: [AppID] = []
        let names = Set(apps.map(\.definition.name))
        let removed = nodes.indices.filter { app in
            nodes[app].standing == .declared && !names.contains(nodes[app].definition.name)
        }
        for app in removed { nodes[app].standing = .leaving }
        leaving.formUnion(removed)
        for change in apps {
            if let app = ids[change.definition.name] {
                let isBack = nodes[app].standing == .leaving
                redefine(app, change)
                if isBack {
                    takeBack(app, change.launchesNew, launches: &launches, now: now)
                } else if change.isReplaced, nodes[app].machine.isAlive, !isToEnd(app) {
                    replaced.append(app)
                } else if change.isReplaced, nodes[app].machine.isDown, let foreground = change.launchesNew {
                    launches.append((app, foreground))
                }
            } else {
                let app = place(change)
                if let foreground = change.launchesNew { launches.append((app, foreground)) }
            }
            if !change.follows.isEmpty, let app = ids[change.definition.name], !nodes[app].machine.isAlive {
                let others = change.follows.compactMap { ids[$0] }
                nodes[app].follows = others.filter { leaving.contains($0) && !isResting($0) }
            }
        }
        graph = try DependencyGraph(places: nodes.map(Self.graphPlace))
        stop(removed, .stop(.stopped), now: now)
        stop(replaced, .stop(reason), now: now)
        // An app whose stop is pending may have new dependents, which must stop before it.
        _ = passOn(nodes.indices.filter { nodes[$0].pendingStop != nil })
        for (app, foreground) in launches {
            absorb(nodes[app].machine.launch(foreground: foreground, reason: .user, now: now), of: app, now: now)
        }
        lookAgain(since: before, now: now)
        return finish(now: now)
    }

    /// Adds an app, or applies a new definition of it. No other app may depend on this app, so the dependencies of
    /// other apps are not checked.
    public func add(_ change: AppChange, now: Duration) throws(DependencyError) -> [AppAction] {
        let definition = change.definition
        var requires: [AppID] = []
        for name in definition.requires {
            guard let other = ids[name], nodes[other].standing == .declared else {
                throw .unknown(app: definition.name, names: name)
            }
            requires.append(other)
        }
        let after = definition.after.compactMap { ids[$0] }.filter { nodes[$0].standing == .declared }
        if let app = ids[definition.name] {
            let isBack = nodes[app].standing == .leaving
            let before = nodes[app].definition
            redefine(app, change)
            var launches: [(app: AppID, foreground: Bool)] = []
            if isBack { takeBack(app, change.launchesNew, launches: &launches, now: now) }
            // The new definition may no longer require an app that it required until now. If that other app has a
            // pending stop, it waits for this app to end, and need no longer wait: check it again.
            changed += graph.requires[app]
            graph.put(app, requires: requires, after: after)
            _ = passOn(requires.filter { nodes[$0].pendingStop != nil })
            lookAgain(at: app, since: before, now: now)
        } else {
            let app = place(change)
            graph.put(app, requires: requires, after: after)
        }
        return finish(now: now)
    }

    /// Removes an app that no other app requires, as if a new configuration did not name it.
    public func remove(_ app: AppID, now: Duration) -> [AppAction] {
        guard nodes[app].standing == .declared else { return [] }
        nodes[app].standing = .leaving
        leaving.insert(app)
        stop([app], .stop(.stopped), now: now)
        return finish(now: now)
    }

    /// The apps that the configuration no longer names and that have stopped; each is returned once. The next
    /// ``reconfigure(_:now:)`` may give their ids to other apps.
    public func takeForgotten() -> [AppID] {
        guard !leaving.isEmpty else { return [] }
        let forgotten = leaving.filter { isResting($0) && nodes[$0].pendingStop == nil }.sorted()
        for app in forgotten {
            leaving.remove(app)
            ids[nodes[app].definition.name] = nil
            forgetPending(app)
            nodes[app].standing = .vacant
            nodes[app].definition.requires = []
            nodes[app].definition.after = []
        }
        for app in nodes.indices where nodes[app].follows.contains(where: forgotten.contains) {
            nodes[app].follows.removeAll(where: forgotten.contains)
            changed.append(app)
        }
        return forgotten
    }

    /// Launches apps that waited for the end of apps which are forgotten now (``AppChange/follows``).
    public func launchFollowers(now: Duration) -> [AppAction] { finish(now: now) }

    /// Launches apps that waited until the processes are gone which an earlier torpord had left of removed apps. Call
    /// this once after a takeover.
    public func orphansAreGone(now: Duration) -> [AppAction] {
        for app in nodes.indices where nodes[app].followsOrphans {
            nodes[app].followsOrphans = false
            touch(app)
            changed.append(app)
        }
        return finish(now: now)
    }

    /// Whether the app was removed from the configuration and may still have processes.
    public func isLeaving(_ app: AppID) -> Bool { nodes[app].standing == .leaving }

    /// Whether an app was removed from the configuration and may still have processes.
    public var isAnyLeaving: Bool { !leaving.isEmpty }

    /// Whether an app has this id.
    public func exists(_ app: AppID) -> Bool { nodes.indices.contains(app) && nodes[app].standing != .vacant }

    /// Whether the app is terminating, or a stop or restart of it is pending.
    public func isToEnd(_ app: AppID) -> Bool {
        nodes[app].pendingStop != nil || nodes[app].machine.transition == .terminating
    }

    /// Whether the app is terminating, or is to be, and will be launched again afterwards: a restart or a replacement.
    public func endsToComeBack(_ app: AppID) -> Bool {
        nodes[app].pendingStop.map(Self.comesBack) ?? nodes[app].machine.endsToComeBack
    }

    private static func graphPlace(_ node: Node) -> DependencyGraph.Place? {
        switch node.standing {
        case .declared: DependencyGraph.Place(app: node.definition)
        case .leaving: DependencyGraph.Place(app: node.definition, isLeaving: true)
        case .vacant: nil
        }
    }

    // MARK: One app

    private func redefine(_ app: AppID, _ change: AppChange) {
        if nodes[app].definition == change.definition, nodes[app].standing == .declared,
            nodes[app].nextRules ?? nodes[app].machine.rules == change.definition.rules
        {
            return
        }
        nodes[app].standing = .declared
        nodes[app].definition = change.definition
        nodes[app].nextRules = nil
        if nodes[app].machine.isAlive {
            nodes[app].machine.take(change.liveRules)
            if change.liveRules != change.definition.rules { nodes[app].nextRules = change.definition.rules }
        } else {
            nodes[app].machine.take(change.definition.rules)
        }
        touch(app)
    }

    /// Handles an app that was leaving, but that the new configuration names again.
    private func takeBack(
        _ app: AppID,
        _ foreground: Bool?,
        launches: inout [(app: AppID, foreground: Bool)],
        now: Duration
    ) {
        leaving.remove(app)
        for other in nodes.indices where nodes[other].follows.contains(app) {
            nodes[other].follows.removeAll { $0 == app }
            changed.append(other)
        }
        if nodes[app].machine.isAlive {
            nodes[app].forgetsEnding = true
        } else {
            nodes[app].machine.forgetEnding()
        }
        if nodes[app].pendingStop != nil {
            nodes[app].comesBack = foreground
        } else if let foreground {
            launches.append((app, foreground))
        }
    }

    /// Stores a new app under the first vacant id, or under a new id if none is vacant.
    private func place(_ change: AppChange) -> AppID {
        let app = nodes.firstIndex { $0.standing == .vacant } ?? nodes.count
        let seed = UInt64(app) &* 7919 &+ 1
        let node = Node(
            definition: change.definition,
            machine: AppMachine(rules: change.definition.rules, seed: seed)
        )
        if let remembered = change.remembered { node.machine.remember(remembered) }
        if app == nodes.count { nodes.append(node) } else { nodes[app] = node }
        ids[change.definition.name] = app
        touch(app)
        return app
    }

    /// Applies the app's new definition, because the incarnation that used the old definition has ended.
    func takeNextDefinition(_ app: AppID) {
        if nodes[app].forgetsEnding {
            nodes[app].forgetsEnding = false
            nodes[app].machine.forgetEnding()
        }
        guard let rules = nodes[app].nextRules else { return }
        nodes[app].nextRules = nil
        nodes[app].machine.take(rules)
    }

    // MARK: All apps

    /// Checks every waiting app again, because the new configuration may have removed or changed the app that it waits
    /// for.
    private func lookAgain(since before: [AppDefinition], now: Duration) {
        for app in nodes.indices where nodes[app].standing != .vacant {
            lookAgain(at: app, since: app < before.count ? before[app] : nil, now: now)
        }
    }

    private func lookAgain(at app: AppID, since before: AppDefinition?, now: Duration) {
        changed.append(app)
        if nodes[app].machine.isWaitingForPermission { launching.append(app) }
        bringWhenAwake(app, now: now)
        // If a launch failed because of a dependency that the new configuration removed, this retries it.
        guard let before, before.requires != nodes[app].definition.requires else { return }
        nodes[app].hasLaunchedRequirements = false
        if graph.requires[app].allSatisfy({ isUp($0) }) { retryLaunch(app, now: now) }
    }

    /// Refuses requests that would keep an app running after it was removed from the configuration.
    func requireDeclared(_ app: AppID, for request: Request) throws(RequestError) {
        switch nodes[app].standing {
        case .declared: return
        case .vacant: throw RequestError("is not in the configuration any more")
        case .leaving: break
        }
        switch request {
        case .stop(let reason) where !reason.isReplacement: return
        case .forceQuit, .release, .mode, .cover, .scene(_, .unattached), .disown: return
        case .stop, .start, .restart, .foreground, .background, .suspend, .forceSuspend, .resume, .interrupt,
            .evict, .wake, .reset, .hold, .scene, .own, .runUnowned, .standby:
            throw RequestError("was removed from the configuration: put it back and apply that first")
        }
    }
}
