// SPDX-License-Identifier: Apache-2.0

import DesktopProtocol
import Engine
import EventLoop
import EventSources
import Lifecycle
import Linux
import Processes
import WireText

/// Brings the app whose window gets the focus to the foreground, and the app that had the focus before to the
/// background.
///
/// Apps are moved only when the focus changes, so a state that a user has requested lasts until the next change. There
/// is one exception: if a user has brought an app in front of the focused window and that app ends, the app of the
/// focused window returns to the foreground, because its window would stay frozen otherwise.
final class FocusFollower: ShellRoom, LifecycleObserver {
    unowned(unsafe) let supervisor: Supervisor
    /// The window manager whose focus is followed; nil to follow none.
    var kind: DesktopFocus? {
        didSet {
            guard kind != oldValue else { return }
            (pending, problem, manager) = (nil, nil, nil)
            timer?.disarm()
            if kind == nil { (last, previous, inFront) = (nil, nil, nil) }
        }
    }
    /// Why the focus cannot be followed; nil if it can.
    private(set) var problem: String?
    /// The process of the window manager; nil if it is not known.
    private var manager: Int32?
    /// The process that got the focus less than ``settles`` ago. `.some(nil)` if the focus was lost less than
    /// ``settles`` ago; nil if there was no such change.
    private var pending: Int32??
    private var timer: TimerSource?
    /// Stores for the next torpord which app had the focus last.
    private lazy var kept = PersistedBytes(supervisor, log, named: DescriptorName.focus, most: 256)
    private var last: String? {
        didSet {
            guard last != oldValue else { return }
            kept.keep(Array((last ?? "").utf8))
            if let oldValue { previous = oldValue }
        }
    }
    /// The app that had the focus before ``last``; nil if none is known.
    private var previous: String?
    /// The app that a user has brought to the foreground without giving it the focus, while another window has the
    /// focus; nil if there is none.
    private var inFront: String?
    /// The state that a user had requested for ``last`` before it got the focus. `.some(nil)` if no user had requested
    /// one; nil if this is not known, because torpord was restarted.
    private var goalAtFocus: Goal??
    /// The time until which the app ``inFront``, which has become active, may open its first window.
    private var opensUntil = Duration.zero

    /// The app that a user has last requested by other means than the focus; nil after the next change of the focus.
    /// Until the time `until`, a focus on the app's windows counts as the result of the request.
    private var raised: (app: String, until: Duration)?

    /// How long the focus must stay on a window before the window's app comes to the foreground, so that a window
    /// which has the focus only for a moment has no effect.
    static let settles = Duration.milliseconds(300)

    init(_ supervisor: Supervisor) { self.supervisor = supervisor }

    /// Continues with the app that had the focus last under an earlier torpord.
    func takeOver() { if let bytes = kept.bytes, !bytes.isEmpty { last = String(wire: bytes) } }

    func isFollowed(_ problem: String?, by manager: Int32?) {
        guard kind != nil else { return }
        self.manager = manager
        guard problem != self.problem else { return }
        self.problem = problem
        if let problem {
            log.warning("the focus is not followed: \(problem)")
        } else {
            log.info("the focus is followed")
        }
    }

    /// If a user requests an app, a focus on the app's windows within this time counts as the result of the request,
    /// because the window manager may be slow.
    private static let raiseTime = Duration.seconds(2)
    /// How long an app that has become active may take to open its first window.
    private static let openingTime = Duration.seconds(3)

    /// Called when a user has requested the app by other means than the focus. Returns the app's processes, one of
    /// whose windows should get the focus. Nil if the focus is not followed, or if the app has no window yet: a new
    /// window gets the focus anyway.
    func raises(_ app: AppRuntime) -> [Int32]? {
        let machine = coordinator.machine(app.id)
        if kind != nil { inFront = app.name == last ? nil : app.name }
        guard kind != nil, !isEnding, machine.isAlive, machine.transition != .launching, let tree = app.run.tree else {
            return nil
        }
        raised = (app.name, now + Self.raiseTime)
        return tree.members(atMost: DesktopCommand.mostPids).pids
    }

    func focused(_ pid: Int32?) {
        guard kind != nil else { return }
        pending = .some(pid)
        if timer == nil { timer = try? loop.timer { [weak self] in self?.settled() } }
        timer?.arm(after: Self.settles)
    }

