// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
import EventLoop
import EventSources
import Lifecycle
import Linux
package import Mailbox
import Processes
package import Store
import Varlink
import WireText

/// Mail: messages that are stored until their app has answered them. They are delivered in order of arrival, and when
/// an app wakes, before any other message.
///
/// Each change is written to the store's journal before it has any effect, so that no mail is lost or delivered twice
/// if torpord is killed. While mail is being delivered to a delegate (the process that receives an app's messages),
/// the number of the mail is in the app's ledger (`ChannelLedger`). Answered mail is removed from the journal before
/// torpord confirms the answer.
package final class Mailboxes: Room, LifecycleObserver {
    package let engine: Engine
    package let recorder: Recorder
    /// What mailboxes need from other parts of the supervisor. The host owns this object.
    unowned(unsafe) let host: any MailHost
    var boxes: [AppID: Mailbox] = [:]
    /// Mail that no app handled.
    package private(set) lazy var unhandled = UnhandledMail(engine, recorder, host.store)
    /// The numbers of mail whose delivery has begun: mail in the queue of an app's delegate, and mail that a signal has
    /// announced and that the app has not fetched yet.
    private var told: [AppID: Set<Int64>] = [:]
    private var lastID: Int64 = 0
    /// Whether the stored mail is loaded. Until then, mail whose delivery an earlier torpord began cannot be delivered.
    package private(set) var isLoaded = false
    /// The runs of apps (incarnations) that ended before the stored mail was loaded. `counts`: whether the app ended in
    /// such a way that the mail which it was handling has one more failed attempt.
    var endedBeforeLoad: [AppID: (run: UInt32, counts: Bool)] = [:]
    /// For each app, the number of the URL in the arguments of its current launch.
    var atLaunch: [AppID: Int64] = [:]
    /// The `open_command` that runs for an app.
    var openCommands: [AppID: HookRun] = [:]
    /// The mail that an app had not answered at its deadline.
    var missed: [AppID: Int64] = [:]
    /// The most pieces of mail that the queue of a delegate (the process that receives an app's messages) holds at a
    /// time.
    private static let batch = 64

    init(_ engine: Engine, _ recorder: Recorder, _ host: any MailHost) {
        self.engine = engine
        self.recorder = recorder
        self.host = host
    }

    /// The mail that waits for the app.
    package func waiting(for app: AppRuntime) -> [Mail] { boxes[app.id]?.items ?? [] }

    /// The size of the mail that waits for the app, in bytes.
    package func bytes(of app: AppRuntime) -> Int { boxes[app.id]?.bytes ?? 0 }

    /// How much mail may wait for the app.
    package static func limits(of app: AppRuntime) -> Mailbox.Limits {
        Mailbox.Limits(
            count: app.specification.mailboxLimit,
            bytes: app.specification.mailboxSize.map { Int(clamping: $0) } ?? .max
        )
    }

    // MARK: In

    /// Queues mail for an app. The mail is delivered as soon as the app runs.
    ///
    /// - Throws: ``Mailbox/Refusal`` if the mailbox has no room for the mail.
    @discardableResult
    package func add(
        _ draft: MailDraft,
        for app: AppRuntime,
        limits: Mailbox.Limits? = nil
    ) throws(Mailbox.Refusal) -> Mailbox.Change {
        let now = Clock.realtimeMicroseconds()
        // The number is greater than all earlier numbers, even if the clock was set back.
        let id = max(lastID + 1, now, recorder.events.sequence)
        let change: Mailbox.Change
        do throws(Mailbox.Refusal) {
            let limits = limits ?? Self.limits(of: app)
            change = try boxes[app.id, default: Mailbox()].add(draft, id: id, at: now, limits: limits)
        } catch {
            dropIfEmpty(app)
            guard limits == nil, let limits = limitsBesideTransfers(of: app) else { throw error }
            change = try boxes[app.id, default: Mailbox()].add(draft, id: id, at: now, limits: limits)
        }
        lastID = id
        switch change {
        case .added(let mail): host.store.save(StoredMail(mail, of: app.name), isNew: true)
        case .changed(let mail): host.store.save(StoredMail(mail, of: app.name))
        case .cancelled(let mail): host.store.removeMail(mail.id, of: app.name)
        }
        dropIfEmpty(app)
        return change
    }

    /// The mail with this number; nil if it no longer waits.
    func mail(_ id: Int64, of app: AppRuntime) -> Mail? { boxes[app.id]?[id] }

    /// Whether the mail is in the queue of the app's delegate, or was announced by a signal.
    func isBeingTold(_ id: Int64, to app: AppRuntime) -> Bool { told[app.id]?.contains(id) ?? false }

    /// Loads the stored mail of the apps. `contents` also includes mail that was stored after torpord started.
    package func load(_ contents: StoreContents) {
        isLoaded = true
        unhandled.load(contents)
        lastID = max(lastID, contents.unhandled.keys.max() ?? 0)
        var kept: [AppID: [Mail]] = [:]
        for stored in contents.mail.values {
            lastID = max(lastID, stored.id)
            guard let id = coordinator.id(of: stored.app), let mail = readable(stored, apps[id]) else { continue }
            kept[id, default: []].append(mail)
        }
        for app in apps {
            guard kept[app.id] != nil || boxes[app.id] != nil else { continue }
            take(kept[app.id] ?? [], of: app)
        }
        settleAttempts()
        for app in apps { goOn(app) }
    }

    /// Loads the stored mail of an app that was not in the configuration when the store was read.
    package func load(_ contents: StoreContents, of app: AppRuntime) {
        unhandled.load(contents)
        rememberSubscriptions(contents)
        take(contents.mail.values.compactMap { readable($0, app) }, of: app)
        settleAttempts()
        goOn(app)
    }

    /// Puts stored mail before mail that arrived after torpord started. The newer mail may be merged with the stored
    /// mail.
    private func take(_ kept: [Mail], of app: AppRuntime) {
        let since = boxes[app.id]?.items ?? []
        let new = Set(since.map(\.id))
        var box = Mailbox(keeping: kept.filter { !new.contains($0.id) })
        // Mail that was sent has the number of a run (launch). Mail without one is only queued for the delegate, and
        // may still change or be cancelled.
        for id in told[app.id] ?? [] where box[id]?.run != nil { box.setInFlight(id, true) }
        let limits = Mailbox.Limits(count: .max, bytes: .max)
        for mail in since {
            guard !mail.isInFlight, mail.count == 1,
                let change = try? box.add(mail.draft, id: mail.id, at: mail.firstAt, limits: limits)
            else {
                box = Mailbox(keeping: box.items + [mail])
                continue
            }
            switch change {
            case .added: break
            case .changed(let one):
                host.store.removeMail(mail.id, of: app.name)
                host.store.save(StoredMail(one, of: app.name))
            case .cancelled(let one):
                for id in [one.id, mail.id] { host.store.removeMail(id, of: app.name) }
            }
        }
        boxes[app.id] = box
        dropIfEmpty(app)
    }

    /// Continues deliveries to the app that an earlier torpord has begun.
    private func goOn(_ app: AppRuntime) {
        resumeURLAtLaunch(of: app)
        guard let channel = app.channel, channel.queue.contains(where: { $0.mail != nil }) else {
            return deliver(to: app)
        }
        // If mail in the delegate's queue is no longer in the journal, the app has answered it just before the earlier
        // torpord ended: do not deliver it again.
        let first = channel.queue.first?.id
        var isFirstAnswered = false
        channel.queue.removeAll { outgoing in
            guard let mail = outgoing.mail, boxes[app.id]?[mail] == nil else { return false }
            if outgoing.id == first { isFirstAnswered = true }
            told[app.id]?.remove(mail)
            return true
        }
        if isFirstAnswered, let first { channel.answeredID = max(channel.answeredID, first) }
        requeue(app)
        record(app)
        // The delegate may have connected before the mail was loaded, so that the app seemed to work on that mail.
        if isFirstAnswered { deliver(.messageAnswered, to: app.id) }
        host.pumpMessages(to: app)
    }

    /// Saves all mail again, because the store's file was lost.
    func keepAll() {
        for app in apps {
            for mail in boxes[app.id]?.items ?? [] { host.store.save(StoredMail(mail, of: app.name)) }
        }
    }

    // MARK: Out

    /// Marks mail as being delivered.
    func markTold(_ id: Int64, of app: AppRuntime) { told[app.id, default: []].insert(id) }

    /// Called when the app has answered the mail, or a client has removed it. Such mail is no longer delivered.
    func acknowledged(_ id: Int64, by app: AppRuntime) {
        told[app.id]?.remove(id)
        let mail = boxes[app.id]?.remove(id)
        guard mail != nil || !isLoaded else { return }
        // A client's call may be waiting until this mail is answered or removed, so let the engine check the call.
        if mail?.isAwaited ?? false { engine.touch(app.id) }
        // Protected data may be waiting for the answer to this mail before it is locked, so let the engine check that.
        if mail?.draft.message == Message.protectedDataWillBecomeUnavailable.rawValue { engine.touch(app.id) }
        if let mail, mail.draft.topic == Self.settingsTopic { host.toldOfSettings(mail, app) }
        host.store.removeMail(id, of: app.name)
        dropIfEmpty(app)
    }

    /// Removes waiting mail because it could not be stored, or because its request was refused. If the mail was sent or
    /// announced, or merged with other mail, keeps it and returns false.
    func takeBack(_ id: Int64, of app: AppRuntime) -> Bool {
        guard let mail = boxes[app.id]?[id], !mail.isInFlight, mail.count == 1 else { return false }
        // Behind a message that the delegate is still handling, mail is in its queue, but not sent.
        if isBeingTold(id, to: app) {
            guard app.channel?.removeUnsentMail(only: id).isEmpty == false else { return false }
            record(app)
        }
        acknowledged(id, by: app)
        return true
    }

    func dropIfEmpty(_ app: AppRuntime) {
        if boxes[app.id]?.items.isEmpty ?? false { boxes[app.id] = nil }
        if told[app.id]?.isEmpty ?? false { told[app.id] = nil }
    }

    /// Delivers waiting mail to an app that runs.
    package func deliver(to app: AppRuntime) {
        guard let box = boxes[app.id], canHear(app) else { return }
        if host.hearsByChannel(app.id) {
            guard enqueue(app) else { return }
            record(app)
            host.pumpMessages(to: app)
            return
        }
        signal(app, box)
        runOpenCommand(for: app)
    }

    /// Announces waiting mail by signals before an app is continued. The signals are then pending, so the app handles
    /// them before anything else that it finds when it runs.
    func deliverBeforeResume(to app: AppRuntime) {
        guard let box = boxes[app.id], app.run.tree != nil, !host.hearsByChannel(app.id),
            machine(app).transition != .terminating
        else { return }
        signal(app, box)
    }

    private func signal(_ app: AppRuntime, _ box: Mailbox) {
        // A signal to a process that has ended but was not reaped would count as delivered.
        guard app.run.tree?.mainHasEnded == false else { return }
        // Signals do not queue, so send each signal once for all messages that the configuration maps to it.
        var signals: [Int32: Bool] = [:]
        for mail in Self.inOrder(box.items)
        where !isBeingTold(mail.id, to: app) && isTime(for: mail, app, comesToForeground: false) {
            guard let message = Message(rawValue: mail.draft.message),
                let number = app.specification.signals[message]
            else { continue }
            let isSent = signals[number] ?? ((try? app.run.tree?.signal(number, toAll: false)) ?? 0 > 0)
            signals[number] = isSent
            // If the signal cannot be sent, the process has ended: the mail waits for the next incarnation.
            guard isSent else { continue }
            app.run.signalled[number] = message
            note(
                app,
                .told,
                text: "told \(message.rawValue) (\(mail.draft.topic)) by \(Signal.name(number))"
            )
            if keepsUntilTaken(mail.draft, app) {
                told[app.id, default: []].insert(mail.id)
            } else {
                acknowledged(mail.id, by: app)
            }
        }
    }

    /// Whether mail can be delivered to the app now.
    private func canHear(_ app: AppRuntime) -> Bool {
        let machine = machine(app)
        guard app.run.tree != nil, machine.state != .notRunning, machine.state != .suspended, !machine.isSavingAgain
        else { return false }
        return machine.transition != .suspending && machine.transition != .launching
            && machine.transition != .terminating && !machine.isAboutToSuspend
    }

    /// Adds waiting mail to the queue of the app's delegate (the process that receives the app's messages). Returns
    /// false if no mail waited.
    ///
    /// - Parameter comesToForeground: whether didBecomeActive follows this mail, so that URLs may be delivered too.
    @discardableResult
    func enqueue(_ app: AppRuntime, comesToForeground: Bool = false) -> Bool {
        guard isLoaded, let box = boxes[app.id] else { return false }
        let channel = host.channel(of: app)
        let room = Self.batch - channel.queue.count { $0.mail != nil }
        guard room > 0 else { return false }
        var added = 0
        for mail in Self.inOrder(box.items)
        where !isBeingTold(mail.id, to: app) && isTime(for: mail, app, comesToForeground: comesToForeground) {
            guard let message = Message(rawValue: mail.draft.message) else { continue }
            channel.add(message, isAwaited: false, mail: mail.id)
            told[app.id, default: []].insert(mail.id)
            added += 1
            if added == room { break }
        }
        return added > 0
    }

    /// Removes mail that was not sent yet from the queue of the app's delegate. The mail stays in the mailbox.
    func withdrawUnsent(from app: AppRuntime) {
        for mail in app.channel?.removeUnsentMail() ?? [] {
            told[app.id]?.remove(mail)
            boxes[app.id]?.setInFlight(mail, false)
        }
    }

    /// Adds waiting mail to the end of the queue of the app's delegate, if the app may get mail now.
    func requeue(_ app: AppRuntime) { if boxes[app.id] != nil, canHear(app) { enqueue(app) } }

    /// Called before mail is sent. Stores the attempt. After this call the mail must not change.
    package func willSend(_ id: Int64, to app: AppRuntime) {
        boxes[app.id]?.setInFlight(id, true)
        beginAttempt(id, app)
        if let mail = boxes[app.id]?[id], mail.draft.topic == Self.settingsTopic { host.toldOfSettings(mail, app) }
    }

    /// Marks mail in a delegate's queue as being delivered, because an earlier torpord may have sent it.
    package func isUnderWay(_ id: Int64, to app: AppRuntime) {
        told[app.id, default: []].insert(id)
        boxes[app.id]?.setInFlight(id, true)
    }

    /// Called when the app's incarnation (the present run of the app) or its delegate has ended. Mail without an answer
    /// will be delivered to the next incarnation or delegate.
    func incarnationEnded(_ app: AppRuntime) {
        endOpenCommand(of: app)
        guard told[app.id] != nil else { return }
        told[app.id] = nil
        for mail in boxes[app.id]?.items ?? [] where mail.isInFlight { boxes[app.id]?.setInFlight(mail.id, false) }
    }

    package func touched(_ apps: [AppRuntime]) {
        for app in apps where boxes[app.id] != nil { deliver(to: app) }
    }

    /// Called when an app that could not be woken may be woken again. Wakes the app for the oldest mail that asks for
    /// the foreground; if there is none, for the oldest mail that may wake the app.
    func retry(_ app: AppRuntime) {
        touched([app])
        let waiting = boxes[app.id]?.items.filter { $0.draft.wake != nil && !isBeingTold($0.id, to: app) } ?? []
        guard let first = waiting.first(where: { $0.draft.wake == .foreground }) ?? waiting.first else { return }
        haveWoken(host.wake(app, for: first), app)
    }

    /// Called when a delegate has answered mail. If mail that wakes the app is next, the app gets time for it, as if it
    /// had just come: when it came, the app was awake, so it has woken nobody.
    func continueWithUntold(_ app: AppRuntime) {
        if let next = untold(app) { _ = host.wake(app, for: next) }
    }

    /// Called when the app was suspended. If mail that wakes the app was not told to its delegate before, wakes it.
    func wakeForUntold(_ app: AppRuntime) {
        guard untold(app) != nil else { return }
        loop.later { [weak self, weak app] in
            guard let self, let app, machine(app).state == .suspended, let next = untold(app) else { return }
            haveWoken(host.wake(app, for: next), app)
        }
    }

    /// The first mail that wakes the app into the background and that its delegate was not told.
    private func untold(_ app: AppRuntime) -> Mail? {
        guard isLoaded, let box = boxes[app.id], host.hearsByChannel(app.id) else { return nil }
        return Self.inOrder(box.items).first { $0.draft.wake == .background && !$0.isInFlight }
    }

    /// Called when the app was removed for good. The store itself removes all mail of the app at once.
    package func forget(_ app: AppRuntime) {
        boxes[app.id] = nil
        told[app.id] = nil
        endedBeforeLoad[app.id] = nil
        missed[app.id] = nil
        endOpenCommand(of: app)
        unhandled.forget(app)
    }
}

