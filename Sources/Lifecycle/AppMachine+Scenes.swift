// SPDX-License-Identifier: Apache-2.0

/// What has become of a message to a scene inside an app.
public enum SceneEvent: Sendable, Hashable {
    /// The app answered it. `failed`: it could not do what it should.
    case answered(Message, failed: Bool)
    /// It had to wait for the answer to an earlier one, and is told only now: its time begins.
    case delivered(Message)
    /// The app needs this long from now.
    case extends(Duration)
}

/// Scenes inside the app. It leads them: what it would be told when it comes to the foreground or leaves that is told to
/// its scenes, and its edge goes on when all have answered. It follows them: its goal is that of its most active scene.
extension AppMachine {
    /// The scenes that are connected, or wanted, in the order in which they came.
    public var sceneMachines: [SceneMachine] { scenes?.value ?? [] }

    /// Whether one of them is wanted in the foreground.
    public var hasSceneInForeground: Bool { sceneMachines.contains { $0.goal == .active } }

    /// Whether ``Request/foreground`` can be carried out: without a scene to show there is nothing to bring there.
    public var canComeToForeground: Bool {
        !rules.hasScenes || sceneMachines.contains { $0.goal == .active || $0.returns }
    }

    /// A message that scenes are told in the app's place.
    static func isForScenes(_ message: Message) -> Bool {
        switch message {
        case .didBecomeActive, .willResignActive, .didEnterBackground, .willEnterForeground: true
        default: false
        }
    }

    /// How near scenes may come; nil while none may be told anything.
    var sceneCeiling: SceneState? {
        guard case .running(let running) = phase else { return nil }
        if let edge = running.edge {
            switch edge.awaiting {
            case .didBecomeActive: return .active
            case .willResignActive, .willEnterForeground: return .inactive
            case .didEnterBackground, .resumed: return .background
            default: return nil
            }
        }
        switch running.state {
        case .active: return .active
        case .inactive: return .inactive
        case .background: return .background
        case .suspended, .notRunning: return nil
        }
    }

    /// Whether the edge in flight need not wait for scenes any more.
    private func isEdgeDone(_ message: Message) -> Bool {
        guard let ceiling = sceneCeiling else { return true }
        switch message {
        case .willResignActive, .didEnterBackground:
            return sceneMachines.allSatisfy { $0.state <= ceiling && !$0.comesNearer }
        default: return areScenesSettled(under: ceiling)
        }
    }

    private func areScenesSettled(under ceiling: SceneState) -> Bool {
        sceneMachines.allSatisfy { $0.awaiting == nil && $0.next(under: ceiling) == nil }
    }

    /// Whether something is still to be told to scenes, or was and is not answered.
    var hasBusyScenes: Bool { rules.hasScenes && !(sceneCeiling.map { areScenesSettled(under: $0) } ?? true) }

    /// Tells a scene what comes next for it, those first that go away. One message is under way at a time, so that the
    /// time of none runs while the app is at another.
    mutating func moveScenes(into actions: inout [Action], now: Duration) {
        guard let ceiling = sceneCeiling else { return }
        while let (index, message) = nextOfScenes(under: ceiling) {
            scenes?.value[index].tell(message, under: ceiling)
            guard hasDelegate else {
                scenes?.value[index].answered(isPrepared: false)
                continue
            }
            let deadline = sceneDeadline(of: message, now: now)
            scenes?.value[index].deadline = deadline
            actions.append(.tellScene(sceneMachines[index].id, message))
        }
        dropScenes()
    }

    private func nextOfScenes(under ceiling: SceneState) -> (index: Int, message: Message)? {
        let all = sceneMachines
        guard !all.contains(where: { $0.awaiting != nil }) else { return nil }
        // Whoever is wanted in the foreground connects there, if the app is on its way.
        let waitsForApp = ceiling == .background && (effectiveGoal == .active || effectiveGoal == .inactive)
        // Those in use first: none is still active while others are in the background already.
        let goAway = all.indices.filter { all[$0].state > min(all[$0].goal.state, ceiling) }
        let goesAway = goAway.max { (all[$0].state, $1) < (all[$1].state, $0) }
        func mayCome(_ scene: SceneMachine) -> Bool {
            scene.next(under: ceiling) != nil && !(waitsForApp && scene.state == .unattached && scene.goal == .active)
        }
        guard let index = goesAway ?? all.firstIndex(where: mayCome),
            let message = all[index].next(under: ceiling)
        else { return nil }
        return (index, message)
    }

