// SPDX-License-Identifier: Apache-2.0

import CSimulatedKernel
import Linux

/// An invariant that does not hold.
struct Violation: Error {
    let sentence: String
    /// It may be that the world went on between two looks at it: it is looked at again.
    var mayPass = false

    init(_ sentence: String, mayPass: Bool = false) {
        self.sentence = sentence
        self.mayPass = mayPass
    }
}

/// One seed: a keeper, apps and clients, and one torpord after the other. The seed chooses what happens next.
final class Simulation {
    let seed: UInt64
    private let steps: Int
    let root: String
    private(set) var step = 0

    var apps: [AppModel] = []
    /// Stands for torpord itself, which has helpers.
    let torpord = AppModel("torpord", .unaware)
    var processes: [Int32: ProcessModel] = [:]
    var clients: [ClientModel] = []
    /// How many torpords have ended.
    var deaths = 0
    /// How many keepers have ended.
    private(set) var keepers = 0
    var isRunning = false
    private var hasBye = false
    private var hasHandover = false
    private(set) var hasSettled = false
    private var startedAt: Int64 = 0
    private var faultsBefore: UInt64 = 0
    private var nextDelay: Int64 = 0
    private var startsAt: Int64 = 0
    /// The supervisor was asked to end.
    private var isEnding = false
    private(set) var isOver = false
    /// Nothing is asked any longer, and what is under way comes to its end.
    var isSettling = false
    /// An invariant that was found violated inside something that cannot throw.
    var problem: String?
    var behavior = Behavior()
    let ledger = MailLedger()

    init(seed: UInt64, steps: Int, root: String) {
        self.seed = seed
        self.steps = steps
        self.root = root
    }

    /// How many calls have failed so far.
    static var faultCount: UInt64 {
        withUnsafeBytes(of: sim_state().pointee.faults) { $0.bindMemory(to: UInt64.self).reduce(0, +) }
    }

    /// A call of this torpord has failed.
    private var hadFaults: Bool { Self.faultCount > faultsBefore }

    var now: Int64 {
        get { sim_state().pointee.now }
        set { sim_state().pointee.now = newValue }
    }

    func random(_ below: Int) -> Int { Int(sim_random(UInt64(max(below, 1)))) }
    func happens(_ part: Int, of whole: Int) -> Bool { random(whole) < part }
    func note(_ text: String) { sim_trace("\(now / 1000) \(text)") }

    /// A fingerprint of all that happened; nil after a violation.
    func run() -> UInt64? {
        guard sim_create(seed, root) == 0 else {
            print("cannot make the world in \(root)")
            return nil
        }
        Torpord.root = root
        behavior = Behavior(self)
        do {
            try configure()
            // The first start is calm: a supervisor that cannot start at all ends.
            sim_state().pointee.is_calm = 1
            while !hasSettled || !isRunning {
                try turn()
                guard step < 5000 else { throw Violation("the first torpord does not settle") }
            }
            step = 0
            behavior.begin()
            var untilSettle = 100 + random(300)
            while step < steps {
                try turn()
                untilSettle -= 1
                if untilSettle == 0 {
                    try settle()
                    untilSettle = 100 + random(300)
                }
            }
            try settle()
            try end()
        } catch {
            sim_kill_torpord()
            report((error as? Violation)?.sentence ?? "\(error)")
            return nil
        }
        for process in processes.values { process.closeDescriptors() }
        for client in clients { client.hangUp() }
        return sim_state().pointee.trace_hash
    }

    private func report(_ sentence: String) {
        print("FOUND: seed \(seed), step \(step): \(sentence)")
        let errors = (try? File.readString(root + "/errors", limit: 1 << 24)) ?? ""
        print("  what torpord said last:")
        for line in errors.split(separator: "\n").suffix(12) { print("    \(line)") }
        print("  what happened last:")
        print(trace(25))
        print("  again: torpor-simulate --seed \(seed) --steps \(steps) --trace")
    }

    /// The last lines of what happened.
    func trace(_ count: Int) -> String {
        var bytes = [UInt8](repeating: 0, count: Int(SIM_TRACE))
        let size = bytes.withUnsafeMutableBytes { sim_trace_end($0.baseAddress, $0.count) }
        bytes.removeLast(bytes.count - size)
        return String(decoding: bytes, as: UTF8.self).split(separator: "\n").suffix(count).map { "    " + $0 }
            .joined(separator: "\n")
    }

