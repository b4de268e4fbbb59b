// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EngineHarness
import EventLoop
import EventSources
import Foundation
import Lifecycle
import Linux
import Mailbox
import Store
import Testing
import TorporAPI

@testable import Supervisor

/// What mailboxes need of the other rooms, as tests want it to be.
final class FakeMailHost: MailHost {
    let store: Store
    /// The events that were to wake an app, and what becomes of the next one.
    private(set) var events: [WakeEvent] = []
    var outcome = WakeOutcome.runs
    /// Runs when an event is to wake an app.
    var onWake: ((AppRuntime) -> Void)?
    private(set) var retried: [Mail] = []
    var hearing: Set<AppID> = []
    private(set) var pumped = 0
    /// The mail about settings that was told, or dropped.
    private(set) var toldOf: [Mail] = []

    init(_ store: Store) { self.store = store }

    func wake(_ app: AppRuntime, _ event: WakeEvent) -> WakeOutcome {
        events.append(event)
        onWake?(app)
        return outcome
    }

    func wake(_ app: AppRuntime, for mail: Mail) -> WakeOutcome {
        retried.append(mail)
        return outcome
    }

    func hearsByChannel(_ app: AppID) -> Bool { hearing.contains(app) }

    func channel(of app: AppRuntime) -> AppChannel {
        let channel = app.channel ?? AppChannel()
        app.channel = channel
        return channel
    }

    func pumpMessages(to app: AppRuntime) { pumped += 1 }

    /// The commands that were run, and how each is to end.
    private(set) var commands: [(words: [String], end: (String?) -> Void)] = []
    private(set) var ended: [HookRun] = []

    func run(
        _ command: HookCommand,
        named name: String,
        of app: AppRuntime,
        _ completion: @escaping (String?) -> Void
    ) -> HookRun {
        commands.append((command.command, completion))
        return HookRun(names: name, [command], completion)
    }

    func end(_ run: HookRun, of app: AppRuntime) { ended.append(run) }

    /// What waits until everything that is stored has been loaded; nil once it has.
    private var afterLoad: [() -> Void]? = []

    func whenLoaded(_ body: @escaping () -> Void) { if afterLoad == nil { body() } else { afterLoad?.append(body) } }

    func loaded() {
        let bodies = afterLoad ?? []
        afterLoad = nil
        for body in bodies { body() }
    }

    func toldOfSettings(_ mail: Mail, _ app: AppRuntime) { toldOf.append(mail) }
}

/// Apps without processes, their mailboxes, and a store in a folder of its own.
final class FakeMail {
    let shell: FakeShell
    let host: FakeMailHost
    let boxes: Mailboxes
    let folder: String

    /// - Parameters:
    ///   - more: what the configuration says of the app `web`, which takes all topics.
    ///   - isLoaded: it is known what an earlier torpord has kept.
    ///   - canStore: the disk takes what is stored.
    init(_ more: String = "topics = { \"*\" = {} }", isLoaded: Bool = true, canStore: Bool = true) throws {
        folder = FileManager.default.temporaryDirectory.path + "/torpor-mail-\(UUID().uuidString)"
        shell = try FakeShell(toml: "[apps.web]\nexec = [\"/bin/true\"]\nlaunch = \"on-demand\"\n\(more)\n")
        try File.makeDirectories(folder)
        if !canStore { try File.write(folder + "/store", "in the way") }
        shell.hands.process = ThisProcess.pid
        host = FakeMailHost(
            Store(path: folder + "/store/state.db", machine: "m", boot: "b", loop: shell.engine.loop)
        )
        boxes = Mailboxes(shell.engine, shell.recorder, host)
        shell.engine.add(boxes)
        if isLoaded { load(StoreContents()) }
    }

    /// Everything that an earlier torpord has kept is known from now on.
    func load(_ contents: StoreContents) {
        boxes.load(contents)
        host.loaded()
    }

    deinit {
        host.store.close(within: .seconds(30))
        try? File.removeTree(folder)
    }

    var web: AppRuntime { shell.app("web") }

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

    /// Posts to the app, and waits for what becomes of it.
    @discardableResult
    func post(
        _ topic: String,
        _ change: (inout PostRequest) -> Void = { _ in }
    ) throws -> Result<PostResult, PostRefusal> {
        var request = PostRequest(app: "web", topic: topic)
        change(&request)
        var outcome: Result<PostResult, PostRefusal>?
        boxes.post(request, from: "person", to: web) { outcome = $0 }
        try turn { outcome != nil }
        return try #require(outcome)
    }

    /// Subscribes the app; returns why it was taken back, nil if it is on disk.
    @discardableResult
    func subscribe(_ request: SubscribeRequest) throws -> String? {
        var outcome: String??
        try boxes.subscribe(request, web) { outcome = .some($0) }
        try turn { outcome != nil }
        return try #require(outcome)
    }

    /// What the file has.
    func stored() throws -> StoreContents {
        var contents: StoreContents?
        host.store.load { contents = $0 }
        try turn { contents != nil }
        return try #require(contents)
    }

    /// The topics of what waits.
    var waiting: [String] { boxes.waiting(for: web).map(\.draft.topic) }
}