extension StoredMail {
    package init(_ mail: Mail, of app: String) {
        self.init(
            id: mail.id,
            app: app,
            topic: mail.draft.topic,
            message: mail.draft.message,
            payload: String(wire: mail.draft.payload.serialised()),
            coalescing: mail.draft.coalescing.rawValue,
            sender: mail.draft.sender,
            at: mail.firstAt
        )
        key = mail.draft.key
        count = mail.count
        lastAt = mail.lastAt
        wake = mail.draft.wake?.rawValue
        standing = MailStanding(mail)
    }
}

extension MailStanding {
    /// The value that is stored in place of a mail's chain if the mail is an event of the supervisor itself.
    static let own = "own"
    /// The member of the object that is stored in place of a mail's chain if the mail has a token: the token as
    /// hexadecimal digits. Mail that has a chain was passed on, and needs no token.
    static let token = "token"

    init(_ mail: Mail) {
        self.init()
        attempts = Int64(mail.attempts)
        run = mail.run.map { Int64($0) }
        if let chain = mail.draft.chain {
            self.chain = String(wire: chain.json.serialised())
        } else if mail.draft.isOwnEvent {
            chain = Self.own
        } else if let token = mail.draft.token {
            let json: JSON = [Self.token: .string(String(token, radix: 16))]
            chain = String(wire: json.serialised())
        }
    }
}

extension Mail {
    /// Decodes stored mail; nil if it cannot be decoded.
    package init?(_ stored: StoredMail) {
        guard let payload = try? JSON.parse(stored.payload) else { return nil }
        var draft = MailDraft(
            topic: stored.topic,
            message: stored.message,
            payload: payload,
            coalescing: Coalescing(rawValue: stored.coalescing) ?? .all,
            key: stored.key,
            sender: stored.sender
        )
        draft.wake = stored.wake.flatMap { MailWake(rawValue: $0) }
        draft.isOwnEvent = stored.standing.chain == MailStanding.own
        let chain = stored.standing.chain.flatMap { try? JSON.parse($0) }
        draft.chain = chain.flatMap { MailChain($0) }
        draft.token = chain?[MailStanding.token]?.stringValue.flatMap { UInt64($0, radix: 16) }
        self.init(
            id: stored.id,
            draft: draft,
            count: stored.count,
            firstAt: stored.firstAt,
            lastAt: stored.lastAt,
            attempts: Int(clamping: stored.standing.attempts),
            run: stored.standing.run.flatMap { UInt32(exactly: $0) }
        )
    }
}
