// SPDX-License-Identifier: Apache-2.0

import Lifecycle

/// Random numbers that a seed repeats (SplitMix64).
struct Dice: RandomNumberGenerator {
    var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var z = state
        z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
        z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
        return z ^ (z >> 31)
    }

    mutating func chance(_ percent: Int) -> Bool { Int(next() % 100) < percent }
    mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }
    mutating func milliseconds(_ range: ClosedRange<Int>) -> Duration {
        .milliseconds(Int.random(in: range, using: &self))
    }
}

/// What is wrong with what the machine did; a test prints it with the seed.
struct Violation: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

/// The processes of one app as the kernel would have them, driven by the machine's actions.
///
/// It rejects actions that no world could carry out: a second incarnation, a signal to nobody, an edge that is not
/// in the table.
struct ModelApp {
    enum Pending: Hashable {
        case launched, launchFailed, ready, stopConfirmed, allGone
        case snapshotOver
        case answer(Message)
        case sceneAnswer(SceneID, Message, failed: Bool)
        case exit(ExitCause)
    }

    var tree: Tree = .none
    var stopped = false
    var incarnation: UInt32 = 0
    var state: AppState = .notRunning
    var terminatingSince: Duration?
    /// What will be reported, and when.
    var news: [(at: Duration, what: Pending)] = []
    /// Whether everything goes as it should.
    var isCooperative = false
    var mainGone = false
    /// Where the app believes its scenes to be; one that is not here it does not know.
    var scenes: [SceneID: SceneState] = [:]
    /// Scenes that it was told to connect, and has not answered for.
    var connecting: Set<SceneID> = []
    /// Whether it ran in the background since it was last told to save.
    var isUnsaved = false

    enum Tree { case none, beingLaunched, alive }

    mutating func carryOut(_ action: Action, now: Duration, dice: inout Dice) throws(Violation) {
        switch action {
        case .launch(let order):
            guard tree == .none else { throw Violation("launched a second incarnation \(order)") }
            guard order.incarnation == incarnation + 1 else { throw Violation("incarnation \(order.incarnation)") }
            incarnation = order.incarnation
            tree = .beingLaunched
            stopped = false
            mainGone = false
            scenes = [:]
            connecting = []
            isUnsaved = false
            news = []
            let fails = !isCooperative && dice.chance(10)
            plan(fails ? .launchFailed : .launched, 1...50, now, &dice)
        case .tell(let message):
            try needProcess("tell \(message)")
            if message == .resumed { isUnsaved = true }
            if message == .didEnterBackground { isUnsaved = false }
            if isCooperative || dice.chance(80) {
                let late = !isCooperative && dice.chance(10)
                plan(.answer(message), late ? 4_000...20_000 : 0...100, now, &dice)
            }
        case .tellScene(let id, let message):
            try needProcess("tell \(message) of scene \(id)")
            if stopped { throw Violation("told \(message) of scene \(id), and is stopped") }
            try hear(message, of: id)
            if isCooperative || dice.chance(80) {
                let late = !isCooperative && dice.chance(10)
                let failed = !isCooperative && dice.chance(15)
                plan(.sceneAnswer(id, message, failed: failed), late ? 4_000...20_000 : 0...100, now, &dice)
            }
        case .warn: try needProcess("warn")
        case .signalStop, .signalWatchdog:
            try needProcess("\(action)")
            if isCooperative || dice.chance(60) {
                let core = action == .signalWatchdog
                plan(.exit(.signaled(core ? 6 : 15, coreDumped: core)), 0...200, now, &dice)
            }
        case .stopProcesses:
            try needProcess("stop")
            stopped = true
            if isCooperative || dice.chance(80) { plan(.stopConfirmed, 0...100, now, &dice) }
        case .continueProcesses:
            try needProcess("continue")
            stopped = false
        case .killProcesses:
            try needProcess("kill")
            // A process in uninterruptible sleep may take more than one second, and more than one SIGKILL.
            if isCooperative || dice.chance(80) {
                stopped = false
                if !mainGone { plan(.exit(.signaled(9, coreDumped: false)), 0...20, now, &dice) }
                plan(.allGone, 21...60, now, &dice)
            }
        case .endRemains:
            try needProcess("end remains")
            if isCooperative || dice.chance(70) { plan(.allGone, 0...100, now, &dice) }
        case .entered(let new):
            guard Self.isEdge(state, new) else { throw Violation("no edge from \(state) to \(new)") }
            state = new
        case .ended(let ending):
            guard ending.reason == .dependencyFailed || tree == .none else {
                throw Violation("ended while its processes live")
            }
            if state != .notRunning { throw Violation("ended in \(state)") }
        case .takeSnapshot:
            try needProcess("take a snapshot")
            guard state == .background, !stopped else { throw Violation("a snapshot while \(state)") }
            if isCooperative || dice.chance(80) { plan(.snapshotOver, 0...200, now, &dice) }
        case .report, .requestLaunch, .askForAdmission, .askForMemory:
            break
        }
    }

