// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
package import Lifecycle
import Mailbox
import Processes
import TorporAPI

/// URLs for apps that have neither a delegate nor a signal for openURL. Such an app gets a URL in the arguments of its
/// launch (`%u` in `exec`), or from a command that torpord runs while the app is active (`open_command`).
///
/// Attempts are counted as for messages: before the program or the command is started, the store records which launch
/// of the app gets the URL. A URL that has ended the app `mail_attempts` times is kept as unhandled.
extension Mailboxes {
    // MARK: At a launch

    /// Whether the app's launch must wait until the URLs that are stored for it are loaded.
    package func holdsBackLaunch(of app: AppRuntime, _ order: LaunchOrder) -> Bool {
        !isLoaded && order.foreground && passesURLs(app)
    }

    /// The URL that goes into the arguments of the launch; nil if there is none. The URL counts as opened when the app
    /// is ready.
    package func urlForLaunch(of app: AppRuntime, _ order: LaunchOrder) -> String? {
        guard isLoaded, order.foreground, passesURLs(app) else { return nil }
        let waiting = boxes[app.id]?.items.first { $0.url != nil && !isBeingTold($0.id, to: app) }
        guard let mail = waiting, let url = mail.url else { return nil }
        markInFlight(mail.id, of: app, run: order.incarnation)
        atLaunch[app.id] = mail.id
        note(app, .told, text: "launching it with the URL of message \(mail.id)")
        return url
    }

    private func passesURLs(_ app: AppRuntime) -> Bool {
        switch urlRoute(app) {
        case .command, .launch: OpenPlaceholder.isIn(app.specification.exec)
        case .delegate, .signal, nil: false
        }
    }

    package func entered(_ app: AppRuntime, from: AppState, to: AppState) {
        if to == .active { launchedWithURL(app) }
        if to == .suspended { wakeForUntold(app) }
    }

    /// Counts the URL in the arguments of the app's launch as opened, because the app is ready or has exited
    /// successfully.
    func launchedWithURL(_ app: AppRuntime) {
        guard let id = atLaunch.removeValue(forKey: app.id), let mail = mail(id, of: app) else { return }
        app.lastAnswered = AnsweredMail(id: id, key: mail.draft.key, failure: nil)
        acknowledged(id, by: app)
    }

    /// Continues the delivery of the URL in the arguments with which an earlier torpord launched the app.
    func resumeURLAtLaunch(of app: AppRuntime) {
        guard passesURLs(app), let run = Self.run(of: app),
            let mail = boxes[app.id]?.items.first(where: { $0.url != nil && $0.run == run })
        else { return }
        let isLaunching = machine(app).transition == .launching
        // If the app gets URLs through its open_command, do nothing here: the command is run again, because it may have
        // been killed together with the earlier torpord.
        guard isLaunching || urlRoute(app) == .launch else { return }
        isUnderWay(mail.id, to: app)
        atLaunch[app.id] = mail.id
        if !isLaunching { launchedWithURL(app) }
    }

    // MARK: While the app is active

    /// Runs the app's `open_command` for the first URL that waits, unless the command is running already.
    func runOpenCommand(for app: AppRuntime) {
        guard isLoaded, openCommands[app.id] == nil, urlRoute(app) == .command, app.run.tree?.mainHasEnded == false
        else {
            return
        }
        let waiting = boxes[app.id]?.items.first {
            $0.url != nil && !isBeingTold($0.id, to: app) && isTime(for: $0, app, comesToForeground: false)
        }
        guard let mail = waiting, let url = mail.url else { return }
        var command = HookCommand(OpenPlaceholder.fill(app.specification.opening.command, url))
        command.deadline = app.specification.rules.transitionDeadline
        markInFlight(mail.id, of: app, run: Self.run(of: app))
        note(app, .told, text: "told openURL (\(mail.draft.topic)) by its open_command")
        let id = mail.id
        var isOver = false
        let run = host.run(command, named: "open_command", of: app) { [weak self, weak app] failure in
            isOver = true
            guard let self, let app else { return }
            self.openCommands[app.id] = nil
            // If the URL is no longer being delivered, ignore the result: the app has ended, or the URL was dropped.
            guard self.isBeingTold(id, to: app) else { return self.deliver(to: app) }
            app.lastAnswered = AnsweredMail(id: id, key: mail.draft.key, failure: failure)
            if let failure {
                self.note(app, .answerFailed, text: "failed to handle openURL: \(failure)")
            } else {
                self.note(app, .answered, text: "answered openURL: its open_command ended")
            }
            self.acknowledged(id, by: app)
            self.deliver(to: app)
        }
        if !isOver { openCommands[app.id] = run }
    }

    /// Called when the app's incarnation has ended. Ends the `open_command` that still runs for it.
    func endOpenCommand(of app: AppRuntime) {
        if let run = openCommands[app.id] { host.end(run, of: app) }
    }

    private func markInFlight(_ id: Int64, of app: AppRuntime, run: UInt32?) {
        markTold(id, of: app)
        boxes[app.id]?.setInFlight(id, true)
        beginAttempt(id, app, run: run)
    }
}
