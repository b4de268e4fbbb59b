// SPDX-License-Identifier: Apache-2.0

import Archives
import Configuration
package import Engine
import EventLoop
import Lifecycle
import Linux
import Notify
import Output
import Processes
package import TorporAPI
import VarlinkServer
import WireText

/// Apps that podman runs in containers. torpor-container, a process of the app's user, starts and removes a container.
///
/// Otherwise torpord treats such an app like any other: torpor-container is its main process, exits with the
/// container's status, and the container's processes are in the app's cgroup. So states, deadlines, memory and locks
/// need no code for containers.
package final class Containers: ShellRoom {
    package unowned(unsafe) let supervisor: Supervisor

    /// Apps in whose containers the first process could not be watched yet.
    private var unwatched: [AppRuntime] = []
    private var watchTimer: TimerSource?
    private static let watchPause = Duration.seconds(1)

    init(_ supervisor: Supervisor) { self.supervisor = supervisor }

    /// The path of the program torpor-container. Throws if it is not installed.
    nonisolated static func program() throws(LaunchError) -> String {
        guard let program = ThisProcess.companion("torpor-container", variable: "TORPOR_CONTAINER") else {
            throw LaunchError("torpor-container is neither beside torpord nor in ../libexec/torpor: install it")
        }
        return program
    }

    /// The error if there is no cgroup for an app in a container. Without a cgroup torpord recognizes an app's
    /// processes by their session and environment, but podman and conmon leave the session and drop the variables.
    static let needsCgroup = LaunchError(
        "needs a cgroup of its own to run in a container, and there is none: ‘torpor doctor’ says why"
    )

    // MARK: Launches

    /// The command line that starts an app's container; nil for an app without one.
    func arguments(
        of app: AppRuntime,
        _ specification: AppSpecification,
        _ facts: LaunchFacts,
        _ command: [String]
    ) -> [String]? {
        guard let container = specification.container else { return nil }
        let name = specification.containerName ?? app.name
        var run = PodmanRun(
            container,
            name: name,
            app: app.name,
            template: specification.template,
            owner: owner(of: app)
        )
        run.addLimits(specification.processLimits)
        let given = LaunchEnvironment.given(to: specification)
        for (name, value) in facts.variables.merging(given, uniquingKeysWith: { $1 }) {
            run.addVariable(name, value)
        }
        for (name, path) in supervisor.dataFolders.variables(of: app).sorted(by: { $0.key < $1.key }) {
            run.addVariable(name, path)
            run.mount(path)
        }
        run.addFile(folder(of: app) + "/variables")
        if let path = app.notifySocket?.path { run.addSocket(path, variable: "NOTIFY_SOCKET") }
        if let path = app.server?.path { run.addSocket(path, variable: "TORPOR_APP_SOCKET") }
        run.mount(supervisor.savedStates.stateDirectory(of: app))
        return [
            Self.programName, "start", folder(of: app), name, owner(of: app), container.image, container.pull.rawValue,
            "\(container.pullTimeout.map { max(1, $0.microseconds / 1_000_000) } ?? 0)",
            "\((specification.rules.launchDeadline ?? .zero).microseconds / 1000)",
            specification.readiness == .exec ? "1" : "0", "--",
        ] + run.arguments(command)
    }

    /// The label of an app's container that says which app it belongs to. The app's name is not enough: another
    /// supervisor of the same user may have an app of the same name.
    private func owner(of app: AppRuntime) -> String { supervisor.runtime.directory(of: app) }

    /// The variables of an app, except those that podman itself would obey.
    nonisolated static func forPodman(
        _ variables: [String: String],
        _ specification: AppSpecification
    ) -> [String: String] {
        specification.container == nil ? variables : variables.filter { !PodmanRun.isPodmans($0.key) }
    }

    /// The variables with which torpor-container is started. Variables that podman itself would obey get a prefix,
    /// and torpor-container passes them to the container in a file.
    nonisolated static func forLaunch(
        _ variables: [String: String],
        _ specification: AppSpecification
    ) -> [String: String] {
        guard specification.container != nil else { return variables }
        var result = forPodman(variables, specification)
        for (name, value) in variables where PodmanRun.isInFile(name, value) {
            result[PodmanRun.prefixInFile + name] = value
        }
        return result
    }

    /// Makes the folder in which torpor-container keeps its state; it belongs to the user that the app runs as. If the
    /// app ran as another user before, that user's folder is set aside: its files say what torpor-container deletes.
    func makeFolder(of app: AppRuntime, for user: User?) throws(LaunchError) {
        guard app.specification.container != nil else { return }
        let path = folder(of: app)
        do throws(Errno) {
            let owner = user?.uid ?? Users.effectiveUID
            if let old = try? File.status(path, followLinks: false), old.uid != owner {
                try File.rename(path, "\(path).\(old.uid).\(Clock.realtimeMicroseconds())")
            }
            try File.makeDirectories(path, mode: 0o700)
            if let user, Users.isRoot { try File.setOwner(path, uid: user.uid, gid: user.gid) }
        } catch {
            throw LaunchError("cannot make the directory \(path): \(error)")
        }
    }

    private func folder(of app: AppRuntime) -> String { supervisor.runtime.directory(of: app) + "/container" }

    // MARK: While it runs

    /// Called when torpor-container (`pid`) reports that the container runs. `stopSignal`: the signal that the image
    /// names for stopping it.
    func runs(_ app: AppRuntime, stopSignal: Int32?, digest: ImageDigest?, saidBy pid: Int32) {
        guard let tree = app.run.tree, tree.isContainer, pid == tree.leader.pid else { return }
        var run = ContainerRun(isRunning: true)
        run.digest = digest
        if app.specification.container?.hasImagesStopSignal == true, let stopSignal,
            ![Signal.stop, Signal.continue].contains(stopSignal)
        {
            run.stopSignal = stopSignal
        }
        app.run.container = run
        supervisor.record(app)
        if app.run.profileState != nil { watchEnd(of: app) }
        supervisor.launcher.startProbe(app)
    }

    /// Watches the first process of the app's container, if the container runs and is not watched yet. Called when the
    /// app gets the resource profile of a state.
    ///
    /// When that process has ended, conmon starts a podman that cleans up, in the session and the cgroup of the app.
    /// That podman holds locks for which every other podman of the user waits. With the share of a suspended app it
    /// would take minutes on a busy machine, so the app gets the profile of an active one from then on. torpor-container
    /// ends only after that podman, and is too late for this.
    func watchEnd(of app: AppRuntime) {
        guard app.run.firstSource == nil, isRunning(app) == true, let tree = app.run.tree else { return }
        do throws(Errno) {
            guard let pidfd = try tree.openFirstInContainer() else { return containerEnded(app) }
            let source = try loop.watch(pidfd.raw, .readable) { [weak self, weak app] _ in
                if let self, let app { self.containerEnded(app) }
            }
            app.run.firstSource = (pidfd, source)
        } catch {
            log.debug("\(app.name): the end of its container is not watched yet (\(error))")
            watchLater(app)
        }
    }

    /// Tries again in a second: torpord or the machine was out of descriptors or memory.
    private func watchLater(_ app: AppRuntime) {
        if !unwatched.contains(where: { $0 === app }) { unwatched.append(app) }
        if watchTimer == nil { watchTimer = try? loop.timer { [weak self] in self?.watchNow() } }
        if watchTimer?.deadline == nil { watchTimer?.arm(after: Self.watchPause) }
    }

    private func watchNow() {
        watchTimer?.disarm()
        let all = unwatched
        unwatched = []
        for app in all where app.run.profileState != nil { watchEnd(of: app) }
    }

    private func containerEnded(_ app: AppRuntime) {
        app.run.firstSource?.source?.cancel()
        app.run.firstSource = (nil, nil)
        if app.run.profileState != nil { supervisor.shares.raiseToCleanUp(app) }
    }

    /// How far the pull of the app's image is, as in `pulling nginx: 2 layers copied`; nil while none is under way.
    package func pull(of app: AppRuntime) -> String? {
        guard app.specification.container != nil, app.run.container == nil, let text = app.run.statusText,
            text.utf8.starts(with: "pulling ".utf8)
        else { return nil }
        return text
    }

    /// Called when the app's status text has changed: reports the beginning of a pull as an event, and each step to
    /// users who wait for the launch.
    func statusChanged(_ app: AppRuntime, wasPulling: Bool) {
        guard pull(of: app) != nil, let container = app.specification.container else { return }
        if !wasPulling { note(app, .said, text: "is pulling \(container.image)") }
        supervisor.clients?.touched([app])
    }

    /// Whether podman has started the app's container; nil for an app without a container. If torpor-container's
    /// message was lost, the app's processes in /proc show whether it runs.
    func isRunning(_ app: AppRuntime) -> Bool? {
        guard app.specification.container != nil else { return nil }
        return app.run.container?.isRunning == true || app.run.tree?.hasContainer == true
    }

    /// The signal that asks the app to end: from the configuration, or else from the image of its container.
    func stopSignal(of app: AppRuntime) -> Int32 {
        app.run.container?.stopSignal ?? app.specification.stopSignal
    }

    /// The app's container, in the form for clients; nil for an app without one.
    package func info(of app: AppRuntime) -> ContainerInfo? {
        guard let container = app.specification.container else { return nil }
        var info = ContainerInfo(name: app.specification.containerName ?? app.name, image: container.image)
        info.digest = app.run.container?.digest?.description
        info.ports = container.ports
        info.networks = container.networks
        return info
    }

    /// A command that podman runs in the app's container.
    func inside(_ app: AppRuntime, _ words: [String]) -> [String] {
        ["podman", "exec", app.specification.containerName ?? app.name] + words
    }

    // MARK: Endings

    /// Why the app's container could not be started; nil if it was started. podman's own message is in the app's log,
    /// since podman has the same output as the container.
    func failure(of app: AppRuntime) -> String? {
        guard app.run.tree?.isContainer == true, app.run.container?.isRunning != true,
            case .exited(Self.failed) = app.run.exitRecord?.status
        else { return nil }
        guard let text = app.run.statusText, text.utf8.elementsEqual(Self.refused.utf8) else {
            return app.run.statusText
        }
        let lines = app.capture?.lastLines(5).map { Array($0.text.utf8) } ?? []
        guard let line = lines.last(where: { $0.starts(with: Self.podmansError) }) else { return text }
        return text + ": " + String(wire: line.dropFirst(Self.podmansError.count).prefix(Self.longestReason))
    }

    /// The status text that torpor-container sends if `podman run` has failed.
    private static let refused = "could not be started by podman"
    private static let podmansError = Array("Error: ".utf8)
    /// The longest reason that is quoted from podman's message, in bytes.
    private static let longestReason = 400

    /// Called when an app's container has ended. Ends the apps whose containers are in its network, because podman has
    /// taken that network down, and removes no container that another one depends on. They are launched again when
    /// this app is next ready.
    func endJoined(to app: AppRuntime) {
        guard app.run.tree?.isContainer == true, let name = app.specification.containerName else { return }
        for other in supervisor.apps where other !== app {
            guard other.specification.container?.joinedContainer == name,
                coordinator.requirements(of: other.id).contains(app.id), coordinator.machine(other.id).isAlive,
                !coordinator.isToEnd(other.id)
            else { continue }
            other.run.lostNetwork = app.name
            let id = other.id
            uninterrupted { [weak self] in try? self?.request(.stop(.dependencyFailed), of: id) }
        }
    }

    /// The command that removes the app's container if podman has not removed it itself, such as after a SIGKILL.
    func cleanup(of app: AppRuntime) -> [HookCommand] {
        guard app.specification.container != nil, let program = try? Self.program() else { return [] }
        var hook = HookCommand([program, "remove", folder(of: app)])
        hook.deadline = Self.cleanupDeadline
        return [hook]
    }

    /// Whether a command is the one that torpord itself runs to remove a container (``cleanup(of:)``).
    static func isOwn(_ command: [String]) -> Bool {
        command.count == 3 && command[1] == "remove" && command[0].hasSuffix("/" + programName)
    }

    private static let programName = "torpor-container"
    /// The exit status of torpor-container if it could not start the container.
    private static let failed: Int32 = 125
    private static let cleanupDeadline = Duration.seconds(60)
}

