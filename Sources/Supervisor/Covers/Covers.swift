// SPDX-License-Identifier: Apache-2.0

import Archives
import Configuration
import Engine
import EventLoop
import EventSources
import Lifecycle
import Linux
import Processes
import TorporAPI

/// Covers (`cover`): if an app takes long to come to the foreground, a command shows the app's last snapshot or its
/// `launch_image` until the app is there.
///
/// The command gets a copy of the picture that only the app's user can read. When the command has ended, torpord
/// removes the copy. No launch or transition waits for a cover.
final class Covers: ShellRoom, LifecycleObserver {
    unowned(unsafe) let supervisor: Supervisor
    /// Copies and removes pictures on a background thread.
    private let disk: BackgroundWorker
    private var made = 0

    init(_ supervisor: Supervisor) {
        self.supervisor = supervisor
        disk = BackgroundWorker(supervisor.loop, named: "covers")
    }

    /// What is shown in place of an app during one transition to the foreground: a command that displays a picture.
    final class Cover {
        /// Fires when the cover must be shown. After the cover has ended, fires when its command must be killed.
        var timer: TimerSource?
        var run: HookRun?
        /// The path of the copied picture.
        var file: String?
        var isOver = false
    }

    /// The largest pictures that are copied, in bytes.
    private static let largestSnapshot = 16 << 20
    private static let largestLaunchImage = 4 << 20
    /// The time between SIGTERM and SIGKILL for a command whose cover has ended.
    private static let grace = Duration.seconds(1)

    /// Names of copies start with this prefix and torpord's pid. Copies with another pid were left by an earlier
    /// torpord; the commands that showed them have ended with it.
    private static let prefix = "cover-"

    func touched(_ apps: [AppRuntime]) {
        for app in apps where app.cover != nil || Self.wants(app) { look(at: app) }
    }

    func forget(_ app: AppRuntime) { end(app) }

    private static func wants(_ app: AppRuntime) -> Bool { !app.specification.presentation.cover.command.isEmpty }

    private func look(at app: AppRuntime) {
        guard !isEnding, Self.wants(app), isOnItsWay(machine(app)) else { return end(app) }
        guard app.cover == nil else { return }
        let cover = Cover()
        app.cover = cover
        cover.timer = try? loop.timer { [weak self, weak app, weak cover] in
            guard let self, let app, let cover, app.cover === cover else { return }
            show(app, cover, app.specification.presentation.cover.command)
        }
        cover.timer?.arm(after: app.specification.presentation.cover.after)
    }

    /// Whether the app is on its way to the foreground. An app that failed and waits for its restart is not.
    private func isOnItsWay(_ machine: AppMachine) -> Bool {
        guard machine.goal == .active else { return false }
        switch machine.transition {
        case .launching, .activating, .enteringForeground, .resuming: return true
        case .deactivating, .enteringBackground, .suspending, .terminating: return false
        case nil: return machine.isWaitingForPermission
        }
    }

    // MARK: Showing

    /// The picture to show: the snapshot if the app returns to the state that the snapshot shows, else the launch
    /// image (`isGiven`). Nil if there is none.
    private func picture(for app: AppRuntime) -> (path: String, isGiven: Bool)? {
        let comesBack = machine(app).isAlive && machine(app).transition != .launching || app.restoration == .offered
        if comesBack, let picture = supervisor.snapshots.picture(of: app) { return (picture.path, false) }
        return app.specification.presentation.launchImage.map { ($0, true) }
    }

    private func show(_ app: AppRuntime, _ cover: Cover, _ command: [String]) {
        guard let picture = picture(for: app) else { return }
        made += 1
        let names = Account.Names(app.specification)
        let (folder, name) = (supervisor.runtime.directory(of: app), "\(Self.prefix)\(ThisProcess.pid)-\(made)")
        disk.ask {
            Self.copy(picture, to: folder, name, for: names)
        } _: { [weak self, weak app] result in
            guard let self else { return }
            switch result {
            case .success(let file):
                cover.file = file
                guard let app, app.cover === cover else { return remove(cover) }
                run(app, cover, OpenPlaceholder.fill(command, file))
            case .failure(let trouble): if let app { tell(app, trouble.sentence) }
            }
        }
    }

