public import Lifecycle
import Linux

/// A state's share of the machine (lifecycle.md, "Resources by state").
public struct StateProfile: Hashable, Sendable {
    /// Weight among those that want a processor: 1 to 10000, 100 is ordinary.
    public var cpuWeight = 100
    /// The same for disks.
    public var ioWeight = 100
    /// What makes it the first to be ended when memory runs out: −1000 to 1000. Never less than what an app was born with
    /// or has given itself, but for less than 0, which is meant as it stands.
    public var oomScoreAdjust: Int32 = 0
    /// How much later than asked for its timers may fire; nil: as the kernel has it, 50 µs.
    public var timerSlack: Duration?

    /// The one that an app has in a state unless it is configured otherwise.
    public init(of state: AppState) {
        switch state {
        case .notRunning, .active: break
        case .inactive: oomScoreAdjust = 50
        case .background: (cpuWeight, ioWeight, oomScoreAdjust, timerSlack) = (25, 25, 300, Self.backgroundSlack)
        case .suspended: (cpuWeight, ioWeight, oomScoreAdjust, timerSlack) = (1, 1, 900, Self.backgroundSlack)
        }
    }

    /// What Android gives its background processes.
    static let backgroundSlack = Duration.milliseconds(40)
}

/// What became of a profile, for a log.
public struct ProfileReport: Hashable, Sendable, CustomStringConvertible {
    /// What is now so, such as `cpu.weight 25`.
    public internal(set) var done: [String] = []
    /// What could not be done, and why.
    public internal(set) var failed: [String] = []
    /// Whether some of it would succeed a little later: an ordinary user may change autogroups only ten times a second.
    public internal(set) var isWorthRepeating = false

    /// All of it in half a sentence: `cpu.weight 25, oom_score_adj 300; not timer slack (EPERM)`.
    public var description: String {
        let failures = failed.isEmpty ? "" : (done.isEmpty ? "" : "; ") + "not " + failed.joined(separator: ", nor ")
        return done.joined(separator: ", ") + failures
    }
}

/// What profiles have given an app's processes: what they had of themselves is left to them.
final class GivenProfile {
    var oomScore: Int32?
    /// Of processes that were not born with what torpord has.
    var ownScores: [Identity: Int32] = [:]
    var timerSlack: UInt64?
    var ioPriority: IOPriority?
}

extension ProcessTree {
    /// Gives all processes of the app a share of the machine: weights by its cgroup where that has them, else by the
    /// nice value of its sessions and the I/O priority of its threads; `oom_score_adj` and timer slack for each. What a
    /// thread has chosen for itself (ionice(1), PR_SET_TIMERSLACK) it keeps. A process that is forked at the same
    /// instant may be missed until the next time; later ones inherit all of it.
    ///
    /// Only for an app that has come to its exec: a launch would be slow otherwise.
    public func apply(_ profile: StateProfile) -> ProfileReport {
        var report = ProfileReport()
        let members = list()
        guard !members.isEmpty else {
            report.failed.append("anything (no process is left)")
            return report
        }
        let given = given ?? GivenProfile()
        self.given = given
        applyProcessorShare(profile.cpuWeight, members, &report)
        applyDiskShare(profile.ioWeight, members, given, &report)
        applyOOMScore(profile.oomScoreAdjust, members, given, &report)
        applyTimerSlack(profile.timerSlack, members, given, &report)
        return report
    }

    // MARK: Processor

    private func applyProcessorShare(_ wish: Int, _ members: [ProcessStat], _ report: inout ProfileReport) {
        let weight = max(1, min(wish, 10_000))
        if writeWeight("cpu.weight", "\(weight)", &report) { return }
        let nice = Self.nice(forWeight: weight)
        let what = "autogroup nice \(nice)"
        if let obstacle = ProcFS.autogroupObstacle(members[0].pid) {
            report.failed.append("\(what) (\(obstacle))")
            return
        }
        // Sessions of the app's own only: in another one it would be for strangers too.
        let own = Set(members.map(\.pid)).union([leader.pid])
        var sessions: Set<Int32> = []
        var count = 0
        var failure: Errno?
        for member in members where own.contains(member.session) && sessions.insert(member.session).inserted {
            do throws(Errno) {
                if try ProcFS.autogroupNice(member.pid) != nice { try ProcFS.setAutogroupNice(member.pid, nice) }
                count += 1
            } catch {
                if !error.isGone { failure = error }
            }
        }
        if count > 0 { report.done.append(count == 1 ? what : "\(what) for \(count) sessions") }
        if let failure {
            report.failed.append("\(what) (\(failure))")
            if failure == .resourceTemporarilyUnavailable { report.isWorthRepeating = true }
        }
        if sessions.isEmpty { report.failed.append("\(what) (it has no session of its own)") }
    }

