// SPDX-License-Identifier: Apache-2.0

import Alerts
import CalendarTime
import Configuration
import DesktopEntries
import DesktopProtocol
package import Engine
import EventLoop
import EventSources
import Lifecycle
import Linux
import Mailbox
import Schedules
import TorporAPI

/// Delivers alerts that are due: sends them to the app, or shows them.
extension AppAlerts {
    /// How long a critical alert may still interrupt apps after the screen is gone: without a screen, torpord would
    /// never learn that a user has closed the alert.
    private static let interruptionWithoutScreen = Duration.seconds(30)

    /// Sends an alert to the app, if the app is in the foreground. Otherwise shows the alert, or holds it back during
    /// quiet hours.
    func deliver(_ number: Int64, _ app: AppRuntime) {
        guard let alert = table[number], let opening = alert.opening else { return }
        // If the alert is in the app's mail already, an earlier torpord has sent that mail, and was killed before it
        // recorded that.
        let isQuestion = alert.permission != nil
        let isTold = !isQuestion && host.mailboxes.hasAlertMail(number, of: app)
        if isTold, !alert.wake || isInForeground(app) { return told(alert, app) }
        if !isTold, !isQuestion, isInForeground(app), hears(app, .didReceiveLocalNotification) {
            do throws(Mailbox.Refusal) {
                try host.mailboxes.tellAlert(message(alert, opening), wakes: false, app)
                return told(alert, app)
            } catch {
                log.warning("\(app.name) does not get its alert \(alert.id), which is shown: it \(error)")
            }
        }
        if alert.urgency != .critical, let end = quietEnd(of: host.clocks.wall) { return hold(alert, app, until: end) }
        closeOldest(of: app)
        if alert.wake, !isTold {
            do throws(Mailbox.Refusal) {
                try host.mailboxes.tellAlert(message(alert, opening), wakes: true, app)
            } catch {
                log.warning("\(app.name) is not woken for its alert \(alert.id): it \(error)")
            }
        }
        show(alert, app)
        // A repeated alert is on the screen once: the newest occurrence replaces the one before. The replaced
        // occurrence is closed last, so that apps that it interrupts are not resumed in between.
        if let parent = opening.parent {
            let earlier = table.open(of: app.name).filter { $0.opening?.parent == parent && $0.number != number }
            for other in earlier { close(other.number) }
        }
    }

    private func told(_ alert: Alert, _ app: AppRuntime) {
        if let badge = alert.badge { setBadge(badge, of: app) }
        note(app, .alert, text: "gets its alert \(alert.id), since it is in the foreground")
        close(alert.number)
    }

    private func hold(_ alert: Alert, _ app: AppRuntime, until end: Int64) {
        // If an alert repeats, quiet hours hold back only its latest occurrence.
        for other in table.scheduled(of: alert.app) where other.id == alert.id && other.heldUntil != nil {
            close(other.number)
        }
        // The limit of open alerts applies here too, because a held alert becomes open later.
        let held = table.held(of: alert.app).filter { $0.permission == nil }
        for other in held.prefix(max(0, held.count - AlertRules.mostOpen + 1)) {
            note(app, .alert, text: "drops its alert \(other.id), since quiet hours hold back \(held.count) newer ones")
            close(other.number)
        }
        if table.hold(alert.number, until: end, clock) != nil { save(alert.number) }
        arm()
    }

    /// Releases alerts that quiet hours held back, if no quiet hours are in force now. Called when the configuration
    /// has changed.
    func releaseHeld() {
        let clock = clock
        let end = quietEnd(of: clock.wall)
        for alert in table.all where table.release(alert.number, at: end, clock) != nil { save(alert.number) }
    }

    /// Called when apps have changed. If an app is in the foreground, delivers the alerts that quiet hours have held
    /// back for it: its user is looking at the app already.
    package func touched(_ apps: [AppRuntime]) {
        guard isLoaded, !table.isEmpty else { return }
        var isDue = false
        for app in apps {
            let held = table.held(of: app.name).filter { $0.permission == nil }
            guard !held.isEmpty, isInForeground(app), hears(app, .didReceiveLocalNotification) else { continue }
            for alert in held where table.release(alert.number, clock) != nil { isDue = true }
        }
        guard isDue else { return }
        loop.later { [weak self] in self?.timeHasCome() }
    }

