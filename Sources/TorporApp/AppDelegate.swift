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
    /// The app is being launched, and nothing is restored yet. Here the app can decline the restoration of its state,
    /// or the URL that it was launched for (``TorporApp/decline(_:)``).
    func willFinishLaunching(_ app: TorporApp, options: LaunchOptions) async throws

    /// Restores the state that the app saved before it was evicted or crashed, or the machine rebooted.
    func restoreState(_ app: TorporApp, state: SavedState) async throws

    /// The last step of the launch: when this method returns, the app is ready and its clients can connect. Start
    /// work that lasts as long as the app here, in a separate task.
    func didFinishLaunching(_ app: TorporApp, options: LaunchOptions) async throws

    /// Opens a URL.
    func openURL(_ app: TorporApp, url: String) async throws

    /// Opens a URL, and returns whether the app can handle the URL.
    func openURL(_ app: TorporApp, url: String) async throws -> MailResult

    /// Opens a URL from `source`, and returns whether the app can handle the URL. The default calls
    /// ``openURL(_:url:)``.
    func openURL(_ app: TorporApp, url: String, source: OpenSource) async throws -> MailResult

    /// The app is in the foreground and in use.
    func didBecomeActive(_ app: TorporApp) async throws

    /// The app is interrupted, or is about to enter the background. A server should be taken out of its load
    /// balancer's rotation here.
    func willResignActive(_ app: TorporApp) async throws

    /// The app is no longer in use. It may soon be suspended, and then be terminated without notice: save the state
    /// here and release what other apps need. Background tasks do not extend the deadline of this method. Also called
    /// again before the app is suspended after an event woke it in the background.
    func didEnterBackground(_ app: TorporApp) async throws

    /// The app comes back to the foreground.
    func willEnterForeground(_ app: TorporApp) async throws

    /// A scene inside the app connects (`scenes = { inside = true }`). `state` is the state that the app saved for
    /// the scene by ``TorporApp/saveState(_:scene:)``; declining ``Declined/restoration`` keeps the state for the
    /// next time.
    ///
    /// If this method throws, the scene is not connected, and the error is reported to the client that opened the
    /// scene. An app with scenes inside gets messages about its launch, memory and termination for the app as a
    /// whole, and messages about the foreground and the background for each scene.
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

    /// The scene is no longer in use: save its state here. The app can also decline ``Declined/snapshot`` here.
    func sceneDidEnterBackground(_ app: TorporApp, scene: String) async throws

    /// The scene comes back to the foreground.
    func sceneWillEnterForeground(_ app: TorporApp, scene: String) async throws

    /// The scene is disconnected: free its memory. The scene may connect again later, with its session and its state.
    func sceneDidDisconnect(_ app: TorporApp, scene: String) async throws

    /// These scenes no longer exist: remove the app's data about them.
    func didDiscardScenes(_ app: TorporApp, scenes: [String]) async throws

    /// The app was suspended for `gap` and runs again. Connections may have been closed, and clocks have advanced.
    func resumed(_ app: TorporApp, after gap: Duration) async throws

    /// Memory is short: free what the app can compute again.
    func didReceiveMemoryWarning(_ app: TorporApp) async throws

    /// Memory is short; `level` says how much. The default calls ``didReceiveMemoryWarning(_:)``.
    func didReceiveMemoryWarning(_ app: TorporApp, level: MemoryLevel) async throws

    /// A background task must end within `remaining`, or the app is terminated. Called only for tasks that another
    /// process of the app began: for tasks of this process, ``TorporApp/beginBackgroundTask(_:onExpiry:)`` has a
    /// closure.
    func taskExpiring(_ app: TorporApp, task: String, remaining: Duration) async throws

    /// The app is about to be terminated: this is its last chance to save. Not called before an eviction, a force
    /// quit or a crash.
    func willTerminate(_ app: TorporApp, reason: String) async throws

    /// Checks for new content (`background_modes = ["fetch"]`); the result decides when the next check is due.
    func performFetch(_ app: TorporApp) async throws -> FetchResult?

    /// The app's settings changed: one of its `settings_files`, or the settings that the supervisor stores.
    func settingsDidChange(_ app: TorporApp, change: SettingsChange) async throws

    /// The app works for another user or account: an `identity_files` entry or a setting with `identity = true`
    /// changed.
    func identityDidChange(_ app: TorporApp, change: SettingsChange) async throws

    /// What must be refreshed before users see the app: names that were passed to ``TorporApp/setNeedsRefresh(_:)``,
    /// and names of topics with `refresh = true`. `["*"]` stands for everything.
    func refresh(_ app: TorporApp, names: [String]) async throws

    /// An activity of this type follows, which a user was doing in another app or on another machine.
    func willContinueActivity(_ app: TorporApp, type: String) async throws

    /// Continues what a user was doing in another app or on another machine.
    func continueActivity(_ app: TorporApp, activity: ContinuedActivity) async throws

    /// The activity that was announced does not come, for this reason.
    func didFailToContinueActivity(_ app: TorporApp, type: String, reason: String) async throws

    /// Another app, named `by`, has continued this app's activity: the user works there now.
    func activityWasContinued(_ app: TorporApp, type: String, by: String) async throws

    /// The clock was set, or the time zone or the day changed.
    func significantTimeChange(_ app: TorporApp, change: TimeChange) async throws

    /// The session was locked: close the files in the protected folder, since the folder is closed next. It stays
    /// closed until the session is unlocked.
    func protectedDataWillBecomeUnavailable(_ app: TorporApp) async throws

    /// The session was unlocked, and the protected folder is open again.
    func protectedDataDidBecomeAvailable(_ app: TorporApp) async throws

    /// All transfers of a session have ended, or one transfer waits for a login. Messages with the details follow.
    func handleEventsForBackgroundTransfer(_ app: TorporApp, session: String) async throws

    /// A download or upload has ended; `error` is nil if it succeeded.
    func transferDidFinish(_ app: TorporApp, transfer: FinishedTransfer) async throws

    /// A server asks for a login: answer with ``TorporApp/answerLogin(_:user:password:)``.
    func transferNeedsLogin(_ app: TorporApp, login: TransferLogin) async throws

    /// An alert came while the app was in the foreground, or a user answered an alert.
    func didReceiveLocalNotification(_ app: TorporApp, alert: ReceivedAlert) async throws

    /// An event of one of the app's sources (timers, paths, devices, regions), or a message from a program or another
    /// app. Returns whether the app has handled the event or message.
    func didReceiveEvent(_ app: TorporApp, mail: ReceivedMail) async throws -> MailResult

    /// Something about the machine has changed: its power, screens, accessories or language.
    func didReceiveNotification(_ app: TorporApp, mail: ReceivedMail) async throws -> MailResult

    /// A message pushed from outside of the machine (`background_modes = ["remote-notification"]`).
    func didReceiveRemoteNotification(_ app: TorporApp, mail: ReceivedMail) async throws -> MailResult

    /// A message from the app's mailbox. The defaults of `didReceiveEvent`, `didReceiveNotification` and
    /// `didReceiveRemoteNotification` call this method; its own default calls ``received(_:message:)``.
    func didReceive(_ app: TorporApp, mail: ReceivedMail) async throws

    /// A message from the app's mailbox. Returns whether the app can handle the message.
    func didReceive(_ app: TorporApp, mail: ReceivedMail) async throws -> MailResult

    /// A message for which this version of the library has no method, or whose method the app does not implement:
    /// messages from the mailbox, discarded scenes, and changes of settings, identity, time and protected data.
    func received(_ app: TorporApp, message: OtherMessage) async throws

    /// The connection to the supervisor is lost. Nothing has to be done: messages continue when a supervisor is back.
    func supervisorLost(_ app: TorporApp) async
}

