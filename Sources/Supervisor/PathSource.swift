// SPDX-License-Identifier: Apache-2.0

import Configuration
import EventLoop
import Lifecycle
import Linux
import Mailbox
import PathWatch
import Varlink

/// Files and directories that wake apps (`paths`) or tell them (`settings_files`, `identity_files`), and those of the
/// machine's locale.
///
/// What lasts (`exists`, `not_empty`) wakes an app when it begins, when more of it comes, and, as long as it lasts, when the
/// app has ended. What happens (`changed`, `modified`) wakes it each time. What was otherwise when an earlier torpord
/// looked is news to this one: the keeper has what was found in between.
final class PathSource: EventSource {
    /// What follows from news of a place.
    private enum Meaning {
        case trigger(AppID, PathTrigger)
        case settings(AppID)
        case identity(AppID)
        case locale
    }

    private unowned let supervisor: Supervisor
    private var watcher: PathWatcher?
    private var meanings: [String: Meaning] = [:]
    /// The places of apps that have triggers, and whether the app was alive when it was last looked at.
    private var triggered: [AppID: (keys: [String], isAlive: Bool)] = [:]
    /// What is tried again when an app is held back no longer.
    private var heldBack: [AppID: [String: WakeEvent]] = [:]
    /// What was found, for the next torpord.
    private let kept: KeptBytes
    /// Files that were written to a moment ago, and are perhaps being written still.
    private var unsettled: [String: PathNews] = [:]
    private var settling: TimerSource?
    private var unsettledSince = Duration.zero
    /// How often there were news that wait for the end of the start.
    private var untold = 0

    /// Editors and package managers take several steps to replace a file.
    private static let settlingTime = Duration.milliseconds(100)
    private static let longestSettling = Duration.seconds(2)
    /// Where the locale of the machine is set (locale.conf(5); Debian's place).
    static let localeFiles = ["/etc/locale.conf", "/etc/default/locale"]

    init(_ supervisor: Supervisor) {
        self.supervisor = supervisor
        kept = KeptBytes(supervisor, named: HeldName.paths, most: 4 << 20)
    }

    var held: [(name: String, descriptors: [Int32])] { kept.held }

    // MARK: What is watched

    func configure() {
        var places: [String: Place] = [:]
        meanings = [:]
        var now: [AppID: (keys: [String], isAlive: Bool)] = [:]
        func add(_ key: String, _ place: Place, _ meaning: Meaning) {
            places[key] = place
            meanings[key] = meaning
        }
        var isLocaleHeard = false
        for app in supervisor.apps {
            let settings = app.next ?? app.specification
            if !settings.paths.isEmpty {
                var keys: [String] = []
                for trigger in settings.paths {
                    let key = "\(app.name)/path/\(trigger.name)"
                    keys.append(key)
                    add(key, Place(trigger.path, trigger.condition.interest), .trigger(app.id, trigger))
                }
                now[app.id] = (keys, triggered[app.id]?.isAlive ?? isAlive(app))
            }
            for path in settings.settingsFiles {
                add("\(app.name)/settings/\(path)", Place(path, .content), .settings(app.id))
            }
            for path in settings.identityFiles {
                add("\(app.name)/identity/\(path)", Place(path, .content), .identity(app.id))
            }
            if settings.notifications.contains(.locale) { isLocaleHeard = true }
        }
        if isLocaleHeard { for path in Self.localeFiles { add("/locale/" + path, Place(path, .content), .locale) } }
        triggered = now
        guard watcher != nil || !places.isEmpty else { return }
        start()
        watcher?.watch(places)
    }

    private func start() {
        guard watcher == nil else { return }
        do throws(Errno) {
            let made = try PathWatcher(supervisor.loop, remembered: kept.bytes ?? [])
            made.onNews = { [weak self] in self?.heard($0) }
            made.onRemember = { [weak self] in self?.remember() }
            watcher = made
        } catch {
            supervisor.log.warning(
                "files cannot be watched: \(error); raise fs.inotify.max_user_instances (sysctl) if there are too many"
            )
        }
    }

    private func isAlive(_ app: AppRuntime) -> Bool { supervisor.coordinator.machine(app.id).isAlive }

    // MARK: What happens

