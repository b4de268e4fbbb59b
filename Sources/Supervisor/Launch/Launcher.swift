// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
import EventLoop
import EventSources
package import Lifecycle
package import Linux
import Notify
package import Output
import Permissions
package import Processes
import SystemPackage
import Varlink
import VarlinkServer
import WireText

/// Prepares everything that an incarnation (one run of an app) needs, then asks torpor-keeper to launch the process.
package final class Launcher: ShellRoom, LifecycleObserver {
    package unowned(unsafe) let supervisor: Supervisor
    /// Reads environment files for launches, and checks readiness files, several at a time: if one app's disk hangs,
    /// the other apps must not wait.
    let reads: BackgroundWorker
    /// Handlers for the exits of commands that torpord has launched, by the pid of the command.
    var helpers: [Int32: (ExitStatus) -> Void] = [:]
    /// Processes that commands have left running when they ended, and that torpord is killing.
    var commandRemains: [CommandRemains] = []
    /// The cgroups of checks that run, or have left processes.
    let checks = CheckCgroups()
    /// Apps in containers.
    package private(set) lazy var containers = Containers(supervisor)
    private(set) lazy var environments = LaunchedEnvironments(supervisor)
    /// Manages the permissions of apps.
    package private(set) lazy var permissions = AppPermissions(supervisor)
    /// For each bundle whose previous version was put back: the version that failed, and the one that replaces it.
    package internal(set) var putBack: [String: (failed: String, current: String)] = [:]
    /// The trials of bundles whose launch has failed: launches from these bundles wait for the outcome of the trial.
    var trials: [String: BundleTrial] = [:]
    /// The user and group, for each app that was launched again, to whom its sockets and its FIFO belong for certain.
    var nodeOwners: [AppID: UInt64] = [:]
    /// The health checks of running apps.
    package private(set) lazy var healthChecks = HealthChecks(supervisor)

    package init(_ supervisor: Supervisor) {
        self.supervisor = supervisor
        reads = BackgroundWorker(supervisor.loop, named: "launches", isInOrder: false)
    }

    /// Cancels launches that were superseded while their hooks ran or their files were read. Such a launch has no
    /// process yet, so no exit would end it.
    package func touched(_ apps: [AppRuntime]) {
        followTrials(apps)
        for app in apps where app.isPreparing && machine(app).transition == .terminating {
            cancelHooks(app)
            cancelTrialWait(app)
            supervisor.dataFolders.cancel(app)
            cancelReading(app)
        }
    }

    package func ended(_ app: AppRuntime, _ ending: Ending) {
        endFoundCommand(of: app)
        trialEnded(app, ending)
    }

    package func forget(_ app: AppRuntime) { nodeOwners[app.id] = nil }

    package func launch(_ app: AppRuntime, _ order: LaunchOrder) {
        let (found, begun, hasAccount) = (app.run.foundCommand, app.run.launchedAt, app.run.hasAccount)
        app.run = Incarnation()
        app.run.foundCommand = found
        app.run.launchedAt = found == nil ? now : begun ?? now
        if found != nil, hasAccount { app.run.hasAccount = true }
        app.lastLaunched = nil
        app.wasCutShort = nil
        app.wasKilledAsleep = nil
        app.isEndedByPolicy = nil
        app.server?.setAccepting(false)
        // An earlier torpord has prepared everything, and a command of `before_start` runs.
        guard found == nil else { return runFirst(app, order) }
        guard app.specification.bundle != nil else { return prepareData(app, order) }
        // Verify the bundle first, because `first_launch` copies files of it into the data folders. To read all of the
        // bundle may take minutes, so `launchHeld` suspends the launch deadline.
        deliver(.launchHeld, to: app.id)
        afterTrial(of: app) { [weak self] isPutBack in
            guard let self else { return }
            guard self.isLaunching(app, order) else { return self.deliver(.launchFailed, to: app.id) }
            // Refuse this launch, because it was planned with the manifest of the failed version. A retry uses the
            // manifest of the version that was put back.
            guard !isPutBack else { return self.launchRefused(app, "waits for the version that was put back") }
            self.verify(app, order)
        }
    }

    private func verify(_ app: AppRuntime, _ order: LaunchOrder) {
        verifyBundle(app) { [weak self] failure in
            guard let self else { return }
            if let failure { return self.launchRefused(app, failure.sentence, isFinal: failure.isFinal) }
            guard self.isLaunching(app, order) else { return self.deliver(.launchFailed, to: app.id) }
            self.deliver(.launchContinues, to: app.id)
            self.prepareData(app, order)
        }
    }

    private func prepareData(_ app: AppRuntime, _ order: LaunchOrder) {
        whileReadable(app, order) { launcher in
            launcher.withAccount(app) { launcher in
                launcher.supervisor.dataFolders.prepare(app, order) { [weak launcher] failure in
                    guard let launcher else { return }
                    if let failure { return launcher.launchRefused(app, failure.description) }
                    launcher.whileReadable(app, order) { $0.runFirst(app, order) }
                }
            }
        }
    }

    /// Continues a launch with `next`: at once, or, if the app's protected data is locked, as soon as it is readable.
    private func whileReadable(_ app: AppRuntime, _ order: LaunchOrder, _ next: @escaping (Launcher) -> Void) {
        if let refusal = supervisor.protection.refusal(of: app) { return launchRefused(app, refusal, isFinal: true) }
        let isStopped = supervisor.protection.stops(app, order) { [weak self] in
            guard let self else { return }
            guard self.isLaunching(app, order) else { return self.deliver(.launchFailed, to: app.id) }
            self.deliver(.launchContinues, to: app.id)
            self.whileReadable(app, order, next)
        }
        if isStopped { deliver(.launchHeld, to: app.id) } else { next(self) }
    }

    /// Runs the commands of `before_start`, then launches the app.
    private func runFirst(_ app: AppRuntime, _ order: LaunchOrder) {
        let first = app.specification.beforeStart
        guard !first.isEmpty || app.run.foundCommand != nil else { return launchMain(app, order) }
        guard app.specification.declaredSettings.isEmpty || supervisor.persistence.isLoaded else {
            return supervisor.persistence.whenLoaded(continuation(of: app, order) { $0.runFirst(app, order) })
        }
        runHooks(app, first, as: .beforeStart) { [weak self] failure in
            guard let self else { return }
            guard self.isLaunching(app, order), failure == nil else {
                if let failure { self.launchRefused(app, failure) } else { self.deliver(.launchFailed, to: app.id) }
                return
            }
            self.whileReadable(app, order) { $0.launchMain(app, order) }
        }
    }

    /// Whether this launch is still in progress and was not superseded by another one.
    func isLaunching(_ app: AppRuntime, _ order: LaunchOrder) -> Bool {
        let machine = coordinator.machine(app.id)
        return machine.transition == .launching && machine.incarnation == order.incarnation
    }

    /// Makes a function that continues a launch with `next`, or ends the launch if it was superseded.
    private func continuation(
        of app: AppRuntime,
        _ order: LaunchOrder,
        _ next: @escaping (Launcher) -> Void
    ) -> () -> Void {
        { [weak self] in
            guard let self else { return }
            guard self.isLaunching(app, order) else { return self.deliver(.launchFailed, to: app.id) }
            next(self)
        }
    }

    private func launchMain(_ app: AppRuntime, _ order: LaunchOrder) {
        // Wait for the store if the launch depends on it: settings and a queued URL are in the program's arguments or
        // environment, and the answers to permission questions determine its sandbox.
        let needsStore =
            !app.specification.declaredSettings.isEmpty || app.specification.sandbox.mode != nil
            || supervisor.mailboxes.holdsBackLaunch(of: app, order)
        guard !needsStore || supervisor.persistence.isLoaded else {
            return supervisor.persistence.whenLoaded(continuation(of: app, order) { $0.launchMain(app, order) })
        }
        let specification: AppSpecification
        do throws(LaunchError) {
            specification = try supervisor.settings.launched(app)
        } catch {
            return launchRefused(app, error.description)
        }
        supervisor.settings.launches(app)
        let files = supervisor.settings.filesAtLaunch(app)
        let (names, account, run) = (Account.Names(specification), accountOfRun(app), app.run)
        let finish = { [weak self] (result: Result<LaunchFacts, LaunchError>) in
            guard let self else { return }
            switch result {
            case .success(let facts):
                self.adopt(facts.account, of: app, in: run)
                self.environments.launches(app, facts.environment)
                if let named = facts.named { self.supervisor.inForce.accounts.sockets.add(named) }
                if let problem = facts.settingsProblem { self.note(app, .settingsNotTaken, text: problem) }
                self.withArchives(app, order, facts, specification)
            case .failure(let trouble):
                app.run.launchFailure = trouble.failure
                self.launchRefused(app, trouble.description)
            }
        }
        let known =
            specification.sockets.contains { supervisor.inForce.accounts.sockets.missing($0) != nil }
            ? supervisor.inForce.accounts.sockets : nil
        let socketFiles = supervisor.wakes.sockets.files(of: app)
        guard names == nil, known == nil, files == nil, socketFiles.isEmpty, LaunchFacts.areQuick(specification) else {
            return read(
                for: app,
                { () throws(LaunchError) -> LaunchFacts in
                    try LaunchFacts.find(specification, as: account, known, settings: files, sockets: socketFiles)
                },
                finish
            )
        }
        // This launch looks up no account, socket owner or file of the app, so it needs no background thread.
        do throws(LaunchError) {
            finish(.success(try LaunchFacts.find(specification)))
        } catch {
            finish(.failure(error))
        }
    }

    /// - Parameter specification: the app's specification, in which names of settings are replaced by their values.
    func launch(
        _ app: AppRuntime,
        _ order: LaunchOrder,
        _ facts: LaunchFacts,
        _ specification: AppSpecification
    ) {
        let user = facts.account?.user
        do throws(LaunchError) {
            try prepare(app, user)
            supervisor.permissions.closeOutdatedStore(of: app)
            let given = try supervisor.wakes.sockets.passed(to: app, lost: facts.lostSockets)
            let environment = self.environment(
                of: app,
                order,
                user,
                given.map(\.name),
                facts.variables,
                specification
            )
            var plan = try self.plan(app, order, environment, facts, specification)
            let output = try outputs(of: app)
            plan.standardOutput = output.output?.raw ?? -1
            plan.standardError = output.error?.raw ?? -1
            if case .file(let path) = app.specification.standardInput { plan.inputFile = path }
            plan.errorFile = errorFile(of: app)
            plan.sandbox = facts.sandbox?.forLaunch
            let stored = app.store.entries
            plan.passed = given.map(\.descriptor) + stored.map(\.descriptor.raw)
            plan.setListenPid = !plan.passed.isEmpty
            plan.setWatchdogPid = app.specification.rules.watchdog != nil
            var cgroup: (path: String, directory: Descriptor, isFresh: Bool)?
            if supervisor.place.cgroups != nil {
                do throws(Errno) {
                    cgroup = try makeCgroup(app.name)
                    if let cgroup { supervisor.shares.limit(app, at: cgroup.path, isFresh: cgroup.isFresh) }
                } catch {
                    log.warning("\(app.name): no cgroup of its own (\(error)); following it by session")
                }
            }
            guard cgroup != nil || specification.container == nil else { throw Containers.needsCgroup }
            plan.cgroup = cgroup?.directory.raw
            let (path, isFresh) = (cgroup?.path, cgroup?.isFresh ?? true)
            trace(app, .planned)
            supervisor.wakes.connectionWatch.letGo(app)
            supervisor.keeper.launch(plan) { [weak self] result in
                self?.launched(app, order, result, cgroupPath: path, isFresh: isFresh)
            }
            withExtendedLifetime((output, cgroup, facts)) {}
        } catch {
            app.run.launchFailure = error.failure
            launchRefused(app, error.description)
        }
    }

    /// Makes the cgroup with this name: an app's name, or the name of a companion or a check. Nil if torpord has no
    /// cgroups.
    func makeCgroup(_ name: String) throws(Errno) -> (path: String, directory: Descriptor, isFresh: Bool)? {
        do throws(Errno) {
            return try supervisor.place.cgroups?.create(name)
        } catch {
            guard error == .noSuchFileOrDirectory, supervisor.place.scope != nil else { throw error }
        }
        supervisor.place.repairScope()
        return try supervisor.place.cgroups?.create(name)
    }

    package func launched(
        _ app: AppRuntime,
        _ order: LaunchOrder,
        _ result: Result<Launched, LaunchFailure>,
        cgroupPath: String?,
        isOurs: Bool = true,
        isFresh: Bool = false
    ) {
        app.notifySource?.setEvents(.readable)
        defer { app.server?.setAccepting(true) }
        switch result {
        case .success(let launched):
            let tag = AppTag(app: app.name, incarnation: order.incarnation)
            let main = Identity(pid: launched.pid, startTime: launched.startTime)
            app.run.tree = supervisor.takeover.tree(tag, main, launched.pidfd, cgroupPath, isOurs: isOurs)
            app.run.tree?.isContainer = app.specification.container != nil
            if isFresh { app.run.tree?.born = Self.birthScore(app, order) }
            trace(app, .executed)
            supervisor.shares.watchMemory(app)
            log.holdingBack {
                note(app, .launched, text: "launched as process \(launched.pid)", reason: order.reason.rawValue)
                deliver(.launched, to: app.id)
            }
            forgetCommands(of: app)
            startProbe(app)
        case .failure(let failure):
            app.run.launchFailure = failure
            launchRefused(app, sentence(app, failure))
        }
    }

    func startProbe(_ app: AppRuntime) {
        // Do not probe an app in a container before podman has started the container.
        guard containers.isRunning(app) != false else { return }
        guard case .probe(let probe) = app.specification.readiness, app.run.probe == nil,
            coordinator.machine(app.id).transition == .launching
        else { return }
        app.run.probe = ReadinessProbe(supervisor.settings.filled(probe, of: app), app: app, supervisor: supervisor)
        app.run.probe?.start()
    }

    /// ELIBACC. The child that executes the app reports it if the program exists but the program's interpreter does not
    /// (child.c).
    private static let noInterpreter = Errno(rawValue: 79)

    private func sentence(_ app: AppRuntime, _ failure: LaunchFailure) -> String {
        let specification = app.specification
        switch (failure.stage, specification.standardInput) {
        case (.directory, _):
            let path = Self.directory(of: specification, app.account?.user)
            return "could not enter its directory \(path): \(failure.errno)"
        case (.input, .file(let path)):
            return "could not open \(path), its standard input: \(failure.errno)\(whoOpens(app, failure))"
        case (.error, _):
            let path = errorFile(of: app) ?? ""
            return "could not open \(path), its standard error: \(failure.errno)\(whoOpens(app, failure))"
        case (.exec, _) where failure.errno == Self.noInterpreter && failure.detail.isEmpty:
            return "could not run \(failure.executable) (exec): the interpreter that it needs, which its first line "
                + "names, is missing (‘torpor check’ says which)"
        case (.exec, _) where failure.errno == .permissionDenied && failure.detail.isEmpty:
            return "\(failure): it needs chmod +x, or its user may not reach it"
        case (.exec, _) where failure.errno == .execFormatError && failure.detail.isEmpty:
            return "\(failure): it is neither a program for this machine nor a script whose first line names its "
                + "interpreter, as in #!/bin/sh"
        default: return failure.description
        }
    }

    private func whoOpens(_ app: AppRuntime, _ failure: LaunchFailure) -> String {
        guard failure.errno == .permissionDenied, let user = app.specification.user else { return "" }
        return "; non-root users may write to a folder on its path, so it is opened as the app's user, \(user)"
    }

    /// Called when no process was launched: stores the reason, and reports the failure to the core.
    ///
    /// - Parameter isFinal: whether a retry would fail for the same reason; if so, the core does not retry.
    func launchRefused(_ app: AppRuntime, _ sentence: String, isFinal: Bool = false) {
        app.notifySource?.setEvents(.readable)
        app.server?.setAccepting(true)
        // The core reports next that the app has ended, and that report is logged with this sentence.
        app.run.refusal = sentence
        deliver(isFinal ? .launchRefused : .launchFailed, to: app.id)
    }

    // MARK: Output

    /// The targets of standard output and error; nil for /dev/null, or for a file that the child opens.
    private func outputs(of app: AppRuntime) throws(LaunchError) -> (output: Descriptor?, error: Descriptor?) {
        let specification = app.specification
        do {
            let output: Descriptor?
            switch specification.log {
            case .file: output = try capture(app).writerForRun()
            case .journal:
                let units = OwnUnits(apps: supervisor.place.cgroups).names
                output = try OutputTarget.journal(app: app.name, unit: units.first ?? "")
            case .inherit: output = try OutputTarget.inherit(1)
            case .null: output = nil
            }
            let error: Descriptor? =
                switch specification.standardError {
                case .log: specification.log == .inherit ? try OutputTarget.inherit(2) : output
                case .file: nil
                }
            return (output, error)
        } catch {
            throw LaunchError("the output of \(app.name) cannot be set up: \(error)")
        }
    }

    /// The file to which standard error is appended; nil if standard error has another target.
    private func errorFile(of app: AppRuntime) -> String? {
        guard case .file(let path) = app.specification.standardError else { return nil }
        return path.hasPrefix("/") ? path : supervisor.runtime.logs + "/" + path
    }

    package func capture(_ app: AppRuntime, taking held: Descriptor? = nil) throws(LaunchError) -> OutputCapture {
        if let capture = app.capture { return capture }
        // The user is needed only for a new FIFO: if torpor-keeper held the FIFO, an earlier torpord has set its owner.
        let user = held == nil ? try identity(of: app) : nil
        let capture = OutputCapture(
            app: app.name,
            fifo: SharedPath(supervisor.runtime.apps, app.name, "/out"),
            delegate: app,
            batch: supervisor.batch,
            loop: loop,
            owner: user.map { ($0.uid, $0.gid) }
        )
        do throws(OutputError) {
            try capture.start(taking: held)
        } catch {
            throw LaunchError(error.description)
        }
        if held == nil, let descriptor = capture.descriptorToHold {
            supervisor.hold(DescriptorName.output(app.name), descriptor)
        }
        app.capture = capture
        return capture
    }

    package func logFile(of app: AppRuntime) -> LogFile {
        LogFile(path: logPath(of: app), limits: LogLimits(app.specification))
    }

    /// Called when an app has new output, which is in the app's log already.
    package func outputArrived(_ app: AppRuntime) {
        // If the app is suspended, either it wrote this output before it was stopped, or another process has continued
        // it: find out.
        supervisor.processControl.checkStillSuspended(app)
        for follower in app.outputFollowers { follower.step() }
    }

    package func logPath(of app: AppRuntime) -> String { supervisor.runtime.logPath(of: app.name) }
}

