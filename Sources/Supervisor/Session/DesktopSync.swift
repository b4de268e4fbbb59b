// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EventLoop
import Linux
import Processes
import SystemPackage
import WireText

/// Keeps the desktop entries of the apps up to date, if `desktop_entries` is set. Runs `torpor desktop sync` at the
/// start and after each change of the configuration. This command is a client of this torpord, from which it gets the
/// list of apps.
package final class DesktopSync {
    private unowned(unsafe) let supervisor: Supervisor
    private var isRunning = false
    /// Whether the configuration has changed while `torpor desktop sync` was running, so that it must run again.
    private var isDue = false
    /// The last problem that was logged: an error, or the warnings of a successful run; nil if the last run had no
    /// problem.
    private var trouble: Trouble?

    private enum Trouble: Equatable {
        /// The desktop entries are not up to date.
        case failed(String)
        /// The desktop entries are up to date, but `torpor desktop sync` has printed a warning.
        case warned(String)
    }

    package init(_ supervisor: Supervisor) { self.supervisor = supervisor }

    /// The time after which a run of `torpor desktop sync` is killed.
    private static let patience = Duration.seconds(60)

    /// Starts `torpor desktop sync` if `desktop_entries` is set.
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
            supervisor.loop.later { [weak self] in self?.ended(.failed(error.description)) }
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
                    let lines = String(wire: bytes).split(separator: "\n")
                    let said = lines.map { $0.hasPrefix("torpor: ") ? $0.dropFirst(8) : $0 }.joined(separator: "; ")
                    switch status {
                    case .exited(0): self?.ended(said.isEmpty ? nil : .warned(said))
                    case .exited(let code): self?.ended(.failed(said.isEmpty ? "exit status \(code)" : said))
                    case .signaled(let signal, _): self?.ended(.failed("it was ended by \(Signal.name(signal))"))
                    }
                }
            case .failure(let failure): self?.ended(.failed(failure.description))
            }
        }
    }

    private func ended(_ trouble: Trouble?) {
        isRunning = false
        // Log a problem only if it differs from the last one, because the same problem occurs again after each change
        // of the configuration.
        if trouble != self.trouble {
            self.trouble = trouble
            switch trouble {
            case .failed(let error):
                supervisor.log.warning(
                    "desktop entries are not up to date (‘torpor desktop sync’ repeats it): \(error)"
                )
            case .warned(let warnings): supervisor.log.warning("desktop entries are up to date; \(warnings)")
            case nil: supervisor.log.info("desktop entries are up to date again")
            }
        }
        guard isDue else { return }
        isDue = false
        configure()
    }
}