    /// The nice value that weighs as much: 1.25 times for each step (sched(7)).
    static func nice(forWeight weight: Int) -> Int32 {
        var nice: Int32 = 0
        var step = 100.0
        // Halfway between two steps, by their ratio.
        let half = 1.118
        while nice < 19, Double(weight) * half < step { (nice, step) = (nice + 1, step / 1.25) }
        while nice > -20, Double(weight) > step * half { (nice, step) = (nice - 1, step * 1.25) }
        return nice
    }

    // MARK: Disks

    private func applyDiskShare(
        _ wish: Int,
        _ members: [ProcessStat],
        _ given: GivenProfile,
        _ report: inout ProfileReport
    ) {
        let weight = max(1, min(wish, 10_000))
        // BFQ has a file of its own, with a smaller range.
        let isWeighed = writeWeight("io.weight", "default \(weight)", &report)
        if writeWeight("io.bfq.weight", "\(min(weight, 1000))", &report) || isWeighed { return }
        let priority = Self.ioPriority(forWeight: weight)
        let ours = Set([.none, given.ioPriority ?? .none] + Self.usualPriorities)
        var count = 0
        var kept = 0
        var failure: Errno?
        for thread in threads(of: members) {
            do throws(Errno) {
                let present = try IOPriority.of(thread)
                if !ours.contains(present) {
                    kept += 1
                    continue
                }
                if present != priority { try priority.set(thread) }
                count += 1
            } catch {
                if !error.isGone { failure = error }
            }
        }
        given.ioPriority = priority
        if count > 0 { report.done.append("I/O priority \(priority) for \(Self.count(count, "thread"))") }
        if kept > 0 {
            report.failed.append("I/O priority of \(Self.count(kept, "thread")) (it is the app's own choice)")
        }
        if let failure { report.failed.append("I/O priority \(priority) (\(failure))") }
    }

    /// Weights have no equal among priorities: what comes nearest in order.
    static func ioPriority(forWeight weight: Int) -> IOPriority {
        switch weight {
        case ...5: .idle
        case ...25: .bestEffort(7)
        case ...50: .bestEffort(6)
        case ..<100: .bestEffort(5)
        case 100: .none
        case ..<200: .bestEffort(3)
        case ..<400: .bestEffort(2)
        case ..<800: .bestEffort(1)
        default: .bestEffort(0)
        }
    }

    /// What an earlier supervisor may have given.
    private static let usualPriorities = [25, 1].map(ioPriority(forWeight:))

    // MARK: Memory

    private func applyOOMScore(
        _ wish: Int32,
        _ members: [ProcessStat],
        _ given: GivenProfile,
        _ report: inout ProfileReport
    ) {
        let inherited = (try? ProcFS.oomScoreAdjust(ThisProcess.pid)) ?? 0
        let living = Set(members.map(Identity.init))
        given.ownScores = given.ownScores.filter { living.contains($0.key) }
        var counts: [Int32: Int] = [:]
        var failure: Errno?
        for member in members {
            let identity = Identity(member)
            do throws(Errno) {
                let present = try ProcFS.oomScoreAdjust(member.pid)
                let own = ownScore(identity, present, inherited, given)
                given.ownScores[identity] = own == inherited ? nil : own
                var score = Self.score(wish, own: own, inherited: inherited)
                if present != score {
                    do throws(Errno) {
                        try ProcFS.setOOMScoreAdjust(member.pid, score)
                    } catch {
                        // An ordinary user may not go below what the app was born with.
                        guard error.isRefusal, score < inherited else { throw error }
                        score = inherited
                        if present != score { try ProcFS.setOOMScoreAdjust(member.pid, score) }
                    }
                }
                counts[score, default: 0] += 1
            } catch {
                if !error.isGone { failure = error }
            }
        }
        given.oomScore = wish
        for (score, count) in counts.sorted(by: { $0.key < $1.key }) {
            report.done.append("oom_score_adj \(score) for \(Self.count(count, "process", "processes"))")
        }
        if let failure { report.failed.append("oom_score_adj \(wish) (\(failure))") }
    }

