// SPDX-License-Identifier: Apache-2.0

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
    /// The most processor time, thousandths of a percent of one processor: 50000 is half of one. nil: no limit.
    public var cpuMaximum: Int?
    /// Bytes of memory from which on the kernel slows it down and takes back what it can; nil: no such bound.
    public var memoryHigh: UInt64?
    /// Bytes of memory that the kernel takes back only when there is nothing else; nil: none.
    public var memoryLow: UInt64?

    /// What an app has that nothing was given to.
    public static let ordinary = StateProfile(of: .active)

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

/// Something of a profile, or a limit, that could not be had.
public struct ProfileFailure: Hashable, Sendable {
    /// What it is about.
    public enum Kind: String, Hashable, Sendable {
        case processorShare = "its share of processors"
        case processorLimit = "cpu_max"
        case diskShare = "its share of disks"
        case memoryHigh = "memory_high"
        case memoryLow = "memory_low"
        case memoryLimit = "memory_limit"
        case tasks = "limits.tasks"
        case oomScore = "oom_score_adj"
        case timerSlack = "its timer slack"
        /// A thread has chosen for itself, and there is no process left: neither is a fault of this machine.
        case ownChoice = "the app's own choice"
    }

    /// What it is about.
    public let kind: Kind
    /// What was wanted, and why it could not be: `autogroup nice 6 (kernel.sched_autogroup_enabled is 0)`.
    public let text: String

    /// A failure of a kind, in words.
    public init(_ kind: Kind, _ text: String) {
        self.kind = kind
        self.text = text
    }
}

/// What became of a profile, for a log.
public struct ProfileReport: Hashable, Sendable, CustomStringConvertible {
    /// What is now so, such as `cpu.weight 25`.
    public internal(set) var done: [String] = []
    /// What could not be done, and why.
    public internal(set) var failures: [ProfileFailure] = []
    /// Whether some of it would succeed a little later: an ordinary user may change autogroups only ten times a second.
    public internal(set) var isWorthRepeating = false
    /// Whether memory is on its way down to `memory_high`: to be applied again soon, so that nobody waits for it.
    public internal(set) var isUnfinished = false

    /// One of a profile that was so already.
    public init() {}

    /// What could not be done, and why, in words.
    public var failed: [String] { failures.map(\.text) }

    mutating func fail(_ kind: ProfileFailure.Kind, _ text: String) { failures.append(ProfileFailure(kind, text)) }

    /// All of it in half a sentence: `cpu.weight 25, oom_score_adj 300; not timer slack (EPERM)`.
    public var description: String {
        let failures = failed.isEmpty ? "" : (done.isEmpty ? "" : "; ") + "not " + failed.joined(separator: ", nor ")
        return done.joined(separator: ", ") + failures
    }
}

/// What profiles have given an app's processes: what they had of themselves is left to them.
final class GivenProfile {
    /// The last one that was applied; nil: only what an app is born with.
    var profile: StateProfile?
    var oomScore: Int32?
    /// Of processes that were not born with what apps are born with.
    var ownScores: [Identity: Int32] = [:]
    var timerSlack: UInt64?
    var ioPriority: IOPriority?
    /// Whether it is certain that nothing else was given: what its cgroup says is known without looking.
    var isWhole: Bool
    /// Something could not be written.
    var isUncertain = false
    /// What it used when its memory was last asked for.
    var loweredFrom: UInt64?

    /// `oomScoreAdjust`: that of its first process at its exec, of an app that was given nothing else; nil: who knows.
    init(bornWith oomScoreAdjust: Int32?) {
        oomScore = oomScoreAdjust
        isWhole = oomScoreAdjust != nil
    }
}
