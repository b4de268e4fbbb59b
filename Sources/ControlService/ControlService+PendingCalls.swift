// SPDX-License-Identifier: Apache-2.0

import Archives
import Configuration
package import Engine
import EventLoop
import Lifecycle
import Linux
import Mailbox
import Processes
import Store
import Supervisor
import TorporAPI
import Varlink
import VarlinkServer

extension ControlService {
    /// Carries out a verb and replies, at once or when the apps have reached the requested state.
    ///
    /// - Parameters:
    ///   - target: what the apps should open or continue in the foreground; nil for the request's own URL.
    ///   - waitsForPlace: whether the launch of a scene beyond the limit of live scenes waits; if false, it is
    ///     refused.
    ///   - refusals: why the request is refused for some of the apps, by name.
    func carryOut(
        _ request: VerbRequest,
        _ selected: [AppRuntime],
        opening target: Opening? = nil,
        waitsForPlace: Bool = false,
        refusals: [String: String] = [:],
        for peer: Peer,
        _ reply: Reply
    ) {
        let target = request.verb == .foreground ? target ?? request.url.map { .target(.url($0)) } : nil
        // Wait until the store was read. It contains the URL that an earlier attempt of this request may have queued.
        // It also contains the goal that a user has set, to which Own launches the app. Disown waits too, so that it
        // does not overtake an earlier Own.
        if target != nil || [.own, .disown].contains(request.verb), !supervisor.persistence.isLoaded {
            return supervisor.persistence.whenLoaded { [weak self] in
                guard let self, !self.isForsaken(request, reply) else { return }
                // An app may have been removed from the configuration while the store was read.
                let left = selected.filter { app in self.apps.contains { $0 === app } }
                self.carryOut(request, left, opening: target, for: peer, reply)
            }
        }
        // A `wait` changes nothing, so a repeated one may be carried out again and needs no token.
        let token = request.verb == .wait ? nil : request.token
        var items: [PendingCall.Item] = []
        let inFront = selected.last
        let selected = inOrder(selected, request)
        let isRestart = request.verb == .restart
        let takesAlong = request.verb == .stop || isRestart
        var stopped = DependentStops(of: selected, all: takesAlong ? apps.all : [])
        for app in selected {
            if app.tokens.standing(of: token) != .unknown {
                let along = stopped.dependents(of: app) { $0.tokens.standing(of: token) != .unknown }
                var item = repeated(request, app)
                if item.target == .done, let text = owning(request) { item.result = result(app, ok: true, text) }
                if request.verb == .restart { item.restartedToo = along.map(\.name) }
                item.isActivity = target?.isActivity ?? false
                items.append(item)
                items += companions(stopped.newOnes(along), of: app, request, isRepeated: true)
                continue
            }
            let before = coordinator.machine(app.id)
            let goalOfPerson = app.kept.goalOfPerson
            var url: Int64?
            // The dependents take the token too, so that a repeated request does not stop them a second time.
            let refusal = refusals[app.name]
            let along = refusal == nil ? stopped.dependents(of: app) { goesAlong($0, with: request) } : []
            let stops = ([app] + along).map { ($0, $0.kept.isStoppedUntilBoot, $0.keepsStateWhenStopped) }
            for app in [app] + along {
                app.lastEnding = nil
                app.tokens.take(token)
            }
            if isRestart, refusal == nil { app.keepsStateWhenStopped = request.keepState ? true : nil }
            noteStates(request, along)
            var item: PendingCall.Item
            do throws(RequestError) {
                if let refusal { throw RequestError(refusal) }
                if request.verb == .stop { noteDuration(of: request, app, before, along) }
                personAsks(request, of: app, goal: before.goal)
                noteAsked(request, of: app, by: peer)
                url = try target.map { target throws(RequestError) in
                    try open(target, for: peer, token, app)
                }
                if !waitsForPlace { try requireScene(request, app) }
                if request.verb == .foreground { try requireScene(inside: app) }
                if request.verb == .start { app.skipsAdmission = request.force && !before.isAlive ? true : nil }
                if request.verb == .suspend, !request.force { try coordinator.requireSuspendable(app.id) }
                if request.verb == .start, request.force { try self.request(.runUnowned, of: app.id) }
                if request.verb == .start, !request.background, !request.standby, !before.isAlive {
                    try showScenesOfLastRun(inside: app)
                }
                // If torpord dies in between, a repeated request must not know the app and take these for new.
                for app in along where !app.tokens.isRecorded { record(app) }
                if request.verb == .discard {
                    supervisor.scenes.end(app)
                } else if request.verb == .own || request.verb == .disown {
                    try changeOwner(request, of: app, by: peer)
                } else if let asked = self.request(for: request, before) {
                    try self.request(asked, of: app.id)
                }
                // Record the token, so that a repeated request is recognised, if no lifecycle change has recorded it.
                if !app.tokens.isRecorded { record(app) }
                // If the app's launch waits until a policy allows it, `--force` lets it begin now.
                if app.skipsAdmission == true, coordinator.waitsForAdmission(app.id) {
                    if app.specification.memoryNeeded == nil { app.skipsAdmission = nil }
                    supervisor.policyManager?.admit(app.id)
                }
                if app === inFront, Self.isForSight(request) { supervisor.desktop.raise(app) }
                let machine = coordinator.machine(app.id)
                if machine.goalGeneration != before.goalGeneration {
                    supervisor.policyManager?.asked(app, from: before.goal, to: machine.goal, isRestart: isRestart)
                }
                item = PendingCall.Item(
                    app: app.id,
                    target: self.target(of: request, app, before),
                    incarnation: before.incarnation,
                    generation: machine.goalGeneration,
                    url: url
                )
                item.isActivity = target?.isActivity ?? false
                if request.verb == .restart { item.restartedToo = along.map(\.name) }
                if request.verb == .hold { item.result = result(app, ok: true, holding(app)) }
                if item.target == .done, let text = owning(request) { item.result = result(app, ok: true, text) }
            } catch {
                app.tokens.giveBack(token)
                app.kept.goalOfPerson = goalOfPerson
                for (app, isUntilBoot, keepsState) in stops {
                    app.kept.isStoppedUntilBoot = isUntilBoot
                    app.keepsStateWhenStopped = keepsState
                }
                endRefusedRun(of: app, before)
                if let url { supervisor.mailboxes.withdraw(url, of: app) }
                note(app, .refused, text: "refused: \(error)")
                item = PendingCall.Item(app: app.id, target: .done, incarnation: 0, generation: 0)
                item.result = VerbResult(
                    app: app.name,
                    ok: false,
                    state: before.state.rawValue,
                    pid: app.run.tree?.main.pid,
                    message: "\(app.name) \(error)",
                    error: "refused"
                )
            }
            items.append(item)
            items += companions(stopped.newOnes(along), of: app, request, isRepeated: false)
        }
        if !request.wait {
            for index in items.indices where items[index].result == nil {
                items[index].result = underWay(items[index])
            }
        }
        let waiter = PendingCall(reply: reply, items: items)
        if request.verb == .discard, request.wait {
            let names = Set(selected.map(\.name))
            waiter.beforeReply = { [weak self] then in self?.supervisor.scenes.whenErased(names, then) }
        }
        guard target != nil else {
            return start(waiter, timeoutMilliseconds: request.timeoutMilliseconds)
        }
        // Before the client learns that the request was accepted, the queued URL must be on disk.
        supervisor.store.sync { [weak self] _ in
            self?.start(waiter, timeoutMilliseconds: request.timeoutMilliseconds)
        }
    }

