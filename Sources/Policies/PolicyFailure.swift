// SPDX-License-Identifier: Apache-2.0

public import Linux

/// Why a policy gave no answer, or none that counts. Each is a sentence for people.
public enum PolicyFailure: Error, Hashable, Sendable, CustomStringConvertible {
    /// The library is not used at all; why, in a sentence that names it.
    case refused(String)
    /// The host process could not be started.
    case notStarted(program: String, Errno)
    /// The process ended. The last line that it wrote to standard error is empty if it wrote nothing.
    case ended(PolicyEnd, lastLine: String)
    /// No answer within the deadline.
    case late(Duration)
    /// No answer within the deadline, nor for a while after it, since the machine stalled.
    case stalled(Duration)
    /// What came was no message, or not one that belongs here.
    case nonsense(String)
    /// More pieces of advice to one question than this.
    case flooded(limit: Int)

    /// A sentence.
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
    /// It exited with a status.
    case exited(Int32)
    /// A signal ended it.
    case signalled(Int32)
    /// Nobody can tell.
    case unknown

    /// From CLD_EXITED (1), CLD_KILLED (2) or CLD_DUMPED (3) and the status or signal, as waitid(2) and the keeper say it.
    public init(code: Int32, status: Int32) {
        switch code {
        case 1: self = .exited(status)
        case 2, 3: self = .signalled(status)
        default: self = .unknown
        }
    }

    /// From a status of waitpid(2).
    public init(waitStatus: Int32) {
        if let code = WaitStatus.exitCode(waitStatus) {
            self = .exited(code)
        } else if let signal = WaitStatus.signal(waitStatus) {
            self = .signalled(signal.number)
        } else {
            self = .unknown
        }
    }

    /// What follows "the process".
    public var description: String {
        switch self {
        case .exited(let status): "exited with status \(status)"
        case .signalled(let number): "was ended by \(Signal.name(number))"
        case .unknown: "ended"
        }
    }
}
