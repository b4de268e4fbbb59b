// SPDX-License-Identifier: Apache-2.0

import CSimulatedKernel
import Linux

/// What must hold and does not.
struct Violation: Error {
    let sentence: String
    init(_ sentence: String) { self.sentence = sentence }
}

/// One seed: a keeper, apps and clients, and one torpord after the other. The seed chooses what happens next.
final class Simulation {
    let seed: UInt64
    private let steps: Int
    let root: String
    private(set) var step = 0

    var apps: [AppModel] = []
    var processes: [Int32: ProcessModel] = [:]
    var clients: [ClientModel] = []
    /// How many torpords have ended.
    var deaths = 0
    var isRunning = false
    private var hasBye = false
    private var hasSettled = false
    private var hasSettledOnce = false
    private var startedAt: Int64 = 0
    private var nextDelay: Int64 = 0
    private var startsAt: Int64 = 0
    private var exits = 0
    /// The supervisor was asked to end.
    private var isEnding = false
    private(set) var isOver = false
    var isResting = false
    /// Something that was noticed in the midst of something else.
    var problem: String?
    /// Which things happen with this seed, and how often.
    var habits = Habits()

    init(seed: UInt64, steps: Int, root: String) {
        self.seed = seed
        self.steps = steps
        self.root = root
    }

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
        habits = Habits(self)
        do {
            try configure()
            // The first start is calm: a supervisor that cannot start at all ends.
            sim_state().pointee.is_calm = 1
            while !hasSettled || !isRunning {
                try turn()
                guard step < 5000 else { throw Violation("the first torpord does not settle") }
            }
            step = 0
            habits.begin()
            var untilRest = 100 + random(300)
            while step < steps {
                try turn()
                untilRest -= 1
                if untilRest == 0 {
                    try rest()
                    untilRest = 100 + random(300)
                }
            }
            try rest()
            try end()
        } catch {
            sim_kill_torpord()
            report((error as? Violation)?.sentence ?? "\(error)")
            return nil
        }
        for process in processes.values { process.letGo() }
        for client in clients { client.close() }
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

    /// Something happens, and torpord goes on until it waits.
    func turn() throws {
        step += 1
        if let problem { throw Violation(problem) }
        if isRunning {
            try happen()
            try goOn()
        } else {
            try withoutTorpord()
        }
    }

    private func goOn() throws {
        guard isRunning else { return }
        var status: Int32 = 0
        guard sim_go_on(&status) == SIM_ENDED else { return }
        try ended(status)
    }

    private func withoutTorpord() throws {
        if isOver { return }
        if now >= startsAt {
            start()
            try goOn()
        } else if happens(1, of: 3) {
            now = startsAt
        } else {
            try happenInWorld()
        }
    }

    private func start() {
        let socket = sim_keeper_begin()
        note("torpord starts")
        hasBye = false
        hasSettled = false
        startedAt = now
        sim_start_torpord({ Torpord.run() }, socket)
        isRunning = true
        sim_state().pointee.kill_at = 0
        habits.mayKill()
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
            if hasSettled, !isEnding { throw Violation("torpord ended by itself with status \(code)") }
            if !hasSettled, !isEnding, sim_state().pointee.is_calm != 0, exits == 0 {
                throw Violation("torpord did not come up, and nothing fails: status \(code)")
            }
        }
        if hasBye {
            let living = livingProcesses.filter { !$0.isHelper }
            if !living.isEmpty {
                throw Violation("the supervisor ended and left \(living.map(\.app.name).joined(separator: ", "))")
            }
            guard isEnding else {
                // It could not start, and nothing of an earlier one was left: its service manager starts it again.
                note("the keeper ends with it")
                throw Violation("the supervisor gave up")
            }
            isOver = true
            return
        }
        if now - startedAt >= 10_000_000_000 { nextDelay = 0 }
        startsAt = now + nextDelay
        nextDelay = nextDelay == 0 ? 100_000_000 : min(nextDelay * 2, 10_000_000_000)
    }

    /// One message of torpord's to the keeper; false when there is none.
    func keeperReads() throws -> Bool {
        var event = sim_event()
        guard sim_keeper_turn(&event) != 0 else { return false }
        switch event.kind {
        case SIM_EVENT_LAUNCH: try launched(event)
        case SIM_EVENT_BYE:
            hasBye = true
            note("torpord says good-bye")
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
        if sim_keeper_held(nil, 0) < 0 { throw Violation("nothing") }
    }
}
