// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EventLoop
import Lifecycle
import Linux
import Processes

/// The cgroups of scenes inside apps (`scenes.cgroups`), which are below the app's cgroup. The app moves the
/// processes that work for a scene into that scene's cgroup.
///
/// A cgroup is made before its scene connects, and removed when the scene is gone; processes left in it are killed.
/// The cgroup is frozen when its scene has been in the background for the app's `background_time`. It is thawed
/// before the scene gets a message, while a hold keeps the app in the background, and before the app ends.
final class SceneCgroups {
    private final class Place {
        let path: String
        var isFrozen = false
        /// Whether the scene was told to disconnect.
        var isOver = false
        /// Fires when the cgroup must be frozen, or when to retry its removal.
        var timer: TimerSource?
        /// The background time for which the timer was armed.
        var time: Duration?
        /// The delay until the next try to remove the cgroup while processes are left in it.
        var delay = Duration.milliseconds(1)

        init(_ path: String) { self.path = path }

        func cancel() {
            timer?.cancel()
            timer = nil
        }
    }

    /// The cgroups of one app's scenes.
    private struct Places {
        var connected: [SceneID: Place] = [:]
        /// The cgroups of scenes that are gone, by path.
        var leaving: [String: Place] = [:]
    }

    private unowned(unsafe) let scenes: InnerScenes
    private var places: [AppID: Places] = [:]

    init(_ scenes: InnerScenes) { self.scenes = scenes }

    /// The first character of the names of scenes' cgroups. No file that the kernel creates in a cgroup has a name that
    /// begins with this character.
    private static let prefix = "@"

    private func warn(_ app: AppRuntime, _ text: String) { scenes.supervisor.log.warning("\(app.name): \(text)") }

    // MARK: Making

    /// Makes the cgroup of a scene that is about to connect, and returns its path; nil if the scene gets no cgroup.
    func make(for scene: SceneID, named name: String, _ app: AppRuntime) -> String? {
        guard app.specification.innerScenes?.hasCgroups == true,
            scenes.machine(of: scene, app)?.awaiting == .sceneWillConnect
        else { return nil }
        guard let above = app.run.tree?.cgroupPath else {
            warn(app, "no cgroup for its scene \(name): the app has none")
            return nil
        }
        let path = above + "/" + Self.prefix + name
        let old = places[app.id]?.connected.removeValue(forKey: scene)
        let left = places[app.id]?.leaving.removeValue(forKey: path)
        old?.cancel()
        left?.cancel()
        do throws(Errno) {
            if try !Cgroup.create(path) {
                // The cgroup may still exist from the scene's last connection, which ended a moment ago: kill the
                // processes that are left in it.
                if left != nil || old?.isOver == true { kill(path, app) }
                try Cgroup.freeze(path, false)
            }
            if Users.isRoot { try giveAway(path, below: above, app) }
        } catch {
            warn(app, "no cgroup for its scene \(name) (\(error))")
            if File.exists(path) { remove(Place(path), app) }
            return nil
        }
        places[app.id, default: Places()].connected[scene] = Place(path)
        return path
    }

    /// Lets the app's user move processes between the cgroups below the app's cgroup. The user cannot move a process
    /// out of the app's cgroup, because that needs write access to a cgroup above it (cgroups(7)).
    private func giveAway(_ path: String, below above: String, _ app: AppRuntime) throws(Errno) {
        let file = "/cgroup.procs"
        // Keep the owner that was set first, even if the configuration now names another user: the app still runs as
        // the user that it was launched as.
        let owner = try File.status(above + file).uid
        let user = owner != 0 ? owner : app.isOutdated ? nil : app.account?.user?.uid
        guard let user else { return }
        if owner == 0 { try File.setOwner(above + file, uid: user, gid: nil) }
        try File.setOwner(path + file, uid: user, gid: nil)
    }

    /// Takes over the cgroups that an earlier torpord has made.
    func adopt(of app: AppRuntime) {
        let machines = scenes.machine(app).sceneMachines
        // If an app was found without a record, its scenes are unknown, so their cgroups are not changed.
        guard let above = app.run.tree?.cgroupPath, !machines.isEmpty else { return }
        for path in Cgroup.children(above) {
            guard let name = path.split(separator: "/").last, name.hasPrefix(Self.prefix) else { continue }
            let place = Place(path)
            place.isFrozen = Cgroup.isFreezeWanted(path)
            if let scene = scenes.knownNumber(of: app.name + name),
                let machine = machines.first(where: { $0.id == scene }), Self.isThere(machine)
            {
                place.isOver = machine.awaiting == .sceneDidDisconnect
                places[app.id, default: Places()].connected[scene] = place
            } else {
                remove(place, app)
            }
        }
    }

    // MARK: What becomes of them

    /// Thaws the cgroup of a scene that is about to get a message.
    func wake(_ scene: SceneID, for message: Message, _ app: AppRuntime) {
        guard let place = places[app.id]?.connected[scene] else { return }
        if message == .sceneDidDisconnect { place.isOver = true }
        wake(place)
    }

    private func wake(_ place: Place) {
        place.cancel()
        guard place.isFrozen else { return }
        place.isFrozen = false
        try? Cgroup.freeze(place.path, false)
    }