    /// What a process has apart from profiles: what it was born with, or has given itself since.
    private func ownScore(_ identity: Identity, _ present: Int32, _ inherited: Int32, _ given: GivenProfile) -> Int32 {
        guard let before = given.oomScore else {
            // An earlier supervisor may have given it.
            return Self.usualScores.contains(present) ? inherited : present
        }
        let own = given.ownScores[identity] ?? inherited
        return present == Self.score(before, own: own, inherited: inherited) ? own : present
    }

    static func score(_ wish: Int32, own: Int32, inherited: Int32) -> Int32 {
        if wish < 0 { return max(wish, -1000) }
        // Nothing is added: whoever protects itself goes on doing so.
        if wish == 0, own != inherited { return own }
        return min(max(wish, own), 1000)
    }

    private static let usualScores: Set<Int32> = [50, 300, 900]

    // MARK: Timers

    private static let ordinarySlack: UInt64 = 50_000
    /// Each takes the kernel 20 µs.
    private static let mostThreads = 512

    private func applyTimerSlack(
        _ wish: Duration?,
        _ members: [ProcessStat],
        _ given: GivenProfile,
        _ report: inout ProfileReport
    ) {
        let slack = wish.map { UInt64(clamping: max(0, $0.microseconds)) * 1000 } ?? Self.ordinarySlack
        let what = "timer slack"
        if members.reduce(0, { $0 + Int($1.threads) }) > Self.mostThreads {
            if wish != nil { report.failed.append("\(what) (it has more than \(Self.mostThreads) threads)") }
            return
        }
        let usual = UInt64(StateProfile.backgroundSlack.microseconds) * 1000
        let ours: Set = [Self.ordinarySlack, usual, given.timerSlack ?? usual]
        var count = 0
        for thread in threads(of: members) {
            do throws(Errno) {
                let present = try ProcFS.timerSlack(thread)
                guard ours.contains(present) else { continue }
                if present != slack { try ProcFS.setTimerSlack(thread, slack) }
                count += 1
            } catch {
                if error.isGone { continue }
                // Who may not set it has not set it: nothing to take back.
                if wish != nil { report.failed.append("\(what) (\(error))") }
                return
            }
        }
        given.timerSlack = slack
        guard wish != nil, count > 0 else { return }
        report.done.append("\(what) \(Self.text(slack)) for \(Self.count(count, "thread"))")
    }

    // MARK: Together

    /// Writes a weight of the app's cgroup; false where it has none.
    private func writeWeight(_ file: String, _ text: String, _ report: inout ProfileReport) -> Bool {
        guard let cgroupPath, File.exists(cgroupPath + "/" + file) else { return false }
        do throws(Errno) {
            try File.writeControl(cgroupPath + "/" + file, text + "\n")
            report.done.append("\(file) \(text)")
        } catch {
            report.failed.append("\(file) \(text) (\(error))")
        }
        return true
    }

    private func threads(of members: [ProcessStat]) -> [Int32] {
        members.flatMap { $0.threads == 1 ? [$0.pid] : (try? ProcFS.tasks($0.pid)) ?? [] }
    }

    private static func count(_ count: Int, _ one: String, _ many: String? = nil) -> String {
        count == 1 ? "one \(one)" : "\(count) \(many ?? one + "s")"
    }

    private static func text(_ nanoseconds: UInt64) -> String {
        nanoseconds % 1_000_000 == 0 ? "\(nanoseconds / 1_000_000) ms" : "\(nanoseconds / 1000) us"
    }
}
