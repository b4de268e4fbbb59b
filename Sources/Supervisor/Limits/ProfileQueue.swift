// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
import EventLoop
package import Lifecycle
import Linux
package import Processes

/// Apps that wait for the resource profile of their state.
///
/// Profiles are applied when the event loop has nothing more urgent to do, for about a millisecond in each turn. An app
/// gets the profile of the state that it has then, not of states that it has only passed through while it waited. For
/// an app that has the right profile already, nothing is done.
final class ProfileQueue {
    private var waiting: [AppID] = []
    private var isWorking = false
    /// Apps whose profile was not applied completely, because the kernel limits how often an unprivileged process may
    /// change an autogroup. They are tried again.
    private var again: [AppID] = []
    private var againTimer: TimerSource?
    /// The kinds of failure that were logged.
    private var told: Set<ProfileFailure.Kind> = []

    private static let portion = Duration.milliseconds(1)
    /// The time between two tries, in the case that the kernel refuses: it lets an unprivileged process change
    /// autogroups ten times a second.
    private static let pause = Duration.milliseconds(110)

    /// Queues the app, unless it is queued already, and calls `work` for it when its turn comes.
    func add(_ app: AppRuntime, _ loop: EventLoop, _ work: @escaping (AppID) -> Void) {
        guard !app.isInProfileQueue else { return }
        app.isInProfileQueue = true
        waiting.append(app.id)
        guard !isWorking else { return }
        isWorking = true
        loop.later { [weak self] in self?.turn(loop, work) }
    }

    private func turn(_ loop: EventLoop, _ work: @escaping (AppID) -> Void) {
        let end = loop.now + Self.portion
        var count = 0
        while count < waiting.count, loop.now < end {
            work(waiting[count])
            count += 1
        }
        waiting.removeFirst(count)
        isWorking = !waiting.isEmpty
        if isWorking { loop.later { [weak self] in self?.turn(loop, work) } }
    }

    /// Calls `work` for the app a little later, and repeats the call as long as `work` returns `.again`. If `work`
    /// returns `.alone`, it is called for no other app in this turn of the event loop, because it would fail for that
    /// app too.
    func addLater(_ app: AppID, _ loop: EventLoop, _ work: @escaping (AppID) -> Repeat) {
        again.append(app)
        if againTimer == nil {
            againTimer = try? loop.timer { [weak self] in self?.turnAgain(loop, work) }
            againTimer?.arm(after: Self.pause)
        }
    }

    /// What to do next for an app. After `alone`, no other app is tried in this turn of the event loop.
    enum Repeat {
        case nothing
        case again
        case alone
    }

    private func turnAgain(_ loop: EventLoop, _ work: (AppID) -> Repeat) {
        let end = loop.now + Self.portion
        let apps = again
        var count = 0
        var unfinished: [AppID] = []
        turn: while count < apps.count, loop.now < end {
            switch work(apps[count]) {
            case .nothing: count += 1
            case .again:
                unfinished.append(apps[count])
                count += 1
            case .alone: break turn
            }
        }
        again = apps[count...] + unfinished
        if again.isEmpty { againTimer = nil } else { againTimer?.arm(after: Self.pause) }
    }

    /// Whether to log this failure. Each kind of failure is logged once. It is never logged that a thread has chosen a
    /// value for itself.
    func tells(_ failure: ProfileFailure) -> Bool { failure.kind != .ownChoice && told.insert(failure.kind).inserted }
}

