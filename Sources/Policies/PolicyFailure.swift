// SPDX-License-Identifier: Apache-2.0

public import Linux

/// Why a policy gave no valid answer. The description of each case is a sentence for people.
public enum PolicyFailure: Error, Hashable, Sendable, CustomStringConvertible {
    /// The library is not used; the sentence names the library and the reason.
    case refused(String)
    /// The host process could not be started.
    case notStarted(program: String, Errno)
    /// The process ended. `lastLine` is its last line on standard error, empty if it wrote nothing.
    case ended(PolicyEnd, lastLine: String)
    /// No answer came within the deadline.
    case late(Duration)
    /// No answer came before the deadline, nor for some time after the deadline, because the machine stalled.
    case stalled(Duration)
    /// A message was malformed or unexpected.
    case nonsense(String)
    /// The policy gave more pieces of advice for one question than the limit.
    case flooded(limit: Int)

    /// The failure as a sentence.
    public var description: String {
        switch self {
        case .refused(let sentence): sentence
        case .notStarted(let program, let error):
            "the policy's process cannot be started: \(program): \(error); if it is missing, reinstall Torpor"
        case .ended(let end, let lastLine):
            "the policy's process \(end)" + (lastLine.isEmpty ? "" : "; its last output: \(lastLine)")
        case .late(let deadline):
            "the policy gave no answer within \(Self.text(deadline)): give it a longer deadline, or fix it"
        case .stalled(let deadline):
            "the policy gave no answer within \(Self.text(deadline)) while the machine stalled, waiting for memory or "
                + "the disk: this does not count as a failure"
        case .nonsense(let what): "the policy's process broke the protocol: \(what)"
        case .flooded(let limit): "the policy gave more than \(limit) pieces of advice to one question"
        }
    }

    private static func text(_ duration: Duration) -> String {
        let microseconds = duration.microseconds
        if microseconds % 1_000_000 == 0 { return "\(microseconds / 1_000_000) s" }
        if microseconds % 1000 == 0 { return "\(microseconds / 1000) ms" }
        return "\(microseconds) µs"
    }
}

/// How a policy's process ended.
public enum PolicyEnd: Hashable, Sendable, CustomStringConvertible {
    /// The process exited with a status.
    case exited(Int32)
    /// A signal terminated the process.
    case signalled(Int32)
    /// How the process ended is not known.
    case unknown

    /// Creates the end of a process from the `si_code` CLD_EXITED (1), CLD_KILLED (2) or CLD_DUMPED (3) and the exit
    /// status or signal, as in waitid(2).
    public init(code: Int32, status: Int32) {
        switch code {
        case 1: self = .exited(status)
        case 2, 3: self = .signalled(status)
        default: self = .unknown
        }
    }

    /// Creates the end of a process from a status of waitpid(2).
    public init(waitStatus: Int32) {
        if let code = WaitStatus.exitCode(waitStatus) {
            self = .exited(code)
        } else if let signal = WaitStatus.signal(waitStatus) {
            self = .signalled(signal.number)
        } else {
            self = .unknown
        }
    }

    /// How the process ended, as a text that follows "the process".
    public var description: String {
        switch self {
        case .exited(let status): "exited with status \(status)"
        case .signalled(let number): "was ended by \(Signal.name(number))"
        case .unknown: "ended"
        }
    }
}
