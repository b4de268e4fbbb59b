// SPDX-License-Identifier: Apache-2.0

/// What an app does when its state changes: a method for each message of the lifecycle, with a default that does
/// nothing.
///
/// Messages from the app's mailbox, and URLs, can be answered with ``MailResult/unhandled``: the supervisor may then
/// pass them to another app. An app that does not implement the method gives this answer too. A method without a
/// result answers `done`.
///
/// The supervisor sends one message at a time and waits for the method to return, at most for the message's deadline
/// (``TorporApp/timeToAnswer``). A method that throws answers `failed`, with the error as the reason; the lifecycle
/// continues. A delegate can be a structure, an actor or a class of the main actor.
public protocol AppDelegate: Sendable {
    /// The app is being launched; nothing is restored yet. Here the restoration (or the URL that it was launched for)
    /// can be declined: ``TorporApp/decline(_:)``.
    func willFinishLaunching(_ app: TorporApp, options: LaunchOptions) async throws

    /// Restores what was saved before the app was evicted, crashed or the machine was rebooted.
    func restoreState(_ app: TorporApp, state: SavedState) async throws

    /// The last step of the launch: when this returns, the app is ready and its clients can connect. Work that lasts
    /// as long as the app is started here, in a task of its own.
    func didFinishLaunching(_ app: TorporApp, options: LaunchOptions) async throws

    /// Opens a URL.
    func openURL(_ app: TorporApp, url: String) async throws

    /// Opens a URL, and returns whether the app can handle it.
    func openURL(_ app: TorporApp, url: String) async throws -> MailResult

    /// The same with the source of the URL. Without this method ``openURL(_:url:)`` is called.
    func openURL(_ app: TorporApp, url: String, source: OpenSource) async throws -> MailResult

    /// The app is in the foreground and in use.
    func didBecomeActive(_ app: TorporApp) async throws

    /// The app is interrupted, or on its way to the background. A server is taken out of rotation.
    func willResignActive(_ app: TorporApp) async throws

    /// The app is no longer in use. It may soon be suspended, and then be terminated without notice: save the state
    /// here and release what other apps need. Background tasks do not extend this deadline.
    func didEnterBackground(_ app: TorporApp) async throws

    /// The app comes back to the foreground.
    func willEnterForeground(_ app: TorporApp) async throws

    /// A scene inside the app connects (`scenes = { inside = true }`). `state` is what the scene saved of itself with
    /// ``TorporApp/saveState(_:scene:)``; declining ``Declined/restoration`` keeps it for the next time.
    ///
    /// If this throws, the scene is not connected, and the error is reported to the client that opened it. An app with
    /// scenes inside gets launch, memory and termination messages for itself, and the messages of the foreground and
    /// the background for each scene.
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

    /// The app was suspended for that time and runs again: connections may be closed, and clocks have advanced.
    func resumed(_ app: TorporApp, after gap: Duration) async throws

    /// Memory is short: free what can be computed again.
    func didReceiveMemoryWarning(_ app: TorporApp) async throws

    /// The same with the level. Without this method ``didReceiveMemoryWarning(_:)`` is called.
    func didReceiveMemoryWarning(_ app: TorporApp, level: MemoryLevel) async throws

    /// A background task must end within `remaining`, or the app is terminated. Only for tasks that were not begun
    /// with ``TorporApp/withBackgroundTask(_:onExpiry:isolation:_:)``.
    func taskExpiring(_ app: TorporApp, task: String, remaining: Duration) async throws

    /// The app is about to be terminated: the last chance to save. Not called before an eviction, a force quit or a
    /// crash.
    func willTerminate(_ app: TorporApp, reason: String) async throws

    /// Checks for new content (`background_modes = ["fetch"]`); the result decides when the next check is due.
    func performFetch(_ app: TorporApp) async throws -> FetchResult?

    /// The app's settings changed: one of its `settings_files`, or the settings that the supervisor stores.
    func settingsDidChange(_ app: TorporApp, change: SettingsChange) async throws

    /// The app works for another user or account: an `identity_files` entry or a setting with `identity = true`
    /// changed.
    func identityDidChange(_ app: TorporApp, change: SettingsChange) async throws

    /// The clock was set, or the time zone or the day changed.
    func significantTimeChange(_ app: TorporApp, change: TimeChange) async throws

    /// The session was locked: files encrypted with its user's key are unreadable until it is unlocked.
    func protectedDataWillBecomeUnavailable(_ app: TorporApp) async throws

    /// The session was unlocked.
    func protectedDataDidBecomeAvailable(_ app: TorporApp) async throws

    /// All transfers of a session have ended, or one waits for a login. The details follow as further messages.
    func handleEventsForBackgroundTransfer(_ app: TorporApp, session: String) async throws

    /// A download or upload has ended; `error` is nil if it succeeded.
    func transferDidFinish(_ app: TorporApp, transfer: FinishedTransfer) async throws

    /// A server asks for a login: answer with ``TorporApp/answerLogin(_:user:password:)``.
    func transferNeedsLogin(_ app: TorporApp, login: TransferLogin) async throws

    /// An alert came while the app was in the foreground, or a person answered it.
    func didReceiveLocalNotification(_ app: TorporApp, alert: ReceivedAlert) async throws

    /// An event of one of the app's sources (timers, paths, devices, regions), or a message from a program or another
    /// app.
    func didReceiveEvent(_ app: TorporApp, mail: ReceivedMail) async throws -> MailResult