    private func show(_ alert: Alert, _ app: AppRuntime) {
        let isAlone = alert.urgency == .critical || alert.permission != nil
        let bundle = isAlone ? nil : bundles.show(alert.number, of: app.name, now: now)
        let interrupted = alert.urgency == .critical && isOnScreen ? appsToInterrupt(alert) : []
        let runsCommands = !host.alertRules.commands.isEmpty
        table.update(alert.number) { opening in
            opening.isDelivered = true
            opening.bundle = bundle?.number
            opening.interrupted = interrupted
            opening.isRun = !runsCommands
        }
        guard let alert = table[alert.number] else { return }
        save(alert.number)
        if let badge = alert.badge { setBadge(badge, of: app) }
        app.alertsShown &+= 1
        // If several alerts are shown as one, the screen shows only the title of the newest, so the event log gets each
        // title here.
        let how = bundle == nil ? "shows its alert" : "counts among its alerts that are shown as one"
        note(app, .alert, text: "\(how) \(alert.id): \(alert.title)")
        interrupt(interrupted, by: alert)
        shownOn?.show(desktopAlert(alert, app))
        if runsCommands { run(alert.number) }
        boundInterruptions()
        engine.touch(app.id)
    }

    /// The message that tells an app about an alert that is due.
    private func message(_ alert: Alert, _ opening: Opening) -> MailDraft {
        AlertMail.received(
            as: Message.didReceiveLocalNotification.rawValue,
            number: alert.number,
            alert: alert.id,
            scheduledAt: opening.scheduledAt,
            payload: alert.payload
        )
    }

    /// Whether a user sees the app, so that the app itself can show the alert.
    func isInForeground(_ app: AppRuntime) -> Bool {
        let machine = machine(app)
        guard machine.state == .active || machine.state == .inactive, !host.isCovered else { return false }
        // An app that is only interrupted is still in the foreground. An app that is leaving the foreground is not.
        return machine.transition == nil || machine.goal == .active
    }

    /// If quiet hours will hold back a scheduled alert when it is due, the time at which these quiet hours end, in
    /// microseconds since 1970; otherwise nil.
    func heldUntil(_ alert: Alert, _ due: Int64?, _ app: AppRuntime) -> Int64? {
        guard let due, alert.urgency != .critical else { return nil }
        let isTold =
            alert.permission == nil && due <= host.clocks.wall && isInForeground(app)
            && hears(app, .didReceiveLocalNotification)
        return isTold ? nil : quietEnd(of: max(due, host.clocks.wall))
    }

    private func quietEnd(of moment: Int64) -> Int64? {
        QuietHours.end(host.alertRules.quiet.map { ($0.start, $0.end) }, at: moment, in: host.timeZone)
    }

    private func closeOldest(of app: AppRuntime) {
        // Permission questions do not count: otherwise an app could have its own question closed by sending many
        // alerts.
        let open = table.open(of: app.name).filter { $0.opening?.isDelivered ?? false && $0.permission == nil }
        for alert in open.prefix(max(0, open.count - AlertRules.mostOpen + 1)) { close(alert.number) }
    }

    // MARK: The screen

    /// The screen; nil if there is none, or if the configuration shows no alerts on the desktop.
    var shownOn: (any AlertScreen)? { host.alertRules.desktop == .none ? nil : screen }

    /// The name of an app's desktop entry, as ‘torpor desktop sync’ writes it.
    static func entry(of app: String) -> String { DesktopEntryName.name(of: app) }

    /// What the screen shows for an alert: the alert itself, or the bundle that it belongs to.
    func desktopAlert(_ alert: Alert, _ app: AppRuntime, isSilent: Bool = false) -> DesktopAlert {
        let number = alert.opening?.bundle ?? alert.number
        let others = members(of: number).count - 1
        var shown = DesktopAlert(id: number, app: app.specification.presentation.title ?? app.name, title: alert.title)
        shown.body = alert.body
        shown.urgency = DesktopAlert.Urgency(rawValue: alert.urgency.rawValue) ?? .normal
        shown.sound = isSilent ? nil : alert.sound
        shown.actions = alert.actions.map { DesktopAlert.Action(id: $0.id, label: $0.label) }
        shown.icon = app.specification.presentation.icon
        shown.entry = Self.entry(of: app.name)
        shown.place = alert.opening?.place.map {
            ScreenPlace(server: $0.server, number: UInt32(clamping: $0.number))
        }
        if others > 0 {
            shown.body = Self.more(others)
            shown.actions = []
            shown.sound = nil
        }
        return shown
    }

    static func more(_ count: Int) -> String { "and \(count) more" }

    /// The open alerts that the screen shows under one number, oldest first: a single alert, or a bundle of several.
    func members(of number: Int64) -> [Alert] {
        guard let alert = table[number] else {
            // A bundle has the number of its first alert, and keeps it when that alert is closed.
            return table.allOpen.filter { $0.opening?.bundle == number }
        }
        guard alert.opening?.bundle == number else { return [alert] }
        return table.open(of: alert.app).filter { $0.opening?.bundle == number }
    }

    // MARK: Commands

