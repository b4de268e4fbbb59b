// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
import EventSources
import Lifecycle
import Linux
package import Mailbox
import Processes
package import Store
import Varlink
import WireText

/// What waits to be told to apps, and that they are told it: in the order of arrival, before anything else when they wake.
///
/// Each change is in the store's journal before anything follows from it, so that a torpord that is killed loses nothing and
/// tells nothing twice: what a delegate is being told has its number in the app's ledger (`ChannelRecord`), and what it has
/// answered leaves the journal before the answer is confirmed.
package final class Mailboxes: Room, LifecycleObserver {
    package let engine: Engine
    package let recorder: Recorder
    /// What it needs of the other rooms. It owns this one.
    unowned(unsafe) let host: any MailHost
    var boxes: [AppID: Mailbox] = [:]
    /// What nobody handled.
    package private(set) lazy var unhandled = UnhandledMail(engine, recorder, host.store)
    /// What stands in the queue of an app's delegate, or was told by a signal and waits to be taken.
    private var told: [AppID: Set<Int64>] = [:]
    private var lastID: Int64 = 0
    /// What an earlier torpord has kept is here: before that nothing can be told of what it had begun to tell.
    package private(set) var isLoaded = false
    private var afterLoad: [() -> Void] = []
    /// Runs that ended before that, and whether that counts.
    var endedBeforeLoad: [AppID: (run: UInt32, counts: Bool)] = [:]
    /// The URL in the arguments of the run that is being launched.
    var atLaunch: [AppID: Int64] = [:]
    /// The `open_command` that runs for an app.
    var openCommands: [AppID: HookRun] = [:]
    /// So many are handed to a delegate's queue at a time.
    private static let batch = 64

    init(_ engine: Engine, _ recorder: Recorder, _ host: any MailHost) {
        self.engine = engine
        self.recorder = recorder
        self.host = host
    }

    /// What waits for the app.
    package func waiting(for app: AppRuntime) -> [Mail] { boxes[app.id]?.items ?? [] }

    /// Bytes of what waits for the app.
    package func bytes(of app: AppRuntime) -> Int { boxes[app.id]?.bytes ?? 0 }

    /// How much may wait for the app.
    package static func limits(of app: AppRuntime) -> Mailbox.Limits {
        Mailbox.Limits(
            count: app.specification.mailboxLimit,
            bytes: app.specification.mailboxSize.map { Int(clamping: $0) } ?? .max
        )
    }

    // MARK: In

    /// Takes something in; it is told as soon as the app runs.
    ///
    /// - Throws: ``Mailbox/Refusal`` when there is no place for it.
    @discardableResult
    package func add(
        _ draft: MailDraft,
        for app: AppRuntime,
        limits: Mailbox.Limits? = nil
    ) throws(Mailbox.Refusal) -> Mailbox.Change {
        let now = Clock.realtimeMicroseconds()
        // Later than every number before it, also when the clock was set back.
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

    /// What has this number, if it still waits.
    func mail(_ id: Int64, of app: AppRuntime) -> Mail? { boxes[app.id]?[id] }

    /// Whether it stands in the queue of the app's delegate.
    func isBeingTold(_ id: Int64, to app: AppRuntime) -> Bool { told[app.id]?.contains(id) ?? false }

    /// What the store has of the apps. `contents` has what came since the start, too.
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
        for body in afterLoad { body() }
        afterLoad = []
    }

    /// Puts what was kept before what came since the start, which may become one with it.
    private func take(_ kept: [Mail], of app: AppRuntime) {
        let since = boxes[app.id]?.items ?? []
        let new = Set(since.map(\.id))
        var box = Mailbox(keeping: kept.filter { !new.contains($0.id) })
        // What only stands in the queue of its delegate was not sent to it, and may still change or go.
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

    /// Does something when it is known what waits; at once, but in the first moments of a supervisor.
    package func whenLoaded(_ body: @escaping () -> Void) {
        if isLoaded { body() } else { afterLoad.append(body) }
    }

    /// Goes on with what an earlier torpord was telling the app.
    private func goOn(_ app: AppRuntime) {
        resumeURLAtLaunch(of: app)
        guard let channel = app.channel, channel.queue.contains(where: { $0.mail != nil }) else {
            return deliver(to: app)
        }
        // What was answered, and left the journal in the last moment of that torpord, is not told again.
        let first = channel.queue.first?.id
        var isFirstAnswered = false
        channel.queue.removeAll { outgoing in
            guard let mail = outgoing.mail, boxes[app.id]?[mail] == nil else { return false }
            if outgoing.id == first { isFirstAnswered = true }
            told[app.id]?.remove(mail)
            return true
        }
        if isFirstAnswered, let first { channel.answeredID = max(channel.answeredID, first) }
        enqueue(app)
        record(app)
        host.pumpMessages(to: app)
    }

    /// Has everything saved again: the file that had it was lost.
    func keepAll() {
        for app in apps {
            for mail in boxes[app.id]?.items ?? [] { host.store.save(StoredMail(mail, of: app.name)) }
        }
    }

    // MARK: Out

    /// It is being told from now on.
    func markTold(_ id: Int64, of app: AppRuntime) { told[app.id, default: []].insert(id) }

    /// The app answered it, or somebody took it: it is told to nobody any more.
    func acknowledged(_ id: Int64, by app: AppRuntime) {
        told[app.id]?.remove(id)
        let mail = boxes[app.id]?.remove(id)
        guard mail != nil || !isLoaded else { return }
        // Somebody may wait for it.
        if mail?.url != nil { engine.touch(app.id) }
        if let mail, mail.draft.topic == Self.settingsTopic { host.toldOfSettings(mail, app) }
        host.store.removeMail(id, of: app.name)
        dropIfEmpty(app)
    }

    /// Takes back what was added when it turns out that it cannot be kept; false when it is too late.
    func takeBack(_ id: Int64, of app: AppRuntime) -> Bool {
        guard let mail = boxes[app.id]?[id], !mail.isInFlight, mail.count == 1, !isBeingTold(id, to: app) else {
            return false
        }
        acknowledged(id, by: app)
        return true
    }

    func dropIfEmpty(_ app: AppRuntime) {
        if boxes[app.id]?.items.isEmpty ?? false { boxes[app.id] = nil }
        if told[app.id]?.isEmpty ?? false { told[app.id] = nil }
    }

    /// Hands an app that runs what waits for it.
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

    /// Tells an app that hears by signals what waits for it, before it is continued: the signals are pending then, and are
    /// handled before anything else that it finds when it runs.
    func deliverBeforeResume(to app: AppRuntime) {
        guard let box = boxes[app.id], app.run.tree != nil, !host.hearsByChannel(app.id),
            machine(app).transition != .terminating
        else { return }
        signal(app, box)
    }

    private func signal(_ app: AppRuntime, _ box: Mailbox) {
        // A signal to one that has ended, and whose end is only to be read, would pass for heard.
        guard app.run.tree?.mainHasEnded == false else { return }
        // A signal that is pending is none more: one is as good as many.
        var signals: [Int32: Bool] = [:]
        for mail in Self.inOrder(box.items)
        where !isBeingTold(mail.id, to: app) && isTime(for: mail, app, comesToForeground: false) {
            guard let message = Message(rawValue: mail.draft.message),
                let number = app.specification.signals[message]
            else { continue }
            let isSent = signals[number] ?? ((try? app.run.tree?.signal(number, toAll: false)) ?? 0 > 0)
            signals[number] = isSent
            // It has ended: what waits is for the next incarnation.
            guard isSent else { continue }
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

    /// Whether it can be told anything now.
    private func canHear(_ app: AppRuntime) -> Bool {
        let machine = machine(app)
        guard app.run.tree != nil, machine.state != .notRunning, machine.state != .suspended else { return false }
        return machine.transition != .suspending && machine.transition != .launching
            && machine.transition != .terminating
    }

    /// Puts what waits behind what the app's delegate is being told; whether there was anything.
    ///
    /// - Parameter comesToForeground: it is about to be told didBecomeActive, after this.
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

    /// It is about to be told: from now on it stays as it is. That is kept before anything is sent.
    package func willSend(_ id: Int64, to app: AppRuntime) {
        boxes[app.id]?.setInFlight(id, true)
        beginAttempt(id, app)
        if let mail = boxes[app.id]?[id], mail.draft.topic == Self.settingsTopic { host.toldOfSettings(mail, app) }
    }

    /// It is in the queue of a delegate to which an earlier torpord may have told it.
    package func isUnderWay(_ id: Int64, to app: AppRuntime) {
        told[app.id, default: []].insert(id)
        boxes[app.id]?.setInFlight(id, true)
    }

    /// The incarnation is over, or its delegate: what it did not answer is told to the next one.
    func incarnationEnded(_ app: AppRuntime) {
        endOpenCommand(of: app)
        guard told[app.id] != nil else { return }
        told[app.id] = nil
        for mail in boxes[app.id]?.items ?? [] where mail.isInFlight { boxes[app.id]?.setInFlight(mail.id, false) }
    }

    package func touched(_ apps: [AppRuntime]) {
        for app in apps where boxes[app.id] != nil { deliver(to: app) }
    }

    /// It may be woken again after it was held back: the oldest of what is to wake it does.
    func retry(_ app: AppRuntime) {
        touched([app])
        let waiting = boxes[app.id]?.items.filter { $0.draft.wake != nil && !isBeingTold($0.id, to: app) } ?? []
        guard let first = waiting.first(where: { $0.draft.wake == .foreground }) ?? waiting.first else { return }
        host.wake(app, for: first)
    }

    /// The app is gone for good. The store forgets all of it at once.
    package func forget(_ app: AppRuntime) {
        boxes[app.id] = nil
        told[app.id] = nil
        endedBeforeLoad[app.id] = nil
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
    /// In place of a chain: nobody sent it.
    static let own = "own"

    init(_ mail: Mail) {
        self.init()
        attempts = Int64(mail.attempts)
        run = mail.run.map { Int64($0) }
        chain = mail.draft.chain.map { String(wire: $0.json.serialised()) } ?? (mail.draft.isOwnEvent ? Self.own : nil)
    }
}

extension Mail {
    /// What was kept; nil when it cannot be read.
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
        draft.chain = stored.standing.chain.flatMap { try? JSON.parse($0) }.flatMap { MailChain($0) }
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
