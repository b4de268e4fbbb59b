// SPDX-License-Identifier: Apache-2.0

package import CalendarTime
package import Configuration
package import Engine
import EventLoop
package import Lifecycle
import Linux
import Mailbox
import Processes
package import Schedules
package import Store
package import Varlink

/// The timers of all apps (`timers`) and their fetches (background mode `fetch`), in one timetable. A single timer of
/// the event loop drives the timetable.
///
/// No timer fires before the stored state was read and the first launches have begun.
package final class Timers: EventRoom, EventSource {
    /// Identifies a timer of an app, or the app's fetches.
    package struct Key: Hashable, Sendable {
        package var app: AppID
        /// The timer's name; empty for the app's fetches.
        package var name: String

        var isFetch: Bool { name.isEmpty }
    }

    package unowned(unsafe) let wakes: Wakes
    package var table = Timetable<Key>()
    /// The configuration of each timer.
    private var specifications: [Key: TimerSpecification] = [:]
    private var timer: TimerSource?
    /// What an earlier torpord stored about timers and fetches. It is needed until all timers are set up.
    private var kept: [StoredSchedule.Key: StoredSchedule] = [:]
    private(set) var hasBegun = false
    /// Whether the first launches have begun. No timer fires before that, nor before the stored state was read
    /// (`isRemembered`).
    private var isDue = false
    private var isRemembered = false
    /// Apps with the background mode `fetch`.
    var fetchers: Set<AppID> = []
    /// Events that could not wake an app yet. They are retried when the app's state changes.
    private var heldBack: [AppID: [String: WakeEvent]] = [:]
    /// The machine's time zone. torpord reads it again when it may have changed.
    package private(set) var zone = SystemTimeZones().local

    package init(_ wakes: Wakes) { self.wakes = wakes }

    // MARK: What there is

    package func configure() {
        guard hasBegun else { return }
        let now = host.clocks
        var wanted: Set<Key> = []
        for app in apps where !coordinator.isLeaving(app.id) {
            for specification in app.specification.timers {
                let key = Key(app: app.id, name: specification.name)
                wanted.insert(key)
                guard specifications[key] != specification else { continue }
                take(specification, key, of: app, now: now)
            }
            if let interval = fetchInterval(of: app) {
                let key = Key(app: app.id, name: "")
                wanted.insert(key)
                takeFetch(interval, key, of: app, now: now)
            }
        }
        for key in Array(table.keys) where !wanted.contains(key) {
            table[key] = nil
            if key.isFetch { fetchers.remove(key.app) }
            specifications[key] = nil
            heldBack[key.app]?[key.name] = nil
            host.forget(Self.storedKey(apps[key.app], key))
        }
        arm()
    }

    /// Called with the state that an earlier torpord stored, during this boot or an earlier one.
    package func remember(_ schedules: [StoredSchedule.Key: StoredSchedule]) {
        kept = schedules
        isRemembered = true
        if isDue { begin() }
    }

    /// Called for apps that came into the configuration after the store was read, before their timers are set up:
    /// passes the stored state of these timers.
    package func rememberMore(_ schedules: [StoredSchedule.Key: StoredSchedule]) {
        kept.merge(schedules) { $1 }
        if hasBegun { loop.later { [weak self] in self?.kept = [:] } }
    }

    /// Called when the first launches have begun and, if the stored state was not read by then, again once it was read.
    /// Timers fire only after both.
    package func begin() {
        isDue = true
        guard isRemembered, !hasBegun else { return }
        hasBegun = true
        configure()
        // All timers are set up and the rows of removed apps are deleted, so the stored rows are no longer needed.
        kept = [:]
        arm()
    }

    /// Whether any app has a persistent timer, which fires once if it missed times while no torpord ran. For such a
    /// timer, torpord must store when it first knew the timer.
    package var arePersistent: Bool { apps.contains { $0.specification.timers.contains(where: \.isPersistent) } }

    private func take(_ specification: TimerSpecification, _ key: Key, of app: AppRuntime, now: ClockPair) {
        let isNew = specifications[key] == nil
        specifications[key] = specification
        let rule = rule(specification, app)
        let stored = kept[Self.storedKey(app, key)]
        var history: TimerHistory?
        var goesOn = false
        if isNew, let stored {
            // Continue with the stored state if it is from this boot and torpord was only replaced, under the same
            // torpor-keeper.
            let memory = TimerMemory(stored, now: now)
            goesOn = host.isSuccessor && memory.isOfThisBoot
            history = goesOn ? memory.history : memory.history.restarted(sameBoot: memory.isOfThisBoot, now: now)
        } else if !isNew, case .timer(let state) = table[key] {
            // The timer's configuration changed: keep the times when it fired, and compute the next time from the new
            // configuration.
            history = state.history.restarted(sameBoot: true, now: now)
            history?.cameAfterStart = state.history.cameAfterStart
            history?.since = state.history.since
            history?.isUnfinished = false
        }
        table[key] = .timer(TimerState(rule, history, goesOn: goesOn, now: now))
        save(key, app)
    }

    private func rule(_ specification: TimerSpecification, _ app: AppRuntime) -> TimerRule {
        var rule = TimerRule()
        rule.calendar = expressions(specification)
        rule.every = specification.every
        rule.afterBoot = specification.afterBoot
        rule.afterStart = specification.afterStart
        rule.accuracy = specification.accuracy
        rule.randomDelay = specification.randomDelay
        rule.isPersistent = specification.isPersistent
        // The seed must be the same in every process, so use FNV-1a: Swift's own hashes differ in each process.
        var seed: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in (ThisProcess.machineID + "/" + app.name + "/" + specification.name).utf8 {
            seed = (seed ^ UInt64(byte)) &* 0x100_0000_01b3
        }
        rule.seed = seed
        return rule
    }

    private func expressions(_ specification: TimerSpecification) -> [CalendarExpression] {
        let zones = SystemTimeZones().with(local: zone)
        return specification.calendar.compactMap { try? CalendarExpression($0, zones: zones) }
    }

    package func specification(_ key: Key) -> TimerSpecification? { specifications[key] }

    // MARK: What is kept

    static func storedKey(_ app: AppRuntime, _ key: Key) -> StoredSchedule.Key {
        StoredSchedule.Key(app: app.name, name: key.isFetch ? "fetch" : "timer:" + key.name)
    }

    package func stored(_ key: Key, of app: AppRuntime) -> StoredSchedule? { kept[Self.storedKey(app, key)] }

    /// Stores the state of a timer or of an app's fetches.
    package func save(_ key: Key, _ app: AppRuntime) {
        let place = Self.storedKey(app, key)
        var row = StoredSchedule(app: place.app, name: place.name)
        switch table[key] {
        case .timer(let state):
            row.lastFired = state.history.lastWall
            row.learned = TimerMemory(state.history).json.description
        case .fetch(let state):
            row.lastFired = state.lastWall
            row.learned = FetchMemory(state.learned).json.description
        case nil: return
        }
        host.keep(row)
    }

    // MARK: What comes

    /// Arms the event loop's timer for the next time in the timetable.
    package func arm() {
        guard hasBegun, !isEnding else { return }
        let now = host.clocks
        guard let time = table.wakeTime(now: now) else {
            timer?.disarm()
            return
        }
        if timer == nil { timer = try? loop.timer { [weak self] in self?.look() } }
        let at = loop.now + max(.zero, time - now.running)
        // The two clocks are read one after the other, so a difference below 1 ms does not mean that the time has
        // changed: leave the timer as it is.
        if let armed = timer?.deadline, abs((armed - at).microseconds) < 1_000, armed > loop.now { return }
        timer?.arm(at: at)
    }

    private func look() {
        timer?.disarm()
        let now = host.clocks
        let at = loop.now
        let arrivals = isEnding ? [] : table.arrive(now: now)
        for arrival in arrivals {
            let app = apps[arrival.key.app]
            // Another timer that fired earlier in this loop may have removed this timer.
            guard table[arrival.key] != nil else { continue }
            if arrival.key.isFetch {
                fetch(app, now: now, at: at)
            } else {
                fire(arrival.key, app, now: now, at: at)
            }
        }
        arm()
    }

    private func fire(_ key: Key, _ app: AppRuntime, now: ClockPair, at: Duration) {
        guard let specification = specifications[key] else { return }
        save(key, app)
        // One that no timer may launch now, such as one that a user has stopped, has begun nothing to make up for.
        let isAwake = happened(event(specification, app, now: now, at: at), app, key)
        guard isAwake, specification.isPersistent, app.specification.rules.isOneshot else { return }
        table.updateTimer(key) { $0.workBegins() }
        save(key, app)
    }

    private func event(_ timer: TimerSpecification, _ app: AppRuntime, now: ClockPair, at: Duration) -> WakeEvent {
        var mail: MailDraft?
        if timer.payload != nil || timer.wake == .none || hears(app, .didReceiveEvent) {
            mail = MailDraft(
                topic: "timer:\(timer.name)",
                message: Message.didReceiveEvent.rawValue,
                payload: timer.payload.map { JSON($0) } ?? .null,
                coalescing: .count,
                sender: "timer"
            )
        }
        return WakeEvent(.timer, timer.name, "timer \(timer.name)", wake: timer.wake.wake(), mail: mail, at: at)
    }

    /// Wakes the app for an event. If the event is held back, keeps it for a retry. Returns whether the app is awake
    /// or being woken.
    @discardableResult
    func happened(_ event: WakeEvent, _ app: AppRuntime, _ key: Key) -> Bool {
        do throws(Mailbox.Refusal) {
            // If the app's mailbox is full, a timer still wakes the app. A fetch does not: without its message it has
            // no effect.
            let outcome =
                event.source == .timer ? wakes.tell(event, for: app) : try wakes.happened(event, for: app)
            guard case .heldBack = outcome else {
                heldBack[app.id]?[key.name] = nil
                return true
            }
            guard wakes.isTriedAgain(outcome, app) else { return false }
            // The message is queued already, so a retry only wakes the app.
            var again = event
            again.mail = nil
            heldBack[app.id, default: [:]][key.name] = again
            return false
        } catch {
            let text = "is not woken by \(event.text): it \(error.description)"
            note(app, .notWoken, text: text, reason: event.source.rawValue)
            return false
        }
    }

    /// Called when a run of the app has ended. If a shutdown has cut off a oneshot, a persistent timer makes up for it
    /// after the next start.
    package func ended(_ app: AppRuntime, _ ending: Ending) {
        guard app.specification.rules.isOneshot, ending.reason != .shutdown, ending.reason != .unknown else { return }
        for timer in app.specification.timers where timer.isPersistent {
            let key = Key(app: app.id, name: timer.name)
            guard case .timer(let state) = table[key], state.history.isUnfinished else { continue }
            table.updateTimer(key) { $0.workEnded() }
            save(key, app)
        }
    }

    // MARK: What changes

    package func added(_ app: AppRuntime) { if concerns(app) { configure() } }

    package func concerns(_ app: AppRuntime) -> Bool {
        !app.specification.timers.isEmpty || fetchInterval(of: app) != nil || heldBack[app.id] != nil
    }

    package func touched(_ app: AppRuntime) {
        if !heldBack.isEmpty, let held = heldBack[app.id],
            app.wakes?.heldUntil.map({ $0 <= now }) ?? true
        {
            heldBack[app.id] = nil
            for (name, event) in held { happened(event, app, Key(app: app.id, name: name)) }
        }
        fetchTouched(app)
    }

    package func forget(_ app: AppRuntime) {
        heldBack[app.id] = nil
        fetchers.remove(app.id)
        for key in Array(table.keys) where key.app == app.id {
            table[key] = nil
            specifications[key] = nil
        }
        arm()
    }

    /// Recalculates timers after a change of the clock. `step`: by how much the clock was set; zero if the machine has
    /// slept.
    func clockWasSet(by step: Duration) {
        let now = host.clocks
        if step != .zero {
            for key in Array(table.keys) { table.updateTimer(key) { $0.clockWasSet(by: step, now: now) } }
        }
        timer?.disarm()
        arm()
    }

    /// Recalculates timers because the machine's time zone has changed.
    func zoneChanged(to zone: TimeZone) {
        self.zone = zone
        let now = host.clocks
        for (key, specification) in specifications where !specification.calendar.isEmpty {
            let expressions = expressions(specification)
            table.updateTimer(key) { $0.zoneChanged(expressions, now: now) }
        }
        arm()
    }
}

extension JSON {
    /// Converts a value of the configuration to JSON.
    package init(_ value: ConfigurationValue) {
        switch value {
        case .string(let text), .date(let text): self = .string(text)
        case .integer(let number): self = .int(number)
        case .double(let number): self = .double(number)
        case .boolean(let flag): self = .bool(flag)
        case .array(let elements): self = .array(elements.map { JSON($0) })
        case .table(let members):
            self = .object(
                JSONObject(
                    members: members.sorted { $0.key < $1.key }.map {
                        JSONObject.Member(name: $0.key, value: JSON($0.value))
                    }
                )
            )
        }
    }
}