    private func settled() {
        timer?.disarm()
        guard let pid = pending, !isEnding else { return }
        pending = nil
        let app = pid.flatMap(app(of:))
        guard app?.name != last else { return }
        goalAtFocus = .some(app?.kept.goalOfPerson)
        if let app, fallsBack(to: app) {
            log.debug("the focus is back on \(app.name), which is not moved: \(inFront ?? "") has no window yet")
            last = app.name
            return
        }
        if app != nil { inFront = nil }
        let before = last.flatMap { coordinator.id(of: $0) }.flatMap { isManager(apps[$0]) ? nil : $0 }
        last = app?.name
        // If a user has requested this app a moment ago, do not move it: it is in the foreground already, or the user
        // has moved it away again.
        let isAsked = raised.map { app?.name == $0.app && now < $0.until } ?? false
        raised = nil
        supervisor.uninterrupted { [supervisor] in
            if let before { Self.move(supervisor.apps[before], toForeground: false, supervisor) }
            if let app, !isAsked { Self.move(app, toForeground: true, supervisor) }
        }
    }

    /// Whether the focus falls back to this app although the user has just started another one. This happens if the
    /// user starts an app from a window that then closes (for example a menu), before the new app has opened its own
    /// window.
    private func fallsBack(to app: AppRuntime) -> Bool {
        guard let inFront, inFront != app.name, let id = coordinator.id(of: inFront) else { return false }
        let machine = coordinator.machine(id)
        let isComing = machine.transition == .launching || machine.isWaitingForPermission || now < opensUntil
        guard isComing, machine.goal == .active else { return false }
        if let last { return coordinator.id(of: last).map { !coordinator.machine($0).isAlive } ?? true }
        return previous == app.name
    }

    package func entered(_ app: AppRuntime, from: AppState, to: AppState) {
        if to == .active, app.name == inFront { opensUntil = now + Self.openingTime }
    }

    package func ended(_ app: AppRuntime, _ ending: Ending) {
        guard let inFront, inFront == app.name, kind != nil, !isEnding else { return }
        switch ending.next {
        case .relaunch: return
        case .restart: break
        case .rest, .gaveUp: self.inFront = nil
        }
        loop.later { [weak self] in self?.bringBack() }
    }

    package func forget(_ app: AppRuntime) { if inFront == app.name { inFront = nil } }

    /// Brings the app of the focused window back to the foreground, unless a user has moved that app to another state
    /// since it got the focus.
    private func bringBack() {
        guard kind != nil, !isEnding, let id = last.flatMap({ coordinator.id(of: $0) }) else { return }
        let (app, machine) = (supervisor.apps[id], coordinator.machine(id))
        let goal = app.kept.goalOfPerson
        let isSentAway = goalAtFocus.map { $0 != goal } ?? false && goal != nil && goal != .active
        guard machine.isAlive, machine.goal != .active, !isSentAway else { return }
        supervisor.uninterrupted { [supervisor] in Self.move(app, toForeground: true, supervisor) }
    }

    /// The app that a process belongs to; nil if it belongs to none, or to the window manager.
    private func app(of pid: Int32) -> AppRuntime? {
        let cgroup = (try? ProcFS.cgroup(pid)) ?? nil
        return apps.first { $0.run.tree?.contains(pid, in: cgroup) ?? false }.flatMap { isManager($0) ? nil : $0 }
    }

    /// Whether the app contains the window manager. What the window manager starts, such as a menu, also belongs to
    /// that app. No focus may move the app: in the background it would be suspended, and the whole session with it.
    private func isManager(_ app: AppRuntime) -> Bool {
        manager.map { app.run.tree?.contains($0) ?? false } ?? false
    }

    private static func move(_ app: AppRuntime, toForeground: Bool, _ supervisor: Supervisor) {
        let machine = supervisor.coordinator.machine(app.id)
        guard machine.isAlive else { return }
        if toForeground {
            supervisor.wakes.startedByPerson(app)
        } else {
            // If the app has left the foreground already, leave it in its state, which a user has requested.
            guard machine.state == .active || machine.state == .inactive else { return }
        }
        let place = toForeground ? "foreground" : "background"
        supervisor.note(app, .asked, text: "is asked to go to the \(place)", reason: "focus")
        try? supervisor.personRequests(toForeground ? .foreground : .background, of: app)
    }
}
