// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
package import Lifecycle
import Linux
package import TorporAPI
package import VarlinkServer

/// State archives: what an app saves of itself, so that a launch after an eviction, a crash or a reboot goes on from there.
///
/// What there is, the disk says: nothing of it is in memory. An archive is there until somebody wanted the app ended, it
/// ended with success, or it says so itself; one with which a launch did not come up is set aside.
package final class SavedStates: Room, LifecycleObserver {
    package let engine: Engine
    package let recorder: Recorder
    /// What it needs of the other rooms. It owns this one.
    package unowned(unsafe) let host: any ArchiveHost
    private let folders: StateArchives

    package init(_ engine: Engine, _ recorder: Recorder, _ host: any ArchiveHost) {
        self.engine = engine
        self.recorder = recorder
        self.host = host
        folders = StateArchives(loop: engine.loop)
    }

    /// What becomes of the archive.
    package func ended(_ app: AppRuntime, _ ending: Ending) {
        let isOver = !(machine(app).lastEnding ?? ending.reason).keepsState
        let isDone = isOver && app.specification.rules.isOneshot
        if app.restoration == .offered, ending.transition == .launching, ending.cause != nil, !isDone,
            !ending.reason.wasAskedFor, ending.reason != .replaced
        {
            return setArchiveAside(app, "the launch that should have restored it failed")
        }
        if app.restoration == .offered { app.restoration = nil }
        if isOver { discardArchive(app) }
    }

    package func forget(_ app: AppRuntime) {
        // It goes on as a scene inside another one.
        if host.isScene(named: app.name) { return }
        let folder = archives(of: app)
        guard File.exists(folder.path) || folders.isBusy(folder) else { return }
        let name = app.name
        folders.ask(.remove, in: folder) { [weak self] outcome in
            if case .failure(let failure) = outcome {
                self?.log.warning("the state archive of \(name) cannot be removed: \(failure)")
            }
        }
    }

    /// Where an app's archives are.
    package func archives(of app: AppRuntime, scene: String? = nil) -> ArchiveFolder {
        ArchiveFolder(path: host.stateFolder + "/archives/" + Self.name(of: app, scene: scene))
    }

    /// What a folder is called that is of an app, or of a scene inside it.
    static func name(of app: AppRuntime, scene: String?) -> String {
        scene.map { AppName.scene(app.name, $0) } ?? app.name
    }

    /// Calls back when all that was asked for in the app's folder by now is done.
    package func whenDone(_ app: AppRuntime, scene: String? = nil, _ completion: @escaping () -> Void) {
        folders.whenDone(archives(of: app, scene: scene), completion)
    }

    // MARK: What apps ask

    /// Keeps an archive; `completion` is called when it is durable, with its bytes.
    package func saveState(
        of app: AppRuntime,
        scene: String? = nil,
        data: String?,
        file: String?,
        by peer: Peer,
        _ completion: @escaping (Result<UInt64, ArchiveFailure>) -> Void
    ) {
        let content: ArchiveContent
        switch given(by: app, peer, data: data, file: file) {
        case .success(let given): content = given
        case .failure(let failure): return completion(.failure(failure))
        }
        let incarnation = coordinator.machine(app.id).incarnation
        folders.ask(
            .save(content, limit: app.specification.stateLimit, owner: archiveOwner(app)),
            in: archives(of: app, scene: scene)
        ) { [weak self, weak app] outcome in
            if let self, let app, case .success(let bytes) = outcome {
                // What was to be set aside was, before this was written.
                if scene == nil, app.restoration == .failed {
                    app.restoration = nil
                    self.record(app)
                }
                let whose = scene.map { "the state of its scene \($0)" } ?? "its state"
                self.note(app, .stateKept, text: "saved \(whose), \(bytes) byte\(bytes == 1 ? "" : "s")")
            }
            completion(outcome)
            // Said once a run: a full disk stays full.
            guard let self, let app, case .failure(.failed(let sentence)) = outcome,
                app.run.stateNotKeptIn != incarnation
            else { return }
            app.run.stateNotKeptIn = incarnation
            self.note(app, .stateNotKept, text: "could not save its state: \(sentence)")
        }
    }

    /// Whether an archive may be removed or set aside in a moment: it is as if it were not there.
    func takesAway(_ folder: ArchiveFolder) -> Bool { folders.takesAway(folder) }

    /// What an app gives to be kept: bytes, or the name of a file in its state directory.
    package func given(
        by app: AppRuntime,
        _ peer: Peer,
        data: String?,
        file: String?
    ) -> Result<ArchiveContent, ArchiveFailure> {
        switch (data, file) {
        case (let data?, nil): return .success(.data(data))
        case (nil, let name?):
            // Who runs as root may have given its user up.
            let owners = ownUsers(of: app).union([peer.uid])
            return .success(.file(name: name, directory: stateDirectory(of: app), owners: owners))
        case (nil, nil): return .failure(.refused("nothing to keep: give data or file"))
        case (_?, _?): return .failure(.refused("give either data or file, not both"))
        }
    }

    /// Whose files are the app's own.
    func ownUsers(of app: AppRuntime) -> Set<UInt32> { host.userID(of: app).map { [$0] } ?? [] }

    /// Forgets the archive, as the app asks.
    package func discardState(
        of app: AppRuntime,
        scene: String? = nil,
        _ completion: @escaping (Result<UInt64, ArchiveFailure>) -> Void
    ) {
        folders.ask(.discard, in: archives(of: app, scene: scene), completion)
    }

    // MARK: What scenes inside apps get

    /// What a scene that is connected now gets back; nil for nothing.
    package func found(of app: AppRuntime, scene: String) -> ArchiveFolder.Found? {
        let folder = archives(of: app, scene: scene)
        return folders.takesAway(folder) ? nil : folder.found
    }

    /// Puts what a scene has saved where it is not given back any more.
    package func setAside(of app: AppRuntime, scene: String, _ why: String) {
        let folder = archives(of: app, scene: scene)
        note(
            app,
            .stateSetAside,
            text: "continues without the saved state of its scene \(scene): \(why); it is kept as \(folder.aside)"
        )
        folders.ask(.setAside, in: folder) { [weak self, weak app] outcome in
            guard let app, case .failure(let failure) = outcome else { return }
            self?.log.warning("\(app.name): the state archive of its scene \(scene) cannot be set aside: \(failure)")
        }
    }

    /// TORPOR_STATE_DIRECTORY.
    package func stateDirectory(of app: AppRuntime) -> String { host.stateFolder + "/apps/" + app.name }

    private func archiveOwner(_ app: AppRuntime) -> ArchiveOwner? {
        guard Users.isRoot, let user = try? host.user(of: app) else { return nil }
        return ArchiveOwner(uid: user.uid, gid: user.gid)
    }

    // MARK: What launches get

    /// The archive that this launch gets; nil for none. One that no launch is to get any more goes.
    package func archiveToRestore(_ app: AppRuntime, _ order: LaunchOrder) -> ArchiveFolder.Found? {
        let folder = archives(of: app)
        if app.restoration == .failed {
            // Its torpord ended before that was done.
            if !folders.takesAway(folder) { setAside(app, folder) }
            return nil
        }
        app.restoration = nil
        guard let found = folder.found, !folders.takesAway(folder) else { return nil }
        guard isRestorable(found, app, order) else {
            discardArchive(app)
            return nil
        }
        app.restoration = .offered
        record(app)
        return found
    }

    private func isRestorable(_ found: ArchiveFolder.Found, _ app: AppRuntime, _ order: LaunchOrder) -> Bool {
        let known = app.lastExit.flatMap { TerminationReason(rawValue: $0.reason) }
        if order.previousEnding?.keepsState ?? true, known?.keepsState ?? true { return true }
        // The ending that is known may be an older one: of a run after it nobody has seen the end.
        return app.lastExit?.at.map { found.savedAt > $0 } ?? false
    }

    /// The app does not want what it was offered: the next launch gets it.
    package func restorationDeclined(_ app: AppRuntime) {
        guard app.restoration == .offered else { return }
        app.restoration = nil
        record(app)
    }

    /// The app has said that it could not restore its state.
    package func restorationFailed(_ app: AppRuntime, _ text: String?) {
        guard app.restoration == .offered else { return }
        setArchiveAside(app, "the app could not restore it" + (text.map { " (\($0))" } ?? ""))
    }

    /// A person stops or force-quits an app that does not run.
    package func personEnds(_ app: AppRuntime) {
        if !coordinator.machine(app.id).isAlive { discardArchive(app) }
    }

    private func discardArchive(_ app: AppRuntime) {
        let folder = archives(of: app)
        guard folder.found != nil || folders.isBusy(folder) else { return }
        folders.ask(.discard, in: folder) { [weak self, weak app] outcome in
            guard let app, case .failure(let failure) = outcome else { return }
            self?.log.warning("\(app.name): its state archive cannot be removed: \(failure)")
        }
    }

    private func setArchiveAside(_ app: AppRuntime, _ why: String) {
        let folder = archives(of: app)
        app.restoration = .failed
        record(app)
        setAside(app, folder)
        note(
            app,
            .stateSetAside,
            text: "continues without its saved state: \(why); it is kept as \(folder.aside)"
        )
    }

    private func setAside(_ app: AppRuntime, _ folder: ArchiveFolder) {
        folders.ask(.setAside, in: folder) { [weak self, weak app] outcome in
            guard let self, let app else { return }
            if case .failure(let failure) = outcome {
                // Tried again before the next launch.
                return self.log.warning("\(app.name): its state archive cannot be set aside: \(failure)")
            }
            guard app.restoration == .failed else { return }
            app.restoration = nil
            self.record(app)
        }
    }
}

extension ArchiveInfo {
    /// For clients.
    package init(_ found: ArchiveFolder.Found) {
        self.init(path: found.path, bytes: Int64(clamping: found.bytes), at: found.savedAt)
    }
}

/// What has become of the archive that a launch got.
package enum Restoration: UInt8 {
    /// It was offered to the incarnation that lives, or is about to.
    case offered = 1
    /// It is being set aside.
    case failed = 2
}

extension AppRuntime {
    /// What has become of the state archive that it was offered at its launch.
    package var restoration: Restoration? {
        get { slots[RestorationSlot.self] }
        set { slots[RestorationSlot.self] = newValue }
    }
}

private enum RestorationSlot: Slot { typealias Value = Restoration }

extension Incarnation {
    /// The incarnation of which it was said that its state cannot be saved.
    var stateNotKeptIn: UInt32? {
        get { slots[StateNotKeptInSlot.self] }
        set { slots[StateNotKeptInSlot.self] = newValue }
    }
}

private enum StateNotKeptInSlot: Slot { typealias Value = UInt32 }
