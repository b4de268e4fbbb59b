// SPDX-License-Identifier: Apache-2.0

/// The number of a scene within its app. The shell assigns it and never reuses it within an app.
public typealias SceneID = UInt32

/// The state of a scene inside an app, from the least to the most active.
public enum SceneState: UInt8, Sendable, Hashable, CaseIterable, Comparable {
    /// It exists only as a session: the app does not know it.
    case unattached
    /// Connected, but not in use. The scenes of a suspended app are in this state too.
    case background
    /// In the foreground, but not in use.
    case inactive
    /// In the foreground and in use.
    case active

    /// Whether the left state is less active.
    public static func < (left: SceneState, right: SceneState) -> Bool { left.rawValue < right.rawValue }
}

/// Where a scene inside an app is wanted.
public enum SceneGoal: UInt8, Sendable, Hashable, CaseIterable {
    case unattached
    case background
    case active

    /// The state that the scene has once it has reached the goal.
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
/// The model: a scene moves to its goal as far as its app allows (the *ceiling*): while the app is in the background,
/// no scene can be in the foreground. Each step is a message to the app and ends with the answer; one step is in
/// flight at a time.
///
///     unattached ──sceneWillConnect──▶ background ──sceneWillEnterForeground──▶ inactive ──sceneDidBecomeActive──▶ active
///         ▲                             │      ▲                                 │    ▲                            │
///         └─────sceneDidDisconnect──────┘      └─────sceneDidEnterBackground─────┘    └───sceneWillResignActive────┘
///
/// A scene that is wanted in the foreground connects as inactive.
public struct SceneMachine: Sendable, Hashable {
    /// Its number.
    public let id: SceneID
    /// Its state.
    public internal(set) var state: SceneState = .unattached
    /// Where it is wanted.
    public internal(set) var goal: SceneGoal = .unattached
    /// The message whose answer is awaited.
    public internal(set) var awaiting: Message?
    /// Whether the app was told that it connects in the foreground.
    public internal(set) var connectsInForeground = false
    /// Whether it was in the foreground when its app left the foreground: it comes back with the app.
    public internal(set) var returns = false
    /// Whether its app may be killed without losing its state: it saved that, and was not in the foreground since.
    public internal(set) var isPrepared = false
    /// When the awaited answer is late; nil if none is awaited or there is no limit.
    public internal(set) var deadline: Deadline?

    /// A scene that is wanted nowhere yet.
    public init(id: SceneID) { self.id = id }

    /// A scene that is not connected yet.
    public init(id: SceneID, goal: SceneGoal, returns: Bool) {
        (self.id, self.goal, self.returns) = (id, goal, returns)
    }

    /// A scene with the same number and goal as one from an earlier run of its app.
    public init(wanting scene: SceneMachine) { self.init(id: scene.id, goal: scene.goal, returns: scene.returns) }

    /// A scene as an earlier supervisor stored it.
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

    /// Whether it can be removed: disconnected and wanted nowhere.
    var isOver: Bool { state == .unattached && goal == .unattached && awaiting == nil }

    /// Whether the awaited message makes it more active.
    var comesNearer: Bool {
        switch awaiting {
        case .sceneWillConnect, .sceneWillEnterForeground, .sceneDidBecomeActive: true
        default: false
        }
    }

    /// The next message on its way; nil if it is as near to its goal as the ceiling allows, or an answer is awaited.
    func next(under ceiling: SceneState) -> Message? {
        guard awaiting == nil else { return nil }
        let target = min(goal.state, ceiling)
        if state == target { return nil }
        switch state {
        case .unattached: return .sceneWillConnect
        case .background: return target == .unattached ? .sceneDidDisconnect : .sceneWillEnterForeground
        case .inactive: return target == .active ? .sceneDidBecomeActive : .sceneDidEnterBackground
        case .active: return .sceneWillResignActive
        }
    }

    /// Notes that `message` is sent now.
    mutating func tell(_ message: Message, under ceiling: SceneState) {
        awaiting = message
        if message == .sceneWillConnect { connectsInForeground = min(goal.state, ceiling) > .background }
        if message == .sceneWillEnterForeground { isPrepared = false }
    }

    /// The message was answered, or its answer is no longer awaited.
    mutating func answered(isPrepared prepares: Bool) {
        guard let message = awaiting else { return }
        awaiting = nil
        deadline = nil
        switch message {
        case .sceneWillConnect:
            state = connectsInForeground ? .inactive : .background
            // It has no state to lose yet.
            isPrepared = !connectsInForeground
        case .sceneWillEnterForeground, .sceneWillResignActive: state = .inactive
        case .sceneDidBecomeActive: state = .active
        case .sceneDidEnterBackground:
            state = .background
            isPrepared = prepares
        default: state = .unattached
        }
    }

    /// The scene is not opened. The app refused it, or missed the deadline (`wasMissed`): then it is disconnected next.
    mutating func refuse(wasMissed: Bool) {
        awaiting = nil
        deadline = nil
        goal = .unattached
        returns = false
        state = wasMissed ? .background : .unattached
    }

    /// The app has ended.
    mutating func detach() {
        awaiting = nil
        deadline = nil
        state = .unattached
        isPrepared = false
    }
}
