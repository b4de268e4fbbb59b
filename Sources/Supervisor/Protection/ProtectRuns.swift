// SPDX-License-Identifier: Apache-2.0

import DataProtection
import Engine
import EventLoop
import Linux
import Processes
import Varlink
import WireText

/// Runs torpor-protect, which opens and closes protected folders: one process at a time, in the order of the requests.
final class ProtectRuns {
    /// How a run of torpor-protect has ended.
    struct Outcome {
        /// What torpor-protect has printed, even if the run failed.
        var answer = ProtectionAnswer()
        /// Why the run failed; nil if it succeeded.
        var problem: LaunchError?
    }

    typealias Completion = (Outcome) -> Void

    private unowned(unsafe) let supervisor: Supervisor
    private var waiting: [(words: [String], completion: Completion)] = []
    private var isRunning = false
    private var unlocking: Process?

    /// A running process of torpor-protect or of ‘torpor protect unlock’, with the timer that kills it if it takes too
    /// long.
    private final class Process {
        var descriptor: Descriptor?
        var timer: TimerSource?
        /// Whether to kill the process: at once, or as soon as torpor-keeper has launched it.
        var isUnwanted = false
        var isOver = false

        func kill() {
            isUnwanted = true
            if let descriptor { try? Pidfd.sendSignal(descriptor.raw, Signal.kill) }
        }
    }

    /// The time after which torpor-protect is killed. It needs milliseconds unless a disk hangs, and limits its own
    /// slow steps to some seconds.
    private static let longest = Duration.seconds(20)
    /// If a killed process has not ended after this time, the kernel holds it in a system call. Then the next request
    /// no longer waits for that process.
    private static let grace = Duration.seconds(3)
    /// The time after which ‘torpor protect unlock’ is killed. It is longer because the command that gives the
    /// passphrase may have to wait for a server or a device.
    private static let longestUnlock = Duration.seconds(90)
    /// The most bytes of output that are read. This is enough for the names of some ten thousand processes that have
    /// files open.
    private static let longestAnswer = 8 << 20

    init(_ supervisor: Supervisor) { self.supervisor = supervisor }

    /// The folder that contains the protected folders of all apps.
    var root: String { supervisor.runtime.state + "/" + ProtectedPlace.root }

    func open(_ folders: [ProtectedFolder], _ completion: @escaping Completion) { add("open", folders, completion) }

    func close(_ folders: [ProtectedFolder], _ completion: @escaping Completion) { add("close", folders, completion) }

    /// Closes all protected folders except these, for example folders of apps that have left the configuration.
    func sweep(keeping folders: [ProtectedFolder]) {
        waiting.append(
            (
                ["sweep", root] + folders.flatMap(\.words),
                { [supervisor] outcome in
                    if let problem = outcome.problem { supervisor.log.error("torpor-protect: \(problem)") }
                }
            )
        )
        next()
    }

    /// Has ‘torpor protect unlock’ run a command that gives the passphrase. The completion gets nil, or the reason of a
    /// failure. The completion is not called if ``stopUnlocking()`` ends the process, nor if ‘torpor protect unlock’ is
    /// running already.
    func unlock(_ command: [String], _ completion: @escaping (String?) -> Void) {
        // If ‘torpor protect unlock’ is running already, it unlocks the folders of all apps, so no second one is
        // needed.
        guard unlocking == nil else { return }
        guard let program = ThisProcess.companion("torpor", variable: "TORPOR_PROGRAM") else {
            return completion("the program torpor is not beside torpord: install it")
        }
        let words = [program, "protect", "unlock", "--socket", supervisor.runtime.socket, "--"] + command
        var process: Process?
        process = launch(words, within: Self.longestUnlock) { [weak self] result in
            // Ignore the result of a process that was stopped. If the launch fails at once, `process` and `unlocking`
            // are both nil here, and so equal.
            guard let self, unlocking === process else { return }
            unlocking = nil
            switch result {
            case .success: completion(nil)
            case .failure(let failure): completion(failure.error.description)
            }
        }
        unlocking = process.flatMap { $0.isOver ? nil : $0 }
    }

    /// Kills ‘torpor protect unlock’ if it is running, because it would undo a lock that was requested after its start.
    /// Returns whether it was running; if so, it may have given keys to the kernel already.
    func stopUnlocking() -> Bool {
        defer { unlocking = nil }
        unlocking?.kill()
        return unlocking != nil
    }

    private func add(_ step: String, _ folders: [ProtectedFolder], _ completion: @escaping Completion) {
        // Without folders there is nothing to do: report the run as complete.
        guard !folders.isEmpty else {
            return supervisor.loop.later { completion(Outcome(answer: ProtectionAnswer(isWhole: true))) }
        }
        waiting.append(([step, root] + folders.flatMap(\.words), completion))
        next()
    }

