// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EventLoop
import Lifecycle
import Linux
import Processes

/// The cgroups of scenes inside apps (`scenes.cgroups`): below its app's, where the app puts the processes that work for
/// the scene.
///
/// One is made before its scene connects, and goes with it, whatever is left in there. It is frozen when its scene has been
/// in the background for the app's `background_time`, and thawed before the scene is told anything, while the app has a
/// background task, and before it ends.
final class SceneCgroups {
    private final class Place {
        let path: String
        let app: AppID
        var isFrozen = false
        /// Until it is frozen, or looked at again by who removes it.
        var timer: TimerSource?
        /// Between looks at one that still has processes.
        var delay = Duration.milliseconds(1)

        init(_ path: String, of app: AppRuntime) { (self.path, self.app) = (path, app.id) }
    }

    private unowned(unsafe) let scenes: InnerScenes
    private var places: [SceneID: Place] = [:]
    /// Those whose scenes are gone, by path.
    private var leaving: [String: Place] = [:]

    init(_ scenes: InnerScenes) { self.scenes = scenes }

    /// What the names of these cgroups begin with, before those of the scenes: no file of the kernel's does.
    private static let prefix = "@"

    // MARK: Making

    /// The path of a scene's, which is there from now on; nil where it has none.
    func make(for scene: SceneID, named name: String, _ app: AppRuntime) -> String? {
        guard app.specification.innerScenes?.hasCgroups == true else { return nil }
        do throws(Errno) {
            guard let above = app.run.tree?.cgroupPath else { throw .notSupported }
            let path = above + "/" + Self.prefix + name
            // It may have been left a moment ago.
            leaving.removeValue(forKey: path)?.timer?.cancel()
            places.removeValue(forKey: scene)?.timer?.cancel()
            if try !Cgroup.create(path) { try Cgroup.freeze(path, false) }
            if Users.isRoot, let user = app.account?.account.user {
                // Who moves a process writes into both, and moves nothing out of what is above.
                for group in [above, path] { try File.setOwner(group + "/cgroup.procs", uid: user.uid, gid: nil) }
            }
            places[scene] = Place(path, of: app)
            return path
        } catch {
            let why = error == .notSupported ? "the app has none" : "\(error)"
            scenes.supervisor.log.warning("\(app.name): no cgroup for its scene \(name) (\(why))")
            return nil
        }
    }

    /// Takes over what an earlier torpord has made.
    func adopt(of app: AppRuntime) {
        guard let above = app.run.tree?.cgroupPath else { return }
        for path in Cgroup.children(above) {
            guard let name = path.split(separator: "/").last, name.hasPrefix(Self.prefix) else { continue }
            let place = Place(path, of: app)
            let full = app.name + name
            if let scene = scenes.knownNumber(of: full), isThere(scene, app) {
                place.isFrozen = Cgroup.isFreezeWanted(path)
                places[scene] = place
            } else {
                remove(place)
            }
        }
    }

    // MARK: What becomes of them

    /// A scene is about to be told something.
    func wake(_ scene: SceneID) {
        if let place = places[scene] { wake(place) }
    }

    private func wake(_ place: Place) {
        place.timer?.cancel()
        place.timer = nil
        guard place.isFrozen else { return }
        place.isFrozen = false
        try? Cgroup.freeze(place.path, false)
    }

    /// The app has gone on.
    func look(at app: AppRuntime) {
        guard !places.isEmpty else { return }
        for (scene, place) in places where place.app == app.id {
            if !isThere(scene, app) {
                places[scene] = nil
                remove(place)
            } else if !rests(scene, app) {
                wake(place)
            } else if !place.isFrozen, place.timer == nil, let time = app.specification.rules.backgroundTime {
                place.timer = try? scenes.loop.timer { [weak self, weak app] in
                    guard let self, let app, places[scene] === place else { return }
                    place.timer = nil
                    if rests(scene, app) { freeze(place, app) }
                }
                place.timer?.arm(after: time)
            }
        }
    }

    private func freeze(_ place: Place, _ app: AppRuntime) {
        do throws(Errno) {
            try Cgroup.freeze(place.path, true)
            place.isFrozen = true
        } catch {
            scenes.supervisor.log.warning("\(app.name): \(place.path) cannot be frozen (\(error))")
        }
    }

    /// Whether a scene is connected, or about to be.
    private func isThere(_ scene: SceneID, _ app: AppRuntime) -> Bool {
        guard let machine = scenes.machine(of: scene, app) else { return false }
        return machine.state > .unattached || machine.awaiting != nil
    }

    /// Whether nothing is to be done for a scene.
    private func rests(_ scene: SceneID, _ app: AppRuntime) -> Bool {
        guard let machine = scenes.machine(of: scene, app) else { return false }
        let above = scenes.machine(app)
        return machine.state == .background && machine.awaiting == nil && above.transition != .terminating
            && above.tasks.isEmpty
    }

    /// What is in a scene's; nil where it has none.
    func contents(of scene: SceneID) -> (processes: Int, isFrozen: Bool)? {
        guard let place = places[scene] else { return nil }
        return ((try? Cgroup.procs(place.path).count) ?? 0, place.isFrozen)
    }

    // MARK: Removing

    /// Ends what is left in one, and removes it.
    private func remove(_ place: Place) {
        place.timer?.cancel()
        place.timer = try? scenes.loop.timer { [weak self, weak place] in
            if let self, let place { pass(place) }
        }
        leaving[place.path] = place
        pass(place)
    }

    private func pass(_ place: Place) {
        guard leaving[place.path] === place else { return }
        do throws(Errno) {
            try Cgroup.removeTree(place.path)
        } catch  where error == .resourceBusy {
            Self.kill(place.path)
            place.timer?.arm(after: place.delay)
            place.delay = min(place.delay * 2, .seconds(10))
            return
        } catch {
            scenes.supervisor.log.warning("\(place.path) cannot be removed (\(error))")
        }
        leaving[place.path] = nil
        place.timer?.cancel()
    }

    private static func kill(_ path: String) {
        if (try? Cgroup.kill(path)) != nil { return }
        // Before Linux 5.14.
        for pid in (try? Cgroup.procs(path)) ?? [] {
            guard let process = try? Pidfd.open(pid), let place = try? ProcFS.cgroup(pid), let mount = Cgroup.mount,
                mount + place == path
            else { continue }
            try? Pidfd.sendSignal(process.raw, Signal.kill)
        }
    }

    /// The app has ended, and all of its cgroup with it.
    func forget(_ app: AppRuntime) {
        for (scene, place) in places where place.app == app.id {
            place.timer?.cancel()
            places[scene] = nil
        }
        for (path, place) in leaving where place.app == app.id {
            place.timer?.cancel()
            leaving[path] = nil
        }
    }
}