    /// Freezes, thaws and removes cgroups as the states of the app and its scenes require.
    func look(at app: AppRuntime) {
        guard let mine = places[app.id] else { return }
        let above = scenes.machine(app)
        let machines = Dictionary(above.sceneMachines.map { ($0.id, $0) }) { first, _ in first }
        for (scene, place) in mine.connected {
            guard let machine = machines[scene], Self.isThere(machine) else {
                places[app.id]?.connected[scene] = nil
                remove(place, app)
                continue
            }
            if Self.rests(machine, in: above) { rest(place, of: scene, app) } else { wake(place) }
        }
        for place in mine.leaving.values where place.timer == nil { remove(place, app) }
    }

    /// Freezes the cgroup once its scene's background time is over.
    private func rest(_ place: Place, of scene: SceneID, _ app: AppRuntime) {
        // The configured time may have changed since the cgroup was frozen or the timer was armed.
        guard let time = app.specification.rules.backgroundTime else { return wake(place) }
        guard !place.isFrozen, place.timer == nil || place.time != time else { return }
        place.cancel()
        place.time = time
        place.timer = try? scenes.loop.timer { [weak self, weak app] in
            guard let self, let app, places[app.id]?.connected[scene] === place else { return }
            place.cancel()
            guard let machine = scenes.machine(of: scene, app), Self.rests(machine, in: scenes.machine(app)) else {
                return
            }
            freeze(place, app)
        }
        place.timer?.arm(after: time)
    }

    private func freeze(_ place: Place, _ app: AppRuntime) {
        keepMainOut(of: place.path, app)
        do throws(Errno) {
            try Cgroup.freeze(place.path, true)
            place.isFrozen = true
        } catch {
            warn(app, "\(place.path) cannot be frozen (\(error))")
        }
    }

    /// Moves the main process back into the app's own cgroup: it works for all scenes, so it must not be frozen with
    /// one of them.
    private func keepMainOut(of path: String, _ app: AppRuntime) {
        guard let tree = app.run.tree, let above = tree.cgroupPath, !tree.mainHasEnded, let mount = Cgroup.mount,
            let place = try? ProcFS.cgroup(tree.main.pid), Self.isWithin(mount + place, path)
        else { return }
        warn(app, "its main process has moved to \(path), which is for processes of one scene: moving it back")
        try? Cgroup.add(above, pid: tree.main.pid)
    }

    private static func isWithin(_ path: String, _ above: String) -> Bool {
        path == above || path.hasPrefix(above + "/")
    }

    /// Whether a scene is connected, or about to be connected.
    private static func isThere(_ machine: SceneMachine) -> Bool {
        machine.state > .unattached || machine.awaiting != nil
    }

    /// Whether a scene's cgroup may be frozen: the scene is in the background and has answered its messages, and its
    /// app is neither ending nor kept in the background by a hold.
    private static func rests(_ machine: SceneMachine, in app: AppMachine) -> Bool {
        machine.state == .background && machine.awaiting == nil && app.transition != .terminating && !app.isHeld
    }

    /// What is in a scene's cgroup; nil if the scene has no cgroup.
    func contents(of scene: SceneID, _ app: AppRuntime) -> (processes: Int, isFrozen: Bool)? {
        guard let place = places[app.id]?.connected[scene] else { return nil }
        return ((try? Cgroup.procs(place.path).count) ?? 0, place.isFrozen)
    }

    // MARK: Removing

    /// Kills the processes that are left in a cgroup, and removes it.
    private func remove(_ place: Place, _ app: AppRuntime) {
        place.cancel()
        place.timer = try? scenes.loop.timer { [weak self, weak place, weak app] in
            if let self, let place, let app { pass(place, app) }
        }
        places[app.id, default: Places()].leaving[place.path] = place
        pass(place, app)
    }

    private func pass(_ place: Place, _ app: AppRuntime) {
        guard places[app.id]?.leaving[place.path] === place else { return }
        do throws(Errno) {
            try Cgroup.removeTree(place.path)
        } catch  where error == .resourceBusy {
            kill(place.path, app)
            place.timer?.arm(after: place.delay)
            place.delay = min(place.delay * 2, .seconds(10))
            return
        } catch {
            warn(app, "\(place.path) cannot be removed (\(error))")
        }
        places[app.id]?.leaving[place.path] = nil
        place.cancel()
    }

    private func kill(_ path: String, _ app: AppRuntime) {
        keepMainOut(of: path, app)
        if (try? Cgroup.kill(path)) != nil { return }
        // Linux before 5.14 has no cgroup.kill: kill each process instead.
        for pid in (try? Cgroup.procs(path)) ?? [] {
            guard let process = try? Pidfd.open(pid), let place = try? ProcFS.cgroup(pid), let mount = Cgroup.mount,
                Self.isWithin(mount + place, path)
            else { continue }
            try? Pidfd.sendSignal(process.raw, Signal.kill)
        }
    }

    /// Forgets the cgroups of an app that has ended. They were removed together with the app's own cgroup.
    func forget(_ app: AppRuntime) {
        guard let mine = places.removeValue(forKey: app.id) else { return }
        for place in mine.connected.values { place.cancel() }
        for place in mine.leaving.values { place.cancel() }
    }
}
