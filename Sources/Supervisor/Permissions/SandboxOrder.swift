// SPDX-License-Identifier: Apache-2.0

import Archives
import Configuration
package import Engine
package import KeeperProtocol
import Lifecycle
package import Linux
package import Permissions
import Processes
import SystemPackage

/// The description of an app's sandbox before its launch. A background thread makes the sandbox from it, because
/// opening paths may wait for a disk.
package struct SandboxOrder: Sendable {
    package var mode: SandboxMode
    package var grants: PermissionGrants
    package var places: SandboxPlaces
    /// The version of Landlock to use; 0 for none.
    package var version = Landlock.version
    /// torpord's own files and folders. A path that only a bundle's manifest requests must not lead to them.
    package var ownPaths: [String] = []
    /// Whether the process gets an IPC namespace of its own.
    package var hasOwnIPC = true
    /// Whether the kernel is asked to report accesses that it denies to the process, if the kernel can do so.
    package var logsDenials = false

    /// A sandbox that a child process can enter.
    package struct Made: Sendable {
        package var ruleset: LandlockRuleset?
        package var filter: SystemCallFilter
        package var hasOwnIPC = true
        package var logsDenials = false
        /// The requested paths that could not be opened, each with the reason, as sentences.
        package var skipped: [String] = []

        /// The sandbox for a launch. The caller keeps ``ruleset`` until torpor-keeper has received it.
        package var forLaunch: LaunchRequest.Sandbox {
            var sandbox = LaunchRequest.Sandbox(
                ruleset: ruleset?.raw,
                filter: filter.instructions.map { ($0.code, $0.ifTrue, $0.ifFalse, $0.value) }
            )
            (sandbox.hasOwnIPC, sandbox.logsDenials) = (hasOwnIPC, logsDenials)
            return sandbox
        }
    }

    /// Makes the sandbox. A path that does not exist is skipped; any other failure prevents the launch.
    package func make() throws(LaunchError) -> Made {
        var made = Made(filter: SystemCallFilter(grants, mode, hasOwnIPC: hasOwnIPC))
        (made.hasOwnIPC, made.logsDenials) = (hasOwnIPC, logsDenials)
        guard let plan = LandlockPlan(grants, places, version: version) else {
            guard !LandlockPlan.isNeeded(for: grants) else {
                throw failure(
                    .notSupported,
                    KernelRelease.landlockObstacle + ", or remove sandbox"
                )
            }
            return made
        }
        do throws(Errno) {
            let ruleset = try LandlockRuleset(
                files: plan.handledFiles.rawValue,
                network: plan.handledNetwork,
                scoped: plan.scoped
            )
            for port in plan.ports { try ruleset.allow(port: port, plan.handledNetwork) }
            made.ruleset = ruleset
        } catch {
            throw failure(error, "Landlock refuses its sandbox: \(error)")
        }
        var count = 0
        var budget = SteadyPath.Budget()
        let own = plan.rules.contains { $0.isOfBundle } ? GuardedPlaces(ownPaths) : nil
        for rule in plan.rules {
            do throws(SteadyPath.Failure) {
                // All paths from the configuration share one budget for the search of their patterns, and each system
                // path has a budget of its own. So however many paths the configuration names, the device files can
                // still be opened.
                var spent = rule.isDeclared ? budget : SteadyPath.Budget()
                let matches = try SteadyPath.open(
                    rule.path,
                    isPattern: rule.isPattern,
                    atMost: LandlockPlan.mostPaths,
                    &spent
                )
                if rule.isDeclared { budget = spent }
                let found = matches.files
                if let folder = matches.unsearched {
                    made.skipped.append(
                        "\(rule.path) has wildcards for too many folders: \(folder) and those after it were not searched, and "
                            + "what matches there is withheld; name fewer levels"
                    )
                }
                if rule.isDeclared {
                    count += found.count
                    guard count <= LandlockPlan.mostPaths else { throw .tooMany(limit: LandlockPlan.mostPaths) }
                    if found.isEmpty, matches.unsearched == nil {
                        made.skipped.append("\(rule.path) is not there: the app is launched without it")
                    }
                }
                let opened = found.filter { file in
                    guard rule.isOfBundle, let own else { return true }
                    let isWritten = !rule.rights.isSubset(of: .reading)
                    guard let place = own.place(openedBy: file, forWriting: isWritten) else { return true }
                    made.skipped.append(
                        "\(rule.path) leads to \(place), where torpord itself keeps files: what the bundle asks for is "
                            + "withheld; write it in permissions of the app to allow it"
                    )
                    return false
                }
                try allow(rule, opened, made.ruleset)
            } catch {
                guard !rule.isDeclared else { throw failure(.permissionDenied, "\(rule.path) \(error)") }
                // Skip a system folder that is a symbolic link: most such links lead to another folder that has a
                // rule of its own.
                if rule.path == places.executable || rule.path == places.directory {
                    made.skipped.append("\(rule.path) \(error)")
                }
            }
        }
        return made
    }

    private func allow(
        _ rule: LandlockPlan.Rule,
        _ found: [SteadyPath.Found],
        _ ruleset: LandlockRuleset?
    ) throws(SteadyPath.Failure) {
        for file in found {
            let rights = file.isFolder ? rule.rights : rule.rights.intersection(.ofFiles)
            guard !rights.isEmpty else { continue }
            do throws(Errno) {
                try ruleset?.allow(file.descriptor.raw, rights.rawValue)
            } catch {
                throw .errno(error)
            }
        }
    }

    private func failure(_ errno: Errno, _ sentence: String) -> LaunchError {
        let failure = LaunchFailure(stage: .sandbox, errno: errno, executable: places.executable, detail: sentence)
        return LaunchError(failure.description, failure)
    }
}

