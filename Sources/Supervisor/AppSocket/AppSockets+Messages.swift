// SPDX-License-Identifier: Apache-2.0

import Archives
import Configuration
import Engine
import EventLoop
import EventSources
import Lifecycle
import Linux
import Mailbox
import Processes
import Schedules
import SystemPackage
import TorporAPI
import Varlink
import VarlinkServer

/// Sends messages to apps and handles their answers.
extension AppSockets {
    /// Numbers the messages that the core decided to send to delegates, before the decision is recorded.
    func enqueue(_ outputs: [AppAction]) {
        for output in outputs {
            switch output.action {
            case .tell(let message):
                let app = apps[output.app]
                guard hearsByChannel(output.app) else { continue }
                // Queue URLs before this message, so that the app gets them before it becomes active.
                if message == .didBecomeActive { supervisor.mailboxes.enqueue(app, comesToForeground: true) }
                let isAwaited = coordinator[output.app].awaitedMessage == message
                addBeforeMail(message, isAwaited: isAwaited, to: app)
                // Queue the app's mail, so that the app gets it right after `resumed` and before any other message.
                if message == .resumed { supervisor.mailboxes.enqueue(app) }
            case .tellScene(let scene, let message):
                let app = apps[output.app]
                if message == .sceneDidBecomeActive { supervisor.mailboxes.enqueue(app, comesToForeground: true) }
                addBeforeMail(message, isAwaited: false, scene: scene, to: app)
            case .warn(let token):
                if hearsByChannel(output.app) {
                    addBeforeMail(.taskExpiring, isAwaited: false, task: token, to: apps[output.app])
                }
            case .launch:
                apps[output.app].channel = nil
                supervisor.mailboxes.incarnationEnded(apps[output.app])
            case .signalStop, .signalWatchdog, .stopProcesses, .continueProcesses, .killProcesses, .endRemains,
                .entered, .ended, .report, .requestLaunch, .askForAdmission, .askForMemory, .takeSnapshot:
                break
            }
        }
    }

    /// Queues a message. If it must not wait, because the app leaves the foreground, ends, or is short of time or
    /// memory, the message is queued before mail that was not sent yet. An app that is about to be suspended gets that
    /// mail when it is resumed.
    private func addBeforeMail(
        _ message: Message,
        isAwaited: Bool,
        task: UInt32? = nil,
        scene: SceneID? = nil,
        to app: AppRuntime
    ) {
        let isUrgent: Bool
        switch message {
        case .willResignActive, .didEnterBackground, .willTerminate, .taskExpiring, .didReceiveMemoryWarning,
            .sceneWillResignActive, .sceneDidEnterBackground, .sceneDidDisconnect:
            isUrgent = true
        default: isUrgent = false
        }
        if isUrgent { supervisor.mailboxes.withdrawUnsent(from: app) }
        channel(of: app).add(message, isAwaited: isAwaited, task: task, scene: scene, since: loop.now)
        if isUrgent { supervisor.mailboxes.requeue(app) }
    }

    /// Whether a message of a transition has waited so long behind mail that it is sent before more mail.
    private func isOverdue(_ app: AppRuntime, _ channel: AppChannel) -> Bool {
        guard let patience = coordinator.machine(app.id).rules.transitionDeadline,
            let since = channel.queue.first(where: \.isOfTransition)?.since
        else { return false }
        return loop.now - since >= patience
    }

    /// Whether the app receives messages on its socket, now or once it has connected.
    func hearsByChannel(_ app: AppID) -> Bool {
        coordinator[app].hasDelegate
            || coordinator[app].rules.readiness == .delegate && coordinator[app].transition == .launching
    }

    /// Sets mail aside that a delegate does not answer but closes its connection, each time it is told it. Without a
    /// limit it would be told the same mail as fast as it connects. `wasSent`: the number of the last message that was
    /// sent over the earlier connection.
    func willTellAgain(_ channel: AppChannel, wasSent: UInt32, _ app: AppRuntime) {
        guard let sent = channel.delegate?.sent, let first = channel.queue.first, sent < first.id else { return }
        brokeOff(channel, wasSent: wasSent, app)
    }

