// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
package import Lifecycle
import Linux
package import TorporAPI
package import VarlinkServer

/// State archives: state that an app saves, so that it can continue after an eviction, a crash or a reboot.
///
/// Archives are only on disk; memory has no copy. An archive stays until a user stops the app, the app exits
/// successfully, or the app discards it. If a launch with an archive fails, the archive is set aside.
package final class SavedStates: Room, LifecycleObserver {
    package let engine: Engine
    package let recorder: Recorder
    /// The rest of the supervisor, which owns this object.
    package unowned(unsafe) let host: any ArchiveHost
    let folders: StateArchives
    private let imports = StateImports()
    private let reads: BackgroundWorker
    private var followers: [(token: Int, call: (AppRuntime) -> Void)] = []
    private var nextToken = 0

    package init(_ engine: Engine, _ recorder: Recorder, _ host: any ArchiveHost) {
        self.engine = engine
        self.recorder = recorder
        self.host = host
        folders = StateArchives(loop: engine.loop)
        reads = BackgroundWorker(engine.loop, named: "archives")
    }

    /// From now on, calls `call` each time that the archive of an app (not of a scene) was saved or removed. Returns a
    /// token for ``unfollow(_:)``.
    package func follow(_ call: @escaping (AppRuntime) -> Void) -> Int {
        nextToken += 1
        followers.append((nextToken, call))
        return nextToken
    }

    package func unfollow(_ token: Int) { followers.removeAll { $0.token == token } }

    private func changed(_ app: AppRuntime?) {
        guard let app else { return }
        for follower in followers { follower.call(app) }
    }

    /// Discards the app's archive, sets it aside or leaves it, depending on how the app ended.
    package func ended(_ app: AppRuntime, _ ending: Ending) {
        // An app that is removed because it is a scene inside another app from now on leaves its state to that scene.
        let isKept = app.keepsStateWhenStopped == true || host.isScene(named: app.name)
        let reason = machine(app).lastEnding ?? ending.reason
        let isOver = !isKept && !reason.keepsState
        if isKept { keepArchive(of: app) }
        let isDone = isOver && app.specification.rules.isOneshot
        if app.restoration == .offered, ending.transition == .launching, ending.cause != nil, !isDone,
            !ending.reason.wasAskedFor, !ending.reason.isReplacement, mayHaveRead(app)
        {
            return setArchiveAside(app, "the launch that should have restored it failed")
        }
        if app.restoration == .offered { app.restoration = nil }
        let isRemoved = reason == .stopped && coordinator.isLeaving(app.id)
        if isOver { discardArchive(app, isRemoved ? Self.removal(of: app) : Self.sentence(reason)) }
    }

    /// Whether the app may have read the archive that it was offered, before its launch failed. An app whose launch
    /// ends when its delegate answers reads the archive only after torpord's message to restore its state. Any other
    /// program finds the archive through its environment at once.
    private func mayHaveRead(_ app: AppRuntime) -> Bool {
        let timeline = app.run.timeline
        // If this torpord took over during the launch, assume that the earlier torpord sent the message to restore the
        // state.
        return app.specification.rules.readiness != .delegate || timeline.time(of: .told(.restoreState)) != nil
            || timeline.time(of: .supervisorReplaced) != nil
    }

    package func forget(_ app: AppRuntime) {
        // The name of the removed app may now be that of a scene inside another app, which then uses the folder: keep
        // the folder.
        if host.isScene(named: app.name) { return }
        let (folder, links) = (archives(of: app), sceneLinks(of: app))
        if File.exists(links.path) { folders.ask(.remove, in: links) { _ in } }
        guard File.exists(folder.path) || folders.isBusy(folder) else { return }
        let name = app.name
        folders.ask(.remove, in: folder) { [weak self] outcome in
            if case .failure(let failure) = outcome {
                self?.log.warning("the state archive of \(name) cannot be removed: \(failure)")
            }
        }
    }

    /// The folder of the archives of an app, or of a scene inside it.
    package func archives(of app: AppRuntime, scene: String? = nil) -> ArchiveFolder {
        var folder = ArchiveFolder(path: host.stateFolder + "/archives/" + Self.name(of: app, scene: scene))
        if let scene { folder.mirror = sceneLinks(of: app).path + "/" + scene }
        return folder
    }

    /// The folder with links to the archives of the app's scenes. Only an app in a sandbox has it. No app and no scene
    /// can have its name.
    package func sceneLinks(of app: AppRuntime) -> ArchiveFolder {
        ArchiveFolder(path: host.stateFolder + "/archives/" + app.name + "@")
    }

    /// The name of the archive folder of an app, or of a scene inside it.
    static func name(of app: AppRuntime, scene: String?) -> String {
        scene.map { AppName.scene(app.name, $0) } ?? app.name
    }

    /// Calls `completion` when all work that was requested so far in the app's archive folder is done.
    package func whenDone(_ app: AppRuntime, scene: String? = nil, _ completion: @escaping () -> Void) {
        folders.whenDone(archives(of: app, scene: scene), completion)
    }

    // MARK: What apps ask

    /// Saves an archive. `completion` is called with the archive's size in bytes once the archive is durable.
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
                // If a user forced the app to run although this machine does not own it, the saved state is not the
                // owner's state. So forget the digest of the owner's state.
                if scene == nil, self.coordinator.machine(app.id).ownership == .forced { app.importedDigest = nil }
                // Jobs in a folder are done in order. So the failed archive was set aside before the new archive was
                // saved, and nothing remains to be done with it.
                if scene == nil, app.restoration == .failed {
                    app.restoration = nil
                    self.record(app)
                }
                let whose = scene.map { "the state of its scene \($0)" } ?? "its state"
                self.note(app, .stateKept, text: "saved \(whose), \(bytes) byte\(bytes == 1 ? "" : "s")")
                if scene == nil {
                    app.run.stateNotKeptIn = nil
                    self.changed(app)
                }
            }
            completion(outcome)
            let sentence: String
            switch outcome {
            case .success, .failure(.refused): return
            case .failure(.tooLarge(let limit)):
                sentence = "it is larger than the \(limit) bytes that state_limit allows"
            case .failure(.failed(let reason)): sentence = reason
            }
            // Report only the first of several failures, because a full disk stays full.
            guard let self, let app, app.run.stateNotKeptIn != incarnation else { return }
            app.run.stateNotKeptIn = incarnation
            self.note(app, .stateNotKept, text: "could not save its state: \(sentence)")
        }
    }

    /// Whether the folder's archive is about to be removed or set aside, so that it counts as absent.
    func takesAway(_ folder: ArchiveFolder) -> Bool { folders.takesAway(folder) }

    /// The content that an app wants to save: data, or a file in its state directory.
    package func given(
        by app: AppRuntime,
        _ peer: Peer,
        data: String?,
        file: String?
    ) -> Result<ArchiveContent, ArchiveFailure> {
        switch (data, file) {
        case (let data?, nil): return .success(.data(data))
        case (nil, let name?):
            // An app that was started as root may have changed its user, so its files may also belong to the user
            // that the app's process has now.
            let owners = ownUsers(of: app).union([peer.uid])
            return .success(.file(name: name, directory: stateDirectory(of: app), owners: owners))
        case (nil, nil): return .failure(.refused("nothing to keep: give data or file"))
        case (_?, _?): return .failure(.refused("give either data or file, not both"))
        }
    }

    /// The users that own files of the app.
    func ownUsers(of app: AppRuntime) -> Set<UInt32> { host.userID(of: app).map { [$0] } ?? [] }

    /// Removes the archive, because the app requested the removal.
    package func discardState(
        of app: AppRuntime,
        scene: String? = nil,
        _ completion: @escaping (Result<UInt64, ArchiveFailure>) -> Void
    ) {
        folders.ask(.discard, in: archives(of: app, scene: scene)) { [weak self, weak app] outcome in
            if scene == nil, case .success = outcome { self?.changed(app) }
            completion(outcome)
        }
    }

    // MARK: What scenes inside apps get

    /// The archive for a scene that is connecting; nil if there is none.
    package func found(of app: AppRuntime, scene: String) -> ArchiveFolder.Found? {
        let folder = archives(of: app, scene: scene)
        guard !folders.takesAway(folder), let found = folder.found, !isForeign(found, app) else { return nil }
        return folder.foundInMirror ?? found
    }

    /// Sets a scene's archive aside, so that the scene does not get it again.
    package func setAside(of app: AppRuntime, scene: String, _ why: String) {
        let run = machine(app).incarnation
        folders.setAside(in: archives(of: app, scene: scene)) { [weak self, weak app] outcome in
            guard let self, let app else { return }
            let text = "continues without the saved state of its scene \(scene): \(why)"
            let name = app.name + "@" + scene
            let rest = Self.sentence(outcome) { "; ‘torpor state import \(name) --raw \($0)’ gives it back" }
            self.recorder.note(app, .stateSetAside, incarnation: run, text: text + rest)
        }
    }

    /// What an event says of an archive after the reason why it was set aside. `remedy` is given the archive's path.
    private static func sentence(
        _ outcome: Result<ArchiveFolder.Aside?, ArchiveFailure>,
        _ remedy: (String) -> String
    ) -> String {
        switch outcome {
        case .failure(.failed(let reason)), .failure(.refused(let reason)):
            return "; it could not be set aside: \(reason)"
        // Nothing is larger than a limit here. Without an archive, the app has removed it itself.
        case .failure(.tooLarge), .success(nil): return ""
        case .success(let aside?):
            let most = "; there were too many, so that earlier ones were removed: "
            return remedy(aside.path) + (aside.removed.isEmpty ? "" : most + aside.removed.joined(separator: ", "))
        }
    }

    /// The folder that TORPOR_STATE_DIRECTORY names, in which the app may store files.
    package func stateDirectory(of app: AppRuntime) -> String { host.stateFolder + "/apps/" + app.name }

    private func archiveOwner(_ app: AppRuntime) -> ArchiveOwner? {
        guard Users.isRoot, let user = try? host.user(of: app) else { return nil }
        return ArchiveOwner(uid: user.uid, gid: user.gid)
    }

    // MARK: What clients move to another machine

    /// Reads a part of the archive of an app, or of a scene inside it.
    package func export(
        _ app: AppRuntime,
        scene: String? = nil,
        at offset: UInt64,
        _ completion: @escaping (StatePart) -> Void
    ) {
        let folder = archives(of: app, scene: scene)
        guard !folders.takesAway(folder) else { return completion(StatePart(savedAt: nil)) }
        reads.ask({ folder.part(at: offset) }, completion)
    }

    /// Stores a part of a state that a client sends for the app's next launch, or for the next time that a scene inside
    /// the app connects. `completion` gets the number of bytes
    /// received so far; after the last part, once the state is durable, the size of the whole state.
    package func take(
        _ request: ImportStateRequest,
        from connection: UInt64,
        for app: AppRuntime,
        scene: String? = nil,
        _ completion: @escaping (Result<UInt64, ArchiveFailure>) -> Void
    ) {
        let state: [UInt8]?
        do throws(ArchiveFailure) {
            state = try imports.take(request, from: connection, now: now)
        } catch {
            return completion(.failure(error))
        }
        guard let state else { return completion(.success(UInt64(request.offset) + UInt64(request.data.count))) }
        let work: StateArchives.Work =
            state.isEmpty
            ? .discard : .save(.bytes(state), limit: app.specification.stateLimit, owner: archiveOwner(app))
        folders.ask(work, in: archives(of: app, scene: scene)) { [weak self, weak app] outcome in
            if let self, let app, case .success(let bytes) = outcome {
                let what = scene.map { "a state of its scene \($0)" } ?? "a state"
                let size = "\(bytes) byte\(bytes == 1 ? "" : "s")"
                if scene == nil {
                    app.restoration = nil
                    app.importedDigest = request.digest
                    self.record(app)
                }
                self.note(app, .stateKept, text: "got \(what) from elsewhere, \(size)")
                if scene == nil { self.changed(app) }
            }
            completion(outcome)
        }
    }

    // MARK: What launches get

    /// The archive that this launch gets; nil for none. An archive that no launch may get any longer is discarded.
    package func archiveToRestore(_ app: AppRuntime, _ order: LaunchOrder) -> ArchiveFolder.Found? {
        let folder = archives(of: app)
        // If the app was to keep its state when it was stopped, the archive is valid even if ``keepArchive(of:)`` has not
        // made it newer than the app's end yet.
        let isKept = app.keepsStateWhenStopped == true
        app.keepsStateWhenStopped = nil
        if app.restoration == .failed {
            // The launch with this archive failed, but an earlier torpord ended before it could set the archive aside.
            // Do so now.
            if !folders.takesAway(folder) { setAside(app, folder, "an earlier launch with it failed") }
            return nil
        }
        app.restoration = nil
        guard let found = folder.found, !folders.takesAway(folder), !isForeign(found, app) else { return nil }
        guard isKept || isRestorable(found, app, order) else {
            discardArchive(app, "it was stopped or had done its work")
            return nil
        }
        app.restoration = .offered
        record(app)
        return found
    }

    private func isRestorable(_ found: ArchiveFolder.Found, _ app: AppRuntime, _ order: LaunchOrder) -> Bool {
        let known = app.lastExit.flatMap { TerminationReason(rawValue: $0.reason) }
        if order.previousEnding?.keepsState ?? true, known?.keepsState ?? true { return true }
        // The last known ending may be that of an earlier run, if torpord did not see the app's last run end. So an
        // archive that was saved after that ending may be restored.
        return app.lastExit?.at.map { found.savedAt > $0 } ?? false
    }

    /// Keeps the archive for the next launch, because the app declined to restore its state now.
    package func restorationDeclined(_ app: AppRuntime) {
        guard app.restoration == .offered else { return }
        app.restoration = nil
        record(app)
    }

    /// Sets the archive aside, because the app reported that it could not restore its state from the archive.
    package func restorationFailed(_ app: AppRuntime, _ text: String?) {
        guard app.restoration == .offered else { return }
        setArchiveAside(app, "the app could not restore it" + (text.map { " (\($0))" } ?? ""))
    }

    /// Discards the archive of an app that does not run, because a user stopped or force-quit it.
    package func personEnds(_ app: AppRuntime) {
        if !coordinator.machine(app.id).isAlive { discardArchive(app, Self.sentence(.stopped)) }
    }

    /// Keeps the archive for the next launch although a user has stopped the app, by making the archive newer than
    /// the app's end (``isRestorable(_:_:_:)``).
    package func keepArchive(of app: AppRuntime) {
        let folder = archives(of: app)
        guard folder.found != nil else { return }
        folders.ask(.renew, in: folder) { [weak self, weak app] outcome in
            self?.changed(app)
            guard let app, case .failure(let failure) = outcome else { return }
            self?.log.warning("\(app.name): its state archive cannot be kept for the next launch: \(failure)")
        }
    }

    private func discardArchive(_ app: AppRuntime, _ why: String) {
        let folder = archives(of: app)
        guard folder.found != nil || folders.isBusy(folder) else { return }
        let run = machine(app).incarnation
        folders.ask(.discard, in: folder) { [weak self, weak app] outcome in
            self?.changed(app)
            guard let self, let app else { return }
            switch outcome {
            case .success:
                let text = "no longer has a saved state: \(why)"
                self.recorder.note(app, .stateRemoved, incarnation: run, text: text)
            case .failure(let failure):
                self.log.warning("\(app.name): its state archive cannot be removed: \(failure)")
            }
        }
    }

    private static func removal(of app: AppRuntime) -> String {
        app.specification.scene == nil ? "the app was removed from the configuration" : "the scene was discarded"
    }

    /// Why an app that ended for this reason loses its state.
    private static func sentence(_ reason: TerminationReason) -> String {
        switch reason {
        case .stopped: "it was stopped without --keep-state"
        case .forceQuit: "it was force-quit"
        default: "it ended for the reason \(reason.rawValue)"
        }
    }

    func setArchiveAside(_ app: AppRuntime, _ why: String) {
        let folder = archives(of: app)
        app.restoration = .failed
        record(app)
        setAside(app, folder, why)
    }

    private func setAside(_ app: AppRuntime, _ folder: ArchiveFolder, _ why: String) {
        let run = machine(app).incarnation
        folders.setAside(in: folder) { [weak self, weak app] outcome in
            guard let self, let app else { return }
            self.changed(app)
            // Only now is it known which name it has, and whether another one had to be removed for it.
            let rest = Self.sentence(outcome) { "; ‘torpor state import \(app.name) --raw \($0)’ gives it back" }
            let text = "continues without its saved state: \(why)" + rest
            self.recorder.note(app, .stateSetAside, incarnation: run, text: text)
            // After a failure, torpord tries again before the next launch.
            guard app.restoration == .failed, case .success = outcome else { return }
            app.restoration = nil
            self.record(app)
        }
    }
}