    /// A change of the machine: power, screens, accessories, language.
    func didReceiveNotification(_ app: TorporApp, mail: ReceivedMail) async throws -> MailResult

    /// A message pushed from outside of the machine (`background_modes = ["remote-notification"]`).
    func didReceiveRemoteNotification(_ app: TorporApp, mail: ReceivedMail) async throws -> MailResult

    /// A message from the app's mailbox: called by those of the three methods above that are not implemented. Without
    /// this method ``received(_:message:)`` is called.
    func didReceive(_ app: TorporApp, mail: ReceivedMail) async throws

    /// The same, and returns whether the app can handle it.
    func didReceive(_ app: TorporApp, mail: ReceivedMail) async throws -> MailResult

    /// A message that this version of the library has no method for, or whose method is not implemented: messages
    /// from the mailbox, discarded scenes, and changes of settings, identity, time and protected data.
    func received(_ app: TorporApp, message: OtherMessage) async throws

    /// The supervisor is gone. Messages continue when it or its successor is back. Nothing has to be done.
    func supervisorLost(_ app: TorporApp) async
}

extension AppDelegate {
    /// Does nothing.
    public func willFinishLaunching(_ app: TorporApp, options: LaunchOptions) async throws {}
    /// Does nothing.
    public func restoreState(_ app: TorporApp, state: SavedState) async throws {}
    /// Does nothing.
    public func didFinishLaunching(_ app: TorporApp, options: LaunchOptions) async throws {}
    /// Leaves the URL to another app.
    public func openURL(_ app: TorporApp, url: String) async throws { throw NotImplemented() }
    /// Calls the method without a result.
    public func openURL(_ app: TorporApp, url: String) async throws -> MailResult {
        try await MailResult.of { try await openURL(app, url: url) as Void }
    }
    /// Calls the method without a source.
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
    /// Calls ``received(_:message:)``.
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
    /// Does not check.
    public func performFetch(_ app: TorporApp) async throws -> FetchResult? { nil }
    /// Calls ``received(_:message:)``.
    public func settingsDidChange(_ app: TorporApp, change: SettingsChange) async throws {
        try await handOn(app, "settingsDidChange", change.mail.parameters)
    }
    /// Calls ``received(_:message:)``.
    public func identityDidChange(_ app: TorporApp, change: SettingsChange) async throws {
        try await handOn(app, "identityDidChange", change.mail.parameters)
    }
    /// Calls ``received(_:message:)``.
    public func significantTimeChange(_ app: TorporApp, change: TimeChange) async throws {
        try await handOn(app, "significantTimeChange", change.mail.parameters)
    }
    /// Calls ``received(_:message:)``.
    public func protectedDataWillBecomeUnavailable(_ app: TorporApp) async throws {
        try await handOn(app, "protectedDataWillBecomeUnavailable", .emptyObject)
    }
    /// Calls ``received(_:message:)``.
    public func protectedDataDidBecomeAvailable(_ app: TorporApp) async throws {
        try await handOn(app, "protectedDataDidBecomeAvailable", .emptyObject)
    }
    /// Calls ``received(_:message:)``.
    public func handleEventsForBackgroundTransfer(_ app: TorporApp, session: String) async throws {
        try await handOn(app, "handleEventsForBackgroundTransfer", ["session": .string(session)])
    }
    /// Calls ``received(_:message:)``.
    public func transferDidFinish(_ app: TorporApp, transfer: FinishedTransfer) async throws {
        try await handOn(app, "transferDidFinish", transfer.parameters)
    }
    /// Calls ``received(_:message:)``.
    public func transferNeedsLogin(_ app: TorporApp, login: TransferLogin) async throws {
        try await handOn(app, "transferNeedsLogin", login.parameters)
    }
    /// Calls ``received(_:message:)``.
    public func didReceiveLocalNotification(_ app: TorporApp, alert: ReceivedAlert) async throws {
        try await handOn(app, "didReceiveLocalNotification", alert.parameters)
    }
    /// Calls `didReceive`.
    public func didReceiveEvent(_ app: TorporApp, mail: ReceivedMail) async throws -> MailResult {
        try await didReceive(app, mail: mail)
    }
    /// Calls `didReceive`.
    public func didReceiveNotification(_ app: TorporApp, mail: ReceivedMail) async throws -> MailResult {
        try await didReceive(app, mail: mail)
    }
    /// Calls `didReceive`.
    public func didReceiveRemoteNotification(_ app: TorporApp, mail: ReceivedMail) async throws -> MailResult {
        try await didReceive(app, mail: mail)
    }
    /// Calls ``received(_:message:)``.
    public func didReceive(_ app: TorporApp, mail: ReceivedMail) async throws {
        try await received(app, message: OtherMessage(name: mail.name, parameters: mail.parameters))
    }
    /// Calls the method without a result.
    public func didReceive(_ app: TorporApp, mail: ReceivedMail) async throws -> MailResult {
        try await MailResult.of { try await didReceive(app, mail: mail) as Void }
    }
    /// Leaves the message to another app.
    public func received(_ app: TorporApp, message: OtherMessage) async throws { throw NotImplemented() }

    /// A message for this app alone counts as done if the app does not implement a method for it.
    private func handOn(_ app: TorporApp, _ name: String, _ parameters: JSON) async throws {
        _ = try await MailResult.of {
            try await received(app, message: OtherMessage(name: name, parameters: parameters))
        }
    }
    /// Does nothing.
    public func supervisorLost(_ app: TorporApp) async {}
}

/// Thrown by the default implementations of a delegate's methods.
struct NotImplemented: Error {}