    /// Counts that a delegate has closed its connection instead of an answer to the mail that it was sent.
    func brokeOff(_ channel: AppChannel, wasSent: UInt32, _ app: AppRuntime) {
        guard let first = channel.queue.first, let mail = first.mail, first.id <= wasSent else { return }
        let count = (channel.retold?.mail == mail ? channel.retold?.count ?? 0 : 0) + 1
        channel.retold = (mail, count)
        guard count >= app.specification.mailAttempts else { return }
        channel.retold = nil
        channel.queue.removeFirst()
        channel.answeredID = max(channel.answeredID, first.id)
        supervisor.mailboxes.giveUp(mail, after: count, app)
        record(app)
        deliver(.messageAnswered, to: app.id)
    }

    /// Sends the next message, if nothing is in flight.
    func pump(_ app: AppRuntime) {
        guard let channel = app.channel, let delegate = channel.delegate, let next = channel.queue.first,
            delegate.sent < next.id, !delegate.reply.isClosed
        else { return }
        // An app that is ending gets no more mail: the next run does.
        if next.mail != nil, coordinator.machine(app.id).transition == .terminating {
            supervisor.mailboxes.withdrawUnsent(from: app)
            record(app)
            return pump(app)
        }
        // Wait until the mail's content has been read from the store.
        if next.mail != nil, !supervisor.mailboxes.isLoaded { return }
        if next.mail != nil, isOverdue(app, channel) {
            supervisor.mailboxes.withdrawUnsent(from: app)
            supervisor.mailboxes.requeue(app)
            // The new numbers must be on record before a process sees them.
            record(app)
            return pump(app)
        }
        guard let parameters = parameters(of: next, app) else {
            // The message is obsolete, so drop it. If it was the newest message, its number is used again for the next
            // message.
            channel.queue.removeFirst()
            if channel.lastID == next.id { channel.lastID -= 1 } else { channel.answeredID = next.id }
            if next.isAwaited { deliver(.answered(next.message), to: app.id) }
            if let scene = next.scene, !isLate(next, channel) {
                deliver(.scene(scene, .answered(next.message, failed: false)), to: app.id)
            }
            return pump(app)
        }
        channel.delegate?.sent = next.id
        // If the message is sent once more, to a delegate that connects again, its time does not begin again.
        channel.queue[0].hasWaited = false
        if next.hasWaited, next.isAwaited { deliver(.delivered(next.message), to: app.id) }
        if next.hasWaited, let scene = next.scene, !isLate(next, channel) {
            deliver(.scene(scene, .delivered(next.message)), to: app.id)
        }
        // No transition waits for the answer: the message has a deadline of its own, which begins now.
        if next.scene == nil, !next.isAwaited { deliver(.messageSent, to: app.id) }
        let messageDeadline = coordinator.machine(app.id).rules.messageDeadline
        let end =
            if let scene = next.scene {
                supervisor.innerScenes.machine(of: scene, app)?.deadline?.at
            } else {
                next.isAwaited ? edgeDeadline(of: app)?.at : messageDeadline.map { loop.now + $0 }
            }
        let deadline = end.map { max(0, ($0 - loop.now).microseconds / 1000) }
        let message = AppMessage(
            id: Int64(next.id),
            name: next.message.rawValue,
            deadlineMilliseconds: deadline,
            parameters: parameters
        )
        trace(app, .told(next.message))
        if let mail = next.mail { supervisor.mailboxes.willSend(mail, to: app) }
        let topic =
            (next.mail.flatMap { supervisor.mailboxes.mail($0, of: app)?.draft.topic }
            ?? next.scene.flatMap(supervisor.innerScenes.name)).map { " (\($0))" } ?? ""
        note(app, .told, text: "told \(next.message.rawValue)\(topic)")
        delegate.reply.send(["message": message.json], continues: true)
    }

    /// Whether a later message to the same scene is queued. If so, the answer to `outgoing` no longer counts.
    private func isLate(_ outgoing: AppChannel.Outgoing, _ channel: AppChannel) -> Bool {
        channel.queue.contains { $0.scene == outgoing.scene && $0.id > outgoing.id }
    }

    /// The message that the app works on although no transition waits for its answer; nil if there is none.
    func messageInWork(of app: AppRuntime) -> AppChannel.Outgoing? {
        guard let channel = app.channel, let first = channel.queue.first, first.scene == nil, !first.isAwaited,
            (channel.delegate?.sent ?? 0) >= first.id
        else { return nil }
        return first
    }

