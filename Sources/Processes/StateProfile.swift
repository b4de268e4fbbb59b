// SPDX-License-Identifier: Apache-2.0

public import Lifecycle
import Linux

/// An app's share of resources in a state (lifecycle.md, "Resources by state").
public struct StateProfile: Hashable, Sendable {
    /// CPU weight: 1 to 10000, default 100.
    public var cpuWeight = 100
    /// I/O weight, likewise.
    public var ioWeight = 100
    /// OOM score adjustment, −1000 to 1000; the highest is killed first. An app's initial or own value is not
    /// lowered, unless this is negative, which is set as it is.
    public var oomScoreAdjust: Int32 = 0
    /// Timer slack: how late its timers may fire; nil: the kernel's default, 50 µs.
    public var timerSlack: Duration?
    /// Maximum processor time in thousandths of a percent of one processor: 50000 is half of one. nil: unlimited.
    public var cpuMaximum: Int?
    /// Bytes of memory beyond which the kernel throttles it and reclaims its memory; nil: unlimited.
    public var memoryHigh: UInt64?
    /// Bytes of memory that the kernel reclaims only if nothing else is left; nil: none.
    public var memoryLow: UInt64?

    /// The values of an app without any settings.
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

    /// Android's value for background processes.
    static let backgroundSlack = Duration.milliseconds(40)
}

/// A part of a profile, or a limit, that could not be applied.
public struct ProfileFailure: Hashable, Sendable {
    /// The setting concerned.
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
        /// A thread has chosen its own value, or no process is left: neither is a fault of this machine.
        case ownChoice = "the app's own choice"
    }

    /// The setting concerned.
    public let kind: Kind
    /// What was requested, and why it failed: `autogroup nice 6 (kernel.sched_autogroup_enabled is 0)`.
    public let text: String

    /// Creates one from its parts.
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
    /// Whether a retry a little later may succeed: a user without privileges may change autogroups only ten times a
    /// second.
    public internal(set) var isWorthRepeating = false
    /// Whether memory is still being lowered to `memory_high`: apply it again soon, so that no call blocks on it.
    public internal(set) var isUnfinished = false

    /// A report without changes.
    public init() {}

    /// The texts of the failures.
    public var failed: [String] { failures.map(\.text) }

    mutating func fail(_ kind: ProfileFailure.Kind, _ text: String) { failures.append(ProfileFailure(kind, text)) }

    /// Everything in half a sentence: `cpu.weight 25, oom_score_adj 300; not timer slack (EPERM)`.
    public var description: String {
        let failures = failed.isEmpty ? "" : (done.isEmpty ? "" : "; ") + "not " + failed.joined(separator: ", nor ")
        return done.joined(separator: ", ") + failures
    }
}

/// What profiles have set for an app's processes; settings that they chose themselves are kept.
final class GivenProfile {
    /// The profile applied last; nil: only inherited values.
    var profile: StateProfile?
    var oomScore: Int32?
    /// Values of processes that differ from what apps inherit.
    var ownScores: [Identity: Int32] = [:]
    var timerSlack: UInt64?
    var ioPriority: IOPriority?
    /// Whether nothing else was set, so that the cgroup's content is known without reading it.
    var isWhole: Bool
    /// A write has failed.
    var isUncertain = false
    /// Memory usage at the last step of lowering it.
    var loweredFrom: UInt64?

    /// `oomScoreAdjust`: that of its first process at exec, if nothing else was set for the app; nil: unknown.
    init(bornWith oomScoreAdjust: Int32?) {
        oomScore = oomScoreAdjust
        isWhole = oomScoreAdjust != nil
    }
}