    /// Queues the commands for an alert that is shown. The commands for a bundle of alerts are queued when no more
    /// alerts can join the bundle.
    func run(_ number: Int64) {
        guard let alert = table[number], let app = app(of: alert) else { return }
        let shown = alert.opening?.bundle ?? number
        let others = members(of: shown).count - 1
        var variables = [
            "TORPOR_ALERT_TITLE": alert.title, "TORPOR_ALERT_BODY": others > 0 ? Self.more(others) : alert.body,
            "TORPOR_ALERT_APP": app.name, "TORPOR_ALERT_ID": alert.id, "TORPOR_ALERT_URGENCY": alert.urgency.rawValue,
        ]
        variables["TORPOR_ALERT_URL"] = alert.url ?? ""
        if let permission = alert.permission { variables["TORPOR_ALERT_PERMISSION"] = permission }
        let end = alert.opening?.bundle == nil ? .zero : bundles.end(of: app.name)
        commands.add(
            AlertCommands.Job(
                number: shown,
                app: app,
                variables: variables,
                after: end,
                urgency: alert.urgency,
                isQuestion: alert.permission != nil
            )
        )
    }

    func commandsEnded(_ number: Int64, _ failures: [String]) {
        let alerts = members(of: number)
        for alert in alerts {
            table.update(alert.number) { $0.isRun = true }
            save(alert.number)
        }
        guard let alert = alerts.last, let app = app(of: alert) else { return }
        for failure in failures {
            note(
                app,
                .alert,
                text: "has an alert, \(alert.id), for which a command failed: \(failure)",
                level: .warning
            )
        }
    }

    // MARK: Critical ones interrupt

    /// Whether a screen shows alerts, and reports when a user closes one.
    private var isOnScreen: Bool { shownOn != nil && server != nil }

    private func appsToInterrupt(_ alert: Alert) -> [Opening.Interrupted] {
        // This alert also interrupts the apps that an earlier alert has interrupted: only that interruption keeps them
        // from playing sound now.
        let silenced = alert.sound == nil ? [] : Set(table.allOpen.flatMap { $0.opening?.interrupted ?? [] })
        return apps.compactMap { app in
            let machine = machine(app)
            // An interrupted app stays interrupted until the last alert that interrupts it is closed.
            guard machine.goal == .active, !machine.isCovered,
                machine.state == .active || machine.transition != nil || machine.interruptions > 0
            else { return nil }
            let one = Opening.Interrupted(app: app.name, incarnation: machine.incarnation)
            let isInterrupted = host.isInterrupted(app, byAlertWithSound: alert.sound != nil)
            return isInterrupted || silenced.contains(one) ? one : nil
        }
    }

    private func interrupt(_ interrupted: [Opening.Interrupted], by alert: Alert) {
        guard !interrupted.isEmpty else { return }
        for one in interrupted {
            guard let id = coordinator.id(of: one.app), coordinator.machine(id).interruptions == 0 else { continue }
            note(apps[id], .alert, text: "is interrupted by the critical alert \(alert.id) of \(alert.app)")
        }
        uninterrupted { [self] in
            for one in interrupted {
                guard let id = coordinator.id(of: one.app) else { continue }
                try? request(.interrupt(begin: true), of: id)
            }
        }
    }

    /// Ends an alert's interruption of apps, and saves the alert. Called when the alert is closed, or when no screen is
    /// left on which a user could close it.
    func endInterruption(by number: Int64) {
        endInterruption(by: number) { [weak self] in self?.save(number) }
    }

    /// Ends an alert's interruption of apps, then calls `then`, which stores that the interruption is over.
    func endInterruption(by number: Int64, _ then: @escaping () -> Void) {
        guard let interrupted = table[number]?.opening?.interrupted, !interrupted.isEmpty else { return then() }
        table.update(number) { $0.interrupted = [] }
        uninterrupted { [self] in
            for one in interrupted {
                guard let id = coordinator.id(of: one.app) else { continue }
                let machine = coordinator.machine(id)
                // Skip an app that was launched again since: its new incarnation was not interrupted.
                guard machine.incarnation == one.incarnation, machine.interruptions > 0 else { continue }
                try? request(.interrupt(begin: false), of: id)
            }
            // Call `then` last: if torpord is killed before that, the next torpord ends the interruption again.
            then()
        }
    }

    /// If the screen is gone, ends all interruptions of apps after ``interruptionWithoutScreen``.
    func boundInterruptions() {
        let interrupting = table.allOpen.filter { !($0.opening?.interrupted.isEmpty ?? true) }
        guard !interrupting.isEmpty, !isOnScreen else {
            interruptionTimer?.disarm()
            return
        }
        if interruptionTimer == nil {
            interruptionTimer = try? loop.timer { [weak self] in
                guard let self else { return }
                guard !isOnScreen else { return }
                for alert in table.allOpen { endInterruption(by: alert.number) }
            }
        }
        interruptionTimer?.arm(after: Self.interruptionWithoutScreen)
    }
}

extension AppRuntime {
    /// How many of the app's alerts this torpord has shown.
    package var alertsShown: Int {
        get { slots[AlertsShownSlot.self, default: 0] }
        _modify { yield &slots[AlertsShownSlot.self, default: 0] }
    }
}

private enum AlertsShownSlot: Slot { typealias Value = Int }