    func edgeDeadline(of app: AppRuntime) -> Deadline? {
        coordinator.machine(app.id).deadlines.first { deadline in
            switch deadline.kind {
            case .launch, .transition, .background, .willTerminate: true
            case .suspend, .grace, .kill, .restart, .watchdog, .backgroundTime, .task, .message: false
            }
        }
    }

    /// A message's parameters; nil if the message is obsolete and must not be sent.
    private func parameters(of outgoing: AppChannel.Outgoing, _ app: AppRuntime) -> JSON? {
        if let mail = outgoing.mail { return supervisor.mailboxes.mail(mail, of: app)?.parameters }
        if let scene = outgoing.scene { return supervisor.innerScenes.parameters(of: outgoing.message, scene, app) }
        let machine = coordinator.machine(app.id)
        switch outgoing.message {
        case .willFinishLaunching, .didFinishLaunching:
            return ["options": launchOptions(of: app)]
        case .restoreState:
            guard let archive = stateOffered(to: app) else { return nil }
            return ["path": .string(archive.path), "bytes": .int(Int64(clamping: archive.bytes))]
        case .openURL:
            return outgoing.url.map { ["url": .string($0)] }
        case .resumed:
            return ["gap_s": .double(machine.lastGap.inSeconds)]
        case .willTerminate:
            return ["reason": .optional(machine.endingReason?.rawValue)]
        case .taskExpiring:
            guard let task = machine.tasks.first(where: { $0.token == outgoing.task }) else { return nil }
            return [
                "token": .int(Int64(task.token)), "name": .string(task.name),
                "remaining_ms": .optional(remainingMilliseconds(app)),
            ]
        case .didReceiveMemoryWarning:
            return ["level": .string(app.memoryWarning ?? MemoryLevel.warning.rawValue)]
        case .didBecomeActive, .willResignActive, .didEnterBackground, .willEnterForeground, .settingsDidChange,
            .identityDidChange, .significantTimeChange, .performFetch, .didReceiveEvent, .didReceiveNotification,
            .didReceiveRemoteNotification, .protectedDataWillBecomeUnavailable, .protectedDataDidBecomeAvailable,
            .handleEventsForBackgroundTransfer, .transferDidFinish, .transferNeedsLogin, .didReceiveLocalNotification,
            .sceneWillConnect,
            .sceneDidBecomeActive, .sceneWillResignActive, .sceneDidEnterBackground, .sceneWillEnterForeground,
            .sceneDidDisconnect, .didDiscardScenes, .refresh, .willContinueActivity, .continueActivity,
            .didFailToContinueActivity,
            .activityWasContinued:
            return .emptyObject
        }
    }

