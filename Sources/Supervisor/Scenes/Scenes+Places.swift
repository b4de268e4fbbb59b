// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
import EventLoop
import Lifecycle
import MemoryPressure

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
        }
    }

    /// Those of a template that have a process, or are about to.
    private func live(of template: String) -> [AppRuntime] {
        (alive[template] ?? []).union(admitted.filter { apps[$0].specification.template == template }).map { apps[$0] }
    }

    /// The core asks whether a scene may be launched.
    func launchNeedsRoom(_ app: AppRuntime) {
        guard app.specification.scenes?.maxLive != nil else { return supervisor.memoryWatch.launchNeedsMemory(app) }
        if !waiting.contains(app.id) { waiting.append(app.id) }
        lookForPlaces()
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
        guard others.count >= most, !others.contains(where: { mayLeave($0) || isLeaving($0) }) else { return nil }
        let count = most == 1 ? "a scene of \(template.name) runs" : "\(most) scenes of \(template.name) run"
        return "\(count) (scenes.max_live), and none is in the background: send one there (torpor background)"
    }

    private func isLeaving(_ app: AppRuntime) -> Bool { machine(app).transition == .terminating }

    /// Whether a scene can be disconnected for another.
    private func mayLeave(_ app: AppRuntime) -> Bool {
        let machine = machine(app)
        guard machine.isAlive, machine.state == .background || machine.state == .suspended else { return false }
        return coordinator.memoryProtection(app.id, lastResort: false) == nil
    }

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
            if let most = app.specification.scenes?.maxLive, live >= most, !machine(app).isAlive {
                held.append(app)
                continue
            }
            if !machine(app).isAlive { live += 1 }
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
    }
}