    /// The result for an app that the call does not wait for: where it is if it is there already, else what happens.
    private func underWay(_ item: PendingCall.Item) -> VerbResult {
        let app = apps[item.app]
        if item.url == nil, let result = judge(item, app), result.ok { return result }
        switch item.target {
        case .gone: return result(app, ok: true, "is being terminated")
        case .newIncarnation: return resultOfBegunRestart(app)
        default: return result(app, ok: true, "is on its way")
        }
    }

    /// Registers a call. The call replies as soon as all its items have a result, or after the timeout (milliseconds).
    func start(_ waiter: PendingCall, timeoutMilliseconds: Int64?) {
        pendingCalls.append(waiter)
        check(waiter, waiter.waiting())
        guard !waiter.isDone else { return }
        waiter.reply.onClosed = { [weak self, weak waiter] in
            guard let self, let waiter else { return }
            self.pendingCalls.removeAll { $0 === waiter }
        }
        if let milliseconds = timeoutMilliseconds {
            waiter.timer = try? loop.timer { [weak self, weak waiter] in
                guard let self, let waiter else { return }
                self.timeOut(waiter, milliseconds)
            }
            waiter.timer?.arm(after: .milliseconds(milliseconds))
        }
    }

    /// Whether the request's verb applies to this app, which the request selects. If a pattern selects the app,
    /// Interrupt applies only if the app can be interrupted, or (with `end`) is interrupted. If the request has the
    /// app's exact name, the verb always applies, and the app gets an answer.
    func applies(_ request: VerbRequest, to app: AppRuntime) -> Bool {
        guard request.verb == .interrupt, !selection.isNamed(app, by: request.apps) else { return true }
        // A repeated request (one with a known token) applies to the same apps as the first time, even if their state
        // has changed since, so that each app gets its result again.
        if app.tokens.standing(of: request.token) != .unknown { return true }
        let machine = coordinator.machine(app.id)
        if request.end { return machine.interruptions > 0 }
        return machine.goal == .active && (machine.isAlive || machine.isWaitingToLaunch)
    }

