// SPDX-License-Identifier: Apache-2.0

import Alerts
import CalendarTime
import Configuration
import DesktopProtocol
package import Engine
import EventLoop
import EventSources
import Lifecycle
import Linux
import Mailbox
import Schedules
package import Store
import TorporAPI
import Transfers
import Varlink
import WireText

/// Alerts that apps show to users, and badges (numbers at the apps' desktop entries).
///
/// An alert is in the store until it was sent to its app, or a user has answered or dismissed it. The effects of an
/// alert (a message, a command, a notification on the screen) come first, and are stored as done only after that. If
/// torpord is killed in between, the next torpord repeats them. So an alert may be shown twice, but is never lost.
package final class AppAlerts: Room, LifecycleObserver {
    /// The number at an app's desktop entry (`count`), and the number of its row in the store.
    struct Badge: Hashable {
        var number: Int64
        var count: Int64
    }

    package let engine: Engine
    package let recorder: Recorder
    /// What alerts need from other parts of the supervisor. The host owns this object.
    unowned(unsafe) let host: any AlertHost
    /// The screen of the user's session; nil while no session is followed.
    weak var screen: (any AlertScreen)? {
        didSet {
            guard let screen, screen !== oldValue else { return }
            greet(screen)
        }
    }
    var table = AlertTable()
    var badges: [String: Badge] = [:]
    var bundles = AlertBundles()
    private(set) lazy var commands = makeCommands()
    /// Which alert each request has made, so that a repeated request does not make a second one.
    var tokens = TransferTokens()
    /// The notification server of the session; nil if none runs, or if none was reported yet.
    var server: DesktopServer?
    /// The reason why the last alert could not be shown, in the words of the event log; nil if it was shown.
    var lastFailure: String?
    /// Ends interruptions of apps while no screen can report that an alert was closed.
    var interruptionTimer: TimerSource?
    /// Whether the stored alerts are loaded.
    private(set) var isLoaded = false
    /// Whether the first launches have begun: alerts are delivered only after that.
    private var isBegun = false
    private var isFollowingClock = false
    private var timer: TimerSource?
    private var lastID: Int64 = 0

    /// How many times an alert's commands are started at most. They are started again if torpord was killed while they
    /// ran.
    static let mostTries: Int64 = 2

    init(_ engine: Engine, _ recorder: Recorder, _ host: any AlertHost) {
        self.engine = engine
        self.recorder = recorder
        self.host = host
    }

    private func makeCommands() -> AlertCommands {
        let made = AlertCommands(loop, host)
        made.onBegin = { [weak self] number in
            guard let self else { return }
            for alert in members(of: number) {
                table.update(alert.number) { $0.tries += 1 }
                save(alert.number)
            }
        }
        made.onEnd = { [weak self] number, failures in self?.commandsEnded(number, failures) }
        return made
    }

    // MARK: The beginning and the end

    /// Loads the stored alerts and badges. Call it only after the mail was loaded.
    package func load(_ contents: StoreContents) {
        guard !isLoaded else { return }
        isLoaded = true
        take(contents)
        if isBegun { goOn() }
    }

    /// Loads the stored alerts and badge of an app that was not in the configuration when the store was read.
    package func load(_ contents: StoreContents, of app: AppRuntime) {
        take(contents)
        guard isBegun else { return }
        goOn(with: table.open(of: app.name))
        timeHasCome()
    }

    private func take(_ contents: StoreContents) {
        let clock = clock
        for row in contents.alerts.values.sorted(by: { $0.id < $1.id }) {
            lastID = max(lastID, row.id)
            guard coordinator.id(of: row.app) != nil else { continue }
            guard let json = try? JSON.parse(row.json) else {
                drop(row)
                continue
            }
            if let count = json["badge_only"]?.intValue {
                badges[row.app] = Badge(number: row.id, count: min(max(0, count), AlertRules.greatestBadge))
                continue
            }
            guard let alert = try? Alert(json: json), alert.number == row.id, alert.app == row.app else {
                drop(row)
                continue
            }
            tokens.note(alert.token, of: alert.app, is: alert.number)
            table.set(alert, clock)
        }
    }

    private func drop(_ row: StoredAlert) {
        log.error("\(row.app): its alert \(row.id) cannot be read, and is dropped")
        host.store.removeAlert(row.id, of: row.app)
    }

    /// Called when the first launches have begun: alerts are delivered from now on.
    package func begin() {
        guard !isBegun else { return }
        isBegun = true
        if isLoaded { goOn() }
    }

    /// Continues with alerts that an earlier torpord has not handled completely.
    private func goOn() {
        closeAnsweredQuestions()
        // Greet the screen before any alert is shown there for the first time.
        if let screen { greet(screen) }
        goOn(with: table.allOpen)
        releaseHeld()
        timeHasCome()
    }

    private func goOn(with alerts: [Alert]) {
        for alert in alerts {
            guard let app = app(of: alert), let opening = alert.opening else { continue }
            if opening.answer != nil {
                carryOutAnswer(of: alert.number)
            } else if !opening.isDelivered {
                deliver(alert.number, app)
            } else if !opening.isRun {
                if opening.tries < Self.mostTries { run(alert.number) } else { commandsEnded(alert.number, []) }
            }
        }
        boundInterruptions()
    }

    /// Saves all alerts and badges again, because the store's file was lost.
    func keepAll() {
        for alert in table.all { save(alert.number) }
        for name in badges.keys { saveBadge(of: name) }
    }

    /// How many alerts the app has: those that are shown, and those whose time has not come.
    package func count(of app: AppRuntime) -> Int { table.alerts(of: app.name).count }

    package func forget(_ app: AppRuntime) {
        for alert in table.alerts(of: app.name) { close(alert.number) }
        if badges.removeValue(forKey: app.name) != nil { shownOn?.badge(Self.entry(of: app.name), 0) }
        bundles.forget(app.name)
        tokens.forget(app.name)
    }

    /// Applies a new configuration.
    package func configure() {
        guard isLoaded, isBegun else { return }
        closeAnsweredQuestions()
        // If the old configuration did not show alerts on the desktop but the new one does, show the open alerts now.
        if let screen { greet(screen) }
        releaseHeld()
        timeHasCome()
    }

    // MARK: What is kept

    func nextID() -> Int64 {
        lastID = max(lastID + 1, host.clocks.wall)
        return lastID
    }

    func save(_ number: Int64) {
        guard let alert = table[number] else { return }
        host.store.save(StoredAlert(id: number, app: alert.app, json: String(wire: alert.json.serialised())))
    }

    func saveBadge(of name: String) {
        guard let badge = badges[name] else { return }
        let json: JSON = ["badge_only": .int(badge.count)]
        host.store.save(StoredAlert(id: badge.number, app: name, json: String(wire: json.serialised())))
    }

    func app(of alert: Alert) -> AppRuntime? { coordinator.id(of: alert.app).map { apps[$0] } }

    /// The current times of all clocks, in the form that the rules for alerts need.
    var clock: AlertClock {
        let now = host.clocks
        return AlertClock(
            wall: now.wall,
            running: now.running.microseconds,
            boot: ThisProcess.bootID,
            zone: host.timeZone
        )
    }

    // MARK: Time

    /// Arms the timer for the alert that is due next.
    func arm() {
        guard isLoaded, isBegun, !isEnding else { return }
        guard table.hasScheduled else {
            timer?.disarm()
            return
        }
        if !isFollowingClock {
            isFollowingClock = true
            host.followClock()
        }
        let clock = clock
        guard let due = table.nextDue(clock) else {
            timer?.disarm()
            return
        }
        if timer == nil { timer = try? loop.timer { [weak self] in self?.timeHasCome() } }
        timer?.arm(after: .microseconds(max(0, due - clock.wall)))
    }

    /// Called when the clock was set, the machine has slept, or (`isElsewhere`) the time zone has changed.
    func clockChanged(isElsewhere: Bool) {
        guard isLoaded else { return }
        for alert in table.clockChanged(clock, isElsewhere: isElsewhere) { save(alert.number) }
        timeHasCome()
    }

    func timeHasCome() {
        guard isLoaded, isBegun, !isEnding else { return }
        let missedAfter = host.alertRules.missedAfter?.microseconds ?? .max / 4
        for arrival in table.arrive(clock, missedAfter: missedAfter, number: nextID) {
            let number = arrival.alert.number
            guard let app = app(of: arrival.alert) else {
                table.remove(number)
                continue
            }
            // Show a permission question however late it is: the app still lacks the permission.
            guard !arrival.isMissed || arrival.alert.permission != nil else {
                note(app, .alert, text: "missed its alert \(arrival.alert.id), which is too old to be shown")
                if let parent = arrival.parent { save(parent.number) }
                close(number)
                continue
            }
            // Save the due alert before the repeating alert that it comes from. If torpord is killed in between, the
            // alert is due again, instead of being lost.
            save(number)
            if let parent = arrival.parent { save(parent.number) }
            deliver(number, app)
        }
        arm()
    }
}
