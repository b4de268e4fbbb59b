// SPDX-License-Identifier: Apache-2.0

import AppConnection
import Linux
import TorporAPI
import Varlink

/// Passes the supervisor's messages to the delegate one by one, and answers them.
struct MessageLoop<Delegate: AppDelegate> {
    let app: TorporApp
    let delegate: Delegate

    /// Runs until the app should end.
    func run() async throws(AppError) {
        var launch = Launch.due
        var isAttached = false
        for await item in app.engine.items {
            switch item {
            case .signal: return
            case .silence: if launch == .due { launch = await launchHere(app.launchOptions) }
            case .link(.refused(let error)): throw AppError(error)
            case .link(.lost): if isAttached { await delegate.supervisorLost(app) }
            case .link(.tasksLost(let tokens)):
                app.state.withLock { state in for token in tokens { state.tasks.begun[token] = nil } }
            case .link(.attached(let situation)):
                defer { isAttached = true }
                if isAttached { break }
                // A delegate that attaches after the launch gets no launch messages from the supervisor, which has
                // not waited for the delegate.
                if situation.transition != "launching", Self.statesAfterLaunch.contains(situation.state) {
                    launch = await launchHere(
                        LaunchOptions(situation.options),
                        isActive: situation.state == "active" && situation.scenes == nil
                    )
                } else {
                    app.engine.listen(for: Self.silence)
                }
            case .link(.message(let message)):
                let isOfLaunch = Self.launchMessages.contains(message.name)
                if launch == .due { launch = isOfLaunch ? .told : await launchHere(app.launchOptions) }
                await tell(message, isHeard: !(isOfLaunch && launch == .here))
            }
        }
    }

    /// How the delegate gets its launch messages: from the supervisor if it waits for the delegate (`ready =
    /// "delegate"`), otherwise from this process.
    private enum Launch {
        case due
        case told
        case here
    }

    private static var statesAfterLaunch: Set<String> { ["active", "background", "suspended"] }
    private static var launchMessages: Set<String> { ["willFinishLaunching", "restoreState", "didFinishLaunching"] }
    /// A supervisor that sends launch messages does so within this time after the delegate attached.
    private static var silence: Duration { .milliseconds(500) }

    /// Sends the launch messages from this process, because the supervisor does not wait for the delegate. The
    /// supervisor may still wait for READY=1.
    private func launchHere(_ options: LaunchOptions, isActive: Bool = false) async -> Launch {
        for name in ["willFinishLaunching", "didFinishLaunching"] {
            do {
                _ = try await delegate.dispatch(name, ["options": options.json], app)
            } catch {
                ThisProcess.complain("\(name) failed: \(error)")
            }
        }
        app.sendReady()
        if isActive { try? await delegate.didBecomeActive(app) }
        return .here
    }

    private func tell(_ message: AppMessage, isHeard: Bool) async {
        app.state.withLock { state in
            state.inFlight = TorporApp.InFlight(
                id: message.id,
                answerBy: message.deadlineMilliseconds.map { Clock.monotonic() + .milliseconds($0) }
            )
        }
        var answer = AppAnswer(id: message.id)
        do {
            if isHeard, try await delegate.dispatch(message.name, message.parameters, app) == .unhandled {
                answer.result = .unhandled
            }
        } catch {
            answer.result = .failed
            answer.text = "\(error)"
        }
        let inFlight = app.state.withLock { state in
            defer { state.inFlight = nil }
            return state.inFlight
        }
        answer.declines = (inFlight?.declined ?? []).compactMap { AppAnswer.Declined(rawValue: $0.name) }
        answer.fetch = (inFlight?.fetched).flatMap { AppAnswer.Fetched(rawValue: $0.name) }
        // Ignore an error: the supervisor may no longer wait for this answer.
        _ = await app.engine.call(.answer(answer))
    }
}

/// A program without a supervisor: its delegate gets the messages of a launch into the foreground and of the end.
struct UnsupervisedLoop<Delegate: AppDelegate> {
    let app: TorporApp
    let delegate: Delegate

    /// Runs until the app should end.
    func run() async {
        let options: JSON = ["options": app.launchOptions.json]
        for name in ["willFinishLaunching", "didFinishLaunching", "didBecomeActive"] { await tell(name, options) }
        for await item in app.engine.items {
            if case .signal = item {
                await tell("willResignActive", .emptyObject)
                await tell("willTerminate", ["reason": "stopped"])
                return
            }
        }
    }

    private func tell(_ name: String, _ parameters: JSON) async {
        do {
            _ = try await delegate.dispatch(name, parameters, app)
        } catch {
            ThisProcess.complain("\(name) failed: \(error)")
        }
    }
}

