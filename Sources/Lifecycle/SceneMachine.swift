// SPDX-License-Identifier: Apache-2.0

/// Which scene of an app it is. The shell gives the numbers out, and never one to two scenes of an app.
public typealias SceneID = UInt32

/// Where a scene inside an app is, from the farthest to the nearest.
public enum SceneState: UInt8, Sendable, Hashable, CaseIterable, Comparable {
    /// It is a session only: the app knows nothing of it.
    case unattached
    /// It is there, and not in use. One of a suspended app is in the background, too.
    case background
    /// In the foreground, but not in use.
    case inactive
    /// In the foreground and in use.
    case active

    /// Whether one is farther away.
    public static func < (left: SceneState, right: SceneState) -> Bool { left.rawValue < right.rawValue }
}

/// Where somebody wants a scene inside an app.
public enum SceneGoal: UInt8, Sendable, Hashable, CaseIterable {
    case unattached
    case background
    case active

    /// The state that it is when nothing keeps the scene from it.
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
/// The model: a scene walks to its goal as far as its app lets it, which is the *ceiling*: an app in the background lets
/// none into the foreground. Each step is a message to the app, and is done when that is answered; there is one at a time.
///
///     unattached ──sceneWillConnect──▶ background ──sceneWillEnterForeground──▶ inactive ──sceneDidBecomeActive──▶ active
///         ▲                             │      ▲                                 │    ▲                            │
///         └─────sceneDidDisconnect──────┘      └─────sceneDidEnterBackground─────┘    └───sceneWillResignActive────┘
///
/// A scene that is wanted in the foreground connects as inactive.
public struct SceneMachine: Sendable, Hashable {
    /// Which one it is.
    public let id: SceneID
    /// Where it is.
    public internal(set) var state: SceneState = .unattached
    /// Where it is wanted.
    public internal(set) var goal: SceneGoal = .unattached
    /// The message whose answer it waits for.
    public internal(set) var awaiting: Message?
    /// It was told that it connects into the foreground.
    public internal(set) var connectsInForeground = false
    /// It was in the foreground when its app left that, and comes back with it.
    public internal(set) var returns = false
    /// It could prepare for the end of its app, and has not been in the foreground since.
    public internal(set) var isPrepared = false
    /// When its answer is late; nil where it owes none, or has all the time.
    public internal(set) var deadline: Deadline?

    /// One that nobody wants anywhere.
    public init(id: SceneID) { self.id = id }

    /// One that is not connected, and wanted somewhere.
    public init(id: SceneID, goal: SceneGoal, returns: Bool) {
        (self.id, self.goal, self.returns) = (id, goal, returns)
    }

    /// One that is wanted where another one of its number was, in a run of its app that has ended.
    public init(wanting scene: SceneMachine) { self.init(id: scene.id, goal: scene.goal, returns: scene.returns) }

    /// One as an earlier supervisor knew it.
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

    /// Whether nothing is to be said of it any more.
    var isOver: Bool { state == .unattached && goal == .unattached && awaiting == nil }

    /// Whether it is told something that brings it nearer.
    var comesNearer: Bool {
        switch awaiting {
        case .sceneWillConnect, .sceneWillEnterForeground, .sceneDidBecomeActive: true
        default: false
        }
    }

    /// What it is told next on its way; nil when it is where it can be, or owes an answer.
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

    /// It is told `message` now.
    mutating func tell(_ message: Message, under ceiling: SceneState) {
        awaiting = message
        if message == .sceneWillConnect { connectsInForeground = min(goal.state, ceiling) > .background }
        if message == .sceneWillEnterForeground { isPrepared = false }
    }

    /// It was answered, or nobody waits for that any more.
    mutating func answered(isPrepared prepares: Bool) {
        guard let message = awaiting else { return }
        awaiting = nil
        deadline = nil
        switch message {
        case .sceneWillConnect:
            state = connectsInForeground ? .inactive : .background
            // It has nothing yet that it could lose.
            isPrepared = !connectsInForeground
        case .sceneWillEnterForeground, .sceneWillResignActive: state = .inactive
        case .sceneDidBecomeActive: state = .active
        case .sceneDidEnterBackground:
            state = .background
            isPrepared = prepares
        default: state = .unattached
        }
    }

    /// It is not to be: the app does not want it, or did not say in time that it is there, which it then hears.
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