/// The version of Landlock that the kernel supports (landlock(7)).
package enum Landlock {
    /// The version that Torpor uses; 0 if the kernel has no Landlock. Tests simulate older kernels.
    package static let version: Int = {
        let simulated = ThisProcess.environment("TORPOR_TEST_LANDLOCK").flatMap { Int($0) } ?? LandlockPlan.newest
        return max(0, min(Confinement.version(), LandlockPlan.newest, simulated))
    }()
}

extension Supervisor {
    /// Whether sandboxed apps get IPC namespaces of their own. To make such a namespace, torpord needs CAP_SYS_ADMIN
    /// (bit 21 of `CapEff`).
    package var givesOwnIPC: Bool { keeper.hasWalls && Self.hasAdministration }

    private static let hasAdministration: Bool = {
        // With this variable, tests simulate a supervisor without rights.
        guard ThisProcess.environment("TORPOR_TEST_NO_IPC") == nil else { return false }
        let field = try? ProcFS.statusField(ThisProcess.pid, "CapEff")
        return field.flatMap { UInt64($0, radix: 16) }.map { $0 & 1 << 21 != 0 } ?? false
    }()

    /// Whether the app can use System V IPC objects and POSIX message queues of processes outside. For a running app,
    /// asks the kernel, since an older keeper may have launched the app without a namespace.
    package func sharesIPC(_ app: AppRuntime) -> Bool {
        // If the app has no IPC namespace of its own, only the seccomp filter of the mode `agent` keeps it from the IPC
        // objects of other processes.
        let isAgent = app.specification.sandbox.mode == .agent
        if let tree = app.run.tree, !tree.mainHasEnded,
            let own = try? ProcFS.ipcNamespace(ThisProcess.pid), let other = try? ProcFS.ipcNamespace(tree.main.pid)
        {
            return own == other && (givesOwnIPC || !isAgent)
        }
        return !givesOwnIPC && !isAgent
    }
}

extension Launcher {
    /// The sandbox that a process of the app gets; nil for none. `isMain`: whether this is the app's main process, and
    /// not a command that runs inside the sandbox.
    func sandboxOrder(
        of app: AppRuntime,
        _ specification: AppSpecification,
        _ executable: String,
        isMain: Bool = false
    ) -> SandboxOrder? {
        guard let mode = specification.sandbox.mode else { return nil }
        var places = SandboxPlaces(executable: executable)
        places.directory = specification.directory
        places.bundle = specification.bundle?.path
        places.writable = [supervisor.savedStates.stateDirectory(of: app)]
        if let data = supervisor.dataFolders.folder(of: app) { places.writable.append(data) }
        if app.specification.data.protection.kind != nil { places.writable.append(supervisor.protection.door(of: app)) }
        let archives = supervisor.savedStates.archives(of: app).path
        places.readable = [archives, supervisor.transfers.feedsPlace(of: app.name).path]
        // Each scene inside the app has an archive folder of its own beside the app's.
        if specification.innerScenes != nil { places.readablePatterns = [archives + "@*"] }
        places.runtime = supervisor.runtime.directory(of: app)
        var order = SandboxOrder(mode: mode, grants: app.grants, places: places)
        if specification.bundle != nil { order.ownPaths = supervisor.configuration.ownPaths }
        order.hasOwnIPC = supervisor.givesOwnIPC
        order.logsDenials = isMain && specification.sandbox.onDenied != .ignore
        return order
    }

    /// Makes the app's sandbox, if it has one, then continues the launch. Makes the app's folders first, because making
    /// the sandbox opens them.
    func confine(
        _ app: AppRuntime,
        _ order: LaunchOrder,
        _ facts: LaunchFacts,
        _ specification: AppSpecification
    ) {
        guard let sandbox = sandboxOrder(of: app, specification, facts.executable, isMain: true) else {
            return launch(app, order, facts, specification)
        }
        if sandbox.logsDenials { supervisor.permissions.denials.listenNow() }
        do throws(LaunchError) {
            try prepare(app, facts.account?.user)
        } catch {
            app.run.launchFailure = error.failure
            return launchRefused(app, error.description)
        }
        // Make the folder of links to the archives of scenes. A scene may save its state for the first time in this
        // run, and the rules of the sandbox cannot name the folder of an archive that does not exist yet. The app
        // reaches such an archive through the folder of links.
        let links = specification.innerScenes == nil ? nil : supervisor.savedStates.sceneLinks(of: app)
        let make: @Sendable () throws(LaunchError) -> SandboxOrder.Made = { () throws(LaunchError) in
            try? links?.make()
            return try sandbox.make()
        }
        read(for: app, make) { [weak self] result in
            guard let self else { return }
            do throws(LaunchError) {
                var facts = facts
                facts.sandbox = try result.get()
                for sentence in facts.sandbox?.skipped ?? [] { self.note(app, .permission, text: sentence) }
                self.launch(app, order, facts, specification)
            } catch {
                app.run.launchFailure = error.failure
                self.launchRefused(app, error.description)
            }
        }
    }
}
