// SPDX-License-Identifier: Apache-2.0

import Archives
package import Configuration
package import Engine
import EventLoop
import EventSources
package import Lifecycle
package import Linux
import Notify
import Output
import Processes
import SystemPackage
import Varlink
import VarlinkServer
import WireText

/// Makes the launch plan that torpor-keeper carries out.
extension Launcher {
    /// The `oom_score_adj` with which an app starts: the value of its state's profile, but at least the value that apps
    /// inherit, because an app must not have torpord's own protection. A lower value is set only after the app's exec,
    /// because lowering the value needs a privilege.
    static func birthScore(_ app: AppRuntime, _ order: LaunchOrder) -> Int32 {
        let wish = app.specification.profile(in: order.foreground ? .active : .background).oomScoreAdjust
        return min(max(wish, ProcessTree.inheritedOOMScore), 1000)
    }

    func plan(
        _ app: AppRuntime,
        _ order: LaunchOrder,
        _ environment: [String],
        _ facts: LaunchFacts,
        _ specification: AppSpecification
    ) throws(LaunchError) -> LaunchPlan {
        let command = OpenPlaceholder.fill(specification.exec, supervisor.mailboxes.urlForLaunch(of: app, order))
        var plan = LaunchPlan(
            app: app.name,
            incarnation: order.incarnation,
            executable: facts.executable,
            arguments: containers.arguments(of: app, specification, facts, command) ?? command,
            environment: environment
        )
        plan.directory = facts.directory
        plan.umask = specification.umask
        plan.nice = specification.nice
        plan.limits = specification.processLimits.map { ($0.resource, $0.soft, $0.hard) }
        plan.limits += descriptorLimit(of: specification)
        let score = Self.birthScore(app, order)
        plan.oomScoreAdjust = score == ProcessTree.inheritedOOMScore ? ProcessTree.oomScoreForChildren : score
        plan.user = Self.credentials(facts.account)
        return plan
    }

    /// The limit of open descriptors with which apps start if torpord runs as a service: 1024, although torpord's own
    /// limit is higher. Programs that use select(2) cannot handle more descriptors.
    private func descriptorLimit(
        of specification: AppSpecification
    ) -> [(resource: Int32, soft: UInt64, hard: UInt64)] {
        let resource: Int32 = 7
        let usual: UInt64 = 1024
        guard supervisor.place.manager != nil, !specification.limits.contains(where: { $0.resource == resource }),
            let hard = try? ThisProcess.limit(resource).hard, hard > usual
        else { return [] }
        return [(resource, usual, hard)]
    }

    /// An app's working directory. The user's home directory is used only if it exists, because system users often have
    /// none.
    package nonisolated static func directory(of specification: AppSpecification, _ user: User?) -> String {
        specification.directory ?? user.flatMap { File.exists($0.home) ? $0.home : nil } ?? "/"
    }

    package func environment(
        of app: AppRuntime,
        _ order: LaunchOrder,
        _ user: User?,
        _ sockets: [String],
        _ read: [String: String],
        _ specification: AppSpecification? = nil
    ) -> [String] {
        let specification = specification ?? app.specification
        var variables: [String: String] = [:]
        if let user { variables = Self.variables(of: user, specification) }
        variables.reserveCapacity(variables.count + read.count + specification.environment.count + 16)
        if LaunchEnvironment.inherited["PATH"] == nil {
            variables["PATH"] = LaunchEnvironment.path
        }
        var data = supervisor.dataFolders.variables(of: app)
        data.merge(supervisor.protection.variables(of: app)) { $1 }
        // Set TMPDIR first, so that environment files and the configuration can override it.
        variables["TMPDIR"] = data["TMPDIR"]
        for (key, value) in Containers.forLaunch(read, specification) { variables[key] = value }
        let given = LaunchEnvironment.given(to: specification)
        for (key, value) in Containers.forLaunch(given, specification) { variables[key] = value }
        for (key, value) in data where key != "TMPDIR" { variables[key] = value }
        variables["NOTIFY_SOCKET"] = app.notifySocket?.path
        if let watchdog = specification.rules.watchdog { variables["WATCHDOG_USEC"] = "\(watchdog.microseconds)" }
        if !app.store.entries.isEmpty || !sockets.isEmpty {
            variables["LISTEN_FDS"] = "\(sockets.count + app.store.entries.count)"
            let stored = app.store.entries.isEmpty ? [] : [app.store.names]
            variables["LISTEN_FDNAMES"] = (sockets + stored).joined(separator: ":")
        }
        variables["TORPOR_MANAGER_SOCKET"] = supervisor.runtime.socket
        variables["TORPOR_APP"] = app.name
        variables["TORPOR_INCARNATION"] = "\(order.incarnation)"
        variables["TORPOR_LAUNCH_REASON"] = order.reason.rawValue
        let scene = supervisor.scenes.session(of: app)
        let options = LaunchOptions(
            order: order,
            event: app.pendingWake?.event,
            url: supervisor.mailboxes.url(for: app),
            restoredState: supervisor.savedStates.archiveToRestore(app, order)?.path,
            data: supervisor.dataFolders.launch(of: app),
            scene: scene
        )
        if let session = scene?.options, session != .null { variables["TORPOR_SESSION"] = session.description }
        variables["TORPOR_LAUNCH_OPTIONS"] = options.text
        variables["TORPOR_APP_SOCKET"] = app.server?.path
        variables["TORPOR_STATE_DIRECTORY"] = supervisor.savedStates.stateDirectory(of: app)
        if !specification.declaredSettings.isEmpty {
            variables["TORPOR_SETTINGS"] = supervisor.savedStates.stateDirectory(of: app) + "/" + SettingsFiles.json
        }
        return LaunchEnvironment.inherited.entries(adding: variables)
    }

