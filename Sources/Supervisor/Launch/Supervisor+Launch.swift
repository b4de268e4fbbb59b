// SPDX-License-Identifier: Apache-2.0

import Configuration
import EventLoop
import Lifecycle
import Linux
import Notify
import Output
import Processes
import SystemPackage
import Varlink
import VarlinkServer
import WireText

/// Launching: everything that an incarnation needs is made ready, then the keeper is asked.
extension Supervisor {
    func launch(_ app: AppRuntime, _ order: LaunchOrder) {
        app.launchFailure = nil
        app.exitRecord = nil
        forgetEvidence(app)
        app.statusText = nil
        app.saidErrno = nil
        app.launchedAt = loop.now
        app.tree = nil
        app.stop = .none
        app.told = nil
        app.profileState = nil
        app.wasCutShort = nil
        app.wasKilledAsleep = nil
        app.isEndedByPolicy = nil
        app.server?.setAccepting(false)
        let first = app.specification.beforeStart
        guard !first.isEmpty else { return launchMain(app, order) }
        runHooks(app, first, named: "before_start") { [weak self] failure in
            guard let self else { return }
            guard self.isLaunching(app, order), failure == nil else {
                if let failure { self.launchRefused(app, failure) } else { self.deliver(.launchFailed, to: app.id) }
                return
            }
            self.launchMain(app, order)
        }
    }

    /// Whether it is still this launch that is under way.
    private func isLaunching(_ app: AppRuntime, _ order: LaunchOrder) -> Bool {
        let machine = coordinator.machine(app.id)
        return machine.transition == .launching && machine.incarnation == order.incarnation
    }

    private func launchMain(_ app: AppRuntime, _ order: LaunchOrder) {
        let specification = app.specification
        let names = Account.Names(specification)
        let finish = { [weak self] (result: Result<LaunchFacts, LaunchTrouble>) in
            guard let self else { return }
            switch result {
            case .success(let facts):
                if let names, let account = facts.account { app.account = (names, account) }
                if let named = facts.named { self.accounts.add(named) }
                self.launch(app, order, facts)
            case .failure(let trouble):
                app.launchFailure = trouble.failure
                self.launchRefused(app, trouble.description)
            }
        }
        let known = specification.sockets.contains { accounts.missing($0) != nil } ? accounts : nil
        guard names == nil, specification.environmentFiles.isEmpty, known == nil else {
            return read(
                for: app,
                { () throws(LaunchTrouble) -> LaunchFacts in
                    var facts = try LaunchFacts.find(specification)
                    facts.named = known?.lookingUp(specification.sockets)
                    return facts
                },
                finish
            )
        }
        // Nothing that could keep anybody waiting, and nobody else's.
        do throws(LaunchTrouble) {
            finish(.success(try LaunchFacts.find(specification)))
        } catch {
            finish(.failure(error))
        }
    }

    private func launch(_ app: AppRuntime, _ order: LaunchOrder, _ facts: LaunchFacts) {
        let user = facts.account?.user
        do throws(LaunchTrouble) {
            try prepare(app, user)
            let given = try sockets.passed(to: app)
            let environment = environment(of: app, order, user, given.map(\.name), facts.variables)
            var plan = try plan(app, order, environment, facts)
            let output = try outputs(of: app)
            plan.standardOutput = output.output?.raw ?? -1
            plan.standardError = output.error?.raw ?? -1
            if case .file(let path) = app.specification.standardInput { plan.inputFile = path }
            plan.errorFile = errorFile(of: app)
            let stored = app.store.entries
            plan.passed = given.map(\.descriptor) + stored.map(\.descriptor.raw)
            plan.setListenPid = !plan.passed.isEmpty
            plan.setWatchdogPid = app.specification.rules.watchdog != nil
            var cgroup: (path: String, directory: Descriptor, isFresh: Bool)?
            if cgroups != nil {
                do throws(Errno) {
                    cgroup = try makeCgroup(app)
                    if let cgroup { limit(app, at: cgroup.path, isFresh: cgroup.isFresh) }
                } catch {
                    log.warning("\(app.name): no cgroup of its own (\(error)); following it by session")
                }
            }
            plan.cgroup = cgroup?.directory.raw
            let (path, isFresh) = (cgroup?.path, cgroup?.isFresh ?? true)
            trace(app, .planned)
            connectionWatch.letGo(app)
            keeper.launch(plan) { [weak self] result in
                self?.launched(app, order, result, cgroupPath: path, isFresh: isFresh)
            }
            withExtendedLifetime((output, cgroup)) {}
        } catch {
            app.launchFailure = error.failure
            launchRefused(app, error.description)
        }
    }

