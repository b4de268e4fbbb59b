// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
import EventLoop
package import Lifecycle
import Linux
import Mailbox
package import TorporAPI

extension Supervisor {
    /// The message that the app works on although no transition waits for the answer; nil if there is none.
    package func work(of app: AppRuntime) -> WorkInfo? {
        let machine = coordinator.machine(app.id)
        guard let outgoing = appSockets.messageInWork(of: app), let time = machine.messageTime(now: loop.now) else {
            return nil
        }
        let mail = outgoing.mail.flatMap { mailboxes.mail($0, of: app) }
        let due = machine.messageDue
        return WorkInfo(
            name: outgoing.message.rawValue,
            message: mail?.id,
            topic: mail?.draft.topic,
            attempt: mail.map { Int64($0.attempts) },
            workingMilliseconds: time.microseconds / 1000,
            remainingMilliseconds: due.map { max(0, ($0 - time).microseconds / 1000) },
            isLate: due == nil && machine.rules.messageDeadline != nil
        )
    }

    /// Why the app counts as hung, a sentence without its subject; nil if it has answered its messages in time. In the
    /// background such an app is ended.
    package func hang(of app: AppRuntime) -> String? {
        // A list asks this of every app, and hardly any app works on a message: so that is asked first.
        guard appSockets.messageInWork(of: app) != nil else { return nil }
        let machine = coordinator.machine(app.id)
        guard machine.messageDue == nil, machine.rules.messageDeadline != nil, let work = work(of: app), work.isLate
        else { return nil }
        let about = work.topic.map { " (\($0))" } ?? ""
        return "has not answered \(work.name)\(about) within its message_deadline, and all else waits for that: "
            + "‘torpor restart \(app.name)’ ends it"
    }

    /// Why the app does not get its messages: it hangs, or its delegate is gone. A sentence without its subject; nil if
    /// it gets them.
    package func deafness(of app: AppRuntime) -> String? { deafness(of: app, coordinator[app.id].outline) }

    private func deafness(of app: AppRuntime, _ outline: AppOutline) -> String? {
        if let hang = hang(of: app) { return hang }
        guard lacksDelegate(app, outline) else { return nil }
        return "has no delegate any more, so that it gets no messages: ‘torpor restart \(app.name)’ launches it again"
    }

    /// Whether the app runs and is ready by its delegate, which is gone.
    package func lacksDelegate(_ app: AppRuntime) -> Bool { lacksDelegate(app, coordinator[app.id].outline) }

    private func lacksDelegate(_ app: AppRuntime, _ outline: AppOutline) -> Bool {
        // After a change of the supervisor, the delegate has time to connect again.
        outline.lacksDelegate && app.channel?.delegate == nil && app.channel?.returnTimer == nil
    }

    /// Why the app is up but not well, as far as its answers show; a sentence without its subject, nil if it is well.
    package func trouble(of app: AppRuntime, _ outline: AppOutline) -> String? {
        guard outline.isExpectedToAnswer else { return nil }
        if let deafness = deafness(of: app, outline) { return deafness }
        guard app.specification.rules.readiness == .delegate, coordinator.machine(app.id).isAlive,
            app.run.timeline.time(of: .answered(.didFinishLaunching, .failed)) != nil
        else { return nil }
        return "answered didFinishLaunching with failed: ‘torpor history \(app.name)’ says why"
    }

    /// The text to report when the app has not answered its message within `message_deadline`.
    func missedMessage(_ app: AppRuntime) -> String {
        let outgoing = appSockets.messageInWork(of: app)
        let mail = outgoing?.mail.flatMap { mailboxes.mail($0, of: app) }
        var what = outgoing?.message.rawValue ?? "a message"
        if let mail { what += " (message \(mail.id), \(mail.draft.topic))" }
        let limit = app.specification.rules.messageDeadline.map { " of " + Quantity.text($0) } ?? ""
        let isEnding = coordinator.machine(app.id).transition == .terminating
        return "did not answer \(what) within its message_deadline\(limit): every other message waits for that answer"
            + (isEnding ? "; it is terminated" : "; ‘torpor restart \(app.name)’ ends it")
    }
}
