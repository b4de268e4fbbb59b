// SPDX-License-Identifier: Apache-2.0

import Engine
import Lifecycle
import Linux
import SystemPackage
import Varlink

enum EndingText {
    /// An app's ending as fields for the journal. A field that systemd also writes for its own services has the same
    /// name as there.
    static func fields(_ ending: Ending, _ errno: Errno?) -> [(name: String, value: String)] {
        var fields: [(name: String, value: String)] = []
        switch ending.cause {
        case .exited(let code): fields += [("EXIT_CODE", "exited"), ("EXIT_STATUS", "\(code)")]
        case .signaled(let signal, let coreDumped):
            fields += [("EXIT_CODE", coreDumped ? "dumped" : "killed"), ("EXIT_STATUS", "\(signal)")]
        case .outOfMemory, .memoryLimit: fields += [("EXIT_CODE", "killed"), ("EXIT_STATUS", "\(Signal.kill)")]
        case .unknown, nil: break
        }
        if let errno, ending.reason == .launchFailed { fields.append(("ERRNO", "\(errno.rawValue)")) }
        switch ending.next {
        case .rest: fields.append(("TORPOR_NEXT", "rest"))
        case .relaunch: fields.append(("TORPOR_NEXT", "launch"))
        case .restart(let delay):
            fields.append(("TORPOR_NEXT", "restart"))
            fields.append(("TORPOR_RESTART_USEC", "\(max(0, delay.microseconds))"))
        case .gaveUp: fields.append(("TORPOR_NEXT", "give-up"))
        }
        return fields
    }

    /// What torpord does after the ending, in a form for programs: `next` is `rest`, `launch`, `restart` or `give-up`.
    ///
    /// - Parameter at: when the app ended, microseconds since 1970.
    static func details(_ ending: Ending, at: Int64) -> JSON {
        switch ending.next {
        case .rest: ["next": "rest"]
        case .relaunch: ["next": "launch"]
        case .restart(let delay): ["next": "restart", "restart_at": .int(at + max(0, delay.microseconds))]
        case .gaveUp: ["next": "give-up"]
        }
    }

    /// The ending in words, for the log, the history and the report. `failing`: what the app failed to do, if torpord
    /// terminated it for that. `remains`: how many processes were left when the main process had ended.
    /// `failedInSandbox`: the app's name if it failed soon after its launch, in a sandbox. `bound`: the limit or rule
    /// of the app for which the kernel has ended it.
    static func describe(
        _ ending: Ending,
        failing: String?,
        refusal: String?,
        remains: Int? = nil,
        missing: [String],
        failedInSandbox: String? = nil,
        bound: String? = nil
    ) -> String {
        var text: String
        switch ending.cause {
        case .exited(let code):
            text = "exited with status \(code)"
            if ending.transition == .launching, ending.reason == .exitFailure { text += " before it was ready" }
        case .signaled(let signal, let coreDumped):
            text = "was ended by \(Signal.name(signal))" + (coreDumped ? " and dumped core" : "")
        case .outOfMemory: text = "was killed by the kernel: out of memory"
        case .memoryLimit: text = "was killed by the kernel at its memory_limit"
        case .unknown: text = "ended with unknown status"
        case nil:
            let which = missing.isEmpty ? "" : ": \(missing.joined(separator: ", "))"
            let isFailedDependency = ending.reason == .dependencyFailed
            text = "was not launched" + (isFailedDependency ? ": a dependency failed\(which)" : "")
        }
        if let refusal, ending.cause == nil {
            // Some refusals are the end of a sentence about the app ("could not run …"), others are whole sentences
            // ("there is no user …").
            let isAboutApp = ["could not ", "cannot "].contains { refusal.hasPrefix($0) }
            text = isAboutApp ? refusal : "was not launched: \(refusal)"
        }
        if let failing, ending.cause != nil { text = "\(failing), and \(text)" }
        text += " (\(ending.reason.rawValue))"
        if let remains, ending.cause == .exited(code: 0), [.exitSuccess, .exitFailure].contains(ending.reason) {
            text += remains == 1 ? "; 1 process that remained was" : "; \(remains) processes that remained were"
            text += " ended with the main one: write the command that stays in the foreground"
        }
        if let failedInSandbox {
            text += "; it runs in a sandbox: ‘torpor permissions \(failedInSandbox)’ shows what it may do"
        }
        if let bound { text += "; " + bound }
        switch ending.next {
        case .rest: break
        case .relaunch: text += "; launched again at once"
        case .restart(let delay): text += "; starts again in \(max(0, delay.microseconds / 1000)) ms"
        case .gaveUp: text += "; it was restarted too often and stays down until ‘torpor start’ or ‘torpor reset’"
        }
        return text
    }
}
