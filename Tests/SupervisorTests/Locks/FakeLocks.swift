// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EngineHarness
import EventLoop
import Foundation
import Lifecycle
import Linux
import Testing

@testable import Supervisor

/// Apps that this process stands for: what it locks, they lock. Whoever waits is none of theirs.
final class FakeLocks {
    let shell: FakeShell
    /// Whose processes were stopped.
    private(set) var stopped: [String] = []
    let watch: LockWatch
    let folder: String

    /// - Parameter more: what the configuration says of the app `web`; FOLDER in it is ``folder``.
    init(_ more: String = "") throws {
        folder = FileManager.default.temporaryDirectory.path + "/torpor-locks-\(UUID().uuidString)"
        try File.makeDirectories(folder + "/web")
        // Its processes: the main one.
        try File.write(folder + "/web/cgroup.procs", "")
        let text = more.replacingOccurrences(of: "FOLDER", with: folder)
        shell = try FakeShell(toml: "[apps.web]\nexec = [\"/bin/true\"]\nlaunch = \"on-demand\"\n\(text)\n")
        shell.hands.process = ThisProcess.pid
        shell.hands.cgroups = folder
        watch = LockWatch(shell.engine, shell.recorder)
        shell.engine.add(watch)
        shell.hands.onAction = { [weak self] app, action in
            guard let self else { return }
            if case .stopProcesses = action { stop(app) }
            if case .continueProcesses = action { app.run.lockLook = nil }
        }
        try shell.start("web")
        shell.hands.isIdle = [0]
    }

    deinit { try? File.removeTree(folder) }

    /// As the supervisor stops an app that tells of no sound.
    private func stop(_ app: AppRuntime) {
        let begin = { [weak self] in
            self?.stopped.append(app.name)
            self?.shell.engine.deliver(.stopConfirmed, to: app.id)
        }
        guard app.specification.rules.onLock != .ignore, !shell.engine.machine(app.id).isForced else { return begin() }
        watch.look(at: app) { [weak self] finding in
            switch finding {
            case .free: begin()
            case .inTheWay(let locks): self?.watch.isHeld(app, by: locks)
            }
        }
    }

    /// Turns the loop until it is so; nothing of the shell's time passes.
    func turn(until isSo: () throws -> Bool) throws {
        let end = Clock.monotonic() + .seconds(30)
        try shell.engine.loop.settle()
        while try !isSo() {
            try #require(Clock.monotonic() < end, "it is not so after 30 s")
            try shell.engine.loop.runOnce(timeout: .milliseconds(20))
            try shell.engine.loop.settle()
        }
    }

    /// No look is under way.
    func rest() throws { try turn { shell.app("web").run.lockLook == nil } }

    /// Lets so many seconds pass, and each look that begins come to its end.
    func pass(seconds: Int) throws {
        for _ in 0..<seconds {
            try shell.pass(.seconds(1))
            try rest()
        }
    }

    var state: AppState { shell.state("web") }

    /// What was told of locks.
    var told: [String] { shell.told(of: "web").filter { $0.contains("cannot stay suspended") } }
}

/// A file that this process has locked, and others of its threads wait for.
final class LockedFile {
    let path: String
    private var holder: Descriptor?

    init(_ path: String) throws {
        self.path = path
        let file = try File.open(path, [.read, .write, .create], mode: 0o600)
        try #require(flock(file.raw, LOCK_EX) == 0)
        holder = file
    }

    deinit { letGo() }

    /// From now on somebody waits for it, until it is let go.
    func makeSomebodyWait() throws {
        let path = path
        Thread.detachNewThread {
            guard let file = try? File.open(path, .read) else { return }
            _ = flock(file.raw, LOCK_EX)
        }
        let inode = try File.status(path).inode
        let end = Clock.monotonic() + .seconds(30)
        while try !LockTable.read(LockTable.Question(files: nil)).waiters.contains(where: { $0.file.inode == inode }) {
            try #require(Clock.monotonic() < end, "nobody waits after 30 s")
            sched_yield()
        }
    }

    func letGo() { holder = nil }
}