    private func next() {
        guard !isRunning, !waiting.isEmpty else { return }
        isRunning = true
        let (words, completion) = waiting.removeFirst()
        start(words) { [weak self] result in
            guard let self else { return }
            isRunning = false
            completion(Self.outcome(result))
            next()
        }
    }

    private func start(_ words: [String], _ completion: @escaping (Result<[UInt8], Failure>) -> Void) {
        guard let program = ThisProcess.companion("torpor-protect", variable: "TORPOR_PROTECT") else {
            return supervisor.loop.later {
                let why = "torpor-protect is neither beside torpord nor in ../libexec/torpor: install it"
                completion(.failure(Failure(LaunchError(why))))
            }
        }
        launch([program] + words, within: Self.longest, completion)
    }

    /// The reason why a process failed, and the output that it had printed before.
    private struct Failure: Error {
        let error: LaunchError
        var printed: [UInt8] = []

        init(_ error: LaunchError, _ printed: [UInt8] = []) { (self.error, self.printed) = (error, printed) }
    }

    /// Runs torpor-protect or ‘torpor protect unlock’, and kills it after `time`. The completion gets the output.
    @discardableResult
    private func launch(
        _ words: [String],
        within time: Duration,
        _ completion: @escaping (Result<[UInt8], Failure>) -> Void
    ) -> Process {
        let process = Process()
        func finish(_ result: Result<[UInt8], Failure>) {
            guard !process.isOver else { return }
            process.isOver = true
            process.timer = nil
            process.descriptor = nil
            completion(result)
        }
        let answer: Descriptor
        do throws(Errno) { answer = try Memory.file(named: "torpor-protect") } catch {
            supervisor.loop.later {
                finish(.failure(Failure(LaunchError("there is no memory for the answer of \(words[0]): \(error)"))))
            }
            return process
        }
        var plan = supervisor.launcher.companionPlan(words[0], words, of: "protected")
        plan.isHelper = true
        plan.standardOutput = answer.raw
        plan.standardError = answer.raw
        supervisor.keeper.launch(plan) { [weak self] result in
            guard let self else { return }
            switch result {
            case .failure(let failure): finish(.failure(Failure(LaunchError(failure.description))))
            case .success(let launched):
                supervisor.launcher.helpers[launched.pid] = { status in finish(Self.read(answer, status)) }
                process.descriptor = launched.pidfd
                if process.isUnwanted { return process.kill() }
                process.timer = try? supervisor.loop.timer { [weak self, weak process] in
                    guard let self, let process else { return }
                    guard process.isUnwanted else {
                        process.kill()
                        process.timer?.arm(after: Self.grace)
                        return
                    }
                    // The process was killed but has not ended, because the kernel holds it in a system call. It ends
                    // as soon as that call returns, so do not wait for it.
                    self.supervisor.loop.later {
                        finish(Self.read(answer, .signaled(Signal.kill, coreDumped: false)))
                    }
                }
                process.timer?.arm(after: time)
            }
        }
        return process
    }

    private static func read(_ answer: Descriptor, _ status: ExitStatus) -> Result<[UInt8], Failure> {
        // The output is a file in memory, so reading it does not wait for a disk.
        let bytes = (try? File.read(answer.raw, at: 0, maximum: longestAnswer)) ?? []
        switch status {
        case .signaled(let signal, _):
            return .failure(Failure(LaunchError("it was killed by \(Signal.name(signal))"), bytes))
        case .exited(0): return .success(bytes)
        case .exited(let code):
            // Lines of JSON are results that torpor-protect has printed before it failed. The first other line is the
            // error message.
            let lines = bytes.split(separator: UInt8(ascii: "\n"))
            let line = lines.first { $0.first != UInt8(ascii: "{") }.map { String(wire: Array($0.prefix(500))) }
            return .failure(Failure(LaunchError(line ?? "it ended with exit status \(code)"), bytes))
        }
    }

    private static func outcome(_ result: Result<[UInt8], Failure>) -> Outcome {
        var outcome = Outcome()
        let printed: [UInt8]
        switch result {
        case .success(let bytes): printed = bytes
        case .failure(let failure):
            printed = failure.printed
            outcome.problem = failure.error
        }
        do {
            outcome.answer = try ProtectionAnswer(printed)
        } catch {
            outcome.problem =
                outcome.problem ?? LaunchError("the answer of torpor-protect cannot be read: \(error)")
        }
        return outcome
    }
}