    /// What was found is kept for the next torpord as soon as all of it was told: until then it is to be found again.
    private func remember() {
        guard unsettled.isEmpty, untold == 0, let bytes = watcher?.remembered else { return }
        kept.keep(bytes)
    }

    private func heard(_ all: [PathNews]) {
        guard supervisor.isStarted else {
            untold += 1
            return supervisor.afterStart.append { [weak self] in
                self?.untold -= 1
                self?.heard(all)
                self?.remember()
            }
        }
        for news in all {
            guard let meaning = meanings[news.key] else { continue }
            if let trouble = news.trouble { supervisor.log.warning("\(news.key): \(trouble)") }
            switch meaning {
            case .trigger(let id, let trigger): tell(supervisor.apps[id], trigger, news)
            case .settings, .identity, .locale:
                guard news.isNew else { continue }
                if unsettled.isEmpty { unsettledSince = supervisor.loop.now }
                unsettled[news.key] = news
                if settling == nil { settling = try? supervisor.loop.timer { [weak self] in self?.settled() } }
                // One that is written all the time keeps nobody from hearing of the others.
                guard supervisor.loop.now - unsettledSince < Self.longestSettling else { continue }
                settling?.arm(after: Self.settlingTime)
            }
        }
    }

    private func tell(_ app: AppRuntime, _ trigger: PathTrigger, _ news: PathNews) {
        if trigger.condition.isLevel {
            // Asked, since the app has ended: what lasts still counts. One that runs has seen it.
            guard let holds = news.holds, news.isNew || !isAlive(app) else { return }
            return happened(app, trigger, news.key, news.paths.first ?? holds)
        }
        guard news.isNew else { return }
        for path in news.paths.isEmpty ? [trigger.path] : news.paths { happened(app, trigger, news.key, path) }
    }

    private func happened(_ app: AppRuntime, _ trigger: PathTrigger, _ key: String, _ path: String) {
        var mail: MailDraft?
        if supervisor.hears(app, .didReceiveEvent) {
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
            at: supervisor.loop.now
        )
        let outcome = supervisor.happened(event, for: app)
        // What it is told waits already; only the wake is tried again.
        event.mail = nil
        if supervisor.wakes.isTriedAgain(outcome, app) { heldBack[app.id, default: [:]][key] = event }
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
            supervisor.notifications.tell(topic, mail, to: supervisor.apps[id], text)
        } else {
            supervisor.notifications.tell(topic, mail, text)
        }
    }

    // MARK: What becomes of apps

    func touched(_ app: AppRuntime) {
        guard let entry = triggered[app.id] else { return }
        let isAlive = isAlive(app)
        if isAlive != entry.isAlive {
            triggered[app.id]?.isAlive = isAlive
            // It has ended: what lasts wakes it again.
            if !isAlive { lookAgain(entry.keys) }
        }
        guard let events = heldBack.removeValue(forKey: app.id) else { return }
        for (key, event) in events {
            guard supervisor.wakes.isTriedAgain(supervisor.happened(event, for: app), app) else { continue }
            heldBack[app.id, default: [:]][key] = event
        }
    }

    private func lookAgain(_ keys: [String]) {
        for key in keys {
            if case .trigger(_, let trigger) = meanings[key], trigger.condition.isLevel { watcher?.look(key) }
        }
    }

    func appsLeft() { configure() }

    func forget(_ app: AppRuntime) {
        triggered[app.id] = nil
        heldBack[app.id] = nil
        let prefix = app.name + "/"
        meanings = meanings.filter { !$0.key.hasPrefix(prefix) }
    }
}

extension PathTrigger.Condition {
    /// What of a place counts for it.
    fileprivate var interest: Place.Interest {
        switch self {
        case .exists: .existence
        case .changed: .changes
        case .modified: .writes
        case .notEmpty: .entries
        }
    }

    /// What happened, for people.
    fileprivate func text(_ path: String) -> String {
        switch self {
        case .exists: "\(path), which is there"
        case .changed, .modified: "a change of \(path)"
        case .notEmpty: "something in \(path)"
        }
    }
}

/// The locale of the machine, as its files say it.
private enum Locale {
    /// The variables that are set, such as `{"LANG": "de_DE.UTF-8"}`.
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
