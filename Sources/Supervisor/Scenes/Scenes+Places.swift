// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
import EventLoop
import EventSources
package import Lifecycle
import MemoryPressure
import TorporAPI

/// Limits how many scenes of a template run at the same time. `max_live` is the number of places: a launch that gets
/// none waits until another scene is disconnected.
extension Scenes {
    /// Whether a scene has a process, or is about to get one.
    package func isLive(_ app: AppRuntime) -> Bool {
        machine(app).isAlive || admitted.contains(app.id) || isReserved(app.id)
    }

    /// Whether a scene that is being restarted still counts toward `max_live`, so that no other scene is launched
    /// instead.
    private func isReserved(_ app: AppID) -> Bool { reserved.contains(app) && machine(apps[app]).isWaitingToLaunch }

    /// Updates ``alive`` when a scene may have gained or lost its process.
    func note(_ app: AppRuntime) {
        let template = app.specification.template
        if machine(app).isAlive {
            alive[template, default: []].insert(app.id)
        } else {
            alive[template]?.remove(app.id)
            stays[app.id] = nil
            comesAgain[app.id] = nil
        }
    }

    /// The scenes of a template that have a process, or are about to get one.
    private func live(of template: String, and others: [AppRuntime] = []) -> [AppRuntime] {
        let coming = admitted.union(reserved.filter(isReserved)).filter { apps[$0].specification.template == template }
        return (alive[template] ?? []).union(coming).union(others.map(\.id)).map { apps[$0] }
    }

    /// Called when the core asks whether a scene may be launched. Admits the launch as soon as fewer than `max_live`
    /// scenes of the template run.
    func launchNeedsRoom(_ app: AppRuntime) {
        guard app.specification.scenes?.maxLive != nil else { return supervisor.memoryWatch.launchNeedsMemory(app) }
        if !waiting.contains(app.id) { waiting.append(app.id) }
        lookForPlaces()
    }

    /// If a scene was launched or woken into the background, records that it must not be disconnected for another scene
    /// for a while (``Stay``).
    package func entered(_ app: AppRuntime, from: AppState, to: AppState) {
        guard to == .background, from == .notRunning || from == .suspended, app.specification.scene != nil else {
            return
        }
        stays[app.id] = Stay(began: now, since: now)
    }

    /// Why a scene cannot be launched, even if another one is disconnected for it; nil if it can.
    package func refusalToLaunch(_ app: AppRuntime) -> String? {
        if app.specification.lacksTemplate {
            return "cannot be launched: its template \(app.specification.template) is not in the configuration any more"
        }
        guard !isLive(app), let template = template(app.specification.template) else { return nil }
        return fullRefusal(template, for: app.id).map { "cannot be launched: \($0)" }
    }

    /// Why no other scene of the template can be launched; nil if one can be launched now or after a wait.
    func fullRefusal(_ template: AppSpecification, for app: AppID?) -> String? {
        guard let most = template.scenes?.maxLive else { return nil }
        // Also count scenes whose launch into the foreground was requested but not admitted yet: the same call may have
        // requested several.
        let coming = scenes(of: template.name).filter { machine($0).isWaitingToLaunch && machine($0).goal == .active }
        let others = live(of: template.name, and: coming).filter { $0.id != app }
        // Whether a scene cannot be disconnected for another one: it should be in the foreground or must not be
        // evicted, and it is not ending.
        func stays(_ app: AppRuntime) -> Bool {
            let machine = machine(app)
            if machine.transition == .terminating { return false }
            return machine.goal == .active || machine.goal == .inactive || machine.rules.eviction == .never
        }
        guard others.count >= most, others.allSatisfy(stays) else { return nil }
        let count = most == 1 ? "a scene of \(template.name) runs" : "\(most) scenes of \(template.name) run"
        let protected = others.filter { machine($0).rules.eviction == .never && machine($0).state != .active }
        guard let one = protected.first else {
            return
                "\(count) (scenes.max_live), and all are in the foreground: send one to the background (torpor background)"
        }
        return
            "\(count) (scenes.max_live), and none may be ended (evict = \"never\"): stop one (torpor stop \(one.name))"
    }

    private func isLeaving(_ app: AppRuntime) -> Bool { machine(app).transition == .terminating }

    /// Whether a scene may be disconnected for another one, once the time for which it is protected from that
    /// (``Stay``) is over.
    private func mayLeave(_ app: AppRuntime) -> Bool {
        let machine = machine(app)
        guard machine.isAlive, machine.state == .background || machine.state == .suspended else { return false }
        return coordinator.memoryProtection(app.id, lastResort: false) == nil
    }

    /// How long a scene that was launched or woken is protected from being disconnected for another scene. The time is
    /// long enough for the work that the scene was launched for, and longer while a connection to the scene is not
    /// accepted yet. Otherwise, if clients request many scenes at the same time, the scenes would end each other before
    /// any of them has answered.
    struct Stay {
        let began: Duration
        /// The last time at which a connection to the scene was seen waiting to be accepted.
        var since: Duration

        static let shortest = Duration.seconds(1)
        static let longest = Duration.seconds(30)
        /// For this time after a browser was last told to try again, the scene is not disconnected for another one.
        /// Browsers try again after two seconds.
        static let untilItComesAgain = Duration.seconds(5)
        /// The longest time for which a scene is not disconnected for another one because a client was told to try
        /// again, if no client connects.
        static let longestInVain = Duration.seconds(150)
        /// The interval at which torpord checks for connections that are not accepted yet.
        static let again = Duration.milliseconds(100)
    }

