// SPDX-License-Identifier: Apache-2.0

public import Lifecycle
import Linux

/// The resources that an app gets in a state (lifecycle.md, "Resources by state").
public struct StateProfile: Hashable, Sendable {
    /// The CPU weight: 1 to 10000, default 100.
    public var cpuWeight = 100
    /// The I/O weight: 1 to 10000, default 100.
    public var ioWeight = 100
    /// The OOM score adjustment, −1000 to 1000. The kernel kills the process with the highest score first. A value of 0
    /// or more never lowers the score that the app had at its start or set itself. A negative value is always set.
    public var oomScoreAdjust: Int32 = 0
    /// The timer slack: how late the app's timers may fire. nil for the kernel's default, 50 µs.
    public var timerSlack: Duration?
    /// The most processor time, in thousandths of a percent of one processor (50000 is half of one); nil for no limit.
    public var cpuMaximum: Int?
    /// Bytes of memory above which the kernel throttles the app and reclaims its memory; nil for no limit.
    public var memoryHigh: UInt64?
    /// Bytes of memory that the kernel reclaims only if no other memory can be reclaimed; nil for none.
    public var memoryLow: UInt64?

    /// The profile of an app without any settings, in the state active.
    public static let ordinary = StateProfile(of: .active)

    /// The default profile of a state.
    public init(of state: AppState) {
        switch state {
        case .notRunning, .active: break
        case .inactive: oomScoreAdjust = 50
        case .background: (cpuWeight, ioWeight, oomScoreAdjust, timerSlack) = (25, 25, 300, Self.backgroundSlack)
        case .suspended: (cpuWeight, ioWeight, oomScoreAdjust, timerSlack) = (1, 1, 900, Self.backgroundSlack)
        }
    }

    /// The timer slack that Android uses for background processes.
    static let backgroundSlack = Duration.milliseconds(40)
}

/// A part of a profile, or a limit, that torpord could not apply.
public struct ProfileFailure: Hashable, Sendable {
    /// The settings that can fail.
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
        /// Not applied, because a thread has chosen its own value or no process is left. The machine is not at fault.
        case ownChoice = "the app's own choice"
    }

    /// Which setting could not be applied.
    public let kind: Kind
    /// What was requested and why it failed, such as `autogroup nice 6 (kernel.sched_autogroup_enabled is 0)`.
    public let text: String

    /// Creates a failure from its parts.
    public init(_ kind: Kind, _ text: String) {
        self.kind = kind
        self.text = text
    }
}

/// The result of applying a profile, for the log.
public struct ProfileReport: Hashable, Sendable, CustomStringConvertible {
    /// What was applied, such as `cpu.weight 25`.
    public internal(set) var done: [String] = []
    /// What could not be applied, and why.
    public internal(set) var failures: [ProfileFailure] = []
    /// Whether applying the profile again a little later may succeed. It may, because the kernel lets a user without
    /// privileges change autogroups only ten times a second.
    public internal(set) var isWorthRepeating = false
    /// Whether memory usage is still above `memory_high`, or not all of very many processes have the profile. If so,
    /// apply the profile again soon: no call blocks until that is done.
    public internal(set) var isUnfinished = false

    /// Whether ``done`` is wanted: few reports are read, and its texts take time to make.
    var tells = true

    /// A report without any changes or failures.
    public init() {}

    /// The texts of the failures.
    public var failed: [String] { failures.map(\.text) }

    mutating func did(_ text: @autoclosure () -> String) { if tells { done.append(text()) } }

    mutating func fail(_ kind: ProfileFailure.Kind, _ text: String) { failures.append(ProfileFailure(kind, text)) }

    /// All changes and failures as half a sentence: `cpu.weight 25, oom_score_adj 300; not timer slack (EPERM)`.
    public var description: String {
        let failures = failed.isEmpty ? "" : (done.isEmpty ? "" : "; ") + "not " + failed.joined(separator: ", nor ")
        return done.joined(separator: ", ") + failures
    }
}

/// The values that profiles have set for an app's processes, and the values that the processes have chosen themselves.
final class GivenProfile {
    /// The profile that was applied last; nil if the processes have only inherited values.
    var profile: StateProfile?
    var oomScore: Int32?
    /// For some processes, the `oom_score_adj` that they have without a profile. Processes that are not listed have
    /// the inherited value.
    var ownScores: [Identity: Int32] = [:]
    /// Why the nice value of the app's autogroup had no effect when that was looked for last, or nil if it had one; nil
    /// if it has not been looked for.
    var autogroupObstacle: String??
    var timerSlack: UInt64?
    var ioPriority: IOPriority?
    /// Whether the whole profile was applied. If so, the content of the cgroup's files is known without reading them.
    var isWhole: Bool
    /// Processes that have not got the profile yet, because the app has very many.
    var rest: ArraySlice<Int32> = []
    /// Whether a write has failed or is unfinished since the last complete application.
    var isUncertain = false
    /// The app's memory usage, in bytes, at the last step in which `memory.high` was lowered towards `memory_high`.
    var loweredFrom: UInt64?

    /// Creates the values of an app. `oomScoreAdjust` is the value that the first process had at its exec; nil if
    /// unknown, because torpord may have set another one.
    init(bornWith oomScoreAdjust: Int32?) {
        oomScore = oomScoreAdjust
        isWhole = oomScoreAdjust != nil
    }
}
