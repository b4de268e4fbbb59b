// SPDX-License-Identifier: Apache-2.0

/// What happened to a message that torpord sent to an app about one of its scenes.
public enum SceneEvent: Sendable, Hashable {
    /// The app answered the message; `failed` if it could not do what the message asks.
    case answered(Message, failed: Bool)
    /// The message has left the queue and is sent only now, so its deadline starts again.
    case delivered(Message)
    /// The app asks for more time to answer: this long from now.
    case extends(Duration)
}

/// Scenes inside an app. Foreground and background messages for the app go to its scenes, and the app's edge (its
/// state transition) waits until all scenes have answered. In turn, the app's goal follows its most active scene.
extension AppMachine {
    /// The scenes that are connected or that a request wants connected, oldest first.
    public var sceneMachines: [SceneMachine] { scenes?.value ?? [] }

    /// Whether one of the scenes has the goal `active`.
    public var hasSceneInForeground: Bool { sceneMachines.contains { $0.goal == .active } }

    /// Whether ``Request/foreground`` is possible: an app with scenes needs a scene that it can show.
    public var canComeToForeground: Bool {
        !rules.hasScenes || sceneMachines.contains { $0.goal == .active || $0.returns }
    }

    /// Whether, in an app with scenes, torpord sends the message to the scenes instead of the app.
    static func isForScenes(_ message: Message) -> Bool {
        switch message {
        case .didBecomeActive, .willResignActive, .didEnterBackground, .willEnterForeground: true
        default: false
        }
    }

    /// The most active state that scenes may have now; nil while the app cannot receive messages about scenes.
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

    /// Whether the app's edge (its state transition) need no longer wait for answers from the scenes.
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

    /// Whether a scene still has to get a message or to answer one.
    var hasBusyScenes: Bool { rules.hasScenes && !(sceneCeiling.map { areScenesSettled(under: $0) } ?? true) }

    /// Sends scenes their next messages, first to scenes that become less active. Only one message at a time is
    /// unanswered, because the deadline of a second one would run while the app is still handling the first.
    mutating func moveScenes(into actions: inout [Action], now: Duration) {
        guard let ceiling = sceneCeiling else { return }
        while let (index, message) = nextOfScenes(under: ceiling) {
            scenes?.value[index].tell(message, under: ceiling)
            guard hasDelegate else {
                scenes?.value[index].answered(isPrepared: false)
                continue
            }
            let start = sceneMachines[index].isSavingAgain ? now : latestSceneStart(of: message, now: now)
            let deadline = sceneDeadline(of: message, sceneMachines[index], now: start)
            scenes?.value[index].deadline = deadline
            actions.append(.tellScene(sceneMachines[index].id, message))
        }
        dropScenes()
    }

