// SPDX-License-Identifier: Apache-2.0

import Engine
import EngineHarness
import EventLoop
import Foundation
import Lifecycle
import Linux
import Processes
import Testing
import TorporAPI
import Varlink
import VarlinkServer

@testable import Archives

/// What archives need of the other rooms, as tests want it to be.
final class FakeArchiveHost: ArchiveHost {
    /// A command that an app's snapshot is made by, and that a test ends.
    struct Command {
        let app: String
        let words: [String]
        let output: Descriptor
        let completion: (Result<Processes.ExitStatus, LaunchError>) -> Void

        /// It writes that, as long as somebody reads it, and ends.
        func end(
            _ text: String = "",
            _ status: Result<Processes.ExitStatus, LaunchError> = .success(.exited(0))
        ) throws {
            if isRead { try Descriptor.writeAll(output.raw, Array(text.utf8)) }
            completion(status)
        }

        /// Whether the other end of its output is open.
        var isRead: Bool {
            var state = pollfd(fd: output.raw, events: 0, revents: 0)
            return poll(&state, 1, 0) == 0
        }
    }

    let stateFolder: String
    func isScene(named name: String) -> Bool { name.hasPrefix("scened@") }
    var owner: UInt32? = geteuid()
    /// The user that apps run as; nil for torpord's own.
    var user: User?
    var scenes: [String] = []
    /// The commands that were run, the first one first.
    private(set) var commands: [Command] = []

    init(_ folder: String) { stateFolder = folder }

    func userID(of app: AppRuntime) -> UInt32? { owner }
    func user(of app: AppRuntime) throws(LaunchError) -> User? { user }
    func sceneNames(of app: AppRuntime) -> [String] { scenes }

    func runCommand(
        _ app: AppRuntime,
        _ command: [String],
        output: Descriptor,
        started: @escaping (Descriptor) -> Void,
        completion: @escaping (Result<Processes.ExitStatus, LaunchError>) -> Void
    ) {
        commands.append(Command(app: app.name, words: command, output: output, completion: completion))
    }
}

/// Apps without processes, their archives and snapshots in a folder of its own.
final class FakeArchives {
    let shell: FakeShell
    let host: FakeArchiveHost
    let states: SavedStates
    let snapshots: Snapshots
    /// What each launch was given, the first one first.
    private(set) var given: [ArchiveFolder.Found?] = []

    /// - Parameter apps: what the configuration says of each beyond its program, by name.
    init(_ apps: KeyValuePairs<String, String> = ["web": ""]) throws {
        let toml = apps.map {
            "[apps.\"\($0.key)\"]\nexec = [\"/bin/true\"]\nlaunch = \"on-demand\"\nrestart = \"never\"\n\($0.value)\n"
        }
        shell = try FakeShell(toml: toml.joined())
        host = FakeArchiveHost(FileManager.default.temporaryDirectory.path + "/torpor-archives-\(UUID().uuidString)")
        try File.makeDirectories(host.stateFolder)
        for app in shell.engine.apps { try File.makeDirectories(host.stateFolder + "/apps/" + app.name) }
        states = SavedStates(shell.engine, shell.recorder, host)
        snapshots = Snapshots(shell.engine, shell.recorder, host, states)
        shell.engine.add(states)
        shell.engine.add(snapshots)
        shell.hands.onAction = { [weak self] app, action in
            guard let self else { return }
            switch action {
            case .launch(let order): given.append(states.archiveToRestore(app, order))
            case .takeSnapshot: snapshots.takeSnapshot(app)
            default: break
            }
        }
    }

    deinit {
        // What is still being written would come after it.
        for app in shell.engine.apps { try? rest(app.name) }
        try? File.removeTree(host.stateFolder)
    }

    /// Turns the loop until it is so; nothing of the shell's time passes.
    func turn(_ what: Comment = "it is not so after 30 s", until isSo: () throws -> Bool) throws {
        let end = Clock.monotonic() + .seconds(30)
        try shell.engine.loop.settle()
        while try !isSo() {
            try #require(Clock.monotonic() < end, what)
            try shell.engine.loop.runOnce(timeout: .milliseconds(20))
            try shell.engine.loop.settle()
        }
    }

    /// What was asked for of an app's archive and snapshot is done.
    func rest(_ name: String = "web") throws {
        let app = shell.app(name)
        var left = 2
        // Each waits for all that was asked for before it; to forget what is not there changes nothing.
        states.whenDone(app) { left -= 1 }
        snapshots.whenDone(app) { left -= 1 }
        try turn { left == 0 }
    }

    /// The app saves that text.
    @discardableResult
    func save(_ text: String, _ name: String = "web") throws -> Result<UInt64, ArchiveFailure>? {
        var outcome: Result<UInt64, ArchiveFailure>?
        let data = Base64.encode(Array(text.utf8))
        states.saveState(of: shell.app(name), data: data, file: nil, by: Self.peer) { outcome = $0 }
        try turn { outcome != nil }
        return outcome
    }

    /// The main process ends so, and nothing is left of it.
    func exit(_ cause: ExitCause, _ name: String = "web") throws {
        let id = shell.app(name).id
        shell.engine.deliver(.mainExited(cause), to: id)
        try rest(name)
    }

    static let peer = Peer(pid: 1, uid: geteuid(), gid: getegid(), groups: [])

    /// The archive that a launch would get.
    func kept(_ name: String = "web") -> String? {
        try? File.readString(states.archives(of: shell.app(name)).current)
    }

    /// The archive that was set aside first.
    func aside(_ name: String = "web") -> String? { allAside(name).first }

    /// The archives that were set aside, the first one first.
    func allAside(_ name: String = "web") -> [String] {
        states.archives(of: shell.app(name)).foundAside.compactMap { try? File.readString($0.path, limit: 1 << 26) }
    }

    /// What the app's snapshot says, and of which run it is.
    func snapshot(_ name: String = "web") -> String? {
        snapshots.snapshots(of: shell.app(name)).snapshot.flatMap { try? File.readString($0.path) }
    }

    /// What was told of the app that has the word in it.
    func told(_ word: String, of name: String = "web") -> [String] {
        shell.told(of: name).filter { $0.contains(word) }
    }
}
