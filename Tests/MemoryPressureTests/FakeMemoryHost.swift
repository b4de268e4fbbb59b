// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EngineHarness
import EventLoop
import KernelFiles
import Lifecycle
import Linux
import Notify

@testable import MemoryPressure

/// What the watch over memory needs of the other rooms, as tests want it to be, and what it told them.
final class FakeMemoryHost: MemoryHost {
    var memoryRules = MemorySpecification()
    var cgroup: String?
    /// How short memory was, each time that this was told.
    private(set) var levels: [MemoryLevel] = []
    private(set) var timesEnough = 0

    var evictionPolicy: String?
    /// Whom the policy names, the first one first; nil: it does not answer.
    var order: [AppRuntime]? = []
    private(set) var questions = 0
    private var unanswered: [([(app: AppRuntime, policy: String, reason: String)]) -> Void] = []

    /// Apps that hear on their own sockets.
    var hearing: Set<AppID> = []
    /// Apps to which a debugger has attached that nobody has heard of yet.
    var traced: Set<AppID> = []
    private(set) var letGo: [String] = []
    private unowned let engine: Engine

    init(_ engine: Engine) { self.engine = engine }

    func memoryPressure(from: MemoryLevel, to: MemoryLevel) {
        precondition(from == levels.last ?? .none && from != to)
        levels.append(to)
    }

    func memoryIsEnough() { timesEnough += 1 }

    func evictionOrder(_ completion: @escaping ([(app: AppRuntime, policy: String, reason: String)]) -> Void) {
        questions += 1
        unanswered.append(completion)
        guard order != nil else { return }
        engine.loop.later { [weak self] in self?.answer() }
    }

    /// The policy answers all that it was asked.
    func answer() {
        let waiting = unanswered
        unanswered = []
        let named = (order ?? []).map { (app: $0, policy: evictionPolicy ?? "", reason: "it says so") }
        for completion in waiting { completion(named) }
    }

    func hearsByChannel(_ app: AppID) -> Bool { hearing.contains(app) }

    func restsForTracer(_ app: AppRuntime) -> Bool {
        guard traced.contains(app.id) else { return false }
        engine.deliver(.traced(true), to: app.id)
        return true
    }

    func letGo(of entry: FDStore.Entry, _ app: AppRuntime) { letGo.append("\(app.name) \(entry.name)") }
}

/// Apps without processes, on a machine whose memory is what a test says.
struct FakeMemory {
    static let mebi: UInt64 = 1 << 20
    static let gibi: UInt64 = 1 << 30

    let kernel: KernelFiles
    let shell: FakeShell
    let host: FakeMemoryHost
    let watch: MemoryWatch

    /// - Parameters:
    ///   - apps: what the configuration says of each beyond its program, by name.
    ///   - hasCgroups: what apps have is what ``has(_:_:swapped:)`` says; without, they have nothing.
    init(_ apps: KeyValuePairs<String, String> = [:], hasCgroups: Bool = true) throws {
        let toml = apps.map { "[apps.\($0.key)]\nexec = [\"/bin/true\"]\nlaunch = \"on-demand\"\n\($0.value)\n" }
        kernel = try KernelFiles()
        shell = try FakeShell(toml: toml.joined())
        shell.hands.process = ThisProcess.pid
        if hasCgroups {
            shell.hands.cgroups = kernel.root + "/apps"
            for app in shell.engine.apps { try File.makeDirectories(kernel.root + "/apps/" + app.name) }
        }
        host = FakeMemoryHost(shell.engine)
        watch = MemoryWatch(shell.engine, shell.recorder, host, root: kernel.root)
        shell.engine.add(watch)
        let watch = watch
        shell.hands.onAction = { app, action in if case .askForMemory = action { watch.launchNeedsMemory(app) } }
    }

    /// The app has so many bytes from now on.
    func has(_ name: String, _ resident: UInt64, swapped: UInt64 = 0) throws {
        try kernel.write("/apps/\(name)/memory.current", "\(resident)\n")
        try kernel.write("/apps/\(name)/memory.swap.current", "\(swapped)\n")
    }

    /// Has the apps launched and suspended, with so many bytes each.
    func asleep(_ names: String..., bytes: UInt64 = 100 << 20) throws {
        for name in names {
            if shell.hands.cgroups != nil { try has(name, bytes) }
            try shell.start(name)
            try shell.suspend(name)
        }
    }

    /// Has the apps launched into the background.
    func inBackground(_ names: String...) throws {
        for name in names {
            if shell.hands.cgroups != nil { try has(name, 100 << 20) }
            try shell.request(.start(background: true), name)
        }
    }

    /// Nothing is under way any more that a thread does.
    func rest() throws {
        let end = Clock.monotonic() + .seconds(30)
        while true {
            try shell.engine.loop.settle()
            guard watch.worker.isAtWork else { return }
            guard Clock.monotonic() < end else { throw Trouble.threadDoesNotAnswer }
            try shell.engine.loop.runOnce(timeout: .milliseconds(20))
        }
    }

    enum Trouble: Error { case threadDoesNotAnswer }

    /// Lets so much time pass; what a thread is asked meanwhile takes none of it.
    func pass(_ time: Duration) throws {
        let end = shell.time.now + time
        try rest()
        while true {
            let next = min(end, max(shell.time.now, shell.time.next ?? end))
            try shell.pass(next - shell.time.now)
            try rest()
            if shell.time.now >= end, shell.time.next.map({ $0 > end }) ?? true { return }
        }
    }

    /// What was told about memory, of an app or of the machine.
    func told(of name: String? = nil) -> [String] {
        shell.told(of: name).filter { $0.hasPrefix("memory: ") }.map { String($0.dropFirst(8)) }
    }

    /// Which of the apps have a run, by name.
    var alive: [String] { shell.engine.apps.filter { shell.engine.machine($0.id).isAlive }.map(\.name) }
}