    private func sceneDeadline(of message: Message, now: Duration) -> Deadline? {
        switch message {
        case .sceneWillConnect: Deadline(.launch, rules.launchDeadline, now: now)
        case .sceneDidEnterBackground: Deadline(.background, rules.backgroundDeadline, now: now)
        default: Deadline(.transition, rules.transitionDeadline, now: now)
        }
    }

    /// Forgets those of which nothing is to be said any more.
    private mutating func dropScenes() {
        guard sceneMachines.contains(where: \.isOver) else { return }
        scenes?.value.removeAll(where: \.isOver)
        if sceneMachines.isEmpty { scenes = nil }
    }

    /// At a step of an edge that scenes walk: whether it waits for them. The edge is the machine's already.
    mutating func waitsForScenes(_ message: Message, into actions: inout [Action], now: Duration) -> Bool {
        moveScenes(into: &actions, now: now)
        return !isEdgeDone(message)
    }

    /// Whether the app may be ended without notice, as far as its scenes are concerned.
    var areScenesPrepared: Bool { sceneMachines.allSatisfy { $0.isPrepared || $0.state == .unattached } }

    /// Something has become of a scene: what follows from it for others, and for the app.
    mutating func scenesChanged(into actions: inout [Action], now: Duration) {
        guard case .running(let running) = phase else { return }
        if let message = running.edge?.awaiting, Self.isForScenes(message) {
            moveScenes(into: &actions, now: now)
            guard isEdgeDone(message) else { return }
            if message == .didEnterBackground { isPrepared = areScenesPrepared }
            advance(into: &actions, now: now)
        } else if running.edge == nil, running.state == .background {
            isPrepared = areScenesPrepared
        }
        walk(into: &actions, now: now)
    }

    // MARK: What is asked of them

    /// Wants a scene somewhere, and the app where it can be.
    mutating func move(
        _ id: SceneID,
        to wanted: SceneGoal,
        into actions: inout [Action],
        now: Duration
    ) throws(RequestError) {
        guard rules.hasScenes else { throw RequestError("has no scenes inside: write scenes = { inside = true }") }
        guard want(id, wanted) else { return }
        goalGeneration += 1
        let isAttached = sceneMachines.contains { $0.id == id && $0.state != .unattached }
        switch phase {
        case .notRunning, .terminating:
            if wanted != .unattached {
                // Another one may wait for the same launch, and be wanted nearer.
                start(foreground: hasSceneInForeground, reason: .user, into: &actions, now: now)
            }
        case .launching, .running:
            if wanted == .active {
                start(foreground: true, reason: .user, into: &actions, now: now)
            } else if goal == .suspended, isAttached == (wanted == .unattached) {
                // It has to run to hear of it.
                try wake(Wake(), into: &actions, now: now)
            }
        }
        scenesChanged(into: &actions, now: now)
        dropScenes()
    }

    /// Notes where a scene is wanted; false where nothing is to be noted.
    mutating func want(_ id: SceneID, _ wanted: SceneGoal) -> Bool {
        var index = sceneMachines.firstIndex { $0.id == id }
        if index == nil {
            guard wanted != .unattached else { return false }
            index = sceneMachines.count
            scenes = Shared(sceneMachines + [SceneMachine(id: id)])
        }
        guard let index else { return false }
        scenes?.value[index].goal = wanted
        scenes?.value[index].returns = false
        return true
    }

    /// Somebody wants the app ended: none of its scenes comes back with it.
    mutating func letScenesGo() {
        for index in sceneMachines.indices { _ = want(sceneMachines[index].id, .unattached) }
    }

    /// The app is to come to the foreground: with the scenes that were there last, unless others are wanted there. Whether
    /// there is one.
    mutating func bringScenesBack() -> Bool {
        let returns = !hasSceneInForeground
        for index in sceneMachines.indices {
            if returns, sceneMachines[index].returns { scenes?.value[index].goal = .active }
            scenes?.value[index].returns = false
        }
        return hasSceneInForeground
    }

    /// The app is to leave the foreground.
    mutating func parkScenes() {
        for index in sceneMachines.indices where sceneMachines[index].goal == .active {
            scenes?.value[index].goal = .background
            scenes?.value[index].returns = true
        }
    }

    /// The app begins to end: nobody waits for answers of its scenes.
    mutating func leaveScenes() {
        for index in sceneMachines.indices {
            scenes?.value[index].awaiting = nil
            scenes?.value[index].deadline = nil
        }
    }