    package func take(_ answer: AppAnswer, _ reply: Reply, _ app: AppRuntime) {
        guard let channel = app.channel, let first = channel.queue.first, Int64(first.id) == answer.id,
            channel.delegate.map({ $0.sent >= first.id }) ?? true
        else { return refuse(answer, reply, app) }
        // Mail is confirmed later, once the answer was recorded: an app does not repeat an answer that was confirmed.
        if first.mail == nil { reply.send() }
        let message = first.message
        let whose = first.scene.flatMap(supervisor.innerScenes.name).map { " (\($0))" } ?? ""
        // The answer counts for the transition only if the transition waits for this very message. It may have given up
        // on this message and now wait for a later message of the same kind.
        let isAwaited = first.isAwaited && channel.awaitedID == first.id
        if answer.result == .pending {
            let words = answer.text.map { ": \($0)" } ?? ""
            recorder.traceAnswer(app, message, .pending)
            let refusal = message == .didEnterBackground ? " (its deadline cannot be extended)" : ""
            note(app, .answered, text: "answered \(message.rawValue)\(whose): pending\(words)\(refusal)")
            // The deadline of didEnterBackground cannot be extended.
            if isAwaited, message != .didEnterBackground, let time = answer.expectedMilliseconds, time > 0 {
                deliver(.extendTimeout(.milliseconds(time)), to: app.id)
            }
            if !first.isAwaited, first.scene == nil, let time = answer.expectedMilliseconds, time > 0 {
                deliver(.messagePending(.milliseconds(time)), to: app.id)
            }
            if let scene = first.scene, !isLate(first, channel), let time = answer.expectedMilliseconds, time > 0 {
                deliver(.scene(scene, .extends(.milliseconds(time))), to: app.id)
            }
            if first.mail != nil { reply.send() }
            return
        }
        recorder.traceAnswer(app, message, answer.result == .failed ? .failed : .done)
        channel.queue.removeFirst()
        channel.answeredID = first.id
        answeredBeforeReturn(channel)
        // The end of the app may be the cause, for example if its signal ended the program that handled the mail. So
        // the mail counts as not answered, and is told to the next run.
        let isCutShort =
            first.mail != nil && answer.result == .failed && coordinator.machine(app.id).transition == .terminating
        if answer.result == .failed {
            let why = answer.text.map { ": \($0)" } ?? ""
            let fate = isCutShort ? " while it is ending, so that the next run is told it" : ""
            note(app, .answerFailed, text: "failed to handle \(message.rawValue)\(whose)\(why)\(fate)")
        } else {
            let why = answer.text.map { ": \($0)" } ?? ""
            let outcome = answer.result == .unhandled ? ": it does not handle it\(why)" : why
            note(app, .answered, text: "answered \(message.rawValue)\(whose)\(outcome)")
        }
        if answer.declines.contains(.restoration), first.scene == nil {
            supervisor.savedStates.restorationDeclined(app)
            supervisor.activities.stateNotRestored(by: app)
        }
        if answer.declines.contains(.snapshot), first.scene == nil { supervisor.snapshots.declineSnapshot(of: app) }
        if answer.declines.contains(.url), first.mail == nil { supervisor.mailboxes.declineURLs(app) }
        if message == .performFetch {
            supervisor.wakes.timers.fetched(
                app,
                answer.fetch.map { FetchResult($0) } ?? (answer.result == .failed ? .failed : nil)
            )
        }
        if answer.fetch == .newData { deliver(.showsNew, to: app.id) }
        if message == .restoreState, answer.result == .failed {
            supervisor.savedStates.restorationFailed(app, answer.text)
            supervisor.activities.stateNotRestored(by: app)
        }
        if let mail = first.mail, !isCutShort {
            let content = supervisor.mailboxes.mail(mail, of: app)
            // If the app does not handle an activity, report a failure: unlike other mail, an activity goes to no
            // other app.
            let isRefused = answer.result == .unhandled && message == .continueActivity
            let failure: String? =
                answer.result == .failed ? answer.text ?? "" : isRefused ? "it does not handle it" : nil
            app.lastAnswered = AnsweredMail(id: mail, key: content?.draft.key, failure: failure)
            if failure == nil, let content { supervisor.mailboxes.activityWasContinued(content, by: app) }
            if answer.result == .unhandled || message == .openURL && answer.declines.contains(.url) {
                supervisor.mailboxes.passOver(mail, by: app)
            } else {
                supervisor.mailboxes.acknowledged(mail, by: app)
            }
            supervisor.mailboxes.requeue(app)
        }
        if let scene = first.scene {
            // An answer that came after a later message to the scene was queued is late, and does not count.
            if !isLate(first, channel) {
                supervisor.innerScenes.answered(message, scene, answer, app)
            }
            record(app)
        } else if isAwaited {
            deliver(.answered(message), to: app.id)
            if message == .didEnterBackground, answer.result == .failed { deliver(.failedToPrepare, to: app.id) }
        } else {
            record(app)
        }
        if first.mail != nil { reply.send() }
        if first.mail != nil, !isCutShort { supervisor.mailboxes.continueWithUntold(app) }
        // If the app's time in the background is over, the core suspends it now, before it gets further mail.
        if first.scene == nil, !first.isAwaited { deliver(.messageAnswered, to: app.id) }
        pump(app)
    }

    private func refuse(_ answer: AppAnswer, _ reply: Reply, _ app: AppRuntime) {
        let channel = app.channel
        if answer.id > 0, answer.id <= Int64(channel?.answeredID ?? 0) {
            return reply.fail(
                AppInterface.ErrorName.alreadyAnswered,
                ["id": .int(answer.id), "message": .string("message \(answer.id) was answered before")]
            )
        }
        let expected = channel?.queue.first.map { Int64($0.id) }
        let sentence =
            expected.map { "message \(answer.id) is not in flight: message \($0) is" }
            ?? "no message is in flight, so there is no message \(answer.id) to answer"
        note(app, .unheard, text: "answered message \(answer.id), which is not in flight")
        reply.fail(
            AppInterface.ErrorName.notInFlight,
            ["id": .int(answer.id), "expected": .optional(expected), "message": .string(sentence)]
        )
    }
}
