// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
import EventLoop
import Lifecycle
import Linux
import Processes
import WireText

/// Why an app of a bundle is not launched, as a sentence.
struct BundleRefusal {
    let sentence: String
    /// Whether a retry would fail for the same reason.
    let isFinal: Bool

    init(_ why: String, isFinal: Bool) {
        sentence = "could not be launched (bundle): " + why
        self.isFinal = isFinal
    }
}

/// What torpor-verify reported about the bundle that an app was launched from.
package struct VerifiedBundle {
    /// The bundle's name and version, such as `notes 1.0`.
    package let title: String
    let name: String
    let version: String
    /// How the bundle's files are verified: `by the kernel` or `at launch`.
    package let how: String
    /// Whether no launch of the version has succeeded yet.
    let isOnTrial: Bool
}

extension Launcher {
    /// The name by which a run of torpor-verify is told apart from the hooks that run for an app.
    static let bundle = "bundle"

    /// How long torpor-verify may take before it is killed. A bundle of 10 GiB takes less at 50 MB/s.
    private static let longestVerification = Duration.seconds(300)
    /// The most bytes of torpor-verify's output: a line, and the manifest before its list of files (256 KiB).
    private static let longestAnswer = 257 << 10

    /// The folder of the trusted keys: `keys` beside the configuration file.
    private var keys: String {
        let path = supervisor.configuration.sources.path
        let whole = path.hasPrefix("/") ? path : supervisor.configuration.sources.workingDirectory + "/" + path
        return (File.parent(of: whole) ?? "") + "/keys"
    }

    /// Removes, on a background thread, bundles that are removed only in part because `torpor uninstall` was killed.
    package func tidyBundles() {
        let state = supervisor.configuration.supervisor.stateDirectory
        reads.ask {
            InstalledManifest.removeUninstalled(in: state)
        } _: {
        }
    }

    /// Runs torpor-verify, which compares an app's bundle with its signed manifest. `completion` gets nil, or why the
    /// bundle must not run. If the app has no bundle, `completion` is called at once.
    func verifyBundle(_ app: AppRuntime, _ completion: @escaping (BundleRefusal?) -> Void) {
        guard let bundle = app.specification.bundle else { return completion(nil) }
        guard let version = bundle.version else {
            if bundle.isUnread { return readManifestAgain(app, bundle, completion) }
            return completion(
                BundleRefusal(
                    "\(bundle.name) is not installed, or cannot be used: ‘torpor check’ says why",
                    isFinal: true
                )
            )
        }
        let verdict = BundleVerdict()
        let run = beginCheck(of: app) { sentence in
            completion(sentence.map { BundleRefusal($0, isFinal: verdict.isFinal) })
        }
        let words = [bundle.folder, version, keys, app.name]
        runVerifier(words, of: app) { pidfd in
            run.current = pidfd
            if run.isCancelled { try? Pidfd.sendSignal(pidfd.raw, Signal.kill) }
        } completion: { [weak self, weak app] result in
            run.current = nil
            guard let self, let app, !run.isOver else { return }
            let title = "\(bundle.name) \(version)"
            switch result {
            case .failure(let why): self.finishHooks(app, run, why.description)
            case .success where run.isCancelled: self.finishHooks(app, run, "the check of \(title) \(run.cancellation)")
            case .success(let answer) where answer.code == 0:
                let problem = self.verified(app, bundle, version, answer)
                verdict.isFinal = problem != nil
                self.finishHooks(app, run, problem.map { "\(title): \($0)" })
            case .success(let answer):
                verdict.isFinal = answer.code == 1
                self.finishHooks(app, run, "\(title): \(answer.line.isEmpty ? "it was not verified" : answer.line)")
            }
        }
    }

    /// Begins a check of the app's bundle, for which the app's launch waits, and cancels the check after
    /// ``longestVerification``. `completion` gets nil, or the problem.
    private func beginCheck(of app: AppRuntime, _ completion: @escaping (String?) -> Void) -> HookRun {
        let run = HookRun(names: Self.bundle, [], completion)
        app.hooks = run
        run.timer = try? loop.timer { [weak self, weak app, weak run] in
            guard let self, let app, let run else { return }
            run.missed = Self.longestVerification
            self.cancel(run, of: app)
        }
        run.timer?.arm(after: Self.longestVerification)
        return run
    }

    /// Tries again to read a manifest that could not be read at first. If this succeeds, applies the configuration
    /// together with the manifest. The current launch is refused in any case, because it was prepared without the
    /// manifest; a retry uses the manifest.
    private func readManifestAgain(
        _ app: AppRuntime,
        _ bundle: BundleReference,
        _ completion: @escaping (BundleRefusal?) -> Void
    ) {
        let run = beginCheck(of: app) { sentence in
            completion(BundleRefusal("\(bundle.name): " + (sentence ?? ""), isFinal: false))
        }
        let state = supervisor.configuration.supervisor.stateDirectory
        reads.ask {
            InstalledManifest.passingProblem(bundle.name, in: state)
        } _: { [weak self, weak app] problem in
            guard let self, let app, !run.isOver else { return }
            guard problem == nil, let clients = self.supervisor.clients else {
                return self.finishHooks(app, run, problem ?? "torpord is ending")
            }
            let asker = "a bundle whose manifest can be read again"
            clients.take(bundle: bundle.name, by: asker) { [weak self, weak app] in
                guard let self, let app else { return }
                self.finishHooks(app, run, "its manifest could be read only now")
            }
        }
    }