    private func makeCgroup(_ app: AppRuntime) throws(Errno) -> (path: String, directory: Descriptor, isFresh: Bool)? {
        do throws(Errno) {
            return try cgroups?.create(app.name)
        } catch {
            guard error == .noSuchFileOrDirectory, scope != nil else { throw error }
        }
        repairScope()
        return try cgroups?.create(app.name)
    }

    func launched(
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
            app.tree = tree(tag, main, launched.pidfd, cgroupPath, isOurs: isOurs)
            if isFresh { app.tree?.born = Self.birthScore(app, order) }
            trace(app, .executed)
            watchMemory(app)
            note(app, .launched, text: "launched as process \(launched.pid)", reason: order.reason.rawValue)
            deliver(.launched, to: app.id)
            startProbe(app)
        case .failure(let failure):
            app.launchFailure = failure
            launchRefused(app, sentence(app, failure))
        }
    }

    func startProbe(_ app: AppRuntime) {
        guard case .probe(let probe) = app.specification.ready, app.probe == nil,
            coordinator.machine(app.id).transition == .launching
        else { return }
        app.probe = ReadinessProbe(probe, app: app, supervisor: self)
        app.probe?.start()
    }

    private func sentence(_ app: AppRuntime, _ failure: LaunchFailure) -> String {
        let specification = app.specification
        switch (failure.stage, specification.standardInput) {
        case (.directory, _):
            let path = Self.directory(of: specification, app.account?.account.user)
            return "could not enter its directory \(path): \(failure.errno)"
        case (.input, .file(let path)):
            return "could not open \(path), its standard input: \(failure.errno)\(whoOpens(app, failure))"
        case (.error, _):
            let path = errorFile(of: app) ?? ""
            return "could not open \(path), its standard error: \(failure.errno)\(whoOpens(app, failure))"
        default: return failure.description
        }
    }

    private func whoOpens(_ app: AppRuntime, _ failure: LaunchFailure) -> String {
        guard failure.errno == .permissionDenied, let user = app.specification.user else { return "" }
        return "; where others than root may write to a folder on the way it is opened as the app's user, \(user)"
    }

    /// No process came to be: said, and handed to the core.
    private func launchRefused(_ app: AppRuntime, _ sentence: String) {
        app.notifySource?.setEvents(.readable)
        app.server?.setAccepting(true)
        // The ending that follows is logged with this sentence.
        app.refusal = sentence
        deliver(.launchFailed, to: app.id)
    }

    // MARK: Parts of a plan

    /// The `oom_score_adj` that an app has from the beginning: its state's, but never torpord's own protection, which is
    /// not for apps; what is below 0 it gets after its exec, since not everybody may do that.
    static func birthScore(_ app: AppRuntime, _ order: LaunchOrder) -> Int32 {
        let wish = app.specification.profile(in: order.foreground ? .active : .background).oomScoreAdjust
        return min(max(wish, ProcessTree.inheritedOOMScore), 1000)
    }

    private func plan(
        _ app: AppRuntime,
        _ order: LaunchOrder,
        _ environment: [String],
        _ facts: LaunchFacts
    ) throws(LaunchTrouble) -> LaunchPlan {
        let specification = app.specification
        var plan = LaunchPlan(
            app: app.name,
            incarnation: order.incarnation,
            executable: facts.executable,
            arguments: specification.exec,
            environment: environment
        )
        plan.directory = facts.directory
        plan.umask = specification.umask
        plan.nice = specification.nice
        plan.limits = specification.processLimits.map { ($0.resource, $0.soft, $0.hard) }
        plan.limits += descriptorLimit(of: specification)
        let score = Self.birthScore(app, order)
        plan.oomScoreAdjust = score == ProcessTree.inheritedOOMScore ? ProcessTree.oomScoreForChildren : score
        plan.user = try credentials(of: app)
        return plan
    }

    /// As a service torpord has a higher limit of descriptors than apps should begin with: programs that use select(2) may
    /// have no more than this.
    private func descriptorLimit(
        of specification: AppSpecification
    ) -> [(resource: Int32, soft: UInt64, hard: UInt64)] {
        let resource: Int32 = 7
        let usual: UInt64 = 1024
        guard manager != nil, !specification.limits.contains(where: { $0.resource == resource }),
            let hard = try? ThisProcess.limit(resource).hard, hard > usual
        else { return [] }
        return [(resource, usual, hard)]
    }

    /// Where it runs: users such as nobody have a home that does not exist.
    nonisolated static func directory(of specification: AppSpecification, _ user: User?) -> String {
        specification.directory ?? user.flatMap { File.exists($0.home) ? $0.home : nil } ?? "/"
    }

    private func environment(
        of app: AppRuntime,
        _ order: LaunchOrder,
        _ user: User?,
        _ sockets: [String],
        _ read: [String: String]
    ) -> [String] {
        let specification = app.specification
        var variables: [String: String] = [:]
        if let user {
            variables["HOME"] = user.home
            variables["USER"] = user.name
            variables["LOGNAME"] = user.name
            variables["SHELL"] = user.shell
        }
        if LaunchEnvironment.inherited["PATH"] == nil {
            variables["PATH"] = LaunchEnvironment.path
        }
        variables.merge(read) { $1 }
        for (key, value) in specification.environment { variables[key] = value }
        variables["NOTIFY_SOCKET"] = app.notifySocket?.path
        if let watchdog = specification.rules.watchdog { variables["WATCHDOG_USEC"] = "\(watchdog.microseconds)" }
        if !app.store.entries.isEmpty || !sockets.isEmpty {
            variables["LISTEN_FDS"] = "\(sockets.count + app.store.entries.count)"
            let stored = app.store.entries.isEmpty ? [] : [app.store.names]
            variables["LISTEN_FDNAMES"] = (sockets + stored).joined(separator: ":")
        }
        variables["TORPOR_MANAGER_SOCKET"] = runtime.socket
        variables["TORPOR_APP"] = app.name
        variables["TORPOR_INCARNATION"] = "\(order.incarnation)"
        variables["TORPOR_LAUNCH_REASON"] = order.reason.rawValue
        let options = LaunchEnvironment.options(
            order,
            event: app.pendingWake?.event,
            url: app.url,
            restoredState: archiveToRestore(app, order)?.path
        )
        variables["TORPOR_LAUNCH_OPTIONS"] = String(wire: options.serialised())
        variables["TORPOR_APP_SOCKET"] = app.server?.path
        variables["TORPOR_STATE_DIRECTORY"] = stateDirectory(of: app)
        return LaunchEnvironment.inherited.entries(adding: variables)
    }

    private func makeDirectories(_ app: AppRuntime, _ user: User?) throws(LaunchTrouble) {
        do throws(Errno) {
            try File.makeDirectories(runtime.directory(of: app))
        } catch {
            throw LaunchTrouble("cannot make the directory \(runtime.directory(of: app)): \(error)")
        }
        let state = stateDirectory(of: app)
        do throws(Errno) {
            // Asked first: on a disk that hangs, reading does not wait.
            let there = try? File.status(state)
            if there?.kind != .directory { try File.makeDirectories(state, mode: 0o755) }
            if let user, Users.isRoot, there?.uid != user.uid || there?.gid != user.gid {
                try File.setOwner(state, uid: user.uid, gid: user.gid)
            }
        } catch {
            // A disk that is full or cannot be written keeps no app from running that needs nothing of it.
            note(
                app,
                .noStateDirectory,
                text: "has no directory of its own for what it keeps: cannot make \(state) (\(error))"
            )
        }
    }

    /// What was made for an earlier launch is of no use to another user.
    private func giveNodes(of app: AppRuntime, to user: User?) {
        guard Users.isRoot else { return }
        let owner = (uid: user?.uid ?? Users.effectiveUID, gid: user?.gid ?? Users.effectiveGID)
        app.server?.owner = owner
        app.capture?.owner = owner
        for path in [app.notifySocket?.path, app.capture?.fifoPath, app.server?.path].compactMap({ $0 }) {
            do throws(Errno) {
                let there = try File.status(path)
                if there.uid != owner.uid || there.gid != owner.gid {
                    try File.setOwner(path, uid: owner.uid, gid: owner.gid)
                }
            } catch {
                log.warning("\(app.name): \(path) cannot be given to its new user: \(error)")
            }
        }
    }

    /// Directories and sockets, made at the first launch and kept for the later ones. `held`: the notify socket of an
    /// earlier torpord.
    func prepare(
        _ app: AppRuntime,
        _ user: User?,
        taking held: Descriptor? = nil,
        channel: Descriptor? = nil,
        holdsNotify: Bool = true
    ) throws(LaunchTrouble) {
        // With its socket its directories are there too.
        if held == nil {
            try makeDirectories(app, user)
            giveNodes(of: app, to: user)
        }
        try listen(for: app, user, taking: channel)
        guard app.notifySocket == nil else { return }
        let path = SharedPath(runtime.apps, app.name, "/notify")
        let socket: NotifySocket
        if let held {
            socket = NotifySocket(taking: held, path: path, buffer: datagrams)
        } else {
            do throws(NotifySocketError) {
                let owner = user.map { (uid: $0.uid, gid: $0.gid) }
                socket = try NotifySocket(path: path, mode: 0o600, owner: owner, buffer: datagrams)
            } catch {
                throw LaunchTrouble(error.description)
            }
            if holdsNotify { hold(HeldName.notify(app.name), socket.descriptor.raw) }
        }
        do throws(Errno) {
            // It ends with the app.
            app.notifySource = try loop.watch(socket.descriptor.raw, .readable, priority: .gathered) {
                [unowned self, unowned app] _ in
                // Mostly there is one, and looking for a second costs as much; the loop tells of more.
                self.hear(app, atMost: 1)
            }
        } catch {
            throw LaunchTrouble("cannot watch the notify socket of \(app.name): \(error)")
        }
        app.notifySocket = socket
    }

    // MARK: Output

    /// What standard output and error are; nil is /dev/null or a file, which the child opens.
    private func outputs(of app: AppRuntime) throws(LaunchTrouble) -> (output: Descriptor?, error: Descriptor?) {
        let specification = app.specification
        do {
            let output: Descriptor?
            switch specification.log {
            case .file: output = try capture(app).writerForApp()
            case .journal:
                let units = OwnUnits(apps: cgroups).names
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
            throw LaunchTrouble("the output of \(app.name) cannot be set up: \(error)")
        }
    }

    /// The file that standard error is added to; nil where it is none.
    private func errorFile(of app: AppRuntime) -> String? {
        guard case .file(let path) = app.specification.standardError else { return nil }
        return path.hasPrefix("/") ? path : runtime.logs + "/" + path
    }

    func capture(_ app: AppRuntime, taking held: Descriptor? = nil) throws(LaunchTrouble) -> OutputCapture {
        if let capture = app.capture { return capture }
        // One that is there has its owner.
        let user = held == nil ? try identity(of: app) : nil
        let capture = OutputCapture(
            app: app.name,
            fifo: SharedPath(runtime.apps, app.name, "/out"),
            delegate: app,
            batch: batch,
            loop: loop,
            owner: user.map { ($0.uid, $0.gid) }
        )
        do throws(OutputError) {
            try capture.start(taking: held)
        } catch {
            throw LaunchTrouble(error.description)
        }
        if held == nil, let descriptor = capture.descriptorToHold { hold(HeldName.output(app.name), descriptor) }
        app.capture = capture
        return capture
    }

    func logFile(of app: AppRuntime) -> LogFile {
        LogFile(path: logPath(of: app), limits: LogLimits(app.specification))
    }

    /// What an app wrote is in its log now.
    func outputArrived(_ app: AppRuntime) {
        // Output of a suspended app is either older than the stop or a sign that somebody continued it.
        checkStillSuspended(app)
        for follower in app.logFollowers { follower.step() }
    }

    func logPath(of app: AppRuntime) -> String { runtime.logs + "/" + app.name + ".log" }
}

