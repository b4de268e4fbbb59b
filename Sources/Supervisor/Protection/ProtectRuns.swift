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
    typealias Completion = (Result<[FolderStanding], LaunchError>) -> Void

    private unowned(unsafe) let supervisor: Supervisor
    private var waiting: [(words: [String], completion: Completion)] = []
    private var isRunning = false
    private var timer: TimerSource?
    private var process: Descriptor?
    private var isUnlocking = false

    /// A process that takes longer is killed. It needs milliseconds, unless there are very many files or a disk hangs.
    private static let longest = Duration.seconds(30)
    /// The longest output of torpor-protect, in bytes: for a thousand apps, each with 32 processes that hold files.
    private static let longestAnswer = 8 << 20

    init(_ supervisor: Supervisor) { self.supervisor = supervisor }

    /// The folder that contains the protected folders of all apps.
    var root: String { supervisor.runtime.state + "/" + ProtectedPlace.root }

    func open(_ folders: [ProtectedFolder], _ completion: @escaping Completion) { add("open", folders, completion) }

    func close(_ folders: [ProtectedFolder], _ completion: @escaping Completion) { add("close", folders, completion) }

    /// Runs ‘torpor protect unlock’ with a command that prints the passphrase. The completion gets nil, or why that
    /// failed.
    func unlock(_ command: [String], _ completion: @escaping (String?) -> Void) {
        // Do nothing if ‘torpor protect unlock’ is running already: it unlocks the folders of all apps.
        guard !isUnlocking else { return }
        guard let program = ThisProcess.companion("torpor", variable: "TORPOR_PROGRAM") else {
            return completion("the program torpor is not beside torpord: install it")
        }
        isUnlocking = true
        let words = [program, "protect", "unlock", "--socket", supervisor.runtime.socket, "--"] + command
        launch(words) { [weak self] result in
            self?.isUnlocking = false
            switch result {
            case .success: completion(nil)
            case .failure(let error): completion(error.description)
            }
        }
    }

    private func add(_ step: String, _ folders: [ProtectedFolder], _ completion: @escaping Completion) {
        guard !folders.isEmpty else { return supervisor.loop.later { completion(.success([])) } }
        waiting.append(([step, root] + folders.flatMap(\.words), completion))
        next()
    }

    private func next() {
        guard !isRunning, !waiting.isEmpty else { return }
        isRunning = true
        let (words, completion) = waiting.removeFirst()
        start(words) { [weak self] result in
            guard let self else { return }
            timer = nil
            process = nil
            isRunning = false
            completion(result)
            next()
        }
    }

    private func start(_ words: [String], _ completion: @escaping Completion) {
        guard let program = ThisProcess.companion("torpor-protect", variable: "TORPOR_PROTECT") else {
            return supervisor.loop.later {
                let why = "torpor-protect is neither beside torpord nor in ../libexec/torpor: install it"
                completion(.failure(LaunchError(why)))
            }
        }
        launch([program] + words, isBounded: true) { completion($0.flatMap(Self.standings)) }
    }

    /// Runs a program of Torpor. The completion gets the program's output, or why the program failed. `isBounded`:
    /// whether the program is killed after ``longest``.
    private func launch(
        _ words: [String],
        isBounded: Bool = false,
        _ completion: @escaping (Result<[UInt8], LaunchError>) -> Void
    ) {
        let answer: Descriptor
        do throws(Errno) { answer = try Memory.file(named: "torpor-protect") } catch {
            return supervisor.loop.later {
                completion(.failure(LaunchError("there is no memory for the answer of \(words[0]): \(error)")))
            }
        }
        var plan = supervisor.launcher.companionPlan(words[0], words, of: "protected")
        plan.isHelper = true
        plan.standardOutput = answer.raw
        plan.standardError = answer.raw
        supervisor.keeper.launch(plan) { [weak self] result in
            guard let self else { return }
            switch result {
            case .failure(let failure): completion(.failure(LaunchError(failure.description)))
            case .success(let launched):
                supervisor.launcher.helpers[launched.pid] = { status in completion(Self.read(answer, status)) }
                guard isBounded else { return }
                process = launched.pidfd
                timer = try? supervisor.loop.timer { [weak self] in
                    if let process = self?.process { try? Pidfd.sendSignal(process.raw, Signal.kill) }
                }
                timer?.arm(after: Self.longest)
            }
        }
    }

    private static func read(_ answer: Descriptor, _ status: ExitStatus) -> Result<[UInt8], LaunchError> {
        // The output is in memory, so reading it does not wait for a disk.
        let bytes = (try? File.read(answer.raw, at: 0, maximum: longestAnswer)) ?? []
        switch status {
        case .signaled(let signal, _): return .failure(LaunchError("it was killed by \(Signal.name(signal))"))
        case .exited(0): return .success(bytes)
        case .exited(let code):
            let line = String(wire: Array(bytes.prefix { $0 != UInt8(ascii: "\n") }.prefix(500)))
            return .failure(LaunchError(line.isEmpty ? "it ended with exit status \(code)" : line))
        }
    }

    private static func standings(_ bytes: [UInt8]) -> Result<[FolderStanding], LaunchError> {
        do {
            return .success(
                try bytes.split(separator: UInt8(ascii: "\n")).map { try FolderStanding(json: try JSON.parse($0)) }
            )
        } catch {
            return .failure(LaunchError("the answer of torpor-protect cannot be read: \(error)"))
        }
    }
}