    private func nextOfScenes(under ceiling: SceneState) -> (index: Int, message: Message)? {
        let all = sceneMachines
        guard !all.contains(where: { $0.awaiting != nil }) else { return nil }
        // If the app is on its way to the foreground, do not connect a scene with the goal `active` yet. Once the app
        // is there, the scene connects in the foreground directly, and need not pass through the background.
        let waitsForApp = ceiling == .background && (effectiveGoal == .active || effectiveGoal == .inactive)
        // Of the scenes that must become less active, the most active goes first, so that no scene stays active while
        // others are already in the background.
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

    private func sceneDeadline(of message: Message, _ scene: SceneMachine, now: Duration) -> Deadline? {
        switch message {
        case .sceneWillConnect: Deadline(.launch, rules.launchDeadline, now: now)
        // The scene is in the background already and only saves its state again, so a missed deadline does not
        // terminate the app.
        case .sceneDidEnterBackground where scene.state == .background:
            Deadline(.transition, rules.transitionDeadline, now: now)
        case .sceneDidEnterBackground: Deadline(.background, rules.backgroundDeadline, now: now)
        default: Deadline(.transition, rules.transitionDeadline, now: now)
        }
    }

    /// Removes scenes that are disconnected and that no request wants to connect.
    private mutating func dropScenes() {
        guard sceneMachines.contains(where: \.isOver) else { return }
        scenes?.value.removeAll(where: \.isOver)
        if sceneMachines.isEmpty { scenes = nil }
    }

    /// Sends scenes their next messages at a step of the app's edge (its state transition). Returns whether the edge
    /// must wait for the scenes. Store the edge in `phase` before the call, because the phase determines how active
    /// scenes may be.
    mutating func waitsForScenes(_ message: Message, into actions: inout [Action], now: Duration) -> Bool {
        moveScenes(into: &actions, now: now)
        return !isEdgeDone(message)
    }

    /// Whether all scenes have saved their state, so that the app may be terminated without notice.
    var areScenesPrepared: Bool { sceneMachines.allSatisfy { $0.isPrepared || $0.state == .unattached } }

    /// Continues the transitions of the scenes and of the app, because a scene has changed.
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

    /// Gives a scene the goal `wanted`, and moves the app to a state in which the scene can reach that goal.
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
                // Another scene may wait for the same launch and may need the app in the foreground.
                start(foreground: hasSceneInForeground, reason: .user, into: &actions, now: now)
            }
        case .launching, .running:
            if wanted == .active {
                start(foreground: true, reason: .user, into: &actions, now: now)
            } else if goal == .suspended, isAttached == (wanted == .unattached) {
                // A suspended app cannot receive the scene's message, so wake the app.
                try wake(Wake(), into: &actions, now: now)
            }
        }
        scenesChanged(into: &actions, now: now)
        dropScenes()
    }

    /// Sets the goal of a scene; returns false if the scene is unknown and need not be connected.
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

    /// Disconnects all scenes because of a request that ends the app. The scenes do not return at the app's next
    /// launch.
    mutating func letScenesGo() {
        for index in sceneMachines.indices { _ = want(sceneMachines[index].id, .unattached) }
    }

    /// Prepares the scenes of an app that comes to the foreground: if no scene has the goal `active`, the scenes that
    /// were last in the foreground get this goal. Returns whether any scene has this goal.
    mutating func bringScenesBack() -> Bool {
        let returns = !hasSceneInForeground
        for index in sceneMachines.indices {
            if returns, sceneMachines[index].returns { scenes?.value[index].goal = .active }
            scenes?.value[index].returns = false
        }
        return hasSceneInForeground
    }

    /// Prepares the scenes of an app that leaves the foreground: scenes with the goal `active` go to the background,
    /// and return later with the app.
    mutating func parkScenes() {
        for index in sceneMachines.indices where sceneMachines[index].goal == .active {
            scenes?.value[index].goal = .background
            scenes?.value[index].returns = true
        }
    }

    /// Makes every connected scene get sceneDidEnterBackground again before the app is suspended, so that the scene
    /// saves its state.
    mutating func letScenesSaveAgain() {
        for index in sceneMachines.indices where sceneMachines[index].state == .background {
            if isUnsaved || sceneMachines[index].isUnsaved { scenes?.value[index].savesAgain = true }
        }
    }

    /// Whether some scene in the background has not saved its state since the app was resumed.
    var hasUnsavedScenes: Bool { sceneMachines.contains { $0.isUnsaved && $0.state == .background } }

    /// Called when the app enters the foreground, perhaps without all of its scenes: records which scenes in the
    /// background still have to save their state, because the app's own mark is then cleared.
    mutating func rememberUnsavedScenes() {
        guard isUnsaved else { return }
        for index in sceneMachines.indices where sceneMachines[index].state == .background {
            scenes?.value[index].isUnsaved = true
        }
    }

    /// Stops waiting for answers from scenes, because the app starts to terminate.
    mutating func leaveScenes() {
        for index in sceneMachines.indices {
            scenes?.value[index].awaiting = nil
            scenes?.value[index].deadline = nil
        }
    }

    /// Disconnects all scenes, because the app has ended. If the app restarts or is relaunched, the scenes connect
    /// again.
    mutating func endScenes(_ next: Ending.Next) {
        guard scenes != nil else { return }
        switch next {
        case .rest, .gaveUp: scenes = nil
        case .relaunch, .restart:
            for index in sceneMachines.indices { scenes?.value[index].detach() }
            dropScenes()
        }
    }

    /// Counts unanswered messages to scenes as answered, because no delegate is connected any longer.
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
            let deadline = sceneDeadline(of: message, sceneMachines[index], now: now)
            scenes?.value[index].deadline = deadline
        case .extends(let time):
            guard var deadline = sceneMachines[index].deadline,
                sceneMachines[index].awaiting != .sceneDidEnterBackground,
                let limit = rules.extensionLimit ?? baseAllowance(of: deadline.kind).map({ $0 * 10 })
            else { return }
            deadline.extend(to: time, limit: limit, now: now)
            scenes?.value[index].deadline = deadline
        }
    }

    /// The earliest deadline of all scenes.
    var nextSceneDeadline: Duration? { sceneMachines.compactMap(\.deadline?.at).min() }

    /// The first scene that missed its deadline; nil if none did.
    public func lateScene(now: Duration) -> SceneMachine? {
        sceneMachines.first { $0.deadline.map { $0.at <= now } ?? false }
    }

    /// Handles every scene that missed its deadline.
    mutating func sceneDeadlines(into actions: inout [Action], now: Duration) {
        for scene in sceneMachines {
            guard let deadline = scene.deadline, deadline.at <= now, let message = scene.awaiting,
                let index = sceneMachines.firstIndex(where: { $0.id == scene.id })
            else { continue }
            scenes?.value[index].deadline = nil
            switch message {
            case .sceneDidEnterBackground where deadline.kind == .background:
                // A scene cannot be terminated alone, so terminate the app.
                return terminate(.backgroundDeadline, politely: false, into: &actions, now: now)
            case .sceneWillConnect:
                actions.append(.report(.sceneRefused(scene.id, missed: true)))
                scenes?.value[index].refuse(wasMissed: true)
            default:
                actions.append(.report(.sceneMissed(scene.id, message)))
                // A scene whose app worked on an earlier message when it was to save again did not get that message.
                let wasTold = !(scene.isSavingAgain && worksOnEarlierMessage)
                if rules.onMissedTransition == .end, wasTold {
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

    /// Restores scenes that an earlier supervisor stored. The deadlines of unanswered messages start again.
    public mutating func restore(_ restored: [SceneMachine], now: Duration) {
        guard rules.hasScenes else { return }
        let isRunning = if case .running = phase { true } else { false }
        var restored = restored
        for index in restored.indices {
            if isRunning {
                let scene = restored[index]
                restored[index].deadline = scene.awaiting.flatMap { sceneDeadline(of: $0, scene, now: now) }
            } else {
                restored[index].detach()
            }
        }
        scenes = restored.isEmpty ? nil : Shared(restored)
        dropScenes()
    }
}

extension Coordinator {
    /// Restores scenes that an earlier supervisor stored; call this before ``carryOn(shuttingDown:now:)``.
    public func restore(_ app: AppID, scenes: [SceneMachine], now: Duration) {
        nodes[app].machine.restore(scenes, now: now)
        touch(app)
    }
}
