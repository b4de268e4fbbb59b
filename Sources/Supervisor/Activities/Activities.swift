// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
import EventLoop
import EventSources
package import Lifecycle
import Linux
package import Mailbox
package import TorporAPI
import Varlink
import WireText

/// What users are doing in apps (`SetActivity`): each app has at most one current activity, which other apps can
/// continue.
///
/// An activity ends when its app sets another one or requests the end, when the app ends, or when the app has been out
/// of the foreground for five minutes. Activities survive a restart of torpord, because torpor-keeper holds their
/// bytes, but they do not survive a reboot.
package final class Activities: Room, LifecycleObserver {
    package let engine: Engine
    package let recorder: Recorder
    /// The rest of the supervisor, which owns this object.
    unowned(unsafe) let host: any ActivityHost
    private var current: [AppID: Entry] = [:]
    private lazy var kept = PersistedBytes(host, log, named: DescriptorName.activities, most: Self.mostBytes)
    private var timer: TimerSource?

    /// An app's current activity.
    struct Entry {
        var activity: Activity
        /// When the activity became the app's current one, in microseconds since 1970.
        var since: Int64
        /// The number of the app's incarnation (run) that the activity belongs to.
        var incarnation: UInt32
        /// When the app left the foreground; nil while the app is in the foreground.
        var leftAt: Duration?
        /// The entry as one line of JSON, in the form that the next torpord reads; empty until the entry is stored.
        /// Each change of one entry writes the lines of all entries, and keeping the lines avoids encoding the other
        /// entries again.
        var line: [UInt8] = []
    }

    /// An activity ends when its app has been out of the foreground for this time.
    static let background = Duration.seconds(300)
    /// The most bytes of the activities of all apps that run as the same user.
    static let mostOfUser = 1 << 20
    /// The most bytes of all activities together, as torpor-keeper holds them.
    static let mostBytes = 16 << 20

    init(_ engine: Engine, _ recorder: Recorder, _ host: any ActivityHost) {
        self.engine = engine
        self.recorder = recorder
        self.host = host
    }

    /// The memory file with the activities, which torpor-keeper holds for the next torpord.
    var held: [(name: String, descriptors: [Int32])] { kept.held }

    // MARK: What apps say

    /// Sets the app's current activity. Returns nil, or why the activity is refused.
    func set(_ request: SetActivityRequest, of app: AppRuntime) -> ActivityRefusal? {
        let activity = Activity(request)
        if let problem = activity.problem { return .invalid(FieldError(field: problem.field, problem: problem.text)) }
        guard host.isInForeground(app) else {
            return .failed("\(app.name) is not in the foreground, where it has an activity")
        }
        let others = current.filter { $0.key != app.id && user(of: apps[$0.key]) == user(of: app) }
        guard others.values.reduce(activity.size, { $0 + $1.activity.size }) <= Self.mostOfUser else {
            return .failed("the activities of this user's apps have more than \(Self.mostOfUser >> 20) MiB together")
        }
        if let before = current[app.id], before.activity.type != activity.type {
            fail(before.activity.type, of: app, "\(app.name) has begun another activity")
        }
        let incarnation = coordinator.machine(app.id).incarnation
        let entry = Entry(activity: activity, since: Clock.realtimeMicroseconds(), incarnation: incarnation)
        store(entry, of: app.id)
        save()
        return nil
    }

    /// Ends the app's current activity.
    func end(of app: AppRuntime) {
        guard let entry = current.removeValue(forKey: app.id) else { return }
        fail(entry.activity.type, of: app, "\(app.name) has ended it")
        save()
    }

    /// Called when the app could not restore its state, or declined to. Removes waiting activities that were sent
    /// together with that state: without the state, the app cannot continue these activities.
    func stateNotRestored(by app: AppRuntime) {
        host.mailboxes.failActivities(of: app, "the state that came with it was not restored") { payload in
            payload["source"]?.isNull ?? true && payload["state"]?.boolValue ?? false
        }
    }

    /// Called when the app has ended its activity of this type, or begun another. Removes the activity from the
    /// mailboxes of other apps, unless its delivery has begun.
    private func fail(_ type: String, of app: AppRuntime, _ reason: String) {
        for other in apps where other !== app {
            host.mailboxes.failActivities(of: other, reason) { payload in
                payload["type"]?.stringValue == type && payload["source"]?.stringValue == app.name
            }
        }
    }

    private func user(of app: AppRuntime) -> String { app.specification.user ?? "" }

    // MARK: What users ask

    /// All current activities, the latest first.
    package var infos: [ActivityInfo] {
        current.map { ActivityInfo(apps[$0.key].name, $0.value) }.sorted { ($0.since, $0.app) > ($1.since, $1.app) }
    }

    /// The current activity of an app, with its payload; nil if there is none.
    package func info(of app: AppRuntime) -> ActivityInfo? {
        guard let entry = current[app.id] else { return nil }
        var info = ActivityInfo(app.name, entry)
        info.payload = entry.activity.payload
        return info
    }

    /// The latest activity of this type. If `from` is given, only that app's activity counts. Nil if there is none.
    package func find(_ type: String, from: AppRuntime?) -> (app: AppRuntime, activity: Activity)? {
        let fitting = current.filter { $0.value.activity.type == type && (from == nil || from?.id == $0.key) }
        guard let (id, entry) = fitting.max(by: { ($0.value.since, $0.key) < ($1.value.since, $1.key) }) else {
            return nil
        }
        return (apps[id], entry.activity)
    }

    /// The types of all current activities.
    package var types: [String] { Set(current.values.map(\.activity.type)).sorted() }

    /// The apps that can continue activities of this type: first the app called `name`, if any, then the others, the
    /// most recently used first.
    package func receivers(of type: String, except source: AppRuntime?, named name: String?) -> [AppRuntime] {
        apps.filter { $0 !== source && $0.specification.opening.activities.contains(type) }.sorted { one, other in
            if (one.name == name) != (other.name == name) { return one.name == name }
            return (one.times.lastUse, other.name) > (other.times.lastUse, one.name)
        }
    }

    // MARK: What happens to apps

    package func touched(_ apps: [AppRuntime]) {
        guard !current.isEmpty else { return }
        for app in apps { if current[app.id] != nil { look(at: app) } }
    }

    package func ended(_ app: AppRuntime, _ ending: Ending) {
        guard let entry = current[app.id], entry.incarnation == ending.incarnation else { return }
        current[app.id] = nil
        save()
    }

    package func forget(_ app: AppRuntime) {
        if current.removeValue(forKey: app.id) != nil { save() }
    }

    private func look(at app: AppRuntime) {
        let machine = coordinator.machine(app.id)
        let isInFront = machine.state == .active || machine.state == .inactive
        guard var entry = current[app.id], (entry.leftAt == nil) != isInFront else { return }
        entry.leftAt = isInFront ? nil : now
        store(entry, of: app.id)
        save()
        arm()
    }

    private func arm() {
        guard let first = current.values.compactMap(\.leftAt).min() else {
            timer?.disarm()
            return
        }
        if timer == nil { timer = try? loop.timer { [weak self] in self?.timeIsOver() } }
        timer?.arm(at: first + Self.background)
    }

    private func timeIsOver() {
        timer?.disarm()
        let over = current.filter { $0.value.leftAt.map { $0 + Self.background <= now } ?? false }
        for id in over.keys { current[id] = nil }
        if !over.isEmpty { save() }
        arm()
    }

    // MARK: The next torpord

    /// Claims the memory file of an earlier torpord, before torpord closes inherited descriptors that no part has
    /// claimed.
    func claim() { _ = kept.exists }

    /// Takes over the activities that an earlier torpord has stored, of apps that are still in the same run.
    func takeOver() {
        for line in (kept.bytes ?? []).split(separator: 10) {
            guard let json = try? JSON.parse(line), let entry = Entry(json),
                let id = json["app"]?.stringValue.flatMap({ coordinator.id(of: $0) }),
                coordinator.machine(id).isAlive, coordinator.machine(id).incarnation == entry.incarnation
            else { continue }
            store(entry, of: id)
        }
        // Check the activities only after all of them have been read: each change saves all activities.
        for id in Array(current.keys) { look(at: apps[id]) }
        arm()
    }

    private func store(_ entry: Entry, of id: AppID) {
        var entry = entry
        entry.line = entry.json(apps[id].name).serialised() + [10]
        current[id] = entry
    }

    private func save() {
        guard kept.exists || !current.isEmpty else { return }
        var bytes: [UInt8] = []
        for entry in current.values { bytes += entry.line }
        kept.keep(bytes)
    }
}