/// What torpor-container has reported about an app's container.
package struct ContainerRun: Equatable {
    /// Whether podman has started the container.
    var isRunning = false
    /// The signal for stopping the container, as its image names it; nil if the image names none.
    var stopSignal: Int32?
    /// The SHA-256 digest of the container's image; nil if it is not known.
    var digest: ImageDigest?

    package init(isRunning: Bool = false) { self.isRunning = isRunning }

    init(from record: inout RecordReader) {
        let flags = record.take(UInt8.self)
        isRunning = flags & 1 != 0
        if flags & 2 != 0 { stopSignal = Int32(record.take(UInt8.self)) }
        if flags & 4 != 0 { digest = ImageDigest((0..<4).map { _ in record.take(UInt64.self) }) }
    }

    func encode(into record: inout RecordWriter) {
        record.put((isRunning ? 1 : 0) | (stopSignal == nil ? 0 : 2) | (digest == nil ? 0 : 4) as UInt8)
        if let stopSignal { record.put(UInt8(clamping: stopSignal)) }
        for word in digest?.words ?? [] { record.put(word) }
    }
}

extension Incarnation {
    /// What torpor-container has reported. Nil until it has reported anything, and for an app without a container.
    package var container: ContainerRun? {
        get { slots[ContainerRunSlot.self] }
        set { slots[ContainerRunSlot.self] = newValue }
    }
}

private enum ContainerRunSlot: Slot { typealias Value = ContainerRun }

extension Incarnation {
    /// The app whose container has ended, and with it the network that this app's container shared; nil if that did
    /// not happen.
    var lostNetwork: String? {
        get { slots[LostNetworkSlot.self] }
        set { slots[LostNetworkSlot.self] = newValue }
    }
}

private enum LostNetworkSlot: Slot { typealias Value = String }

extension Incarnation {
    /// The first process of the app's container and the watch for its end; both nil after its end. Nil if it is not
    /// watched.
    fileprivate var firstSource: (pidfd: Descriptor?, source: IOSource?)? {
        get { slots[FirstSourceSlot.self] }
        set { slots[FirstSourceSlot.self] = newValue }
    }

    /// Whether the container has ended, so that podman cleans up, and the app keeps its present resource profile.
    var containerHasEnded: Bool { firstSource.map { $0.pidfd == nil } ?? false }
}

private enum FirstSourceSlot: Slot { typealias Value = (pidfd: Descriptor?, source: IOSource?) }