extension AppDelegate {
    /// Calls the delegate's method for a message.
    func dispatch(_ name: String, _ parameters: JSON, _ app: TorporApp) async throws -> MailResult {
        func milliseconds(_ name: String) -> Duration { .milliseconds(parameters[name]?.intValue ?? 0) }
        func text(_ name: String) -> String { parameters[name]?.stringValue ?? "" }
        var mail: ReceivedMail { ReceivedMail(name: name, parameters: parameters) }
        switch name {
        case "willFinishLaunching", "didFinishLaunching":
            let options = parameters["options"].map { LaunchOptions($0) } ?? app.launchOptions
            if name == "willFinishLaunching" {
                try await willFinishLaunching(app, options: options)
            } else {
                try await didFinishLaunching(app, options: options)
            }
        case "restoreState": try await restoreState(app, state: SavedState(path: text("path")))
        case "openURL":
            let source = OpenSource(app: parameters["source"]?.stringValue, type: parameters["type"]?.stringValue)
            return try await openURL(app, url: text("url"), source: source)
        case "didBecomeActive": try await didBecomeActive(app)
        case "willResignActive": try await willResignActive(app)
        case "didEnterBackground": try await didEnterBackground(app)
        case "willEnterForeground": try await willEnterForeground(app)
        case "sceneWillConnect":
            try await sceneWillConnect(
                app,
                scene: text("scene"),
                options: SceneConnectionOptions(parameters["options"] ?? .emptyObject),
                state: parameters["state"]?["path"]?.stringValue.map { SavedState(path: $0) }
            )
        case "sceneDidBecomeActive": try await sceneDidBecomeActive(app, scene: text("scene"))
        case "sceneWillResignActive": try await sceneWillResignActive(app, scene: text("scene"))
        case "sceneDidEnterBackground": try await sceneDidEnterBackground(app, scene: text("scene"))
        case "sceneWillEnterForeground": try await sceneWillEnterForeground(app, scene: text("scene"))
        case "sceneDidDisconnect": try await sceneDidDisconnect(app, scene: text("scene"))
        case "didDiscardScenes":
            let names = mail.payload["names"]?.arrayValue ?? []
            try await didDiscardScenes(app, scenes: names.compactMap(\.stringValue))
        case "resumed":
            try await resumed(app, after: .seconds(parameters["gap_s"]?.doubleValue ?? 0))
        case "didReceiveMemoryWarning":
            // Supervisors before 0.2 did not send the level.
            let level = parameters["level"]?.stringValue.map(MemoryLevel.init(name:)) ?? .warning
            try await didReceiveMemoryWarning(app, level: level)
        case "taskExpiring":
            let remaining = milliseconds("remaining_ms")
            if let token = parameters["token"]?.intValue,
                await app.expire(token: token, name: text("name"), remaining: remaining)
            {
                return .done
            }
            try await taskExpiring(app, task: text("name"), remaining: remaining)
        case "willTerminate": try await willTerminate(app, reason: text("reason"))
        case "performFetch":
            let found = try await performFetch(app)
            app.state.withLock { $0.inFlight?.fetched = found }
        case "settingsDidChange": try await settingsDidChange(app, change: SettingsChange(mail: mail))
        case "identityDidChange": try await identityDidChange(app, change: SettingsChange(mail: mail))
        case "refresh":
            let names = mail.payload["names"]?.arrayValue ?? []
            try await refresh(app, names: names.compactMap(\.stringValue))
        case "willContinueActivity": try await willContinueActivity(app, type: text("type"))
        case "continueActivity":
            let activity = ContinuedActivity(parameters: parameters)
            return try await MailResult.of { try await continueActivity(app, activity: activity) }
        case "didFailToContinueActivity":
            try await didFailToContinueActivity(app, type: text("type"), reason: text("reason"))
        case "activityWasContinued": try await activityWasContinued(app, type: text("type"), by: text("by"))
        case "significantTimeChange": try await significantTimeChange(app, change: TimeChange(mail: mail))
        case "protectedDataWillBecomeUnavailable": try await protectedDataWillBecomeUnavailable(app)
        case "protectedDataDidBecomeAvailable": try await protectedDataDidBecomeAvailable(app)
        case "handleEventsForBackgroundTransfer":
            try await handleEventsForBackgroundTransfer(app, session: text("session"))
        case "transferDidFinish": try await transferDidFinish(app, transfer: FinishedTransfer(parameters: parameters))
        case "transferNeedsLogin": try await transferNeedsLogin(app, login: TransferLogin(parameters: parameters))
        case "didReceiveLocalNotification":
            try await didReceiveLocalNotification(app, alert: ReceivedAlert(parameters: parameters))
        case "didReceiveEvent": return try await didReceiveEvent(app, mail: mail)
        case "didReceiveNotification": return try await didReceiveNotification(app, mail: mail)
        case "didReceiveRemoteNotification": return try await didReceiveRemoteNotification(app, mail: mail)
        default:
            let message = OtherMessage(name: name, parameters: parameters)
            return try await MailResult.of { try await received(app, message: message) }
        }
        return .done
    }
}