    private func request(for request: VerbRequest, _ machine: AppMachine) -> Request? {
        switch request.verb {
        case .start: request.standby ? .standby : .start(background: request.background)
        case .stop: .stop(.stopped)
        case .restart: .restart
        case .foreground: .foreground
        case .background: .background
        case .suspend: request.force ? .forceSuspend : .suspend
        case .resume: .resume
        case .interrupt: .interrupt(begin: !request.end)
        case .kill: .forceQuit
        case .reset: .reset
        case .hold where request.end: .release
        case .hold:
            .hold(reason: request.reason ?? "", until: request.forMilliseconds.map { loop.now + .milliseconds($0) })
        case .disconnect where machine.isAlive && machine.transition == nil: .evict
        case .disconnect: machine.isAlive || machine.isWaitingToLaunch ? .stop(.evicted) : nil
        case .discard, .wait, .own, .disown: nil
        }
    }

    private func target(of request: VerbRequest, _ app: AppRuntime, _ before: AppMachine) -> PendingCall.Target {
        switch request.verb {
        case .start where request.standby: return .goal(.suspended)
        case .start:
            // An app with scenes inside comes to the foreground only together with one of its scenes. If none brings it
            // to the foreground, wait until the app is in the background.
            if app.specification.innerScenes != nil {
                return .goal(coordinator.machine(app.id).goal == .active ? .active : .background)
            }
            return request.background && before.isAlive && before.transition != .terminating
                ? .goal(before.goal) : .goal(request.background ? .background : .active)
        case .foreground: return .goal(.active)
        case .stop, .kill, .disconnect, .discard: return .gone
        case .restart: return .newIncarnation(after: before.incarnation)
        case .background, .resume: return .goal(.background)
        case .suspend: return .goal(.suspended)
        case .interrupt: return .interruption(of: before.goal)
        case .own:
            let goal = coordinator.machine(app.id).goal
            return goal == before.goal || goal == .notRunning ? .done : .goal(goal)
        case .disown: return before.isAlive ? .standingBy(gone: request.stop) : .done
        case .reset, .hold: return .done
        case .wait: return request.state.flatMap(AppState.init).map(PendingCall.Target.state) ?? .done
        }
    }

