// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EventLoop
import Linux
import Processes
import SystemPackage
import WireText

/// Keeps the desktop entries of the apps up to date (`desktop_entries`): runs `torpor desktop sync`, which asks this torpord
/// like any other client, at the start and after each apply.
package final class DesktopSync {
    private unowned(unsafe) let supervisor: Supervisor
    private var isRunning = false
    /// The configuration has changed during a run.
    private var isDue = false
    /// Why the entries are not up to date, as the log has it.
    private var trouble: String?

    package init(_ supervisor: Supervisor) { self.supervisor = supervisor }

    /// How long a run may take.
    private static let patience = Duration.seconds(60)

    /// Starts a run if the configuration wants it.
    package func configure() {
        guard supervisor.configuration.supervisor.desktopEntries, !supervisor.isEnding else { return }
        guard !isRunning else {
            isDue = true
            return
        }
        isRunning = true
        do throws(LaunchError) {
            try start()
        } catch {
            supervisor.loop.later { [weak self] in self?.ended(error.description) }
        }
    }

    private func start() throws(LaunchError) {
        guard let program = ThisProcess.companion("torpor", variable: "TORPOR_COMMAND") else {
            throw LaunchError("torpor is not beside torpord: install it")
        }
        let output: (read: Descriptor, write: Descriptor)
        do throws(Errno) {
            output = try Descriptor.pipe(nonBlocking: true)
        } catch {
            throw LaunchError("\(error)")
        }
        var plan = LaunchPlan(
            app: "torpor.desktop",
            incarnation: 1,
            executable: program,
            arguments: ["torpor", "desktop", "sync", "--user", "--socket", supervisor.runtime.socket],
            environment: ThisProcess.environment + ["\(AppTag.helperVariable)=1"]
        )
        plan.directory = "/"
        plan.isHelper = true
        plan.standardError = output.write.raw
        supervisor.keeper.launch(plan) { [weak self, weak supervisor] result in
            output.write.close()
            switch result {
            case .success(let launched):
                let timer = try? supervisor?.loop.timer { try? Pidfd.sendSignal(launched.pidfd.raw, Signal.kill) }
                timer?.arm(after: Self.patience)
                supervisor?.launcher.helpers[launched.pid] = { [weak self] status in
                    timer?.cancel()
                    let bytes = ((try? Descriptor.read(output.read.raw, maximum: 4096)) ?? nil) ?? []
                    let said = String(wire: bytes).split(separator: "\n").joined(separator: "; ")
                    switch status {
                    case .exited(0): self?.ended(nil)
                    case .exited(let code): self?.ended(said.isEmpty ? "exit status \(code)" : said)
                    case .signaled(let signal, _): self?.ended("it was ended by \(Signal.name(signal))")
                    }
                }
            case .failure(let failure): self?.ended(failure.description)
            }
        }
    }

    private func ended(_ trouble: String?) {
        isRunning = false
        // Once until it changes: each apply would say so again.
        if trouble != self.trouble {
            self.trouble = trouble
            if let trouble {
                supervisor.log.warning(
                    "desktop entries are not up to date (‘torpor desktop sync’ repeats it): \(trouble)"
                )
            } else {
                supervisor.log.info("desktop entries are up to date again")
            }
        }
        guard isDue else { return }
        isDue = false
        configure()
    }
}
