// SPDX-License-Identifier: Apache-2.0

import Engine
import EventLoop
import Linux
import Processes
import Recovery
import SystemPackage
import TorporAPI
import VarlinkServer
import WireText

/// Replaces this torpord by the program on disk, and torpor-keeper too if its program has changed.
///
/// First, the new program is run as a helper and checks whether it can continue from the current state. If it can, this
/// torpord ends, and torpor-keeper starts the new torpord as after a crash. If the new torpord fails to start,
/// torpor-keeper starts the previous program again.
package final class Upgrade: ShellRoom {
    package unowned(unsafe) let supervisor: Supervisor
    /// Whether the programs on disk are being checked.
    package private(set) var isUnderWay = false

    package init(_ supervisor: Supervisor) { self.supervisor = supervisor }

    /// The time that a program may take to check whether it can take over, counted from its launch. After that it is
    /// killed.
    private static let patience = Duration.seconds(10)

    /// Begins an upgrade. `answer` gets nil if the new programs will take over, otherwise the reason why they cannot.
    package func begin(_ answer: @escaping (String?) -> Void) {
        guard !isUnderWay else { return answer("an upgrade is under way already: wait until it is done") }
        guard !isEnding else { return answer("torpord is shutting down: the next start runs the one on disk") }
        guard File.isExecutable(supervisor.invocation.program) else {
            return answer("there is no program at \(supervisor.invocation.program) to upgrade to: install it there")
        }
        let torpord = supervisor.invocation.program
        let newKeeper = Self.keeperProgram(beside: torpord)
        isUnderWay = true
        let finish: (String?) -> Void = { [weak self] sentence in
            self?.isUnderWay = false
            if let sentence { self?.log.error("no upgrade: \(sentence)") }
            answer(sentence)
        }
        check(torpord, ["--check-upgrade"], passing: checkedFiles) { [weak self] sentence in
            guard let self else { return }
            if let sentence { return finish("the new torpord cannot take over: \(sentence)") }
            guard let newKeeper, !self.isKeeper(newKeeper) else {
                finish(nil)
                return self.makeWay(replacingKeeper: false)
            }
            self.check(newKeeper, ["--accepts", String(self.supervisor.keeper.resumeVersion)], passing: []) {
                [weak self] sentence in
                if let sentence { return finish("the new torpor-keeper cannot take over: \(sentence)") }
                finish(nil)
                self?.makeWay(replacingKeeper: true)
            }
        }
    }

    /// Ends torpord but not the apps: the recovery file and torpor-keeper hold the state for the next torpord.
    private func makeWay(replacingKeeper: Bool) {
        note(.upgrading, text: "upgrade: the torpord on disk takes over\(replacingKeeper ? ", and its keeper" : "")")
        supervisor.shutdown.handsOver = replacingKeeper ? .withKeeper : .alone
        loop.stop()
    }

    // MARK: The check

    /// The files that the new torpord checks. It gets them as its descriptors 3 and 4.
    private var checkedFiles: [Int32] {
        [supervisor.recovery.descriptor.raw, supervisor.inForce.file?.raw].compactMap { $0 }
    }

    private static func keeperProgram(beside torpord: String) -> String? {
        File.parent(of: torpord).flatMap { directory in
            [directory + "/torpor-keeper", directory + "/../libexec/torpor/torpor-keeper"].first(
                where: File.isExecutable
            )
        } ?? Keeper.findProgram()
    }

    /// Whether the running torpor-keeper was started from the file at this path.
    private func isKeeper(_ path: String) -> Bool {
        guard let running = try? File.status("/proc/\(supervisor.keeper.pid)/exe"), let there = try? File.status(path)
        else {
            return false
        }
        return (running.device, running.inode) == (there.device, there.inode)
    }

    /// Runs a program whose exit status says whether it can take over. If it cannot, the completion gets the
    /// program's message.
    private func check(
        _ program: String,
        _ arguments: [String],
        passing files: [Int32],
        _ completion: @escaping (String?) -> Void
    ) {
        let output: (read: Descriptor, write: Descriptor)
        do throws(Errno) {
            output = try Descriptor.pipe(nonBlocking: true)
        } catch {
            return completion("\(program) cannot be checked: \(error)")
        }
        var plan = LaunchPlan(
            app: "torpor.upgrade",
            incarnation: supervisor.keeper.instance,
            executable: program,
            arguments: [program] + arguments,
            environment: ThisProcess.environment
        )
        plan.isHelper = true
        plan.standardError = output.write.raw
        plan.passed = files
        supervisor.keeper.launch(plan) { [weak self] result in
            output.write.close()
            guard let self else { return }
            let process: Launched
            switch result {
            case .success(let launched): process = launched
            case .failure(let failure): return completion(failure.description)
            }
            let timer = try? self.loop.timer { try? Pidfd.sendSignal(process.pidfd.raw, Signal.kill) }
            timer?.arm(after: Self.patience)
            self.supervisor.launcher.helpers[process.pid] = { status in
                timer?.cancel()
                let bytes = ((try? Descriptor.read(output.read.raw, maximum: 4096)) ?? nil) ?? []
                let said = String(wire: bytes).split(separator: "\n").joined(separator: "; ")
                switch status {
                case .exited(0): completion(nil)
                case .exited(let code): completion(said.isEmpty ? "\(program) ended with exit status \(code)" : said)
                case .signaled(let signal, _): completion("\(program) was ended by \(Signal.name(signal))")
                }
            }
        }
    }
}

enum HandOver {
    case alone, withKeeper
}

/// The check that `torpord --check-upgrade` runs: whether this program could continue from the state of the running
/// torpord.
package enum UpgradeCheck {
    /// Why this program could not continue; nil if it could. Reads the recovery file from descriptor 3 and the
    /// configuration in force from descriptor 4.
    package static func refusal(environment: [String: String]) -> String? {
        guard let descriptor = try? Descriptor.duplicate(3) else { return "descriptor 3 is not the recovery file" }
        let file: RecoveryFile
        do throws(RecoveryFile.Refusal) {
            file = try RecoveryFile(descriptor, isWritable: false)
        } catch {
            return "the record of running apps \(error)"
        }
        guard Descriptor.isOpen(4) else { return nil }
        do throws(StartError) {
            let configuration = try InForce.read(4, environment: environment)
            return RecoveryCheck.refusal(of: file, configuration)
        } catch {
            return error.description
        }
    }
}