    /// Called after the first launches have begun. Replies to the clients that wait for an app which is not launched.
    package func begin() {
        for waiter in pendingCalls { check(waiter, waiter.waiting()) }
        desktopSync.configure()
    }

    /// Called when these apps may have changed: answers the calls that wait for one of them and can now be answered.
    package func touched(_ apps: [AppRuntime]) {
        for waiter in pendingCalls {
            let waiting = apps.flatMap { waiter.waiting(for: $0.id) }
            check(waiter, waiter.endsForFailing ? waiting + waiter.blocked(by: apps.map(\.id)) : waiting)
            progress(waiter, blockedBy: apps)
        }
    }

    private func check(_ waiter: PendingCall, _ places: [Int]) {
        guard !places.isEmpty || waiter.isDone else { return }
        for index in places {
            while followURL(waiter, index) {}
            let item = waiter.items[index]
            let app = apps[item.app]
            if var result = judge(item, app).flatMap({ judgeURL(item, app, $0) }) {
                if let cause = item.cause { result.message = (result.message ?? "") + "; it requires \(cause)" }
                if let other = item.passedOnBy {
                    result.message = (result.message ?? "") + "; \(other) does not handle it, so it was passed on"
                }
                waiter.answer(index, result)
            }
            progress(waiter, index, app)
            if let result = waitsForFailing(waiter, index, app) { waiter.answer(index, result) }
        }
        if waiter.isDone { finish(waiter) }
    }

    private func judge(_ item: PendingCall.Item, _ app: AppRuntime) -> VerbResult? {
        let machine = coordinator.machine(app.id)
        switch item.target {
        case .done: return result(app, ok: true, resetText(app, machine))
        case .scene(let scene, let goal, let name): return judge(item, scene, goal, name, app)
        case .gone:
            if !machine.isAlive, !coordinator.isHeld(app.id) {
                if machine.isWaitingToLaunch { return overtaken(app, machine) }
                if supervisor.scenes.session(of: app)?.isDiscarded == true {
                    return result(app, ok: true, "was discarded")
                }
                let text = endingText(app, item) ?? "is not running"
                var then = machine.isForceQuit ? launchesAfterForceQuit(app) : silencedByStop(app)
                if machine.isStopped, app.kept.isStoppedUntilBoot {
                    then = [then, "the stop ends with the next boot"].compactMap { $0 }.joined(separator: "; ")
                }
                return result(app, ok: true, then.map { "\(text); \($0)" } ?? text)
            }
            return machine.goalGeneration != item.generation && machine.goal != .notRunning
                && !coordinator.isHeld(app.id) ? overtaken(app, machine) : nil
        case .standingBy(let gone): return judgeDisowned(item, app, machine, gone: gone)
        case .state(let state):
            return machine.state == state && machine.transition == nil
                ? result(app, ok: true, "is \(state.rawValue)") : hasFailed(app, machine)
        case .newIncarnation(let old):
            if app.specification.rules.isOneshot, machine.isDone, machine.incarnation > old {
                return result(app, ok: true, "has done its work again")
            }
            if let failure = endedInstead(item, app, machine, after: old) { return failure }
            guard machine.incarnation > old else {
                return machine.goal == .notRunning && !coordinator.isHeld(app.id) ? overtaken(app, machine) : nil
            }
            guard isAtGoal(machine) else { return nil }
            let text = "was restarted and is \(machine.state.rawValue)" + failedLaunch(item, app, machine)
            return result(app, ok: true, text + DependentStops.restartedToo(item.restartedToo))
        case .interruption(let goal): return judge(goal, item, app, machine)
        case .goal(let goal):
            guard let result = judge(goal, item, app, machine) else { return nil }
            guard result.ok, goal == .active, machine.interruptions > 0, !machine.isCovered else { return result }
            let times = machine.interruptions == 1 ? "" : " \(machine.interruptions) times"
            return self.result(
                app,
                ok: false,
                "is interrupted\(times), so it stays \(machine.state.rawValue): ‘torpor interrupt --end \(app.name)’ "
                    + "brings it to the foreground",
                "interrupted"
            )
        }
    }

