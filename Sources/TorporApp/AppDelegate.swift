// SPDX-License-Identifier: Apache-2.0

/// What an app does when its state changes: the messages of the lifecycle as methods, each with a default that does
/// nothing.
///
/// What waited in the app's mailbox, and URLs, can be answered with ``MailResult/unhandled``: the supervisor may then tell
/// another app. That is also the answer where the method for it is not implemented. A method without a result answers
/// `done`.
///
/// The supervisor waits for each method to return before it goes on, at most for the message's deadline
/// (``TorporApp/timeToAnswer``), and tells one thing at a time. A method that throws answers `failed`, with the error as
/// the sentence; the lifecycle goes on all the same. An actor or a class of the main actor can be a delegate as well as a
/// structure.
public protocol AppDelegate: Sendable {
    /// The app is being launched; nothing was restored yet. Here the restoration (or the URL that it was launched for)
    /// can be declined: ``TorporApp/decline(_:)``.
    func willFinishLaunching(_ app: TorporApp, options: LaunchOptions) async throws

    /// What was saved before the app was evicted, crashed or the machine was booted anew.
    func restoreState(_ app: TorporApp, state: SavedState) async throws

    /// The last step of the launch: when this returns, the app is ready, and its clients are let in. What runs as long
    /// as the app does is started here, as a task of its own.
    func didFinishLaunching(_ app: TorporApp, options: LaunchOptions) async throws

    /// The app is asked to open this.
    func openURL(_ app: TorporApp, url: String) async throws

    /// The same, and says whether the app opens it.
    func openURL(_ app: TorporApp, url: String) async throws -> MailResult

    /// The same, and who opened it. Without this method ``openURL(_:url:)`` is called.
    func openURL(_ app: TorporApp, url: String, source: OpenSource) async throws -> MailResult

    /// The app is in the foreground and in use.
    func didBecomeActive(_ app: TorporApp) async throws

    /// It is interrupted, or on its way to the background: for a server, it is taken out of rotation.
    func willResignActive(_ app: TorporApp) async throws

    /// It is out of use, may soon be stopped, and then be ended without a word: the place to save its state and to let
    /// go of what others want. Tasks do not extend the deadline of this.
    func didEnterBackground(_ app: TorporApp) async throws

    /// It comes back to the foreground.
    func willEnterForeground(_ app: TorporApp) async throws

    /// A scene inside the app connects (`scenes = { inside = true }`). `state` is what the scene saved of itself with
    /// ``TorporApp/saveState(_:scene:)``; declining ``Declined/restoration`` keeps it for the next time.
    ///
    /// If this throws, the scene is not connected, and the error is reported to the client that opened it. An app with
    /// scenes inside gets launch, memory and termination messages for itself, and the messages of the foreground and the
    /// background for each scene.
    func sceneWillConnect(
        _ app: TorporApp,
        scene: String,
        options: SceneConnectionOptions,
        state: SavedState?
    ) async throws

    /// The scene is in the foreground and in use.
    func sceneDidBecomeActive(_ app: TorporApp, scene: String) async throws

    /// The scene is interrupted, or on its way to the background.
    func sceneWillResignActive(_ app: TorporApp, scene: String) async throws

    /// The scene is out of use: save its state here. ``Declined/snapshot`` can be declined.
    func sceneDidEnterBackground(_ app: TorporApp, scene: String) async throws

    /// The scene comes back to the foreground.
    func sceneWillEnterForeground(_ app: TorporApp, scene: String) async throws

    /// The scene is disconnected: free what it holds. It may connect again later, with its session and its state.
    func sceneDidDisconnect(_ app: TorporApp, scene: String) async throws

    /// These scenes no longer exist: remove what the app keeps of them.
    func didDiscardScenes(_ app: TorporApp, scenes: [String]) async throws

    /// It was stopped for that long, and runs again: connections may be gone, and clocks have moved.
    func resumed(_ app: TorporApp, after gap: Duration) async throws

    /// Memory is short: what can be computed again should go.
    func didReceiveMemoryWarning(_ app: TorporApp) async throws

    /// The same, and how short. Without this method ``didReceiveMemoryWarning(_:)`` is called.
    func didReceiveMemoryWarning(_ app: TorporApp, level: MemoryLevel) async throws

    /// A background task that is not one of ``TorporApp/withBackgroundTask(_:onExpiry:isolation:_:)`` must be ended within
    /// `remaining`, or the app is.
    func taskExpiring(_ app: TorporApp, task: String, remaining: Duration) async throws

