// SPDX-License-Identifier: Apache-2.0

import Configuration
import DesktopProtocol
package import Engine
import EventLoop
import EventSources
import Lifecycle
import Linux
import Processes

extension DesktopCommand: CompanionCommand {}

extension DesktopReport: CompanionReport {
    var isGreeting: Bool { if case .here = self { true } else { false } }
}

/// Runs the helper torpor-desktop in a user's session, as that user, while the helper is needed, and for a little
/// longer. The helper shows alerts and badges, and reports which process has the focus and which processes play sound.
///
/// The session's user can forge the helper's reports, so torpord uses them only for alerts, the focus and sound.
package final class Desktop: ShellRoom, AlertScreen {
    typealias Helper = Companion<DesktopCommand, DesktopReport>

    package unowned(unsafe) let supervisor: Supervisor
    var onReport: ((DesktopReport) -> Void)? {
        didSet { if onReport != nil, oldValue == nil { loop.later { [weak self] in self?.forwardEarly() } } }
    }
    /// Reports that arrived before ``onReport`` was set.
    private var early: [DesktopReport] = []
    private(set) var helper: Helper?
    /// The helper that was told to end, until torpord has waited for its end; nil if there is none.
    private var leaving: Helper?
    /// Whether the helper was killed because it did not answer, and its process still exists.
    var isLeaving = false
    /// The user in whose session the helper runs.
    private var helperUser: UInt32?
    /// The helper that an earlier torpord launched, until this torpord has checked it; nil if there is none.
    private var found: FoundCompanion?
    /// The paths of the cgroups of helpers that an earlier torpord left running.
    private(set) var cgroupsFound: Set<String> = []
    private var hasBegun = false
    private var isStarting = false
    private(set) var ledger = DesktopLedger()
    private(set) lazy var focus = FocusFollower(supervisor)
    /// The sound streams of the session.
    private(set) lazy var sound: SessionSound = {
        let sound = SessionSound(supervisor)
        sound.onFollow = { [weak self] in self?.soundIsFollowed() }
        sound.onStreams = { [weak self] in self?.soundFocus.soundChanged() }
        return sound
    }()
    /// Interrupts apps that play sound while sound that takes precedence is played.
    package private(set) lazy var soundFocus: SoundFocus = SoundFocus(supervisor, sound)
    private var idle: TimerSource?
    var retry: TimerSource?
    /// How many helpers have failed in a row.
    var failures = 0
    /// Why the helper could not be started, or failed, as a sentence; nil once a helper has answered.
    var trouble: String?
    /// Checks that the helper still works.
    private lazy var pulse = HelperPulse(
        loop,
        ask: { [weak self] in self?.helper?.send(.ping(number: $0)) },
        giveUp: { [weak self] in self?.helperIsSilent() }
    )
    /// Why no user sees the helper's alerts, as the helper has reported; nil if a user sees them.
    private(set) var unseen: String? {
        didSet {
            guard unseen != oldValue else { return }
            if let unseen {
                log.warning("alerts are not on the desktop: \(unseen)")
            } else if helper != nil {
                log.info("alerts are on the desktop again")
            }
            supervisor.service.changed()
        }
    }
    /// Looks up accounts and processes on a background thread.
    private let reads: BackgroundWorker
    private lazy var processes = CompanionCount(supervisor)

    /// The name of the helper and of its cgroup. No app can have this name.
    static let name = ":desktop"
    static let arguments = ["torpor-desktop"]
    private static let idleTime = Duration.seconds(10)
    /// When torpord ends, it asks the helper to end, and kills the helper if it still runs after this time.
    private static let longestEnd = Duration.seconds(2)
    /// A helper that ran for this time was stable: if it fails, the delay before the next start is the shortest.
    private static let stableAfter = Duration.seconds(10)
    private var startedAt = Duration.zero

    package init(_ supervisor: Supervisor) {
        self.supervisor = supervisor
        reads = BackgroundWorker(supervisor.loop, named: "desktop")
    }

    // MARK: The screen

    func show(_ alert: DesktopAlert) {
        guard ledger.show(alert) else {
            return report(.failed(id: alert.id, reason: "\(DesktopLedger.most) alerts are open already"))
        }
        if helper != nil, !isLeaving {
            send(.show(alert))
        } else if let trouble {
            report(.failed(id: alert.id, reason: trouble))
        }
        look()
    }

    func close(_ id: Int64) {
        ledger.forget(id)
        if helper != nil, !isLeaving { send(.close(id: id)) } else { report(.closed(id: id, .closed)) }
        look()
    }

    func badge(_ entry: String, _ count: Int64) {
        if ledger.badge(entry, count) { send(.badge(entry: entry, count: count)) }
        look()
    }

    func acknowledge(_ id: Int64) {
        ledger.forget(id)
        helper?.send(.acknowledge(id: id))
        look()
    }

    /// Sends a command to the helper, if there is one, and asks the helper whether it still works.
    private func send(_ command: DesktopCommand) {
        guard let helper else { return }
        helper.send(command)
        pulse.commanded()
    }

    /// Reports, in place of a helper, that no alert of an earlier torpord is on the screen.
    private func reportNothing() {
        loop.later { [weak self] in
            guard let self else { return }
            self.take(.here(ids: self.ledger.ids, server: nil))
        }
    }

    /// Passes a report to ``onReport`` in a later turn of the event loop, when the caller has returned.
    func report(_ report: DesktopReport) { loop.later { [weak self] in self?.onReport?(report) } }

    /// Called when a user has asked for the app. If the focus is followed, the app's window gets the focus. Policies
    /// and messages do not move the focus.
    package func raise(_ app: AppRuntime) {
        guard helper != nil, let pids = focus.raises(app), !pids.isEmpty else { return }
        send(.raise(pids: pids))
    }

    // MARK: The beginning and the end

    /// Claims inherited descriptors. Must be called before torpord closes those that no room has claimed.
    func takeOver() {
        focus.takeOver()
        soundFocus.takeOver()
    }

    /// Takes over the helper that an earlier torpord launched, if that helper is among `processes`, which torpor-keeper
    /// has reported.
    func found(_ processes: [OrphanedProcess]) {
        guard
            let taken = FoundCompanion.take(
                processes,
                heldAs: DescriptorName.desktop,
                cgroup: Self.name,
                supervisor
            )
        else { return }
        cgroupsFound.formUnion(taken.cgroups)
        self.processes.begun()
        found = taken.companion
        let (process, cgroup) = (taken.companion.process, taken.companion.cgroup)
        // Note the helper's exit here until the helper is taken over, which replaces this handler.
        supervisor.launcher.helpers[process.pid] = { [weak self] _ in
            if self?.found?.process.pid == process.pid { self?.found?.hasEnded = true }
            self?.gone(cgroup)
        }
    }

    /// Whether a process is the helper of an earlier torpord.
    func hasFound(_ pid: Int32) -> Bool { found?.process.pid == pid }

    package func begin() {
        hasBegun = true
        guard let process = found?.process else {
            // There is no helper, so no alert of an earlier torpord is on the screen any longer.
            reportNothing()
            return configure()
        }
        let (arguments, pid) = (Self.arguments, process.pid)
        reads.ask {
            (isFit: FoundCompanion.isRunning(arguments, as: nil, pid), user: try? ProcFS.realUser(pid))
        } _: { [weak self] answer in
            guard let self else { return }
            let found = self.found
            self.found = nil
            guard let found, !found.hasEnded, !self.isEnding else {
                found?.end()
                self.supervisor.release(DescriptorName.desktop)
                self.reportNothing()
                return self.configure()
            }
            let helper = self.makeHelper(found.cgroup)
            self.helper = helper
            self.helperUser = answer.user
            helper.adopt(found.process, found.socket)
            self.pulse.started()
            if !answer.isFit { self.replace(helper) }
            self.configure()
            self.sendAll()
        }
    }

    /// Applies the configuration in force.
    package func configure() {
        focus.kind =
            switch supervisor.configuration.supervisor.focus {
            case .none: nil
            case .sway: .sway
            case .i3: .i3
            }
        send(.follow(focus.kind))
        if supervisor.configuration.supervisor.alerts.desktop == .none {
            for id in ledger.ids {
                ledger.forget(id)
                send(.close(id: id))
            }
        }
        soundFocus.configure()
        sessionChanged()
    }

    /// Called when the configuration may name another session, or when the session has another user.
    func sessionChanged() {
        guard found == nil else { return }
        retry?.disarm()
        if let helper, let helperUser, let place, place.user != helperUser { replace(helper) }
        noteSilence()
        if listens { send(.listen(true)) }
        look()
    }

    var place: DesktopPlace? {
        DesktopPlace(
            supervisor.configuration.supervisor.session,
            sessionUser: supervisor.interruptions.sessionUser,
            own: Users.effectiveUID,
            environment: ThisProcess.environment
        )
    }

    /// Why there is no session to run the helper in, as a sentence; nil if there is one.
    var obstacle: String? {
        DesktopPlace.obstacle(
            supervisor.configuration.supervisor.session,
            sessionUser: supervisor.interruptions.sessionUser,
            own: Users.effectiveUID,
            environment: ThisProcess.environment
        )
    }

    /// Ends the helper, because torpord ends and no other torpord follows. The helper removes its alerts from the
    /// screen.
    private func letGo() {
        if let found {
            found.end()
            supervisor.release(DescriptorName.desktop)
        }
        found = nil
        guard let helper else { return }
        pulse.stopped()
        helper.leave(within: Self.longestEnd)
        leaving = helper
        self.helper = nil
    }

    /// Ends the helper, and blocks until it has ended, for up to half a second, without the event loop.
    func endHelper() {
        letGo()
        leaving?.awaitEnd(.milliseconds(500))
        leaving = nil
    }

    /// Ends the helper. Returns true if the helper has ended, or if torpord has waited long enough for that; if false,
    /// the shutdown continues later.
    func endAll() -> Bool {
        letGo()
        return processes.areGone()
    }

    // MARK: The helper

    private var isNeeded: Bool { !ledger.isEmpty || focus.kind != nil || listens }

    /// Whether the helper must follow streams of PipeWire. Without a session there is no helper, and torpord follows
    /// only the kernel's sound devices (/proc/asound).
    var listens: Bool { sound.isWanted && obstacle == nil }

    /// If there is no session, records that no streams run: without a session there is no helper to report streams.
    private func noteSilence() { if sound.isWanted, obstacle != nil { sound.heard([]) } }

    private func soundIsFollowed() {
        if listens, helper == nil, let trouble { sound.isHeard(trouble) }
        noteSilence()
        send(.listen(listens))
        look()
    }

    /// Starts the helper if it is needed, or ends it after a while if it is not.
    func look() {
        pulse.hasWatch = !ledger.ids.isEmpty || focus.kind != nil || listens
        guard hasBegun, !isEnding, found == nil, !supervisor.isKeeperLost else { return }
        guard isNeeded else {
            retry?.disarm()
            // Keep a helper that has not answered `hello` yet: it may show alerts of an earlier torpord.
            guard let helper, !helper.isUnheard, idle?.deadline == nil else { return }
            if idle == nil { idle = try? loop.timer { [weak self] in self?.goIfIdle() } }
            idle?.arm(after: Self.idleTime)
            return
        }
        idle?.disarm()
        if helper == nil, !isStarting, retry?.deadline == nil { start() }
    }

    private func goIfIdle() {
        idle?.disarm()
        guard !isNeeded else { return }
        pulse.stopped()
        helper?.dismiss()
        helper = nil
        noteSilence()
    }

    private func start() {
        guard let place else { return fail(obstacle ?? "there is no session", isRetried: false) }
        isStarting = true
        reads.ask {
            Launchable(place: place, credentials: place.credentials())
        } _: { [weak self] launchable in
            guard let self else { return }
            self.isStarting = false
            // If the session has changed during the lookup, begin again.
            guard self.isNeeded, !self.isEnding, self.helper == nil, self.place == place else { return self.look() }
            self.launch(launchable)
        }
    }

    private struct Launchable: Sendable {
        let place: DesktopPlace
        let credentials: (uid: UInt32, gid: UInt32, groups: [UInt32])??
    }

    private func launch(_ launchable: Launchable) {
        guard let program = ThisProcess.companion("torpor-desktop", variable: "TORPOR_DESKTOP") else {
            return fail(
                "torpor-desktop is neither beside torpord nor in ../libexec/torpor: install it",
                isRetried: true
            )
        }
        guard let credentials = launchable.credentials else {
            return fail("user \(launchable.place.user) has no entry in the user database", isRetried: true)
        }
        var plan = supervisor.launcher.companionPlan(
            program,
            Self.arguments,
            of: Self.name,
            environment: LaunchEnvironment(inheriting: []),
            launchable.place.variables
        )
        let profile = StateProfile.ordinary
        plan.oomScoreAdjust = min(max(profile.oomScoreAdjust, ProcessTree.inheritedOOMScore), 1000)
        plan.user = credentials
        let cgroup = supervisor.launcher.companionCgroup(Self.name, for: "torpor-desktop")
        plan.cgroup = cgroup?.directory.raw
        let helper = makeHelper(cgroup?.path)
        self.helper = helper
        helperUser = launchable.place.user
        startedAt = now
        processes.begun()
        helper.start(plan)
        pulse.started()
        withExtendedLifetime(cgroup) {}
        send(.follow(focus.kind))
        sendAll()
    }

    private func sendAll() {
        for command in ledger.commands { send(command) }
        // A helper of an earlier torpord may still follow sound although this is no longer needed: tell it what is
        // needed now.
        send(.listen(listens))
    }

    /// Kills the helper, so that another is started.
    private func replace(_ helper: Helper) {
        pulse.stopped()
        helper.replace()
    }

    private func makeHelper(_ cgroup: String?) -> Helper {
        Helper(
            CompanionPlace(name: Self.name, heldName: DescriptorName.desktop, cgroup: cgroup),
            .ordinary,
            supervisor,
            Helper.Callbacks(
                report: { [weak self] in self?.take($0) },
                ended: { [weak self] in self?.ended($0) },
                gone: { [weak self] in self?.gone($0) }
            )
        )
    }

    private func gone(_ cgroup: String?) {
        leaving = nil
        if helper == nil, let cgroup { try? supervisor.place.cgroups?.remove(cgroup) }
        processes.gone()
    }

    /// Called when the helper has ended. `why` is a sentence if that was unexpected.
    private func ended(_ why: String?) {
        pulse.stopped()
        (helper, isLeaving) = (nil, false)
        unseen = nil
        sound.forget()
        noteSilence()
        idle?.disarm()
        // Forget the alerts and answers that only this helper knew. The `here` report of the next helper shows which
        // alerts are missing on the screen; `AppAlerts` shows these again.
        ledger.helperEnded()
        guard !isEnding else { return }
        // If no helper is needed, the helper was kept only for alerts of an earlier torpord: report that these alerts
        // are gone.
        guard isNeeded else { return reportNothing() }
        guard let why else { return look() }
        if now - startedAt >= Self.stableAfter { failures = 0 }
        fail("torpor-desktop \(why)", isRetried: true)
    }

    // MARK: What it reports

    private func forwardEarly() {
        let reports = early
        early = []
        for report in reports { forward(report) }
    }

    private func forward(_ report: DesktopReport) {
        guard let onReport, early.isEmpty else {
            if early.count < 4 * DesktopLedger.most { early.append(report) }
            return
        }
        onReport(report)
        // Acknowledge only closed alerts here: `AppAlerts` acknowledges an answer once the answer is on disk.
        if case .closed(let id, _) = report { helper?.send(.acknowledge(id: id)) }
    }

    private func take(_ report: DesktopReport) {
        pulse.reported()
        switch report {
        case .here(let ids, let server, let version):
            guard version == DesktopProtocol.version else {
                // A helper that an earlier torpord launched may be of the version before an upgrade: replace it now. If
                // torpord itself has launched a wrong version, an immediate replacement would not help.
                if helper?.isAdopted ?? false {
                    helper.map(replace)
                } else {
                    helper?.fail("is of another version than torpord: install both from one release")
                }
                return
            }
            pulse.greeted()
            if helper != nil, trouble != nil {
                trouble = nil
                log.info("torpor-desktop works again")
                supervisor.service.changed()
            }
            forward(.here(ids: ledger.greeted(ids), server: server))
        case .server, .failed: forward(report)
        case .shown(let id, let place):
            ledger.isShown(id, at: place)
            forward(report)
        case .unseen(let problem): unseen = problem.map { String($0.prefix(400)) }
        case .closed(let id, _):
            ledger.forget(id)
            forward(report)
        case .answered(let id, _, _):
            if ledger.answer(id) { forward(report) } else { helper?.send(.acknowledge(id: id)) }
        case .focused(let pid): focus.focused(pid)
        case .following(let problem, let manager): focus.isFollowed(problem, by: manager)
        case .pong(let number): return pulse.heard(number)
        case .sound(let streams): if listens { sound.heard(streams) }
        case .listening(let problem): sound.isHeard(problem)
        }
        look()
    }
}