/// Gives each app the resource profile of its state, and enforces its limits.
package final class Shares: ShellRoom, LifecycleObserver {
    package unowned(unsafe) let supervisor: Supervisor
    let profiles = ProfileQueue()
    /// Fires when the memory of apps must be checked against their limits.
    var memoryTimer: TimerSource?
    /// Looks for apps that use graphics cards in the background.
    private(set) lazy var gpuWatch = GPUWatch(engine, recorder)

    package init(_ supervisor: Supervisor) { self.supervisor = supervisor }

    package func entered(_ app: AppRuntime, from: AppState, to: AppState) { if to != .notRunning { watchMemory(app) } }

    package func ended(_ app: AppRuntime, _ ending: Ending) { app.run.pressureSource?.source.cancel() }

    package func touched(_ apps: [AppRuntime]) { for app in apps { checkProfile(app) } }

    package func forget(_ app: AppRuntime) {}

    /// Gives the app the profile of its state, or queues it for that. Called for each app whose state the core has
    /// changed.
    func checkProfile(_ app: AppRuntime) {
        guard !app.isInProfileQueue, let tree = app.run.tree, let state = wantedProfile(app) else { return }
        guard app.specification.profile(in: state) != tree.profile else {
            if app.run.profileState != nil || state != .active { setProfileState(app, state) }
            return
        }
        queueProfile(app)
    }

    /// Called when the configured profiles have changed: gives the app the new profile of its state.
    func profilesChanged(_ app: AppRuntime) {
        guard let tree = app.run.tree, let state = app.run.profileState ?? wantedProfile(app),
            app.specification.profile(in: state) != tree.profile
        else { return }
        queueProfile(app)
    }

    private func queueProfile(_ app: AppRuntime) {
        profiles.add(app, loop) { [weak self] id in self?.giveProfile(id) }
    }

    /// The state whose profile the app should have; nil if the app keeps its current profile until its transition is
    /// over.
    ///
    /// So an app gets a lower profile only when it has stopped, or has answered that it is in the background. An app
    /// that is launched gets its profile when it is ready. A oneshot does its work during the launch, so it gets the
    /// profile of its state at once.
    private func wantedProfile(_ app: AppRuntime) -> AppState? {
        guard app.run.exitRecord == nil, !app.run.containerHasEnded else { return nil }
        let state = coordinator[app.id].state
        switch coordinator[app.id].transition {
        case nil:
            if let advised = app.run.advisedProfile, advised.state == state { return advised.profile }
            return state == .notRunning ? nil : state
        case .launching:
            guard app.specification.rules.isOneshot else { return nil }
            return state == .inactive ? .active : state
        case .activating, .deactivating, .enteringBackground, .enteringForeground, .suspending, .resuming,
            .terminating:
            return nil
        }
    }

    private func giveProfile(_ id: AppID) {
        let app = apps[id]
        app.isInProfileQueue = false
        guard app.run.tree != nil, let state = wantedProfile(app) else { return }
        give(app, state)
    }

    /// Raises the profile of an app that is about to be continued, or about to be notified that it comes to the
    /// foreground.
    func raiseProfile(_ app: AppRuntime) {
        guard app.run.tree != nil, let present = app.run.profileState, app.run.exitRecord == nil else { return }
        let wanted: AppState =
            switch coordinator[app.id].goal {
            case .active: .active
            case .inactive: .inactive
            case .background, .suspended, .notRunning: .background
            }
        if wanted.share > present.share { give(app, wanted) }
    }

    /// Gives an app that is ending at least the share of the processors that it has when it is active.
    func raiseToEnd(_ app: AppRuntime) {
        app.run.tree?.raiseProcessorShare(to: app.specification.profile(in: .active))
    }

    /// Gives an app the profile of an active one while podman cleans up after its container. That podman may be starting
    /// just now, so that this misses a thread of it: a second time reaches that.
    func raiseToCleanUp(_ app: AppRuntime) {
        give(app, .active)
        profiles.addLater(app.id, loop) { [weak self] id in self?.repeatProfile(id) ?? .nothing }
    }

    /// Applies a state's profile to an app as far as possible; returns what failed and, with `telling`, what was done.
    @discardableResult
    package func give(_ app: AppRuntime, _ state: AppState, telling: Bool = false) -> ProfileReport {
        guard let tree = app.run.tree else { return ProfileReport() }
        let profile = app.specification.profile(in: state)
        var report = ProfileReport()
        if profile != tree.profile { report = tree.apply(profile, telling: telling) }
        setProfileState(app, state)
        supervisor.launcher.containers.watchEnd(of: app)
        for failure in report.failures where profiles.tells(failure) {
            log.info(
                "\(app.name), like others, does not get all of its resource profile: not \(failure.text); "
                    + "‘torpor doctor’ says what is missing"
            )
        }
        if report.isWorthRepeating || report.isUnfinished {
            profiles.addLater(app.id, loop) { [weak self] id in self?.repeatProfile(id) ?? .nothing }
        }
        return report
    }

    private func repeatProfile(_ id: AppID) -> ProfileQueue.Repeat {
        guard let tree = apps[id].run.tree else { return .nothing }
        let report = tree.apply(tree.profile, telling: false)
        if report.isWorthRepeating { return .alone }
        return report.isUnfinished ? .again : .nothing
    }

    /// Which parts of its profile an app has now, and which it lacks, in words.
    package func profileText(_ app: AppRuntime) -> (state: AppState?, done: [String], missing: [String]) {
        guard let tree = app.run.tree else { return (nil, [], []) }
        let missing = missingLimits(app)
        guard let state = app.run.profileState else {
            return (tree.profile == .ordinary ? .active : nil, [], missing)
        }
        // Applying the current profile again changes nothing, and reports what is in force.
        let report = tree.apply(tree.profile)
        return (state, report.done, report.failed + missing)
    }

    private func setProfileState(_ app: AppRuntime, _ state: AppState) {
        guard app.run.profileState != state else { return }
        app.run.profileState = state
        supervisor.recordProfile(of: app)
    }
}

extension AppState {
    /// A rank of the states: a state with a greater share of the machine has a higher number.
    fileprivate var share: Int {
        switch self {
        case .notRunning: 0
        case .suspended: 1
        case .background: 2
        case .inactive: 3
        case .active: 4
        }
    }
}
