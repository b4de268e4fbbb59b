// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
import EventLoop
import EventSources
package import Lifecycle
import MemoryPressure
import TorporAPI

/// How many scenes of a template run: a launch beyond `max_live` waits until another scene is disconnected.
extension Scenes {
    /// Whether a scene has a process, or is about to.
    package func isLive(_ app: AppRuntime) -> Bool { machine(app).isAlive || admitted.contains(app.id) }

    /// Keeps in mind whether it has a process.
    func note(_ app: AppRuntime) {
        let template = app.specification.template
        if machine(app).isAlive {
            alive[template, default: []].insert(app.id)
        } else {
            alive[template]?.remove(app.id)
            placed[app.id] = nil
        }
    }

    /// Those of a template that have a process, or are about to.
    private func live(of template: String) -> [AppRuntime] {
        (alive[template] ?? []).union(admitted.union(reserved).filter { apps[$0].specification.template == template })
            .map { apps[$0] }
    }

    /// The core asks whether a scene may be launched.
    func launchNeedsRoom(_ app: AppRuntime) {
        guard app.specification.scenes?.maxLive != nil else { return supervisor.memoryWatch.launchNeedsMemory(app) }
        if !waiting.contains(app.id) { waiting.append(app.id) }
        lookForPlaces()
    }

    /// Something has launched or woken it, and nobody has brought it to the foreground.
    package func entered(_ app: AppRuntime, from: AppState, to: AppState) {
        guard to == .background, from == .notRunning || from == .suspended, app.specification.scene != nil else {
            return
        }
        placed[app.id] = now
    }

    /// Why a scene would have to wait for a place that nobody can be made to leave; nil where there is one.
    package func refusalToLaunch(_ app: AppRuntime) -> String? {
        if app.specification.lacksTemplate {
            return "cannot be launched: its template \(app.specification.template) is not in the configuration any more"
        }
        guard !isLive(app), let template = template(app.specification.template) else { return nil }
        return fullRefusal(template).map { "cannot be launched: \($0)" }
    }

    func fullRefusal(_ template: AppSpecification) -> String? {
        guard let most = template.scenes?.maxLive else { return nil }
        let others = live(of: template.name)
        // Those that are launched, or end, may make place; whoever is to be in the foreground will not.
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
            "\(count) (scenes.max_live), and none is ended for another (evict = \"never\"): stop one (torpor stop \(one.name))"
    }

    private func isLeaving(_ app: AppRuntime) -> Bool { machine(app).transition == .terminating }

    /// Whether a scene can be disconnected for another.
    private func mayLeave(_ app: AppRuntime) -> Bool {
        let machine = machine(app)
        guard machine.isAlive, machine.state == .background || machine.state == .suspended,
            timeToStay(app) == .zero
        else { return false }
        return coordinator.memoryProtection(app.id, lastResort: false) == nil
    }

    /// How long a scene keeps its place that something has launched or woken just now: long enough to do what that was for,
    /// and longer where a connection still waits to be accepted. Without it scenes that many want at once would end each
    /// other before any has answered.
    private func timeToStay(_ app: AppRuntime) -> Duration {
        guard let since = placed[app.id] else { return .zero }
        let isWaitedFor = supervisor.wakes.sockets.sockets(of: app).contains { ($0.info.waiting ?? 0) > 0 }
        return max(.zero, since + (isWaitedFor ? Self.longestStay : Self.shortestStay) - now)
    }

    private static let shortestStay = Duration.seconds(1)
    private static let longestStay = Duration.seconds(10)

    func lookForPlaces() {
        guard !isLookingForPlaces, !waiting.isEmpty || !admitted.isEmpty else { return }
        isLookingForPlaces = true
        // Not within the step of the core that asks.
        loop.later { [weak self] in
            guard let self else { return }
            isLookingForPlaces = false
            givePlaces()
        }
    }

    /// Lets those launch for whom there is a place, first come, first served; whoever a person wants in the foreground
    /// before others. For the rest others are disconnected, who were used longest ago.
    private func givePlaces() {
        admitted = admitted.filter { !machine(apps[$0]).isAlive && coordinator.waitsForMemory($0) }
        reserved = reserved.filter { !machine(apps[$0]).isAlive && machine(apps[$0]).isWaitingToLaunch }
        waiting.removeAll { !coordinator.waitsForMemory($0) }
        let templates = Set(waiting.map { apps[$0].specification.template })
        for template in templates.sorted() {
            let queue = waiting.filter { apps[$0].specification.template == template }
            let urgent = queue.filter { coordinator.launchesIntoForeground($0) }
            givePlaces(of: template, urgent + queue.filter { !urgent.contains($0) })
        }
    }

    private func givePlaces(of template: String, _ queue: [AppID]) {
        let all = live(of: template)
        var live = all.count
        var held: [AppRuntime] = []
        for id in queue {
            let app = apps[id]
            // One that waits for its restart has its place.
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
        guard let first = held.first, let most = first.specification.scenes?.maxLive else { return }
        for app in held where app.heldBack == nil {
            let why = "\(most == 1 ? "another scene" : "\(most) other scenes") of \(template) run (scenes.max_live)"
            app.heldBack = why
            note(app, .waitsForPlace, text: "waits to be launched: \(why)")
            engine.touch(app.id)
        }
        let missing = live - most + held.count - all.count { isLeaving($0) }
        guard missing > 0 else { return }
        let leaving = all.filter { mayLeave($0) }.sorted { $0.times.lastUse < $1.times.lastUse }.prefix(missing)
        for app in leaving {
            note(
                app,
                .sceneDisconnected,
                text: "is disconnected, since \(first.name) is to be launched and only \(most) may run"
            )
            try? request(.evict, of: app.id)
        }
        guard leaving.count < missing, let next = all.map({ timeToStay($0) }).filter({ $0 > .zero }).min() else {
            return
        }
        if stayTimer == nil { stayTimer = try? loop.timer { [weak self] in self?.lookForPlaces() } }
        stayTimer?.arm(after: next)
    }
}