    /// The app is about to be ended: the last chance to save something. Not told of an eviction, a force quit or a crash.
    func willTerminate(_ app: TorporApp, reason: String) async throws

    /// It is time to look for new content (`background_modes = ["fetch"]`); what it found decides when it is told next.
    func performFetch(_ app: TorporApp) async throws -> FetchResult?

    /// The app's settings changed: one of its `settings_files`, or the settings that the supervisor keeps.
    func settingsDidChange(_ app: TorporApp, change: SettingsChange) async throws

    /// Another user or account is the app's: one of its `identity_files` changed, or a setting that says so.
    func identityDidChange(_ app: TorporApp, change: SettingsChange) async throws

    /// The clock was set, or the time zone or the day is another one.
    func significantTimeChange(_ app: TorporApp, change: TimeChange) async throws

    /// The session was locked: files that its user's key opens cannot be read until it is unlocked.
    func protectedDataWillBecomeUnavailable(_ app: TorporApp) async throws

    /// The session was unlocked.
    func protectedDataDidBecomeAvailable(_ app: TorporApp) async throws

    /// All transfers of a session are over, or one waits for a login: what became of them follows.
    func handleEventsForBackgroundTransfer(_ app: TorporApp, session: String) async throws

    /// A download or upload is over; its `error` is nil where the file is there.
    func transferDidFinish(_ app: TorporApp, transfer: FinishedTransfer) async throws

    /// A server asks who the app is: ``TorporApp/answerLogin(_:user:password:)`` says it.
    func transferNeedsLogin(_ app: TorporApp, login: TransferLogin) async throws

    /// An event of one of the app's sources (timers, paths, devices, regions), or what a program or another app posted to
    /// it.
    func didReceiveEvent(_ app: TorporApp, mail: ReceivedMail) async throws -> MailResult

    /// News of the machine: power, screens, accessories, its language.
    func didReceiveNotification(_ app: TorporApp, mail: ReceivedMail) async throws -> MailResult

    /// Something that was pushed to the app from outside of the machine (`background_modes = ["remote-notification"]`).
    func didReceiveRemoteNotification(_ app: TorporApp, mail: ReceivedMail) async throws -> MailResult

    /// Something waited for the app: what the three methods above are for, where they are not implemented. Without this
    /// method ``received(_:message:)`` gets it.
    func didReceive(_ app: TorporApp, mail: ReceivedMail) async throws

    /// The same, and says whether the app has a use for it.
    func didReceive(_ app: TorporApp, mail: ReceivedMail) async throws -> MailResult

    /// A message that this version of the library has no method for, or the delegate none of its own: what waited in the
    /// app's mailbox, discarded scenes, and changes of settings, identity, time and protected data.
    func received(_ app: TorporApp, message: OtherMessage) async throws

    /// The supervisor is not there; messages come again when it, or its successor, is. Nothing has to be done.
    func supervisorLost(_ app: TorporApp) async
}