    /// The result of a call that waits until the app reaches a goal; nil while the result is open.
    private func judge(_ goal: Goal, _ item: PendingCall.Item, _ app: AppRuntime, _ machine: AppMachine) -> VerbResult?
    {
        // A oneshot app that waits for its next launch, or could not be launched, has not done what was asked for.
        let wasRefused = [.dependencyFailed, .launchFailed].contains(app.lastEnding?.ending.reason)
        if app.specification.rules.isOneshot, machine.isDone, !machine.isWaitingToLaunch, !wasRefused {
            return result(app, ok: true, "has done its work")
        }
        if let failure = endedInstead(item, app, machine, after: nil) { return failure }
        if coordinator.isHeld(app.id) { return nil }
        if machine.goal != goal {
            if app.specification.rules.exitsOnSuspend, machine.goal == .notRunning, machine.isAlive,
                goal == .background || goal == .suspended
            {
                return nil  // How the app ends will show whether it exited on suspend or was stopped.
            }
            if goal == .suspended, machine.goal == .background {
                if machine.sleepsAgain {
                    return result(
                        app,
                        ok: false,
                        "was woken by an event first, and is suspended again after its time for that",
                        "overtaken"
                    )
                }
                return machine.transition == nil
                    ? result(app, ok: false, "could not be suspended in time and runs on in the background", "failed")
                    : nil
            }
            return overtaken(app, machine)
        }
        guard isAtGoal(machine) else { return nil }
        let waits = machine.isCovered && machine.goal == .active
        let text = "is \(machine.state.rawValue)"
        let back = waits ? ", and comes back when the session is unlocked, or the machine has woken" : ""
        let remarks = lacksScene(app, machine) + failedLaunch(item, app, machine) + unsaved(app, machine) + deaf(app)
        return result(app, ok: true, text + back + remarks + waitingMail(app, machine) + staysStopped(item, app))
    }

    /// The result if the app has failed and is not restarted: it might never reach the state for which the call waits.
    /// Nil otherwise.
    private func hasFailed(_ app: AppRuntime, _ machine: AppMachine) -> VerbResult? {
        // While torpord starts, it does not know yet which apps it will launch.
        guard supervisor.isStarted, !machine.isAlive, !machine.isWaitingToLaunch, !coordinator.isHeld(app.id) else {
            return nil
        }
        let reason = app.lastExit.flatMap { TerminationReason(rawValue: $0.reason) }
        guard machine.failed || reason?.isFailure == true || reason == .dependencyFailed else { return nil }
        let how = app.lastExit.map { " (\($0.sentence))" } ?? ""
        return result(
            app,
            ok: false,
            "has failed\(how) and is not started again by itself: ‘torpor report \(app.name)’ says why, "
                + "‘torpor start \(app.name)’ tries again",
            "failed"
        )
    }

    func isAtGoal(_ machine: AppMachine) -> Bool {
        guard machine.transition == nil else { return false }
        switch machine.effectiveGoal {
        case .active: return machine.state == .active
        case .inactive: return machine.state == .inactive
        case .background: return machine.state == .background
        case .suspended: return machine.state == .suspended
        case .notRunning: return machine.state == .notRunning
        }
    }