extension ArchiveInfo {
    /// Converts an archive to the form that clients get.
    package init(_ found: ArchiveFolder.Found) {
        self.init(path: found.path, bytes: Int64(clamping: found.bytes), at: found.savedAt)
    }
}

/// What became of the archive that a launch got.
package enum Restoration: UInt8 {
    /// The archive was offered to the incarnation that runs or is being launched.
    case offered = 1
    /// The launch or the restoration failed, and the archive is being set aside.
    case failed = 2
}

extension AppRuntime {
    /// What became of the archive that the app got at its launch. Nil if the app got none, or if nothing remains to be
    /// done with the archive.
    package var restoration: Restoration? {
        get { slots[RestorationSlot.self] }
        set { slots[RestorationSlot.self] = newValue }
    }
}

private enum RestorationSlot: Slot { typealias Value = Restoration }

extension AppRuntime {
    /// Whether the app is being stopped, or was, in such a way that the next launch gets its state: by a user who wants
    /// that, or because an app that it requires is replaced. Nil for no.
    package var keepsStateWhenStopped: Bool? {
        get { slots[KeepsStateSlot.self] }
        set { slots[KeepsStateSlot.self] = newValue }
    }
}

private enum KeepsStateSlot: Slot { typealias Value = Bool }

extension AppRuntime {
    /// The digest of the state that was imported since this machine last owned the app, as the sender gave it. It is
    /// not persisted. So after a restart of torpord the digest is missing, and a user has to claim the state, like a
    /// state that was brought here in any other way.
    package var importedDigest: String? {
        get { slots[ImportedDigestSlot.self] }
        set { slots[ImportedDigestSlot.self] = newValue }
    }
}

private enum ImportedDigestSlot: Slot { typealias Value = String }

extension Incarnation {
    /// The incarnation (run of the app) in which saving its state failed and has not succeeded since. Its later failures
    /// are not reported.
    package var stateNotKeptIn: UInt32? {
        get { slots[StateNotKeptInSlot.self] }
        set { slots[StateNotKeptInSlot.self] = newValue }
    }
}

private enum StateNotKeptInSlot: Slot { typealias Value = UInt32 }