extension AppDelegate {
    /// Does nothing; the default for apps that do not need this message.
    public func willFinishLaunching(_ app: TorporApp, options: LaunchOptions) async throws {}
    /// Does nothing; the default for apps that do not need this message.
    public func restoreState(_ app: TorporApp, state: SavedState) async throws {}
    /// Does nothing; the default for apps that do not need this message.
    public func didFinishLaunching(_ app: TorporApp, options: LaunchOptions) async throws {}
    /// Leaves the URL to another app.
    public func openURL(_ app: TorporApp, url: String) async throws { throw NotImplemented() }
    /// Calls the `openURL` that returns no result.
    public func openURL(_ app: TorporApp, url: String) async throws -> MailResult {
        try await MailResult.of { try await openURL(app, url: url) as Void }
    }
    /// Calls the `openURL` that has no source.
    public func openURL(_ app: TorporApp, url: String, source: OpenSource) async throws -> MailResult {
        try await openURL(app, url: url)
    }
    /// Does nothing; the default for apps that do not need this message.
    public func didBecomeActive(_ app: TorporApp) async throws {}
    /// Does nothing; the default for apps that do not need this message.
    public func willResignActive(_ app: TorporApp) async throws {}
    /// Does nothing; the default for apps that do not need this message.
    public func didEnterBackground(_ app: TorporApp) async throws {}
    /// Does nothing; the default for apps that do not need this message.
    public func willEnterForeground(_ app: TorporApp) async throws {}
    /// Does nothing; the default for apps that do not need this message.
    public func sceneWillConnect(
        _ app: TorporApp,
        scene: String,
        options: SceneConnectionOptions,
        state: SavedState?
    ) async throws {}
    /// Does nothing; the default for apps that do not need this message.
    public func sceneDidBecomeActive(_ app: TorporApp, scene: String) async throws {}
    /// Does nothing; the default for apps that do not need this message.
    public func sceneWillResignActive(_ app: TorporApp, scene: String) async throws {}
    /// Does nothing; the default for apps that do not need this message.
    public func sceneDidEnterBackground(_ app: TorporApp, scene: String) async throws {}
    /// Does nothing; the default for apps that do not need this message.
    public func sceneWillEnterForeground(_ app: TorporApp, scene: String) async throws {}
    /// Does nothing; the default for apps that do not need this message.
    public func sceneDidDisconnect(_ app: TorporApp, scene: String) async throws {}
    /// Calls ``received(_:message:)``.
    public func didDiscardScenes(_ app: TorporApp, scenes: [String]) async throws {
        try await handOn(app, "didDiscardScenes", ["payload": ["names": .array(scenes.map { .string($0) })]])
    }
    /// Does nothing; the default for apps that do not need this message.
    public func resumed(_ app: TorporApp, after gap: Duration) async throws {}
    /// Does nothing; the default for apps that do not need this message.
    public func didReceiveMemoryWarning(_ app: TorporApp) async throws {}
    /// Calls ``didReceiveMemoryWarning(_:)``, which has no level.
    public func didReceiveMemoryWarning(_ app: TorporApp, level: MemoryLevel) async throws {
        try await didReceiveMemoryWarning(app)
    }
    /// Does nothing; the default for apps that do not need this message.
    public func taskExpiring(_ app: TorporApp, task: String, remaining: Duration) async throws {}
    /// Does nothing; the default for apps that do not need this message.
    public func willTerminate(_ app: TorporApp, reason: String) async throws {}
    /// Does not check for new content.
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
    public func refresh(_ app: TorporApp, names: [String]) async throws {
        try await handOn(app, "refresh", ["payload": ["names": .strings(names)]])
    }
    /// Calls ``received(_:message:)``.
    public func willContinueActivity(_ app: TorporApp, type: String) async throws {
        try await handOn(app, "willContinueActivity", ["type": .string(type)])
    }
    /// Calls ``received(_:message:)``. If the app does not implement that method, answers that the app does not handle
    /// the activity.
    public func continueActivity(_ app: TorporApp, activity: ContinuedActivity) async throws {
        try await received(app, message: OtherMessage(name: "continueActivity", parameters: activity.parameters))
    }
    /// Calls ``received(_:message:)``.
    public func didFailToContinueActivity(_ app: TorporApp, type: String, reason: String) async throws {
        try await handOn(
            app,
            "didFailToContinueActivity",
            ["type": .string(type), "reason": .string(reason)]
        )
    }
    /// Calls ``received(_:message:)``.
    public func activityWasContinued(_ app: TorporApp, type: String, by: String) async throws {
        try await handOn(app, "activityWasContinued", ["type": .string(type), "by": .string(by)])
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
    /// Calls the `didReceive` that returns no result.
    public func didReceive(_ app: TorporApp, mail: ReceivedMail) async throws -> MailResult {
        try await MailResult.of { try await didReceive(app, mail: mail) as Void }
    }
    /// Leaves the message to another app.
    public func received(_ app: TorporApp, message: OtherMessage) async throws { throw NotImplemented() }

    /// Passes on a message that is only for this app. The message counts as done even if the app has no method for
    /// it.
    private func handOn(_ app: TorporApp, _ name: String, _ parameters: JSON) async throws {
        _ = try await MailResult.of {
            try await received(app, message: OtherMessage(name: name, parameters: parameters))
        }
    }
    /// Does nothing; the default for apps that do not need this message.
    public func supervisorLost(_ app: TorporApp) async {}
}

/// Thrown by the default implementations of a delegate's methods.
struct NotImplemented: Error {}