    /// The time for which a scene must still not be disconnected for another one.
    private func timeToStay(_ app: AppRuntime) -> Duration {
        if let told = comesAgain[app.id] {
            let end = min(told.first + Stay.longestInVain, told.last + Stay.untilItComesAgain)
            if end > now { return end - now }
        }
        guard let stay = stays[app.id] else { return .zero }
        let bound = stay.began + Stay.longest
        if now < bound, supervisor.wakes.sockets.sockets(of: app).contains(where: { ($0.info.waiting ?? 0) > 0 }) {
            stays[app.id]?.since = now
            return Stay.again
        }
        return max(.zero, min(bound, stay.since + Stay.shortest) - now)
    }

    /// Called when torpor-holding, which answers clients while a scene is being launched, has told a client to try
    /// again. For a limited time, the scene is not disconnected for another one, so that the client finds it.
    func clientComesAgain(_ app: AppRuntime) {
        guard app.specification.scene != nil else { return }
        comesAgain[app.id] = (comesAgain[app.id]?.first ?? now, now)
    }

    /// Disconnects scenes if more than `max_live` of the template run. Of the scenes that may be disconnected, it takes
    /// the least recently used ones.
    func disconnectSurplus(of template: AppSpecification) {
        guard let most = template.scenes?.maxLive else { return }
        let all = live(of: template.name)
        let surplus = all.count - all.count { isLeaving($0) } - most
        guard surplus > 0 else { return }
        for app in all.filter(mayLeave).sorted(by: { $0.times.lastUse < $1.times.lastUse }).prefix(surplus) {
            note(app, .sceneDisconnected, text: "is disconnected: only \(most) may run (scenes.max_live)")
            try? request(.evict, of: app.id)
        }
    }

    func lookForPlaces() {
        guard !isLookingForPlaces, !waiting.isEmpty || !admitted.isEmpty else { return }
        isLookingForPlaces = true
        // Check in a later turn of the event loop, because the core has not finished the event in which it asks.
        loop.later { [weak self] in
            guard let self else { return }
            isLookingForPlaces = false
            givePlaces()
        }
    }

    /// Admits waiting launches of scenes while fewer than `max_live` scenes of their template run: first launches into
    /// the foreground, then the others, each group in order of arrival. To make room for the rest, disconnects the
    /// least recently used scenes.
    private func givePlaces() {
        // An admitted launch still counts toward `max_live` while it waits for another permission, such as for memory.
        admitted = admitted.filter { !machine(apps[$0]).isAlive && machine(apps[$0]).isWaitingForPermission }
        reserved = reserved.filter { !machine(apps[$0]).isAlive && machine(apps[$0]).isWaitingToLaunch }
        waiting.removeAll { !coordinator.waitsForMemory($0) }
        let templates = Set(waiting.map { apps[$0].specification.template })
        var next: Duration?
        for template in templates.sorted() {
            let queue = waiting.filter { apps[$0].specification.template == template }
            let urgent = queue.filter { coordinator.launchesIntoForeground($0) }
            guard let wait = givePlaces(of: template, urgent + queue.filter { !urgent.contains($0) }) else { continue }
            next = min(next ?? wait, wait)
        }
        guard let next else { return }
        if stayTimer == nil { stayTimer = try? loop.timer { [weak self] in self?.lookForPlaces() } }
        stayTimer?.arm(after: next)
    }

    /// Admits launches in `queue` while fewer than `max_live` scenes of the template run. Returns the time until the
    /// next check; nil if none is needed.
    private func givePlaces(of template: String, _ queue: [AppID]) -> Duration? {
        let all = live(of: template)
        var live = all.count
        var held: [AppRuntime] = []
        for id in queue {
            let app = apps[id]
            // A scene that is being restarted counts toward `max_live` already, so its launch is admitted in any case.
            if let most = app.specification.scenes?.maxLive, live >= most, !machine(app).isAlive, !reserved.contains(id)
            {
                held.append(app)
                continue
            }
            if !machine(app).isAlive, reserved.remove(id) == nil { live += 1 }
            admitted.insert(id)
            waiting.removeAll { $0 == id }
            app.heldBack = nil
            supervisor.memoryWatch.launchNeedsMemory(app)
        }
        guard let first = held.first, let most = first.specification.scenes?.maxLive else { return nil }
        for app in held where app.heldBack == nil {
            let count = most == 1 ? "another scene of \(template) runs" : "\(most) other scenes of \(template) run"
            let why = "\(count) (scenes.max_live)"
            app.heldBack = why
            note(app, .waitsForPlace, text: "waits to be launched: \(why)")
            engine.touch(app.id)
        }
        let missing = live - most + held.count - all.count { isLeaving($0) }
        guard missing > 0 else { return nil }
        let stays = all.filter(mayLeave).map { (app: $0, time: timeToStay($0)) }
        let leaving = stays.filter { $0.time == .zero }.map(\.app).sorted { $0.times.lastUse < $1.times.lastUse }
            .prefix(missing)
        for app in leaving {
            note(
                app,
                .sceneDisconnected,
                text: "is disconnected to make room for \(first.name): only \(most) may run"
            )
            try? request(.evict, of: app.id)
        }
        guard leaving.count < missing else { return nil }
        return stays.map(\.time).filter { $0 > .zero }.min() ?? Stay.shortest
    }
}
