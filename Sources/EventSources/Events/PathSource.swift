// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
import EventLoop
import Lifecycle
import Linux
import Mailbox
import PathWatch
import Varlink

/// Watches files and directories that wake apps (`paths`), files whose changes apps are notified of (`settings_files`,
/// `identity_files`), and the files of the machine's locale.
///
/// A lasting condition (`exists`, `not_empty`) wakes an app in three cases: the condition becomes true, another file or
/// entry fulfils it, or the app ends while it is true. An event (`changed`, `modified`) wakes the app each time.
/// torpor-keeper stores what torpord last found at each path, so that a new torpord notices changes since then.
///
/// torpord accesses paths with the rights of the app's user. The lookup of that user may take long (in a directory
/// service such as LDAP), so the paths are watched only once the lookup has succeeded.
package final class PathSource: EventRoom, EventSource {
    /// The purpose for which a path is watched.
    private enum Meaning {
        case trigger(AppID, PathTrigger)
        case settings(AppID)
        case identity(AppID)
        case locale
    }

    package unowned(unsafe) let wakes: Wakes
    private var watcher: PathWatcher?
    private var meanings: [String: Meaning] = [:]
    /// The keys of each app's triggers in `watcher`, and whether the app was alive at the last check.
    private var triggered: [AppID: (keys: [String], isAlive: Bool)] = [:]
    /// Events that could not wake an app yet. They are retried when the app's state changes.
    private var heldBack: [AppID: [String: WakeEvent]] = [:]
    /// Changes while the app ran, of triggers with `rerun`: they launch it once more when it has ended.
    private var missed: [AppID: [String: WakeEvent]] = [:]
    /// The texts of the events of both kinds that an earlier torpord has left, by the keys of their triggers, until these
    /// are watched.
    private var inherited: [String: String] = [:]
    /// The events that have not woken their apps, as the record has them for the next torpord.
    private var keptNotes: [String: String] = [:]
    /// Whether an earlier torpord has watched paths, and the triggers that were watched since.
    private var isTakenOver = false
    private var looked: Set<String> = []
    /// What was found at each path. torpor-keeper keeps this record for the next torpord.
    private let kept: PersistedBytes
    /// Recent changes of files. They are not reported yet, because more writes may follow at once.
    private var unsettled: [String: PathNews] = [:]
    private var settling: TimerSource?
    private var unsettledSince = Duration.zero
    /// The number of batches of changes that are not reported until torpord's start is complete.
    private var untold = 0
    /// The accounts with whose rights paths are accessed: the results of the lookups, by user and group names.
    private var accounts: [Account.Names: Result<Account, LaunchError>] = [:]
    private let lookups: BackgroundWorker
    private var lookedUp: Set<Account.Names> = []
    private var isPlacing = false
    /// What to call once every place is watched.
    private lazy var awaiting = BoundedWait(loop)
    private var retry: TimerSource?
    private var retryDelay = PathSource.firstRetry
    /// When an error about a path was last logged. At most one error per path is logged in 60 s, so that apps cannot
    /// fill the log.
    private var complained: [String: Duration] = [:]

    /// A file must stay unchanged for this time before its change is reported, because editors replace a file in
    /// several steps.
    private static let settlingTime = Duration.milliseconds(100)
    private static let longestSettling = Duration.seconds(2)
    /// If the directory service does not answer, the first retry of the lookup comes after this time.
    private static let firstRetry = Duration.seconds(1)
    private static let longestRetry = Duration.seconds(60)
    /// The least time between two logged errors about the same path.
    private static let betweenComplaints = Duration.seconds(60)
    /// The files that set the machine's locale (locale.conf(5), and Debian's path).
    static let localeFiles = ["/etc/locale.conf", "/etc/default/locale"]

    package init(_ wakes: Wakes) {
        self.wakes = wakes
        kept = PersistedBytes(wakes.host, wakes.log, named: DescriptorName.paths, most: 4 << 20)
        lookups = BackgroundWorker(wakes.loop, named: "path users", isInOrder: false)
    }

    package var held: [(name: String, descriptors: [Int32])] { kept.held }

    // MARK: What is watched

    package func configure() {
        // Look up known accounts again too, because their groups may have changed.
        let all = Set(apps.compactMap { names(of: $0.next ?? $0.specification) })
        accounts = accounts.filter { all.contains($0.key) }
        lookUp(all)
        place()
    }

    private func place() {
        defer { tellComplete() }
        var places: [String: Place] = [:]
        meanings = [:]
        var now: [AppID: (keys: [String], isAlive: Bool)] = [:]
        func add(_ key: String, _ place: Place, _ meaning: Meaning) {
            places[key] = place
            meanings[key] = meaning
        }
        var isLocaleHeard = false
        for app in apps {
            let settings = app.next ?? app.specification
            if settings.notifications.contains(.locale) { isLocaleHeard = true }
            guard settings.hasWatchedFiles else { continue }
            let user = names(of: settings).map { accounts[$0] }
            let isKnown = user.map { (try? $0?.get()) != nil } ?? true
            let rights = (try? user??.get())?.fileRights
            if !settings.paths.isEmpty {
                var keys: [String] = []
                for trigger in settings.paths {
                    let key = "\(app.name)/path/\(trigger.name)"
                    keys.append(key)
                    guard isKnown else { continue }
                    add(key, Place(trigger.path, trigger.condition.interest, as: rights), .trigger(app.id, trigger))
                }
                now[app.id] = (keys, triggered[app.id]?.isAlive ?? isAlive(app))
            }
            guard isKnown else { continue }
            for path in settings.settingsFiles {
                add("\(app.name)/settings/\(path)", Place(path, .content, as: rights), .settings(app.id))
            }
            for path in settings.identityFiles {
                add("\(app.name)/identity/\(path)", Place(path, .content, as: rights), .identity(app.id))
            }
        }
        if isLocaleHeard { for path in Self.localeFiles { add("/locale/" + path, Place(path, .content), .locale) } }
        triggered = now
        guard watcher != nil || !places.isEmpty else { return }
        start()
        watcher?.watch(places)
        adoptInherited()
        lookAtEnded()
    }

    /// Looks, once after torpord was replaced, at the lasting conditions of apps that do not run: such an app may have
    /// ended while no torpord ran, and the condition may be true as before.
    private func lookAtEnded() {
        guard isTakenOver else { return }
        let unseen = Set(meanings.keys).subtracting(looked)
        looked = Set(meanings.keys)
        engine.whenStarted { [weak self] in self?.lookAgain(unseen) { !$0.isAlive && $0.allowsLaunchByEvent } }
    }

    /// Adopts the events that an earlier torpord has left. Those that were held back wake their app now; those of
    /// triggers with `rerun` launch it once more when it has ended, or now, if it ended while no torpord ran.
    private func adoptInherited() {
        guard !inherited.isEmpty else { return }
        let configured = Set(triggered.values.flatMap(\.keys))
        inherited = inherited.filter { configured.contains($0.key) }
        for (key, text) in inherited {
            guard case .trigger(let id, let trigger) = meanings[key] else { continue }
            inherited[key] = nil
            let event = WakeEvent(.path, trigger.name, text, wake: trigger.wake.wake(), at: now)
            if trigger.reruns, isAlive(apps[id]) {
                missed[id, default: [:]][key] = event
            } else {
                heldBack[id, default: [:]][key] = event
                engine.whenStarted { [weak self, weak app = apps[id]] in if let app { self?.touched(app) } }
            }
        }
        rememberNotes()
    }

    /// The events that must not be lost if torpord is replaced: nothing that the next one finds at the paths tells that
    /// they have not launched their app yet.
    private var notes: [String: String] {
        var notes = inherited
        for (key, event) in [missed, heldBack].flatMap(\.values).joined() { notes[key] = event.text }
        return notes
    }

    private func rememberNotes() {
        if missed.isEmpty, heldBack.isEmpty, keptNotes.isEmpty { return }
        if notes != keptNotes { remember() }
    }

    /// The account whose rights are used to access the app's files; nil for torpord's own user.
    private func names(of settings: AppSpecification) -> Account.Names? {
        settings.hasWatchedFiles && Users.isRoot && settings.user != nil ? Account.Names(settings) : nil
    }

    /// Looks up the accounts of apps on a background thread.
    private func lookUp(_ all: Set<Account.Names>) {
        for names in all where lookedUp.insert(names).inserted {
            lookups.ask {
                do throws(LaunchError) {
                    return Result<Account, LaunchError>.success(try Account.find(names))
                } catch {
                    return .failure(error)
                }
            } _: { [weak self] in
                self?.learned(names, $0)
            }
        }
    }

    private func learned(_ names: Account.Names, _ result: Result<Account, LaunchError>) {
        lookedUp.remove(names)
        switch (result, accounts[names]) {
        case (.failure, .success):
            // Until a retry succeeds, the results of earlier lookups stay valid.
            retryLater()
        case (.failure(let trouble), let before):
            if before == nil { log.warning("files of apps are not watched: \(trouble)") }
            accounts[names] = result
            retryLater()
        case (.success(let account), let before):
            accounts[names] = result
            if case .success(let known) = before, known.fileRights == account.fileRights { break }
            placeSoon()
        }
        remember()
        tellComplete()
    }

    /// Calls `body` once every path in the configuration is watched, so that no later change is missed; at the latest
    /// after `longest`, because a disk or a directory service may never answer.
    package func whenComplete(within longest: Duration, _ body: @escaping () -> Void) {
        awaiting.add(within: longest, body)
        tellComplete()
    }

    private func tellComplete() {
        guard !awaiting.isEmpty, !isPlacing, !lookedUp.contains(where: { accounts[$0] == nil }),
            watcher?.isComplete ?? true
        else { return }
        awaiting.end()
    }

    private func placeSoon() {
        guard !isPlacing else { return }
        isPlacing = true
        loop.later { [weak self] in
            self?.isPlacing = false
            self?.place()
        }
    }

    private func retryLater() {
        guard retry?.deadline == nil else { return }
        if retry == nil { retry = try? loop.timer { [weak self] in self?.retryNow() } }
        retry?.arm(after: retryDelay)
        retryDelay = min(retryDelay * 2, Self.longestRetry)
    }

    private func retryNow() {
        retry?.disarm()
        let all = Set(apps.compactMap { names(of: $0.next ?? $0.specification) })
        let unknown = all.filter { (try? accounts[$0]?.get()) == nil }
        if unknown.isEmpty { retryDelay = Self.firstRetry }
        lookUp(unknown)
    }

    /// A text for each file of the app that cannot be watched, with the reason.
    package func troubles(of app: AppRuntime) -> [String] {
        let settings = app.next ?? app.specification
        let places =
            settings.paths.map { ("path \($0.name)", "\(app.name)/path/\($0.name)") }
            + settings.settingsFiles.map { ("changes of \($0)", "\(app.name)/settings/\($0)") }
            + settings.identityFiles.map { ("changes of \($0)", "\(app.name)/identity/\($0)") }
        var unknown: String?
        if let names = names(of: settings), case .failure(let trouble) = accounts[names] { unknown = "\(trouble)" }
        return places.compactMap { what, key in
            (unknown ?? watcher?.trouble(of: key)).map { "\(what) (\(Readable.line($0)))" }
        }
    }

    private func start() {
        guard watcher == nil else { return }
        do throws(Errno) {
            let remembered = kept.bytes ?? []
            isTakenOver = !remembered.isEmpty
            let made = try PathWatcher(loop, remembered: remembered)
            inherited = PathWatcher.notes(in: remembered)
            keptNotes = inherited
            made.onNews = { [weak self] in self?.heard($0) }
            made.onRemember = { [weak self] in
                self?.remember()
                self?.tellComplete()
            }
            watcher = made
        } catch {
            log.warning(
                "files cannot be watched: \(error); raise fs.inotify.max_user_instances (sysctl) if there are too many"
            )
        }
    }

    private func isAlive(_ app: AppRuntime) -> Bool { machine(app).isAlive }

    // MARK: What happens

    /// Stores for the next torpord what was found at each path. Waits until all changes are reported, because the next
    /// torpord would not notice an unreported change.
    private func remember() {
        guard unsettled.isEmpty, untold == 0, lookedUp.isEmpty, !isPlacing, let watcher else { return }
        keptNotes = notes
        kept.keep(watcher.remembered(with: keptNotes))
    }

    private func heard(_ all: [PathNews]) {
        guard isStarted else {
            untold += 1
            return engine.whenStarted { [weak self] in
                self?.untold -= 1
                self?.heard(all)
                self?.remember()
            }
        }
        for news in all {
            guard let meaning = meanings[news.key] else { continue }
            if let trouble = news.trouble { complain(trouble, of: news.key) }
            switch meaning {
            case .trigger(let id, let trigger): tell(apps[id], trigger, news)
            case .settings, .identity, .locale:
                guard news.isNew else { continue }
                if unsettled.isEmpty { unsettledSince = now }
                unsettled[news.key] = news
                if settling == nil { settling = try? loop.timer { [weak self] in self?.settled() } }
                // If a file never stops changing, its change is reported after `longestSettling`.
                guard now - unsettledSince < Self.longestSettling else { continue }
                settling?.arm(after: Self.settlingTime)
            }
        }
        rememberNotes()
    }

    private func complain(_ trouble: String, of key: String) {
        let now = now
        if let last = complained[key], now - last < Self.betweenComplaints { return }
        complained[key] = now
        log.warning("\(key): \(Readable.line(trouble))")
    }

    private func tell(_ app: AppRuntime, _ trigger: PathTrigger, _ news: PathNews) {
        if trigger.condition.isLevel {
            // A condition that was already true launches only an app that does not run. A running app knows of the
            // condition.
            guard let holds = news.holds, news.isNew || !isAlive(app) else { return }
            return happened(app, trigger, news.key, news.paths.first ?? holds)
        }
        guard news.isNew else { return }
        for path in news.paths.isEmpty ? [trigger.path] : news.paths { happened(app, trigger, news.key, path) }
    }

    private func happened(_ app: AppRuntime, _ trigger: PathTrigger, _ key: String, _ path: String) {
        var mail: MailDraft?
        if hears(app, .didReceiveEvent) {
            mail = MailDraft(
                topic: "path:" + trigger.name,
                message: Message.didReceiveEvent.rawValue,
                payload: ["path": .string(path), "condition": .string(trigger.condition.rawValue)],
                coalescing: .latest,
                key: path,
                sender: "torpord"
            )
        }
        var event = WakeEvent(
            .path,
            trigger.name,
            trigger.condition.text(path),
            wake: trigger.wake.wake(),
            mail: mail,
            at: now
        )
        let outcome = wakes.tell(event, for: app)
        // The message is queued already, so the retry must only wake the app.
        event.mail = nil
        if wakes.isTriedAgain(outcome, app) { heldBack[app.id, default: [:]][key] = event }
        if trigger.reruns, mail == nil, event.wake != nil, case .runs = outcome {
            missed[app.id, default: [:]][key] = event
        }
    }

    private func settled() {
        settling?.disarm()
        let all = unsettled
        unsettled = [:]
        for (key, news) in all.sorted(by: { $0.key < $1.key }) {
            let path = news.paths.first ?? ""
            switch meanings[key] {
            case .settings(let id):
                tell(.settings, .settingsDidChange, ["path": .string(path)], "a change of \(path)", id)
            case .identity(let id):
                tell(.identity, .identityDidChange, ["path": .string(path)], "a change of \(path)", id)
            case .locale:
                tell(.locale, .didReceiveNotification, Locale.payload(), "a change of the machine's locale", nil)
            case .trigger, nil: break
            }
        }
        remember()
    }

    private func tell(_ topic: NotificationTopic, _ message: Message, _ payload: JSON, _ text: String, _ id: AppID?) {
        let mail = MailDraft(
            topic: topic.rawValue,
            message: message.rawValue,
            payload: payload,
            coalescing: .latest,
            sender: "torpord"
        )
        if let id {
            wakes.notifications.tell(topic, mail, to: apps[id], text)
        } else {
            wakes.notifications.tell(topic, mail, text)
        }
    }

    // MARK: What becomes of apps

    package func added(_ app: AppRuntime) {
        // An app whose topics are not the default ones may subscribe to `locale`, for which the locale files are
        // watched.
        if concerns(app) || app.specification.notifications != NotificationTopic.usual { configure() }
    }

    package func concerns(_ app: AppRuntime) -> Bool {
        triggered[app.id] != nil || app.specification.hasWatchedFiles || app.next?.hasWatchedFiles ?? false
    }

    package func touched(_ app: AppRuntime) {
        guard let entry = triggered[app.id] else { return }
        defer { rememberNotes() }
        let isAlive = isAlive(app)
        if isAlive != entry.isAlive {
            triggered[app.id]?.isAlive = isAlive
            // The app has ended. A lasting condition that still holds must wake the app again.
            if !isAlive {
                lookAgain(entry.keys)
                if let events = missed.removeValue(forKey: app.id) {
                    heldBack[app.id, default: [:]].merge(events) { _, later in later }
                }
            }
        }
        guard let events = heldBack.removeValue(forKey: app.id) else { return }
        for (key, event) in events {
            if isOver(key) { continue }
            guard wakes.isTriedAgain(wakes.tell(event, for: app), app) else { continue }
            heldBack[app.id, default: [:]][key] = event
        }
    }

    /// Whether the condition of a held-back event no longer holds, so that the event is dropped.
    private func isOver(_ key: String) -> Bool {
        guard case .trigger(_, let trigger) = meanings[key], trigger.condition.isLevel else { return false }
        return watcher?.isOver(key) ?? false
    }

    private func lookAgain(_ keys: some Sequence<String>, ifSo isDue: (AppMachine) -> Bool = { _ in true }) {
        for key in keys {
            guard case .trigger(let id, let trigger) = meanings[key], isDue(machine(apps[id])) else { continue }
            if trigger.condition.isLevel { watcher?.look(key) }
        }
    }

    package func appsLeft() { configure() }

    package func forget(_ app: AppRuntime) {
        triggered[app.id] = nil
        heldBack[app.id] = nil
        missed[app.id] = nil
        let prefix = app.name + "/"
        meanings = meanings.filter { !$0.key.hasPrefix(prefix) }
        complained = complained.filter { !$0.key.hasPrefix(prefix) }
    }
}

extension AppSpecification {
    fileprivate var hasWatchedFiles: Bool {
        !self.paths.isEmpty || !self.settingsFiles.isEmpty || !self.identityFiles.isEmpty
    }
}

/// The machine's locale, as the configuration files set it.
private enum Locale {
    /// The variables that the files set, such as `{"LANG": "de_DE.UTF-8"}`.
    static func payload() -> JSON {
        var variables = JSONObject()
        for path in PathSource.localeFiles.reversed() {
            for line in ((try? File.readString(path)) ?? "").split(separator: "\n") {
                let parts = line.split(separator: "=", maxSplits: 1)
                guard parts.count == 2, parts[0] == "LANG" || parts[0].hasPrefix("LC_") || parts[0] == "LANGUAGE" else {
                    continue
                }
                variables[String(parts[0])] = .string(String(parts[1].filter { $0 != "\"" && $0 != "'" }))
            }
        }
        return .object(variables)
    }
}
