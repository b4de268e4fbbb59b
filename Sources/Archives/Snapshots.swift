// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
import EventLoop
import Lifecycle
import Linux
package import TorporAPI
package import VarlinkServer

/// Snapshots: what apps show, a picture or a text, as it was when they were in the background last. The core says when one
/// is taken; here it is had from whom the configuration names, or from the app itself, and kept.
///
/// What there is, the disk says; in memory is no more than when a picture was taken.
package final class Snapshots: Room, LifecycleObserver {
    package let engine: Engine
    package let recorder: Recorder
    /// What it needs of the other rooms. It owns this one.
    package unowned(unsafe) let host: any ArchiveHost
    private let savedStates: SavedStates
    private let folders: StateArchives
    /// How many are taken at once.
    private let queue: SnapshotQueue
    /// Reads them for clients.
    private let reads: BackgroundWorker

    package init(_ engine: Engine, _ recorder: Recorder, _ host: any ArchiveHost, _ savedStates: SavedStates) {
        self.engine = engine
        self.recorder = recorder
        self.host = host
        self.savedStates = savedStates
        // Threads of their own, so that no app waits with its state behind the pictures of others.
        folders = StateArchives(loop: engine.loop, workers: 2)
        queue = SnapshotQueue(engine.loop)
        reads = BackgroundWorker(engine.loop, named: "snapshots")
    }

    package func touched(_ apps: [AppRuntime]) { for app in apps { checkSnapshot(app) } }

    package func forget(_ app: AppRuntime) {
        app.snapshotRun = nil
        if !host.isScene(named: app.name) { removeSnapshot(of: app) }
    }

    /// Where an app's snapshot is.
    package func snapshots(of app: AppRuntime, scene: String? = nil) -> ArchiveFolder {
        ArchiveFolder(path: host.stateFolder + "/snapshots/" + SavedStates.name(of: app, scene: scene))
    }

    /// Calls back when all that was asked for in the app's folder by now is done.
    package func whenDone(_ app: AppRuntime, scene: String? = nil, _ completion: @escaping () -> Void) {
        folders.whenDone(snapshots(of: app, scene: scene), completion)
    }

    /// What there is of an app; nil for none.
    package func found(of app: AppRuntime) -> SnapshotInfo? {
        let folder = snapshots(of: app)
        return folders.takesAway(folder) ? nil : folder.snapshot?.info
    }

    /// The file of what an app showed last and what sort of picture it is, where it is one.
    package func picture(of app: AppRuntime) -> (path: String, kind: String)? {
        let folder = snapshots(of: app)
        guard !folders.takesAway(folder), let snapshot = folder.snapshot, let kind = snapshot.info.kind, kind != .text
        else {
            return nil
        }
        return (snapshot.path, kind.rawValue)
    }

    // MARK: Those that the configuration says

    /// Takes one. While one is being taken another is only remembered: an app that shows something new all the time is
    /// seen now and then, and starts no more than one a second.
    ///
    /// - Parameter isAnother: it follows on one that was outdated when it was there, and nothing follows on it.
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
                // It is read where disks are waited for; until then it is to be as it was in the background.
                return self.keepSnapshot(.file(name: name, directory: directory, owners: owners), of: app) { _ in
                    // Else another one was wanted meanwhile, and the app waits for that.
                    if app.snapshotRun == nil { self.snapshotIsOver(app) }
                }
            case .success(let content): self.keepSnapshot(content, of: app)
            case .failure(let trouble): self.noteNoSnapshot(app, trouble.description)
            }
            if isOutdated { return self.takeSnapshot(app, isAnother: true) }
            // The disk may take its time: the app need not.
            self.snapshotIsOver(app)
        }
        app.snapshotRun = run
        let wait = app.snapshotBegan.map { $0 + Self.betweenSnapshots - loop.now } ?? .zero
        run.begin(specification, after: wait, for: app, savedStates)
    }

    /// So long after the last one the next one begins at the soonest.
    private static let betweenSnapshots = Duration.seconds(1)

    /// The machine waits for one no more: it has left the background, declined, or the time is up.
    func checkSnapshot(_ app: AppRuntime) {
        guard app.snapshotRun != nil || app.snapshotBegan != nil else { return }
        let machine = coordinator.machine(app.id)
        guard !machine.awaitsSnapshot else { return }
        app.snapshotRun = nil
        // The next stay in the background is another one.
        if machine.state != .background { app.snapshotBegan = nil }
    }

    private func snapshotIsOver(_ app: AppRuntime) { deliver(.snapshotOver, to: app.id) }

    private func noteNoSnapshot(_ app: AppRuntime, _ why: String) {
        note(app, .snapshotNotTaken, text: "gave no snapshot: \(why)")
    }

    // MARK: Those that apps give

    /// Keeps one that the app gives itself; `completion` is called when it is durable, with its bytes.
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

    /// The app shows what is nobody's business: what there is goes, and none is taken until it enters the background again.
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

    /// It works for somebody else now: what it showed before is nobody's business.
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

    /// Removes what is kept of an app: it does not want it, or has left the configuration.
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

    /// What clients get of it, one part at a time.
    package func sendSnapshot(of app: AppRuntime, scene: String? = nil, at offset: Int64, _ reply: Reply) {
        let folder = snapshots(of: app, scene: scene)
        guard !folders.takesAway(folder) else { return reply.send(SnapshotPart(nil).json) }
        reads.ask({ folder.snapshotPart(at: UInt64(clamping: offset)).json }) { reply.send($0) }
    }

    // MARK: What should not be there

    /// What the app declined before this torpord began goes, whether the last one came to that or not.
    package func removeDeclinedSnapshot(of app: AppRuntime) {
        let machine = coordinator.machine(app.id)
        if machine.isAlive, machine.declinesSnapshot { removeSnapshot(of: app) }
    }

    /// Finds out which apps have a picture. Those that have left the configuration while there was no torpord, or one that
    /// died too soon, leave theirs behind.
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
    /// When the picture was taken that is its snapshot, microseconds since 1970; nil where there is none, or a text.
    package var pictureAt: Int64? {
        get { slots[PictureAtSlot.self] }
        set { slots[PictureAtSlot.self] = newValue }
    }

    /// A snapshot of it that is being taken.
    package var snapshotRun: SnapshotRun? {
        get { slots[SnapshotRunSlot.self] }
        set { slots[SnapshotRunSlot.self] = newValue }
    }

    /// When the last one began of this stay in the background.
    var snapshotBegan: Duration? {
        get { slots[SnapshotBeganSlot.self] }
        set { slots[SnapshotBeganSlot.self] = newValue }
    }
}

private enum PictureAtSlot: Slot { typealias Value = Int64 }
private enum SnapshotRunSlot: Slot { typealias Value = SnapshotRun }
private enum SnapshotBeganSlot: Slot { typealias Value = Duration }
