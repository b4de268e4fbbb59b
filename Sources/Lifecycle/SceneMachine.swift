// SPDX-License-Identifier: Apache-2.0

/// The number of a scene within its app. The caller assigns the number and never reuses it within an app.
public typealias SceneID = UInt32

/// The state of a scene inside an app, from the least to the most active.
public enum SceneState: UInt8, Sendable, Hashable, CaseIterable, Comparable {
    /// The scene is not connected to the app: torpord knows it only as a stored session.
    case unattached
    /// Connected, but not in use. Scenes of a suspended app are in this state too.
    case background
    /// In the foreground, but not in use.
    case inactive
    /// In the foreground and in use.
    case active

    /// Whether the left state is less active than the right one.
    public static func < (left: SceneState, right: SceneState) -> Bool { left.rawValue < right.rawValue }
}

/// The state that was requested for a scene.
public enum SceneGoal: UInt8, Sendable, Hashable, CaseIterable {
    case unattached
    case background
    case active

    /// The state that a scene with this goal moves to.
    public var state: SceneState {
        switch self {
        case .unattached: .unattached
        case .background: .background
        case .active: .active
        }
    }
}

/// The lifecycle of one scene inside an app, as a value.
///
/// A scene moves towards its goal as far as its app allows. The most active state that the app allows is the *ceiling*:
/// while the app is in the background, no scene can be in the foreground. Each step is a message to the app and ends
/// with its answer; only one message is unanswered at a time.
///
///     unattached ──sceneWillConnect──▶ background ──sceneWillEnterForeground──▶ inactive ──sceneDidBecomeActive──▶ active
///         ▲                             │      ▲                                 │    ▲                            │
///         └─────sceneDidDisconnect──────┘      └─────sceneDidEnterBackground─────┘    └───sceneWillResignActive────┘
///
/// A scene with the goal `active` connects as inactive.
public struct SceneMachine: Sendable, Hashable {
    /// The number of the scene.
    public let id: SceneID
    /// The state of the scene.
    public internal(set) var state: SceneState = .unattached
    /// The state that was requested for the scene.
    public internal(set) var goal: SceneGoal = .unattached
    /// The message that the app has not answered yet; nil for none.
    public internal(set) var awaiting: Message?
    /// Whether the app was informed, when the scene was connected, that the scene comes to the foreground.
    public internal(set) var connectsInForeground = false
    /// Whether the scene was in the foreground when its app left the foreground: it returns together with the app.
    public internal(set) var returns = false
    /// Whether no state of the scene is lost if the app is killed, because the scene has saved its state and has not
    /// been in the foreground since.
    public internal(set) var isPrepared = false
    /// Whether the scene may have unsaved changes: the app ran in the background after the scene had saved its state,
    /// and then came to the foreground without the scene. Not recorded.
    var isUnsaved = false
    /// Whether the scene must save its state again before its app is suspended. Not recorded.
    var savesAgain = false
    /// When the awaited answer is overdue; nil if no answer is awaited, or if it has no deadline.
    public internal(set) var deadline: Deadline?

    /// A scene without a goal yet.
    public init(id: SceneID) { self.id = id }

    /// A scene that is not connected yet, with this goal.
    public init(id: SceneID, goal: SceneGoal, returns: Bool) {
        (self.id, self.goal, self.returns) = (id, goal, returns)
    }

    /// A new scene with the number and goal of `scene`, which belonged to an earlier incarnation of the app.
    public init(wanting scene: SceneMachine) { self.init(id: scene.id, goal: scene.goal, returns: scene.returns) }

    /// A scene with the values that an earlier supervisor stored.
    public init(
        id: SceneID,
        state: SceneState,
        goal: SceneGoal,
        awaiting: Message?,
        connectsInForeground: Bool,
        returns: Bool,
        isPrepared: Bool
    ) {
        (self.id, self.state, self.goal, self.awaiting) = (id, state, goal, awaiting)
        (self.connectsInForeground, self.returns, self.isPrepared) = (connectsInForeground, returns, isPrepared)
    }

    /// Whether the scene can be removed, because it is disconnected and has the goal `unattached`.
    var isOver: Bool { state == .unattached && goal == .unattached && awaiting == nil }

    /// Whether the scene, which is in the background already, only saves its state again before its app is suspended.
    var isSavingAgain: Bool { awaiting == .sceneDidEnterBackground && state == .background }

    /// Whether the message that waits for an answer makes the scene more active.
    var comesNearer: Bool {
        switch awaiting {
        case .sceneWillConnect, .sceneWillEnterForeground, .sceneDidBecomeActive: true
        default: false
        }
    }

    /// The next message that moves the scene towards its goal; nil if an answer is awaited or `ceiling` allows no
    /// further step.
    func next(under ceiling: SceneState) -> Message? {
        guard awaiting == nil else { return nil }
        let target = min(goal.state, ceiling)
        if state == target { return savesAgain && state == .background ? .sceneDidEnterBackground : nil }
        switch state {
        case .unattached: return .sceneWillConnect
        case .background: return target == .unattached ? .sceneDidDisconnect : .sceneWillEnterForeground
        case .inactive: return target == .active ? .sceneDidBecomeActive : .sceneDidEnterBackground
        case .active: return .sceneWillResignActive
        }
    }

    /// Records that `message` is being sent.
    mutating func tell(_ message: Message, under ceiling: SceneState) {
        awaiting = message
        savesAgain = false
        isUnsaved = false
        if message == .sceneWillConnect { connectsInForeground = min(goal.state, ceiling) > .background }
        if message == .sceneWillEnterForeground { isPrepared = false }
    }

    /// Applies the effect of the awaited message, because the app answered it or because no answer will come.
    mutating func answered(isPrepared prepares: Bool) {
        guard let message = awaiting else { return }
        awaiting = nil
        deadline = nil
        switch message {
        case .sceneWillConnect:
            state = connectsInForeground ? .inactive : .background
            // A scene that just connected in the background has no state to lose yet.
            isPrepared = !connectsInForeground
        case .sceneWillEnterForeground, .sceneWillResignActive: state = .inactive
        case .sceneDidBecomeActive: state = .active
        case .sceneDidEnterBackground:
            state = .background
            isPrepared = prepares
        default: state = .unattached
        }
    }

    /// Drops a scene that the app refused to connect or did not connect in time (`wasMissed`). If it was not connected
    /// in time, the scene first gets sceneDidDisconnect.
    mutating func refuse(wasMissed: Bool) {
        awaiting = nil
        deadline = nil
        goal = .unattached
        returns = false
        state = wasMissed ? .background : .unattached
    }

    /// Disconnects the scene, because its app has ended.
    mutating func detach() {
        awaiting = nil
        deadline = nil
        savesAgain = false
        isUnsaved = false
        state = .unattached
        isPrepared = false
    }
}