/// What kept a launch from being tried, in a sentence.
struct LaunchTrouble: Error, CustomStringConvertible {
    let description: String
    /// The stage that it would have failed at.
    let failure: LaunchFailure?

    init(_ description: String, _ failure: LaunchFailure? = nil) {
        self.description = description
        self.failure = failure
    }
}

extension Supervisor {
    /// The plan of a command that runs for an app (a hook, a probe): as its user, in its directory, into its log.
    func commandPlan(
        _ app: AppRuntime,
        _ command: [String],
        _ facts: LaunchFacts
    ) throws(LaunchTrouble) -> (LaunchPlan, Descriptor?) {
        let user = try identity(of: app)
        let machine = coordinator.machine(app.id)
        let order = (app: app.name, incarnation: machine.incarnation)
        try prepare(app, user)
        var variables: [String: String] = [:]
        for (key, value) in app.specification.environment { variables[key] = value }
        variables[AppTag.helperVariable] = "1"
        variables["TORPOR_MANAGER_SOCKET"] = runtime.socket
        variables["TORPOR_APP"] = order.app
        variables["TORPOR_INCARNATION"] = "\(order.incarnation)"
        var plan = LaunchPlan(
            app: order.app,
            incarnation: order.incarnation,
            executable: facts.executable,
            arguments: command,
            environment: LaunchEnvironment.inherited.entries(adding: variables)
        )
        plan.directory = facts.directory
        plan.isHelper = true
        plan.oomScoreAdjust = ProcessTree.oomScoreForChildren
        plan.user = try credentials(of: app)
        let output: Descriptor?
        do {
            output = app.specification.log == .file ? try capture(app).writerForApp() : nil
        } catch {
            throw LaunchTrouble("the output of \(command[0]) cannot be set up: \(error)")
        }
        plan.standardOutput = output?.raw ?? -1
        plan.standardError = output?.raw ?? -1
        return (plan, output)
    }
}