    /// The next news that is due at `now`; news of stopped processes wait, except for exits by SIGKILL.
    mutating func takeNews(now: Duration) -> AppEvent? {
        let due = news.indices.filter { news[$0].at <= now && canHappen(news[$0].what) }
        guard let i = due.min(by: { news[$0].at < news[$1].at }) else { return nil }
        let what = news.remove(at: i).what
        switch what {
        case .launched:
            tree = .alive
            return .launched
        case .launchFailed:
            tree = .none
            return .launchFailed
        case .ready: return .ready
        case .stopConfirmed: return .stopConfirmed
        case .snapshotOver: return .snapshotOver
        case .answer(let message): return .answered(message)
        case .sceneAnswer(let id, let message, let failed): return .scene(id, .answered(message, failed: failed))
        case .exit(let cause):
            guard !mainGone else { return nil }
            mainGone = true
            return .mainExited(cause)
        case .allGone:
            tree = .none
            stopped = false
            news = []
            return .allGone
        }
    }

    private func canHappen(_ what: Pending) -> Bool {
        switch what {
        case .launched, .launchFailed: tree == .beingLaunched
        case .exit(.signaled(9, _)), .exit(.outOfMemory): tree == .alive
        case .exit, .answer, .sceneAnswer, .ready, .snapshotOver: tree == .alive && !stopped
        case .stopConfirmed: tree == .alive && stopped
        case .allGone: tree == .alive && mainGone
        }
    }

    var nextNews: Duration? { news.filter { canHappen($0.what) }.map(\.at).min() }

    mutating func plan(_ what: Pending, _ delay: ClosedRange<Int>, _ now: Duration, _ dice: inout Dice) {
        news.append((now + dice.milliseconds(delay), what))
    }

    private func needProcess(_ what: String) throws(Violation) {
        guard tree == .alive else { throw Violation("\(what) without a process") }
    }

    /// The states that follow each other in the table of edges.
    static func isEdge(_ from: AppState, _ to: AppState) -> Bool {
        switch (from, to) {
        case (_, .notRunning): true
        case (.notRunning, .inactive), (.notRunning, .background): true
        case (.inactive, .active), (.active, .inactive), (.inactive, .background), (.background, .inactive): true
        case (.background, .suspended), (.suspended, .background): true
        case (.notRunning, _), (.inactive, _), (.active, _), (.background, _), (.suspended, _): false
        }
    }

