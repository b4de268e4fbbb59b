// SPDX-License-Identifier: Apache-2.0

package import Configuration
import DataProtection
package import Engine
import EventLoop
import EventSources
import Lifecycle
import Linux
import LoginManager
package import TorporAPI

/// Moves apps out of the foreground while no user can see them: before the machine sleeps, and while the session is
/// locked.
///
/// torpord asks logind for the state at the start, and whenever logind was restarted. An earlier torpord may have
/// covered apps (moved them out of the foreground because no user can see them) that need not be covered now. torpord
/// uncovers these apps as soon as it knows the state, or if logind does not answer within five seconds.
package final class Interruptions: LifecycleObserver {
    private unowned(unsafe) let supervisor: Supervisor
    private var login: LoginManager?
    /// The last state of the machine and the session that logind has reported.
    private var told = LoginManager.State()
    /// Whether torpord knows by now if apps must be covered (moved out of the foreground).
    private var isKnown = false
    private var isCovered = false
    /// Apps that must leave the foreground before the machine may sleep; nil if the machine is not waiting for torpord.
    private var awaited: Set<AppID>?
    private var beganAt = Duration.zero
    private var timer: TimerSource?

    package init(_ supervisor: Supervisor) { self.supervisor = supervisor }

    /// Applies the configuration.
    package func follow(_ specification: SupervisorSpecification) {
        let subject = LoginManager.Subject(sleep: specification.sleep, session: Self.choice(specification.session))
        if let login, login.subject == subject { return }
        if login == nil, isKnown, subject.isNothing { return }
        login = nil
        awaited = nil
        timer?.disarm()
        guard !subject.isNothing else {
            told = LoginManager.State(isKnown: true)
            lookForFirstUnlock(nil)
            return cover(false)
        }
        let made = LoginManager(supervisor.loop, subject)
        made.onChange = { [weak self] in self?.changed() }
        login = made
        lookForFirstUnlock(made)
        changed()
    }

    private static func choice(_ rule: SessionRule) -> LoginManager.SessionChoice? {
        switch rule {
        case .auto: Users.isRoot ? nil : .user(Users.effectiveUID)
        case .none: nil
        case .seat(let name): .seat(name)
        case .id(let id): .id(id)
        }
    }

    // MARK: What logind says

    private func changed() {
        guard let login, login.state.isKnown else { return }
        let (before, now) = (told, login.state)
        told = now
        if now.user != before.user { supervisor.desktop.sessionChanged() }
        lookForFirstUnlock(login)
        followData(now)
        let isSleeping = now.isAsleep && !before.isAsleep
        let seen = supervisor.apps.count { supervisor.coordinator[$0.id].state == .active }
        if now.isLocked != before.isLocked {
            tellLock(now, session: now.session ?? before.session, seen)
            supervisor.wakes.notifications.tellLock(now.isLocked, isFirst: !isKnown)
        }
        if isSleeping {
            supervisor.note(.machineSleeps, text: "the machine is about to sleep: " + Self.leaving(seen))
        } else if before.isAsleep, !now.isAsleep {
            let text = now.isLocked ? "apps wait in the background until the session is unlocked" : Self.returning
            supervisor.note(.machineWoke, text: "the machine woke: " + text)
        }
        // Without logind this is known only seconds after the start, when its memory is released already.
        if !isKnown { supervisor.rest.soon() }
        cover(now.isAsleep || now.isLocked)
        if isSleeping { waitForApps() } else if !now.isAsleep { awaited = nil }
    }

    /// The user of the followed session; nil until logind has reported it.
    var sessionUser: UInt32? { login?.state.user }

    /// Whether the followed session was not unlocked yet in this boot.
    private(set) var isBeforeFirstUnlock = false

    /// Updates ``isBeforeFirstUnlock``. Without a followed session, or without logind, there is no session lock, so
    /// torpord does not wait for an unlock.
    private func lookForFirstUnlock(_ login: LoginManager?) {
        let wasBefore = isBeforeFirstUnlock
        if let login, login.subject.session != nil, !login.state.isKnown || login.isThere {
            if login.state.isKnown, login.state.session != nil, !login.state.isLocked {
                supervisor.recovery.wasUnlocked = true
            }
            isBeforeFirstUnlock = !supervisor.recovery.wasUnlocked
        } else {
            isBeforeFirstUnlock = false
        }
        guard wasBefore, !isBeforeFirstUnlock else { return }
        supervisor.loop.later { [weak supervisor] in supervisor?.wakes.lookAgain() }
    }

    private func tellLock(_ now: LoginManager.State, session: String?, _ seen: Int) {
        let session = session.map { "session \($0)" } ?? "the session"
        if now.isLocked {
            supervisor.note(.sessionLocked, text: "\(session) is locked: " + Self.leaving(seen))
        } else {
            supervisor.note(.sessionUnlocked, text: "\(session) is unlocked: " + Self.returning)
        }
    }

    private static func leaving(_ count: Int) -> String {
        switch count {
        case 0: "no app is in the foreground"
        case 1: "1 app leaves the foreground"
        default: "\(count) apps leave the foreground"
        }
    }

    private static let returning = "apps return to their previous states"

    /// Whether no user can see the apps now.
    var coversApps: Bool { isKnown && isCovered }

    private func followData(_ now: LoginManager.State) {
        var outside = OutsideLocks.State(
            isLocked: now.isLocked,
            isAsleep: now.isAsleep,
            hasSession: now.session != nil,
            user: now.user
        )
        outside.isUsers = now.session == nil || now.isUsers
        supervisor.protection.follow(outside, sleepsAt: login?.sleepsAt)
    }

    private func cover(_ covers: Bool) {
        isKnown = true
        isCovered = covers
        coverAll()
    }

    /// Covers each app that no user can see now (moves it out of the foreground), and uncovers the others. Also handles
    /// apps that were added.
    package func coverAll() {
        guard isKnown else { return }
        let isCovered = isCovered
        // Handle each app as an event of its own, so that the decisions about one app are carried out before the next
        // app is handled.
        supervisor.uninterrupted { [supervisor] in
            for app in supervisor.apps {
                let covers = isCovered || supervisor.protection.covers(app)
                guard supervisor.coordinator.machine(app.id).isCovered != covers else { continue }
                let id = app.id
                supervisor.uninterrupted { [supervisor] in try? supervisor.request(.cover(begin: covers), of: id) }
            }
        }
    }

    package func added(_ app: AppRuntime) {
        guard isKnown, isCovered || supervisor.protection.covers(app) else { return }
        let id = app.id
        supervisor.uninterrupted { [supervisor] in try? supervisor.request(.cover(begin: true), of: id) }
    }

    // MARK: Before the machine sleeps

    private func waitForApps() {
        guard let login, let latest = login.sleepsAt else { return }
        beganAt = supervisor.loop.now
        awaited = Set(supervisor.apps.map(\.id).filter(isLeaving))
        if timer == nil { timer = try? supervisor.loop.timer { [weak self] in self?.isTooLate() } }
        timer?.arm(at: latest)
        look()
    }

    /// Whether the app has not left the foreground yet.
    private func isLeaving(_ id: AppID) -> Bool {
        let machine = supervisor.coordinator.machine(id)
        guard machine.state == .active || machine.state == .inactive else { return false }
        // An app that may not run in the background stays inactive. So an inactive app that is not in a transition has
        // left the foreground.
        return machine.state == .active || machine.transition != nil
    }

    package func forget(_ app: AppRuntime) { awaited?.remove(app.id) }

    package func touched(_ apps: [AppRuntime]) {
        guard awaited != nil else { return }
        for app in apps where !isLeaving(app.id) { awaited?.remove(app.id) }
        look()
    }

    func look() {
        guard awaited?.isEmpty ?? false, !supervisor.protection.holdsSleep else { return }
        letSleep()
    }

    private func letSleep() {
        awaited = nil
        timer?.disarm()
        login?.letSleep()
    }

    private func isTooLate() {
        guard let awaited else { return }
        let names = supervisor.apps.filter { awaited.contains($0.id) }.map(\.name)
        let time = (supervisor.loop.now - beganAt).inSeconds
        let few = names.prefix(3).joined(separator: ", ") + (names.count > 3 ? " and \(names.count - 3) more" : "")
        let late =
            names.isEmpty
            ? "protected data is not locked yet after"
            : "\(few) \(names.count == 1 ? "has" : "have") not reached the background in"
        supervisor.note(
            .machineSleeps,
            text: "the machine sleeps, but \(late) the \((time * 10).rounded() / 10) s that logind waits",
            level: .warning
        )
        letSleep()
    }

    // MARK: For persons

    package var check: DoctorCheck {
        guard let login else {
            return DoctorCheck(name: "logind", ok: true, value: "not followed (sleep = false and no session)")
        }
        return DoctorCheck(
            name: "logind",
            ok: login.trouble == nil,
            value: login.description,
            message: login.trouble.map {
                login.isThere ? $0 : $0 + ": apps are not told before the machine sleeps, or when a session is locked"
            }
        )
    }
}