    /// The result if the app ended while the call waited for it to reach a state; nil otherwise.
    private func endedInstead(
        _ item: PendingCall.Item,
        _ app: AppRuntime,
        _ machine: AppMachine,
        after old: UInt32?
    ) -> VerbResult? {
        guard let (ending, text) = app.lastEnding else { return endedUnseen(item, app, machine) }
        // A launch that was refused before it began (for lack of memory, or by a policy) gets no incarnation number, so
        // its ending has the number of the app's last run.
        let isOfLaunch = ending.reason == .dependencyFailed || ending.reason == .launchFailed
        if let old, ending.incarnation <= old, !isOfLaunch { return nil }
        if case .relaunch = ending.next { return nil }
        if ending.reason == .exitsOnSuspend { return result(app, ok: true, "opts out of the background: it was ended") }
        return result(app, ok: false, text, ending.reason.rawValue)
    }

    private func endingText(_ app: AppRuntime, _ item: PendingCall.Item) -> String? {
        app.lastEnding.map { $0.text }
    }

    private func overtaken(_ app: AppRuntime, _ machine: AppMachine) -> VerbResult {
        let advice = app.lastAdvice.flatMap { $0.replacing + 1 == machine.goalGeneration ? $0 : nil }
        let other = advice.map { "policy \($0.policy)" } ?? "another request"
        return result(app, ok: false, "was overtaken by \(other): it goes to \(machine.goal.rawValue)", "overtaken")
    }

    /// Fails the calls that wait for an app, because the app was removed.
    func endWaiting(for app: AppRuntime) {
        for waiter in pendingCalls {
            for index in waiter.waiting(for: app.id) {
                waiter.answer(index, result(app, ok: false, "was removed from the configuration", "removed"))
            }
            if waiter.isDone { finish(waiter) }
        }
    }

    func result(_ app: AppRuntime, ok: Bool, _ text: String, _ error: String? = nil) -> VerbResult {
        let machine = coordinator.machine(app.id)
        let isNeverWoken = machine.state == .suspended ? isNeverWoken(app, machine) : nil
        return VerbResult(
            app: app.name,
            ok: ok,
            state: machine.state.rawValue,
            pid: app.run.tree?.main.pid,
            message: "\(app.name) \(text)",
            error: error,
            isNeverWoken: isNeverWoken,
            requiredBy: isNeverWoken == true ? coordinator.dependents(app.id).map { apps[$0].name } : nil
        )
    }

    private func timeOut(_ waiter: PendingCall, _ milliseconds: Int64) {
        waiter.beforeReply = nil
        for index in waiter.waiting() {
            let app = apps[waiter.items[index].app]
            let machine = coordinator.machine(app.id)
            let at = machine.transition?.rawValue ?? machine.state.rawValue
            let why = machine.isWaitingForPermission ? app.heldBack.map { " (\($0))" } ?? "" : ""
            // Round to tenths of a second, because the client may have subtracted the time that it took to connect.
            let time = milliseconds < 1000 ? milliseconds : (milliseconds + 50) / 100 * 100
            let isThere = machine.transition == nil && machine.state.rawValue == machine.goal.rawValue
            var then = "it is still on its way to \(machine.goal.rawValue)"
            if isThere {
                let isAwaited = if case .state(.suspended) = waiter.items[index].target { true } else { false }
                let next = isAwaited ? suspension(of: app) : nil
                then = next ?? "nothing will change that now (‘torpor status \(app.name)’ says what can)"
            }
            waiter.answer(
                index,
                result(
                    app,
                    ok: false,
                    "is still \(at) after \(Quantity.text(.milliseconds(time)))\(why); \(then)",
                    "timeout"
                )
            )
        }
        finish(waiter)
    }

    private func finish(_ waiter: PendingCall) {
        waiter.timer?.cancel()
        pendingCalls.removeAll { $0 === waiter }
        let areStored = supervisor.persistence.trouble == nil
        let send = { waiter.reply.send(waiter.render(waiter.results(areStored: areStored))) }
        if let wait = waiter.beforeReply { wait(send) } else { send() }
    }
}
