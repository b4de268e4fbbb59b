// SPDX-License-Identifier: Apache-2.0

/// What an app does when its state changes: the messages of the lifecycle as methods, each with a default that does
/// nothing.
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

    /// The app is in the foreground and in use.
    func didBecomeActive(_ app: TorporApp) async throws

    /// It is interrupted, or on its way to the background: for a server, it is taken out of rotation.
    func willResignActive(_ app: TorporApp) async throws

    /// It is out of use, may soon be stopped, and then be ended without a word: the place to save its state and to let
    /// go of what others want. Tasks do not extend the deadline of this.
    func didEnterBackground(_ app: TorporApp) async throws

    /// It comes back to the foreground.
    func willEnterForeground(_ app: TorporApp) async throws

    /// It was stopped for that long, and runs again: connections may be gone, and clocks have moved.
    func resumed(_ app: TorporApp, after gap: Duration) async throws

    /// Memory is short: what can be computed again should go.
    func didReceiveMemoryWarning(_ app: TorporApp) async throws

    /// A background task that is not one of ``TorporApp/withBackgroundTask(_:onExpiry:isolation:_:)`` must be ended within
    /// `remaining`, or the app is.
    func taskExpiring(_ app: TorporApp, task: String, remaining: Duration) async throws

    /// The app is about to be ended: the last chance to save something. Not told of an eviction, a force quit or a crash.
    func willTerminate(_ app: TorporApp, reason: String) async throws

    /// It is time to look for new content (`background_modes = ["fetch"]`); what it found decides when it is told next.
    func performFetch(_ app: TorporApp) async throws -> FetchResult?

    /// Something waited for the app: an event, a notification, a message of another app. Without this method
    /// ``received(_:message:)`` gets it.
    func didReceive(_ app: TorporApp, mail: ReceivedMail) async throws

    /// A message that this version of the library has no method for.
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
    /// Does nothing.
    public func openURL(_ app: TorporApp, url: String) async throws {}
    /// Does nothing.
    public func didBecomeActive(_ app: TorporApp) async throws {}
    /// Does nothing.
    public func willResignActive(_ app: TorporApp) async throws {}
    /// Does nothing.
    public func didEnterBackground(_ app: TorporApp) async throws {}
    /// Does nothing.
    public func willEnterForeground(_ app: TorporApp) async throws {}
    /// Does nothing.
    public func resumed(_ app: TorporApp, after gap: Duration) async throws {}
    /// Does nothing.
    public func didReceiveMemoryWarning(_ app: TorporApp) async throws {}
    /// Does nothing.
    public func taskExpiring(_ app: TorporApp, task: String, remaining: Duration) async throws {}
    /// Does nothing.
    public func willTerminate(_ app: TorporApp, reason: String) async throws {}
    /// Does not look.
    public func performFetch(_ app: TorporApp) async throws -> FetchResult? { nil }
    /// Hands it on.
    public func didReceive(_ app: TorporApp, mail: ReceivedMail) async throws {
        try await received(app, message: OtherMessage(name: mail.name, parameters: mail.parameters))
    }
    /// Does nothing.
    public func received(_ app: TorporApp, message: OtherMessage) async throws {}
    /// Does nothing.
    public func supervisorLost(_ app: TorporApp) async {}
}