    /// The app has ended. Scenes come back with it where it is launched again.
    mutating func endScenes(_ next: Ending.Next) {
        guard scenes != nil else { return }
        switch next {
        case .rest, .gaveUp: scenes = nil
        case .relaunch, .restart:
            for index in sceneMachines.indices { scenes?.value[index].detach() }
            dropScenes()
        }
    }

    /// Nobody hears messages any more: what scenes were told counts as answered.
    mutating func releaseScenes(into actions: inout [Action], now: Duration) {
        guard scenes != nil else { return }
        for index in sceneMachines.indices { scenes?.value[index].answered(isPrepared: false) }
        scenesChanged(into: &actions, now: now)
    }

    // MARK: What comes of that

    mutating func handle(_ event: SceneEvent, of id: SceneID, into actions: inout [Action], now: Duration) {
        guard case .running = phase, let index = sceneMachines.firstIndex(where: { $0.id == id }) else { return }
        switch event {
        case .answered(let message, let failed):
            guard sceneMachines[index].awaiting == message else { return }
            if failed, message == .sceneWillConnect {
                scenes?.value[index].refuse(wasMissed: false)
                actions.append(.report(.sceneRefused(id, missed: false)))
            } else {
                scenes?.value[index].answered(isPrepared: !failed)
            }
            scenesChanged(into: &actions, now: now)
            dropScenes()
        case .delivered(let message):
            guard sceneMachines[index].awaiting == message else { return }
            let deadline = sceneDeadline(of: message, now: now)
            scenes?.value[index].deadline = deadline
        case .extends(let time):
            guard var deadline = sceneMachines[index].deadline, deadline.kind != .background,
                let limit = rules.extensionLimit ?? baseAllowance(of: deadline.kind).map({ $0 * 10 })
            else { return }
            deadline.extend(to: time, limit: limit, now: now)
            scenes?.value[index].deadline = deadline
        }
    }

    /// When the first of them is late.
    var nextSceneDeadline: Duration? { sceneMachines.compactMap(\.deadline?.at).min() }

    /// One that has not answered in time.
    public func lateScene(now: Duration) -> SceneMachine? {
        sceneMachines.first { $0.deadline.map { $0.at <= now } ?? false }
    }

    /// Judges those that are late.
    mutating func sceneDeadlines(into actions: inout [Action], now: Duration) {
        for scene in sceneMachines {
            guard let deadline = scene.deadline, deadline.at <= now, let message = scene.awaiting,
                let index = sceneMachines.firstIndex(where: { $0.id == scene.id })
            else { continue }
            scenes?.value[index].deadline = nil
            switch message {
            case .sceneDidEnterBackground:
                // The process is what can be ended.
                return terminate(.backgroundDeadline, politely: false, into: &actions, now: now)
            case .sceneWillConnect:
                actions.append(.report(.sceneRefused(scene.id, missed: true)))
                scenes?.value[index].refuse(wasMissed: true)
            default:
                actions.append(.report(.sceneMissed(scene.id, message)))
                if rules.onMissedTransition == .end {
                    return terminate(.unresponsive, politely: false, into: &actions, now: now)
                }
                scenes?.value[index].answered(isPrepared: false)
            }
            scenesChanged(into: &actions, now: now)
        }
        dropScenes()
    }

    mutating func pauseScenes(from: Duration, to: Duration) {
        for (index, scene) in sceneMachines.enumerated() {
            guard var deadline = scene.deadline else { continue }
            deadline.pause(from: from, to: to)
            scenes?.value[index].deadline = deadline
        }
    }

    // MARK: What an earlier supervisor knew

    /// Goes on with scenes as an earlier supervisor left them; what they were told has its whole time again.
    public mutating func restore(_ restored: [SceneMachine], now: Duration) {
        guard rules.hasScenes else { return }
        let isRunning = if case .running = phase { true } else { false }
        var restored = restored
        for index in restored.indices {
            if isRunning {
                restored[index].deadline = restored[index].awaiting.flatMap { sceneDeadline(of: $0, now: now) }
            } else {
                restored[index].detach()
            }
        }
        scenes = restored.isEmpty ? nil : Shared(restored)
        dropScenes()
    }
}

/// Scenes inside an app, in its name.
extension Coordinator {
    /// Goes on with scenes as an earlier supervisor left them, before ``carryOn(shuttingDown:now:)``.
    public func restore(_ app: AppID, scenes: [SceneMachine], now: Duration) {
        nodes[app].machine.restore(scenes, now: now)
        touch(app)
    }
}