    /// Handles a successful verification. Returns nil, or why the bundle must not run although its files are intact.
    private func verified(
        _ app: AppRuntime,
        _ bundle: BundleReference,
        _ version: String,
        _ answer: VerifierAnswer
    ) -> String? {
        guard answer.rest.elementsEqual(bundle.text) else {
            return "its manifest is not the one that torpord has read: ‘torpor apply’ reads it again"
        }
        let words = answer.line.split(separator: " ").map(String.init)
        app.run.bundle = VerifiedBundle(
            title: "\(bundle.name) \(version)",
            name: bundle.name,
            version: version,
            how: Self.manner(words.first),
            isOnTrial: words.contains("trial")
        )
        let mark = "instead-of="
        let failed = words.first { $0.hasPrefix(mark) }.map { String($0.dropFirst(mark.count)) }
        putBack[bundle.name] = failed.map { ($0, version) }
        return nil
    }

    private static func manner(_ word: String?) -> String { word == "kernel" ? "by the kernel" : "at launch" }

    /// Runs torpor-verify. `completion` gets its output, or why it could not be run or was killed.
    func runVerifier(
        _ words: [String],
        of app: AppRuntime,
        started: @escaping (Descriptor) -> Void = { _ in },
        completion: @escaping (Result<VerifierAnswer, LaunchError>) -> Void
    ) {
        guard let program = ThisProcess.companion("torpor-verify", variable: "TORPOR_VERIFY") else {
            return completion(.failure(LaunchError("the program torpor-verify is missing")))
        }
        let answer: Descriptor
        do throws(Errno) { answer = try Memory.file(named: "torpor-verify") } catch {
            return completion(.failure(LaunchError("no memory for the answer of torpor-verify: \(error)")))
        }
        var plan = companionPlan(program, [program] + words, of: app.name)
        plan.isHelper = true
        // If memory is short, the kernel should kill torpor-verify rather than an app, because the launch can be
        // retried.
        plan.oomScoreAdjust = 1000
        plan.standardOutput = answer.raw
        plan.standardError = answer.raw
        supervisor.keeper.launch(plan) { [weak self] result in
            switch result {
            case .success(let launched):
                self?.helpers[launched.pid] = { status in
                    switch status {
                    case .exited(let code): completion(.success(VerifierAnswer(code, Self.read(answer))))
                    case .signaled(let signal, _):
                        completion(.failure(LaunchError("torpor-verify was killed by \(Signal.name(signal))")))
                    }
                }
                started(launched.pidfd)
            case .failure(let failure): completion(.failure(LaunchError(failure.description)))
            }
        }
    }

    private static func read(_ answer: Descriptor) -> [UInt8] {
        // The output is a file in memory, so this read does not wait for a disk.
        (try? File.read(answer.raw, at: 0, maximum: longestAnswer)) ?? []
    }

    /// The bundle that a running app was launched from, even by an earlier torpord; nil if the app has no bundle, or if
    /// the bundle is not known.
    package func runningBundle(of app: AppRuntime) -> VerifiedBundle? {
        if let known = app.run.bundle { return known }
        guard machine(app).isAlive, !app.isPreparing, !app.run.isBundleSought,
            let bundle = app.specification.bundle
        else { return nil }
        app.run.isBundleSought = true
        // The content is trusted: only torpor-verify writes this file, and it is in torpord's own state directory.
        guard let text = try? File.readString("\(bundle.folder)/.run-\(app.name)", limit: 256),
            case let words = text.split(whereSeparator: { $0 == " " || $0 == "\n" }).map(String.init), words.count == 2
        else { return nil }
        app.run.bundle = VerifiedBundle(
            title: "\(bundle.name) \(words[0])",
            name: bundle.name,
            version: words[0],
            how: Self.manner(words[1]),
            // It is not known here whether the version is on trial. Assume that it is: torpor-verify knows, and ignores
            // reports about versions that are not.
            isOnTrial: true
        )
        return app.run.bundle
    }
}

/// The output of torpor-verify.
struct VerifierAnswer {
    let code: Int32
    let line: String
    let rest: ArraySlice<UInt8>

    init(_ code: Int32, _ bytes: [UInt8]) {
        let line = bytes.prefix { $0 != UInt8(ascii: "\n") }
        self.code = code
        self.line = String(wire: Array(line))
        rest = bytes.dropFirst(line.count + 1)
    }
}

private final class BundleVerdict { var isFinal = false }

extension Incarnation {
    /// The verified bundle that the app was launched from; nil if the app has no bundle, or if the bundle is not known.
    var bundle: VerifiedBundle? {
        get { slots[BundleSlot.self] }
        set { slots[BundleSlot.self] = newValue }
    }
    var isBundleSought: Bool {
        get { slots[BundleSoughtSlot.self] ?? false }
        set { slots[BundleSoughtSlot.self] = newValue }
    }
}

private enum BundleSlot: Slot { typealias Value = VerifiedBundle }
private enum BundleSoughtSlot: Slot { typealias Value = Bool }