    /// Whether the machine says of itself what the world knows, and has armed only what its state owns.
    mutating func check(_ machine: AppMachine, now: Duration) throws(Violation) {
        if machine.state != state { throw Violation("is \(machine.state), but entered \(state)") }
        if (tree != .none) != machine.isAlive { throw Violation("alive: \(machine.isAlive), tree: \(tree)") }
        for deadline in machine.deadlines where !Self.owns(machine, deadline.kind) {
            throw Violation(
                "\(deadline.kind) is armed in \(machine.state), \(String(describing: machine.transition))"
            )
        }
        if machine.state == .suspended, machine.transition == nil, !stopped { throw Violation("is suspended and runs") }
        if machine.state != .suspended, machine.transition != .suspending, machine.transition != .terminating, stopped {
            throw Violation("is \(machine.state), \(String(describing: machine.transition)) and stopped")
        }
        if machine.awaitsSnapshot, machine.state != .background || stopped {
            throw Violation("waits for a snapshot and is \(machine.state)")
        }
        let sleeps = machine.state == .suspended && machine.transition == nil
        if sleeps, !machine.rules.hasScenes, isUnsaved || machine.isUnsaved {
            throw Violation("is suspended, and was not told to save what it did since it was resumed")
        }
        try checkScenes(machine)
        if machine.failed, machine.isAlive { throw Violation("failed and alive") }
        if machine.transition == .terminating {
            let since = terminatingSince ?? now
            terminatingSince = since
            // Grace, twice for what remains, and SIGKILLs that do not bite at once.
            if now - since > .seconds(60) { throw Violation("has been terminating for \(now - since)") }
        } else {
            terminatingSince = nil
        }
    }

    private static func owns(_ machine: AppMachine, _ kind: DeadlineKind) -> Bool {
        let (state, edge) = (machine.state, machine.transition)
        return switch kind {
        case .launch: edge == .launching
        case .transition:
            edge == .activating || edge == .deactivating || edge == .enteringBackground
                || edge == .enteringForeground || edge == .resuming
        case .background: edge == .enteringBackground
        case .suspend: edge == .suspending && state == .background
        case .willTerminate, .grace, .kill: edge == .terminating
        case .restart: state == .notRunning && edge == nil && machine.isWaitingToLaunch
        case .watchdog:
            machine.isAlive && state != .suspended && edge != .suspending && edge != .terminating
                && edge != .launching
        case .task: state == .background && edge != .enteringForeground && !machine.tasks.isEmpty
        case .message: machine.isAlive && state != .suspended && edge != .launching && edge != .terminating
        case .backgroundTime: state == .background && (edge == nil || edge == .resuming || edge == .enteringBackground)
        }
    }
}

/// Things that can be asked of an app or happen to it, at random.
enum Whim {
    static func request(_ dice: inout Dice) -> Request {
        switch dice.below(23) {
        case 0: .start(background: false)
        case 1: .start(background: true)
        case 2:
            .stop(
                [.stopped, .replaced, .permissionChanged, .protectedDataOpen, .memoryLimit, .exitsOnSuspend][
                    dice.below(6)
                ]
            )
        case 3: .restart
        case 4: .foreground
        case 5: .background
        case 6, 7: .suspend
        case 8: .resume
        case 9: .interrupt(begin: true)
        case 10: .interrupt(begin: false)
        case 11: .forceQuit
        case 12: .evict
        case 13: .wake(Wake())
        case 14: .cover(begin: true)
        case 15: .cover(begin: false)
        case 16: .hold(reason: "whim", until: nil)
        case 17: .release
        case 18: .foreground
        case 19: .forceSuspend
        case 20: .mode(.audio, isTrue: true)
        case 21: .mode(.audio, isTrue: false)
        default: .reset
        }
    }

    static func rules(_ dice: inout Dice) -> AppRules {
        var rules = AppRules()
        for message in Message.allCases where dice.chance(40) { rules.answeredMessages.insert(message) }
        rules.readiness = [.exec, .notify, .delegate][dice.below(3)]
        rules.onLock = [.defer, .terminate, .ignore][dice.below(3)]
        rules.watchdog = dice.chance(50) ? .seconds(3) : nil
        rules.onMissedTransition = dice.chance(30) ? .end : .goOn
        rules.exitsOnSuspend = dice.chance(15)
        rules.isOneshot = dice.chance(10)
        rules.snapshotDeadline = dice.chance(40) ? .seconds(1) : nil
        rules.restart = RestartPolicy.allCases[dice.below(3)]
        rules.eviction = EvictionRule.allCases[dice.below(4)]
        rules.messageDeadline = dice.chance(70) ? .seconds(4) : nil
        rules.backoff.cap = .seconds(2)
        rules.backoff.window = .seconds(60)
        return rules
    }
}
