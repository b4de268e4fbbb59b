// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EventLoop
import Lifecycle
import Linux
import Processes
import WireText

extension Launcher {
    /// The name of a run of torpor-verify among the commands of an app.
    static let bundle = "bundle"

    /// A bundle of 10 GiB is read at 50 MB/s in less.
    private static let longestVerification = Duration.seconds(300)
    /// In bytes: one sentence.
    private static let longestAnswer = 4096

    /// The folder of the keys whose bundles may run: `keys` beside the configuration file.
    private var keys: String {
        let path = supervisor.configuration.sources.path
        let whole = path.hasPrefix("/") ? path : supervisor.configuration.sources.workingDirectory + "/" + path
        return (File.parent(of: whole) ?? "") + "/keys"
    }

    /// Compares an app's bundle with what was signed, by torpor-verify. The completion gets a sentence if it must not
    /// run. Completes at once for an app without a bundle.
    func verifyBundle(_ app: AppRuntime, _ completion: @escaping (String?) -> Void) {
        guard let bundle = app.specification.bundle else { return completion(nil) }
        guard let version = bundle.version else {
            return completion("could not be launched (bundle): \(bundle.name) is not installed, or is not valid")
        }
        guard let program = ThisProcess.companion("torpor-verify", variable: "TORPOR_VERIFY") else {
            return completion("could not be launched (bundle): the program torpor-verify is missing")
        }
        let answer: (read: Descriptor, write: Descriptor)
        do throws(Errno) { answer = try Descriptor.pipe(nonBlocking: true) } catch {
            return completion("could not be launched (bundle): no pipe for torpor-verify: \(error)")
        }
        let run = HookRun(names: Self.bundle, [], completion)
        app.hooks = run
        run.timer = try? loop.timer { [weak self, weak app, weak run] in
            guard let self, let app, let run else { return }
            run.missed = Self.longestVerification
            self.cancel(run, of: app)
        }
        run.timer?.arm(after: Self.longestVerification)
        var plan = companionPlan(program, [program, bundle.folder, version, keys], of: app.name)
        plan.isHelper = true
        plan.standardOutput = answer.write.raw
        plan.standardError = answer.write.raw
        supervisor.keeper.launch(plan) { [weak self, weak app] result in
            switch result {
            case .success(let launched):
                self?.helpers[launched.pid] = { [weak self, weak app] status in
                    run.current = nil
                    if let self, let app { self.verified(app, bundle, version, run, status, answer.read) }
                }
                run.current = launched.pidfd
                if run.isCancelled { try? Pidfd.sendSignal(launched.pidfd.raw, Signal.kill) }
            case .failure(let failure):
                if let self, let app { self.finishHooks(app, run, "could not be launched (bundle): \(failure)") }
            }
        }
        withExtendedLifetime(answer) {}
    }

    private func verified(
        _ app: AppRuntime,
        _ bundle: BundleReference,
        _ version: String,
        _ run: HookRun,
        _ status: ExitStatus,
        _ answer: Descriptor
    ) {
        let bytes = (try? Descriptor.read(answer.raw, maximum: Self.longestAnswer)) ?? nil
        let text = String(wire: Array((bytes ?? []).prefix { $0 != UInt8(ascii: "\n") }))
        let name = "\(bundle.name) \(version)"
        switch status {
        case _ where run.isCancelled:
            finishHooks(app, run, "could not be launched (bundle): the check of \(name) \(run.cancellation)")
        case .exited(0):
            app.run.bundleCheck = text == "kernel" ? "by the kernel" : "at launch"
            finishHooks(app, run, nil)
        case .exited:
            finishHooks(
                app,
                run,
                "could not be launched (bundle): \(name): \(text.isEmpty ? "it was not verified" : text)"
            )
        case .signaled(let signal, _):
            finishHooks(app, run, "could not be launched (bundle): torpor-verify was killed by \(Signal.name(signal))")
        }
    }
}

extension Incarnation {
    /// How the bundle that the app was launched from is verified, in words; nil without a bundle.
    package var bundleCheck: String? {
        get { slots[BundleSlot.self] }
        set { slots[BundleSlot.self] = newValue }
    }
}

private enum BundleSlot: Slot { typealias Value = String }