extension Launcher {
    /// The plan for a command that runs for an app (a hook, a probe): as its user, in its directory, with output to
    /// its log. `own`: variables that take the place of those about the app's present run.
    func commandPlan(
        _ app: AppRuntime,
        _ command: [String],
        _ facts: LaunchFacts,
        _ own: [String: String]?
    ) throws(LaunchError) -> (LaunchPlan, Descriptor?) {
        let user = facts.account?.user
        let order = (app: app.name, incarnation: coordinator.machine(app.id).incarnation)
        try prepare(app, user)
        var variables: [String: String] = [:]
        let data = supervisor.dataFolders.variables(of: app).merging(supervisor.protection.variables(of: app)) { $1 }
        variables["TMPDIR"] = data["TMPDIR"]
        if let user { variables.merge(Self.variables(of: user, app.specification)) { $1 } }
        let specification = try? supervisor.settings.launched(app)
        let isOwn = Containers.isOwn(command)
        var given = specification.map { Containers.forPodman(LaunchEnvironment.given(to: $0), $0) } ?? [:]
        // A command that runs outside the app's sandbox belongs to the machine's owner. Variables from a bundle's
        // manifest, which is not trusted, must not affect such a command.
        let isOutside = app.specification.sandbox.mode != nil && facts.sandbox == nil
        if let bundle = app.specification.bundle, isOutside {
            for name in bundle.variables { given[name] = nil }
        }
        for (key, value) in given where !isOwn { variables[key] = value }
        for (key, value) in data where key != "TMPDIR" { variables[key] = value }
        variables[AppTag.helperVariable] = "1"
        variables["TORPOR_MANAGER_SOCKET"] = supervisor.runtime.socket
        variables["TORPOR_APP"] = order.app
        variables["TORPOR_INCARNATION"] = "\(order.incarnation)"
        variables.merge(own ?? endVariables(of: app)) { $1 }
        var plan = LaunchPlan(
            app: order.app,
            incarnation: order.incarnation,
            executable: facts.executable,
            arguments: command,
            environment: LaunchEnvironment.inherited.entries(adding: variables)
        )
        // Programs may load code from their working directory, so a command outside the sandbox must not run in the
        // bundle.
        let place = app.specification.bundle?.path
        let isInBundle =
            isOutside && (place.map { facts.directory == $0 || facts.directory.hasPrefix($0 + "/") } ?? false)
        plan.directory = isInBundle ? "/" : facts.directory
        plan.isHelper = true
        plan.oomScoreAdjust = ProcessTree.oomScoreForChildren
        plan.user = Self.credentials(facts.account)
        plan.sandbox = facts.sandbox?.forLaunch
        let output: Descriptor?
        do {
            output = app.specification.log == .file ? try capture(app).writerForApp() : nil
        } catch {
            throw LaunchError("the output of \(command[0]) cannot be set up: \(error)")
        }
        plan.standardOutput = output?.raw ?? -1
        plan.standardError = output?.raw ?? -1
        return (plan, output)
    }
}