    /// The variables that tell programs as which user they run. An app in a container also gets XDG_RUNTIME_DIR:
    /// podman keeps a user's containers below that directory, and all commands of the app must find them.
    static func variables(of user: User, _ specification: AppSpecification) -> [String: String] {
        var variables = ["HOME": user.home, "USER": user.name, "LOGNAME": user.name, "SHELL": user.shell]
        if specification.container != nil, user.uid != 0 {
            let folder = "/run/user/\(user.uid)"
            if File.exists(folder) { variables["XDG_RUNTIME_DIR"] = folder }
        }
        return variables
    }

    /// Continues a launch when the app's user owns the archives that it may get.
    func withArchives(
        _ app: AppRuntime,
        _ order: LaunchOrder,
        _ facts: LaunchFacts,
        _ specification: AppSpecification
    ) {
        supervisor.savedStates.giveArchives(of: app) { [weak self] in
            guard let self else { return }
            guard self.isLaunching(app, order) else { return self.deliver(.launchFailed, to: app.id) }
            self.confine(app, order, facts, specification)
        }
    }

    private func makeDirectories(_ app: AppRuntime, _ user: User?) throws(LaunchError) {
        let directory = supervisor.runtime.directory(of: app)
        do throws(Errno) {
            // After the first launch it is there, and a look is cheaper than an attempt to make it.
            let isThere = app.notifySocket != nil && (try? File.status(directory).kind) == .directory
            if !isThere { try File.makeDirectories(directory) }
        } catch {
            throw LaunchError("cannot make the directory \(directory): \(error)")
        }
        let state = supervisor.savedStates.stateDirectory(of: app)
        do throws(Errno) {
            // First check whether the directory exists. If the disk hangs, making a directory blocks, but looking up a
            // known path does not.
            let there = try? File.status(state)
            if there?.kind != .directory { try StateDirectory.make(state) }
            // `withAccount` gives a former user's directory away, with the files in it.
            if let user, Users.isRoot, there.map({ $0.uid == user.uid && $0.gid != user.gid }) ?? true {
                try File.setOwner(state, uid: user.uid, gid: user.gid)
            }
        } catch {
            // An app that does not need a state directory must run even if the disk is full or read-only.
            note(
                app,
                .noStateDirectory,
                text: "has no state directory: cannot make \(state) (\(error))"
            )
        }
    }

    /// Gives files that were made for an earlier launch to the app's present user.
    private func giveNodes(of app: AppRuntime, to user: User?) {
        guard Users.isRoot else { return }
        let owner = (uid: user?.uid ?? Users.effectiveUID, gid: user?.gid ?? Users.effectiveGID)
        app.server?.owner = owner
        app.capture?.owner = owner
        // At most launches they belong to this user already: this torpord has made them for the user, or looked.
        let code = UInt64(owner.uid) << 32 | UInt64(owner.gid)
        guard nodeOwners[app.id] != code else { return }
        let paths = [app.notifySocket?.path, app.capture?.fifoPath, app.server?.path].compactMap { $0 }
        if !paths.isEmpty { nodeOwners[app.id] = code }
        for path in paths {
            do throws(Errno) {
                let there = try File.status(path)
                if there.uid != owner.uid || there.gid != owner.gid {
                    try File.setOwner(path, uid: owner.uid, gid: owner.gid)
                }
            } catch {
                nodeOwners[app.id] = nil
                log.warning("\(app.name): \(path) cannot be given to user ID \(owner.uid): \(error)")
            }
        }
    }

    /// Creates directories and sockets at the first launch; later launches use them again. `held`: the notify socket of
    /// an earlier torpord.
    func prepare(
        _ app: AppRuntime,
        _ user: User?,
        taking held: Descriptor? = nil,
        channel: Descriptor? = nil,
        holdsNotify: Bool = true
    ) throws(LaunchError) {
        // Create the directories, except if an earlier torpord has left the notify socket: then it has created them
        // too.
        if held == nil {
            try makeDirectories(app, user)
            giveNodes(of: app, to: user)
            try containers.makeFolder(of: app, for: user)
        }
        try supervisor.appSockets.listen(for: app, user, taking: channel)
        guard app.notifySocket == nil else { return }
        let path = SharedPath(supervisor.runtime.apps, app.name, "/notify")
        let socket: NotifySocket
        if let held {
            socket = NotifySocket(taking: held, path: path, buffer: supervisor.notifySockets.datagrams)
        } else {
            do throws(NotifySocketError) {
                let owner = user.map { (uid: $0.uid, gid: $0.gid) }
                socket = try NotifySocket(
                    path: path,
                    mode: 0o600,
                    owner: owner,
                    buffer: supervisor.notifySockets.datagrams
                )
            } catch {
                throw LaunchError(error.description)
            }
            if holdsNotify { supervisor.hold(DescriptorName.notify(app.name), socket.descriptor.raw) }
        }
        do throws(Errno) {
            // `unowned` is safe here: the app owns this event source, and outlives it.
            app.notifySource = try loop.watch(socket.descriptor.raw, .readable, priority: .gathered) {
                [unowned self, unowned app] _ in
                // Read one datagram at a time: usually only one waits, and checking for another costs as much as
                // reading one. If more wait, the event loop calls this closure again.
                self.supervisor.notifySockets.readNotifySocket(app, atMost: 1)
            }
        } catch {
            throw LaunchError("cannot watch the notify socket of \(app.name): \(error)")
        }
        app.notifySocket = socket
    }
}