extension AppDelegate {
    /// Does nothing.
    public func willFinishLaunching(_ app: TorporApp, options: LaunchOptions) async throws {}
    /// Does nothing.
    public func restoreState(_ app: TorporApp, state: SavedState) async throws {}
    /// Does nothing.
    public func didFinishLaunching(_ app: TorporApp, options: LaunchOptions) async throws {}
    /// Leaves it to another app.
    public func openURL(_ app: TorporApp, url: String) async throws { throw NotImplemented() }
    /// Asks the method without a result.
    public func openURL(_ app: TorporApp, url: String) async throws -> MailResult {
        try await MailResult.of { try await openURL(app, url: url) as Void }
    }
    /// Asks the method without a source.
    public func openURL(_ app: TorporApp, url: String, source: OpenSource) async throws -> MailResult {
        try await openURL(app, url: url)
    }
    /// Does nothing.
    public func didBecomeActive(_ app: TorporApp) async throws {}
    /// Does nothing.
    public func willResignActive(_ app: TorporApp) async throws {}
    /// Does nothing.
    public func didEnterBackground(_ app: TorporApp) async throws {}
    /// Does nothing.
    public func willEnterForeground(_ app: TorporApp) async throws {}
    /// Does nothing.
    public func sceneWillConnect(
        _ app: TorporApp,
        scene: String,
        options: SceneConnectionOptions,
        state: SavedState?
    ) async throws {}
    /// Does nothing.
    public func sceneDidBecomeActive(_ app: TorporApp, scene: String) async throws {}
    /// Does nothing.
    public func sceneWillResignActive(_ app: TorporApp, scene: String) async throws {}
    /// Does nothing.
    public func sceneDidEnterBackground(_ app: TorporApp, scene: String) async throws {}
    /// Does nothing.
    public func sceneWillEnterForeground(_ app: TorporApp, scene: String) async throws {}
    /// Does nothing.
    public func sceneDidDisconnect(_ app: TorporApp, scene: String) async throws {}
    /// Hands it on.
    public func didDiscardScenes(_ app: TorporApp, scenes: [String]) async throws {
        try await handOn(app, "didDiscardScenes", ["payload": ["names": .array(scenes.map { .string($0) })]])
    }
    /// Does nothing.
    public func resumed(_ app: TorporApp, after gap: Duration) async throws {}
    /// Does nothing.
    public func didReceiveMemoryWarning(_ app: TorporApp) async throws {}
    /// Calls the method without a level.
    public func didReceiveMemoryWarning(_ app: TorporApp, level: MemoryLevel) async throws {
        try await didReceiveMemoryWarning(app)
    }
    /// Does nothing.
    public func taskExpiring(_ app: TorporApp, task: String, remaining: Duration) async throws {}
    /// Does nothing.
    public func willTerminate(_ app: TorporApp, reason: String) async throws {}
    /// Does not look.
    public func performFetch(_ app: TorporApp) async throws -> FetchResult? { nil }
    /// Hands it on.
    public func settingsDidChange(_ app: TorporApp, change: SettingsChange) async throws {
        try await handOn(app, "settingsDidChange", change.mail.parameters)
    }
    /// Hands it on.
    public func identityDidChange(_ app: TorporApp, change: SettingsChange) async throws {
        try await handOn(app, "identityDidChange", change.mail.parameters)
    }
    /// Hands it on.
    public func significantTimeChange(_ app: TorporApp, change: TimeChange) async throws {
        try await handOn(app, "significantTimeChange", change.mail.parameters)
    }
    /// Hands it on.
    public func protectedDataWillBecomeUnavailable(_ app: TorporApp) async throws {
        try await handOn(app, "protectedDataWillBecomeUnavailable", .emptyObject)
    }
    /// Hands it on.
    public func protectedDataDidBecomeAvailable(_ app: TorporApp) async throws {
        try await handOn(app, "protectedDataDidBecomeAvailable", .emptyObject)
    }
    /// Hands it on.
    public func handleEventsForBackgroundTransfer(_ app: TorporApp, session: String) async throws {
        try await handOn(app, "handleEventsForBackgroundTransfer", ["session": .string(session)])
    }
    /// Hands it on.
    public func transferDidFinish(_ app: TorporApp, transfer: FinishedTransfer) async throws {
        try await handOn(app, "transferDidFinish", transfer.parameters)
    }
    /// Hands it on.
    public func transferNeedsLogin(_ app: TorporApp, login: TransferLogin) async throws {
        try await handOn(app, "transferNeedsLogin", login.parameters)
    }
    /// Hands it on.
    public func didReceiveEvent(_ app: TorporApp, mail: ReceivedMail) async throws -> MailResult {
        try await didReceive(app, mail: mail)
    }
    /// Hands it on.
    public func didReceiveNotification(_ app: TorporApp, mail: ReceivedMail) async throws -> MailResult {
        try await didReceive(app, mail: mail)
    }
    /// Hands it on.
    public func didReceiveRemoteNotification(_ app: TorporApp, mail: ReceivedMail) async throws -> MailResult {
        try await didReceive(app, mail: mail)
    }
    /// Hands it on.
    public func didReceive(_ app: TorporApp, mail: ReceivedMail) async throws {
        try await received(app, message: OtherMessage(name: mail.name, parameters: mail.parameters))
    }
    /// Asks the method without a result.
    public func didReceive(_ app: TorporApp, mail: ReceivedMail) async throws -> MailResult {
        try await MailResult.of { try await didReceive(app, mail: mail) as Void }
    }
    /// Leaves it to another app.
    public func received(_ app: TorporApp, message: OtherMessage) async throws { throw NotImplemented() }

    /// What concerns this app alone is done where it has no method for it.
    private func handOn(_ app: TorporApp, _ name: String, _ parameters: JSON) async throws {
        _ = try await MailResult.of {
            try await received(app, message: OtherMessage(name: name, parameters: parameters))
        }
    }
    /// Does nothing.
    public func supervisorLost(_ app: TorporApp) async {}
}

/// What the methods throw that a delegate does not implement.
struct NotImplemented: Error {}