/// What activities need from other parts of the supervisor.
protocol ActivityHost: DescriptorKeeping {
    var mailboxes: Mailboxes { get }
    /// Whether a user sees the app, or would see it if it were not interrupted.
    func isInForeground(_ app: AppRuntime) -> Bool
}

/// Why a request to set an app's activity is refused.
enum ActivityRefusal: Error {
    case invalid(FieldError)
    case failed(String)
}

extension Activity {
    /// Makes an activity from a request, without checking it.
    package init(_ request: SetActivityRequest) {
        self.init(type: request.type, title: request.title ?? "", payload: request.payload, url: request.url)
        needsState = request.needsState
    }
}

extension ActivityInfo {
    fileprivate init(_ app: String, _ entry: Activities.Entry) {
        self.init(
            app: app,
            type: entry.activity.type,
            title: entry.activity.title,
            since: entry.since,
            url: entry.activity.url,
            needsState: entry.activity.needsState
        )
    }
}

extension Activities.Entry {
    fileprivate init?(_ json: JSON) {
        guard let info = try? ActivityInfo(json: json), let incarnation = json["incarnation"]?.intValue else {
            return nil
        }
        activity = Activity(type: info.type, title: info.title, payload: info.payload, url: info.url)
        activity.needsState = info.needsState
        since = info.since
        self.incarnation = UInt32(clamping: incarnation)
        leftAt = json["left_us"]?.intValue.map { .microseconds($0) }
        guard activity.problem == nil else { return nil }
    }

    fileprivate func json(_ app: String) -> JSON {
        var info = ActivityInfo(app, self)
        info.payload = activity.payload
        var object = info.json.objectValue ?? [:]
        object["incarnation"] = .int(Int64(incarnation))
        object["left_us"] = .optional(leftAt?.microseconds)
        return .object(object)
    }
}
