// SPDX-License-Identifier: Apache-2.0

import Archives
import Configuration
import Engine
import EventLoop
import Lifecycle

/// Discards scenes inside apps for good.
extension InnerScenes {
    /// Discards scenes for good. Calls back when that is on disk.
    package func discard(_ sessions: [SceneSession], _ completion: @escaping () -> Void) {
        for session in sessions {
            leaving.insert(session.app)
            supervisor.scenes.change(session.app) { $0.isDiscarded = true }
        }
        supervisor.scenes.whenWritten { [weak self] in
            self?.discardNow(sessions.map(\.app))
            completion()
        }
    }

    func discardNow(_ names: [String]) {
        for name in names {
            if let number = numbers[name], let app = app(of: name), machine(of: number, app) != nil {
                try? request(.scene(number, .unattached), of: app.id)
            }
        }
        letGo()
    }

    private func app(of scene: String) -> AppRuntime? {
        roster[scene].flatMap { coordinator.id(of: $0.template) }.map { apps[$0] }
    }

    /// Erases discarded scenes that their apps no longer show. If an app has ever shown such a scene, mail that tells
    /// the app of the scene's end is stored first.
    func letGo() {
        var gone: [AppID: [String]] = [:]
        for name in leaving.sorted() {
            let app = app(of: name)
            if let app, let number = numbers[name], machine(of: number, app) != nil { continue }
            leaving.remove(name)
            if let app, roster[name]?.wasConnected == true {
                gone[app.id, default: []].append(name)
            } else {
                erase([name], app)
            }
        }
        for (id, names) in gone {
            let app = apps[id]
            let own = names.compactMap { AppName.sceneParts($0)?.scene }
            let which = own.count == 1 ? "scene \(own[0])" : "scenes \(own.joined(separator: ", "))"
            note(app, .sceneDiscarded, text: "has its \(which) discarded")
            supervisor.mailboxes.tellDiscarded(own, app) { [weak self] in self?.erase(names, app) }
        }
    }

    /// Erases scenes, but only once the app has finished saving their state and snapshots.
    private func erase(_ names: [String], _ app: AppRuntime?) {
        for name in names {
            let erase = { [weak self] in
                guard let self, roster[name]?.isDiscarded ?? true else { return }
                if let number = numbers.removeValue(forKey: name) {
                    self.names[number] = nil
                    refusals[number] = nil
                    ends[number] = nil
                }
                supervisor.scenes.erase(name)
            }
            guard let app, let own = AppName.sceneParts(name)?.scene else {
                erase()
                continue
            }
            supervisor.savedStates.whenDone(app, scene: own) { [weak self] in
                guard let self else { return }
                supervisor.snapshots.whenDone(app, scene: own, erase)
            }
        }
    }
}
