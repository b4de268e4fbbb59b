// SPDX-License-Identifier: Apache-2.0

import Engine
import Lifecycle
import Linux
import SystemPackage
import Varlink

enum EndingText {
    /// How an app ended, as fields of an entry in systemd's journal. Fields that systemd also writes when one of its
    /// own services ends have the names that systemd uses.
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
        fields.append(("TORPOR_NEXT", word(ending.next)))
        if case .restart(let delay) = ending.next {
            fields.append(("TORPOR_RESTART_USEC", "\(max(0, delay.microseconds))"))
        }
        return fields
    }

    /// What torpord does after an app has ended, as a word for programs.
    static func word(_ next: Ending.Next) -> String {
        switch next {
        case .rest: "rest"
        case .relaunch: "launch"
        case .restart: "restart"
        case .gaveUp: "give-up"
        }
    }

    /// What torpord does after the app has ended, in a form for programs: `next` is `rest`, `launch`, `restart` or
    /// `give-up`.
    ///
    /// - Parameter at: when the app ended, microseconds since 1970.
    static func details(_ ending: Ending, at: Int64) -> JSON {
        guard case .restart(let delay) = ending.next else { return ["next": .string(word(ending.next))] }
        return ["next": .string(word(ending.next)), "restart_at": .int(at + max(0, delay.microseconds))]
    }

    /// Describes in words how the app ended, for the log, the history and the report. `failing`: if torpord terminated
    /// the app because it failed to do something, what that was. `remains`: how many of the app's processes were left
    /// when the main process had ended. `failedInSandbox`: the app's name if the app runs in a sandbox and failed soon
    /// after its launch. `bound`: the limit or rule of the app for which a signal ended it.
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
        if ending.isCutOff { text = "was restarted again and again before it was ready" }
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