    // MARK: A step

    /// One event, then torpord runs until it waits.
    func turn() throws {
        step += 1
        if let problem { throw Violation(problem) }
        if isRunning {
            try event()
            try resume()
        } else {
            try withoutTorpord()
        }
    }

    private func resume() throws {
        guard isRunning else { return }
        var status: Int32 = 0
        guard sim_resume_torpord(&status) == SIM_ENDED else { return }
        try ended(status)
    }

    private func withoutTorpord() throws {
        if isOver { return }
        if now >= startsAt {
            start()
            try resume()
        } else if happens(1, of: 3) {
            now = startsAt
        } else {
            try eventInWorld()
        }
    }

    private func start() {
        let socket = sim_keeper_begin()
        note("torpord starts")
        faultsBefore = Self.faultCount
        hasBye = false
        hasHandover = false
        hasSettled = false
        startedAt = now
        sim_start_torpord({ Torpord.run() }, socket)
        isRunning = true
        sim_state().pointee.kill_at = 0
        behavior.mayKill()
    }

    private func ended(_ status: Int32) throws {
        isRunning = false
        deaths += 1
        while try keeperReads() {}
        sim_keeper_torpord_ended()
        let signal = status & 0x7f
        let code = status >> 8 & 0xff
        note("torpord ended: signal \(signal), status \(code)")
        if signal != 0, signal != Signal.kill { throw Violation("torpord was ended by \(Signal.name(signal))") }
        if signal == 0 {
            if code == 97 { throw Violation("torpord executed another program") }
            if code >= 96 { throw Violation("torpord left in a way of its own: \(code)") }
            if hasSettled, !isEnding, !hasHandover {
                throw Violation("torpord ended by itself with status \(code)")
            }
            if !hasSettled, !isEnding, sim_state().pointee.is_calm != 0, !hadFaults {
                throw Violation("torpord did not come up, and nothing fails: status \(code)")
            }
        }
        if hasBye {
            try saidBye()
            if isOver { return }
        }
        if hasHandover {
            startsAt = now
            return
        }
        if now - startedAt >= 10_000_000_000 { nextDelay = 0 }
        startsAt = now + nextDelay
        nextDelay = nextDelay == 0 ? 100_000_000 : min(nextDelay * 2, 10_000_000_000)
    }

    /// torpord ended for good: because it was asked to, or because it cannot start and nothing of an earlier one lives.
    private func saidBye() throws {
        let living = livingProcesses.filter { !$0.isHelper }
        if !living.isEmpty {
            throw Violation("the supervisor ended and left \(living.map(\.app.name).joined(separator: ", "))")
        }
        if isEnding {
            isOver = true
            return
        }
        guard hadFaults else { throw Violation("the supervisor gave up, and nothing failed") }
        // Its service manager starts both again.
        note("the keeper ends too")
        while let process = processes.values.first(where: { $0.kernel != nil }), let kernel = process.kernel {
            endProcess(process, kernel, signal: Signal.kill)
            processes[process.pid] = nil
            sim_reap(kernel)
        }
        sim_keeper_reset()
        keepers += 1
        nextDelay = 0
    }

    /// One message of torpord's to the keeper; false when there is none.
    func keeperReads() throws -> Bool {
        var event = sim_event()
        guard sim_keeper_turn(&event) != 0 else { return false }
        switch event.kind {
        case SIM_EVENT_LAUNCH: try launched(event)
        case SIM_EVENT_BYE:
            hasBye = true
            note("torpord says BYE")
        case SIM_EVENT_HANDOVER:
            hasHandover = hasSettled
            note("torpord makes way for another")
        case SIM_EVENT_SETTLED:
            hasSettled = true
            note("torpord has settled")
        default: break
        }
        return true
    }

    // MARK: The end

    /// The supervisor is asked to end, and does.
    private func end() throws {
        isEnding = true
        note("the supervisor is asked to end")
        sim_signal_torpord(Signal.terminate)
        var turns = 0
        while !isOver {
            try turn()
            turns += 1
            // The keeper asks the next one again.
            if isRunning, hasSettled, turns % 500 == 0 { sim_signal_torpord(Signal.terminate) }
            if turns > 20_000 { throw Violation("the supervisor does not end") }
        }
    }
}
