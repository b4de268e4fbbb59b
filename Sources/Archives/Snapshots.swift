// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
import EventLoop
import Lifecycle
import Linux
package import TorporAPI
package import VarlinkServer

/// Snapshots: pictures or texts that show apps as they were when they were last in the background. The core decides
/// when a snapshot is taken. This class gets it from the configured source or from the app itself, and saves it.
///
/// Snapshots are only on disk; memory has only the time of each picture.
package final class Snapshots: Room, LifecycleObserver {
    package let engine: Engine
    package let recorder: Recorder
    /// The rest of the supervisor, which owns this object.
    package unowned(unsafe) let host: any ArchiveHost
    private let savedStates: SavedStates
    private let folders: StateArchives
    /// Limits how many snapshots are taken at once.
    private let queue: SnapshotQueue
    /// Reads snapshots for clients.
    private let reads: BackgroundWorker

    package init(_ engine: Engine, _ recorder: Recorder, _ host: any ArchiveHost, _ savedStates: SavedStates) {
        self.engine = engine
        self.recorder = recorder
        self.host = host
        self.savedStates = savedStates
        // Separate threads from those for archives, so that saving states does not wait for snapshots.
        folders = StateArchives(loop: engine.loop, workers: 2)
        queue = SnapshotQueue(engine.loop)
        reads = BackgroundWorker(engine.loop, named: "snapshots")
    }

    package func touched(_ apps: [AppRuntime]) { for app in apps { checkSnapshot(app) } }

    package func forget(_ app: AppRuntime) {
        app.snapshotRun = nil
        if !host.isScene(named: app.name) { removeSnapshot(of: app) }
    }

    /// The folder of the snapshot of an app, or of a scene inside it.
    package func snapshots(of app: AppRuntime, scene: String? = nil) -> ArchiveFolder {
        ArchiveFolder(path: host.stateFolder + "/snapshots/" + SavedStates.name(of: app, scene: scene))
    }

    /// Calls `completion` when all work that was requested so far in the app's snapshot folder is done.
    package func whenDone(_ app: AppRuntime, scene: String? = nil, _ completion: @escaping () -> Void) {
        folders.whenDone(snapshots(of: app, scene: scene), completion)
    }

    /// The app's snapshot; nil if there is none.
    package func found(of app: AppRuntime) -> SnapshotInfo? {
        let folder = snapshots(of: app)
        return folders.takesAway(folder) ? nil : folder.snapshot?.info
    }

    /// The file and type of the app's snapshot, if it is a picture; nil otherwise.
    package func picture(of app: AppRuntime) -> (path: String, kind: String)? {
        let folder = snapshots(of: app)
        guard !folders.takesAway(folder), let snapshot = folder.snapshot, let kind = snapshot.info.kind, kind != .text
        else {
            return nil
        }
        return (snapshot.path, kind.rawValue)
    }

    // MARK: Those that the configuration says

    /// Takes a snapshot, but not within a second after the beginning of the app's last one. If a snapshot is being
    /// taken, it is only marked as outdated, and another one follows it. So an app whose content changes all the time
    /// causes at most one snapshot per second.
    ///
    /// - Parameter isAnother: whether this snapshot replaces an outdated one. If so, this snapshot is not replaced,
    ///   even if it becomes outdated too.
    package func takeSnapshot(_ app: AppRuntime, isAnother: Bool = false) {
        guard let specification = app.specification.snapshot else { return snapshotIsOver(app) }
        if let run = app.snapshotRun {
            run.isOutdated = true
            return
        }
        let run = SnapshotRun(loop, queue) { [weak self, weak app] outcome in
            guard let self, let app else { return }
            let isOutdated = !isAnother && app.snapshotRun?.isOutdated ?? false
            app.snapshotRun = nil
            switch outcome {
            case .success(.file(let name, let directory, let owners)):
                // A background thread reads the file, because the disk may be slow. Until it has read the file, the app
                // must stay in the background.
                return self.keepSnapshot(.file(name: name, directory: directory, owners: owners), of: app) { _ in
                    // If another snapshot was requested since, the app stays in the background until that snapshot is
                    // taken.
                    if app.snapshotRun == nil { self.snapshotIsOver(app) }
                }
            case .success(let content): self.keepSnapshot(content, of: app)
            case .failure(let trouble): self.noteNoSnapshot(app, trouble.description)
            }
            if isOutdated { return self.takeSnapshot(app, isAnother: true) }
            // The snapshot is saved later, because the disk may be slow. The app need not wait for that.
            self.snapshotIsOver(app)
        }
        app.snapshotRun = run
        let wait = app.snapshotBegan.map { $0 + Self.betweenSnapshots - loop.now } ?? .zero
        run.begin(specification, after: wait, for: app, savedStates)
    }

    /// The shortest time between the beginnings of two snapshots of an app.
    private static let betweenSnapshots = Duration.seconds(1)

    /// Cancels a snapshot that the core no longer waits for: the app left the background or declined, or time is up.
    func checkSnapshot(_ app: AppRuntime) {
        guard app.snapshotRun != nil || app.snapshotBegan != nil else { return }
        let machine = coordinator.machine(app.id)
        guard !machine.awaitsSnapshot else { return }
        app.snapshotRun = nil
        // After the app has left the background, its next snapshot need not wait.
        if machine.state != .background { app.snapshotBegan = nil }
    }

    private func snapshotIsOver(_ app: AppRuntime) { deliver(.snapshotOver, to: app.id) }

    private func noteNoSnapshot(_ app: AppRuntime, _ why: String) {
        note(app, .snapshotNotTaken, text: "gave no snapshot: \(why)")
    }

    // MARK: Those that apps give

    /// Saves a snapshot that the app sends. `completion` is called with the size in bytes once the snapshot is durable.
    package func saveSnapshot(
        of app: AppRuntime,
        scene: String? = nil,
        data: String?,
        file: String?,
        by peer: Peer,
        _ completion: @escaping (Result<UInt64, ArchiveFailure>) -> Void
    ) {
        let machine = coordinator.machine(app.id)
        guard scene != nil || machine.isShownInBackground else {
            let sentence = "only an app in the background has a snapshot: \(app.name) is \(machine.state.rawValue)"
            return completion(.failure(.refused(sentence)))
        }
        switch savedStates.given(by: app, peer, data: data, file: file) {
        case .success(let content): keepSnapshot(content, of: app, scene: scene, completion)
        case .failure(let failure): completion(.failure(failure))
        }
    }

    /// Removes the snapshot of an app that shows something private. No other snapshot is taken until the app enters the
    /// background again.
    package func declineSnapshot(
        of app: AppRuntime,
        scene: String? = nil,
        _ completion: @escaping (Result<UInt64, ArchiveFailure>) -> Void = { _ in }
    ) {
        guard scene == nil else { return removeSnapshot(of: app, scene: scene, completion) }
        deliver(.declinedSnapshot, to: app.id)
        checkSnapshot(app)
        removeSnapshot(of: app, completion)
    }

    /// Removes the app's snapshot, because the app now works for another user, who must not see it.
    package func discardForIdentity(of app: AppRuntime) { removeSnapshot(of: app) }

    // MARK: What is kept

    private func keepSnapshot(
        _ content: ArchiveContent,
        of app: AppRuntime,
        scene: String? = nil,
        _ completion: @escaping (Result<UInt64, ArchiveFailure>) -> Void = { _ in }
    ) {
        let incarnation = coordinator.machine(app.id).incarnation
        folders.ask(.saveSnapshot(content, incarnation: incarnation), in: snapshots(of: app, scene: scene)) {
            [weak self, weak app] outcome in
            if let self, let app {
                switch outcome {
                case .success(let bytes):
                    if scene == nil { self.noticePicture(of: app) }
                    let whose = scene.map { " of its scene \($0)" } ?? ""
                    self.note(
                        app,
                        .snapshotTaken,
                        text: "gave a snapshot\(whose), \(bytes) byte\(bytes == 1 ? "" : "s")",
                        reason: "snapshot"
                    )
                case .failure(.tooLarge(let limit)):
                    self.noteNoSnapshot(app, "it has more than \(limit >> 20) MiB")
                case .failure(.refused(let sentence)), .failure(.failed(let sentence)):
                    self.noteNoSnapshot(app, sentence)
                }
            }
            completion(outcome)
        }
    }

    /// Removes an app's snapshot, because the app declined it, its identity changed, or it left the configuration.
    func removeSnapshot(
        of app: AppRuntime,
        scene: String? = nil,
        _ completion: @escaping (Result<UInt64, ArchiveFailure>) -> Void = { _ in }
    ) {
        let folder = snapshots(of: app, scene: scene)
        guard File.exists(folder.path) || folders.isBusy(folder) else { return completion(.success(0)) }
        let name = SavedStates.name(of: app, scene: scene)
        if scene == nil {
            app.pictureAt = nil
            engine.touch(app.id)
        }
        folders.ask(.remove, in: folder) { [weak self] outcome in
            if case .failure(let failure) = outcome {
                self?.log.warning("the snapshot of \(name) cannot be removed: \(failure)")
            }
            completion(outcome)
        }
    }

    /// Sends a client one part of the snapshot, beginning at `offset` (bytes).
    package func sendSnapshot(of app: AppRuntime, scene: String? = nil, at offset: Int64, _ reply: Reply) {
        let folder = snapshots(of: app, scene: scene)
        guard !folders.takesAway(folder) else { return reply.send(SnapshotPart(nil).json) }
        reads.ask({ folder.snapshotPart(at: UInt64(clamping: offset)).json }) { reply.send($0) }
    }

    // MARK: What should not be there

    /// Removes a snapshot that the app declined under an earlier torpord, which may have ended before it removed the
    /// snapshot.
    package func removeDeclinedSnapshot(of app: AppRuntime) {
        let machine = coordinator.machine(app.id)
        if machine.isAlive, machine.declinesSnapshot { removeSnapshot(of: app) }
    }

    /// Finds out which apps have pictures. Removes snapshots of apps that left the configuration while no torpord ran.
    package func takeStock() {
        let path = host.stateFolder + "/snapshots"
        reads.ask {
            (try? File.list(path)) ?? []
        } _: { [weak self] names in
            guard let self else { return }
            for name in names {
                if let id = coordinator.id(of: name) {
                    noticePicture(of: apps[id])
                } else if !host.isScene(named: name) {
                    folders.ask(.remove, in: ArchiveFolder(path: path + "/" + name)) { _ in }
                }
            }
        }
    }

    private func noticePicture(of app: AppRuntime) {
        let info = found(of: app)
        app.pictureAt = info?.kind == .text ? nil : info?.at
        engine.touch(app.id)
    }
}

extension AppRuntime {
    /// When the app's picture was taken, in microseconds since 1970; nil if there is no snapshot or it is text.
    package var pictureAt: Int64? {
        get { slots[PictureAtSlot.self] }
        set { slots[PictureAtSlot.self] = newValue }
    }

    /// The snapshot of the app that is being taken; nil if none is.
    package var snapshotRun: SnapshotRun? {
        get { slots[SnapshotRunSlot.self] }
        set { slots[SnapshotRunSlot.self] = newValue }
    }

    /// When the last snapshot since the app entered the background began; nil if none did.
    var snapshotBegan: Duration? {
        get { slots[SnapshotBeganSlot.self] }
        set { slots[SnapshotBeganSlot.self] = newValue }
    }
}

private enum PictureAtSlot: Slot { typealias Value = Int64 }
private enum SnapshotRunSlot: Slot { typealias Value = SnapshotRun }
private enum SnapshotBeganSlot: Slot { typealias Value = Duration }