    private struct Trouble: Error {
        let sentence: String
    }

    /// Makes a copy that the app's user can read and no user can change.
    private static func copy(
        _ picture: (path: String, isGiven: Bool),
        to folder: String,
        _ name: String,
        for names: Account.Names?
    ) -> Result<String, Trouble> {
        let account: Account?
        do throws(LaunchError) {
            account = try names.map { names throws(LaunchError) in try Account.find(names) }
        } catch {
            return .failure(Trouble(sentence: error.description))
        }
        let bytes: [UInt8]
        let limit = picture.isGiven ? largestLaunchImage : largestSnapshot
        do throws(OwnedFile.Failure) {
            // A launch image may be in a folder of the app, so it is read with the rights of the app's user. A snapshot
            // belongs to the supervisor, so it is read with torpord's own rights.
            bytes = try OwnedFile.read(
                picture.path,
                for: picture.isGiven ? account?.fileRights : nil,
                limit: limit
            )
        } catch {
            let isLarge = error == .errno(.fileTooLarge)
            let why = isLarge ? "it has more than \(limit >> 20) MiB" : "\(error)"
            return .failure(Trouble(sentence: "\(picture.path): \(why)"))
        }
        do throws(Errno) {
            guard let kind = SnapshotKind(content: bytes), kind != .text else {
                return .failure(Trouble(sentence: "\(picture.path): it is not a picture (PNG, JPEG, GIF or WebP)"))
            }
            try File.makeDirectories(folder)
            let own = "\(prefix)\(ThisProcess.pid)-"
            for left in try File.list(folder) where left.hasPrefix(prefix) && !left.hasPrefix(own) {
                try? File.remove(folder + "/" + left)
            }
            let file = folder + "/" + name + "." + kind.rawValue
            try File.replace(file, bytes, mode: 0o400)
            if Users.isRoot, let account { try File.setOwner(file, uid: account.user?.uid, gid: account.gid) }
            return .success(file)
        } catch {
            return .failure(Trouble(sentence: "\(picture.path): it cannot be copied: \(error)"))
        }
    }

    private func run(_ app: AppRuntime, _ cover: Cover, _ command: [String]) {
        var hook = HookCommand(command)
        hook.deadline = nil
        var hasEnded = false
        let run = supervisor.launcher.run(hook, named: "cover", of: app) { [weak self, weak app] failure in
            hasEnded = true
            cover.run = nil
            cover.timer?.cancel()
            self?.remove(cover)
            guard let self, let app, let failure, !cover.isOver else { return }
            note(app, .coverFailed, text: failure)
        }
        if !hasEnded { cover.run = run }
    }

    private func tell(_ app: AppRuntime, _ trouble: String) {
        note(app, .coverFailed, text: "cover: \(trouble)")
    }

    // MARK: Ending

    private func end(_ app: AppRuntime) {
        guard let cover = app.cover else { return }
        app.cover = nil
        cover.isOver = true
        cover.timer?.cancel()
        guard let run = cover.run else { return }
        guard let process = run.current, !isEnding else { return supervisor.launcher.cancel(run, of: app) }
        try? Pidfd.sendSignal(process.raw, Signal.terminate)
        cover.timer = try? loop.timer { [weak self] in
            if let self, let run = cover.run { supervisor.launcher.cancel(run, of: app) }
        }
        cover.timer?.arm(after: Self.grace)
    }

    private func remove(_ cover: Cover) {
        guard let file = cover.file else { return }
        cover.file = nil
        disk.ask({ try? File.remove(file) }) { (_: Void?) in }
    }
}

extension AppRuntime {
    fileprivate var cover: Covers.Cover? {
        get { slots[CoverSlot.self] }
        set { slots[CoverSlot.self] = newValue }
    }
}

private enum CoverSlot: Slot { typealias Value = Covers.Cover }
