// SPDX-License-Identifier: Apache-2.0

import Archives
import Configuration
import Engine
import EventLoop
import EventSources
import Lifecycle
import Linux
import Mailbox
import Processes
import Schedules
import SystemPackage
import TorporAPI
import Varlink
import VarlinkServer

/// The apps' own sockets: checks which processes may connect, and sends them messages.
final class AppSockets: ShellRoom, LifecycleObserver {
    unowned(unsafe) let supervisor: Supervisor
    /// The Varlink interface that every app's socket offers.
    private let service = VarlinkService(
        info: Supervisor.serviceInfo,
        interfaces: [VarlinkInterface(name: AppInterface.name, description: AppInterface.description)],
        limits: AppSockets.limits
    )

    init(_ supervisor: Supervisor) {
        self.supervisor = supervisor
        service.discard = { [unowned(unsafe) supervisor] connection, uid in supervisor.discard(connection, of: uid) }
    }

    func ended(_ app: AppRuntime, _ ending: Ending) {
        app.channel = nil
        supervisor.mailboxes.incarnationEnded(app)
        app.server?.closeConnections()
    }

    func forget(_ app: AppRuntime) {
        guard let server = app.server else { return }
        server.close()
        app.server = nil
        // Afterwards: torpor-keeper has sockets closed last, since that may block.
        supervisor.keeper.release(DescriptorName.channel(app.name))
    }

    /// How long a delegate (the process that receives messages) or a task is kept after its connection was closed. When
    /// a process exits, the kernel closes its connection first; torpord learns of the exit within this time.
    private static let goneAfter = Duration.milliseconds(100)

    /// The app's channel, which contains its message queue and its delegate. Creates the channel if it is missing.
    func channel(of app: AppRuntime) -> AppChannel {
        if let channel = app.channel { return channel }
        let channel = AppChannel()
        app.channel = channel
        return channel
    }

    // MARK: The socket

    /// Listens at the app's own socket, unless torpord already listens there, since the socket is used for all
    /// launches. `held`: the socket at which an earlier torpord listened.
    func listen(for app: AppRuntime, _ user: User?, taking held: Descriptor?) throws(LaunchError) {
        guard app.server == nil else { return }
        let place = SharedPath(supervisor.runtime.apps, app.name, "/app")
        do throws(VarlinkServerError) {
            let server = try VarlinkServer(
                loop: loop,
                path: place,
                taking: held,
                service: service,
                mode: 0o600,
                owner: user.map { (uid: $0.uid, gid: $0.gid) },
                setUp: { [unowned self, unowned app] server in self.setUp(server, app) }
            )
            // A program may connect before torpor-keeper has reported its pid. Until then its connection must wait,
            // since the peer cannot be checked.
            server.setAccepting(app.run.tree != nil || !coordinator.machine(app.id).isAlive)
            app.server = server
            if held == nil { supervisor.hold(DescriptorName.channel(app.name), server.listener.raw) }
        } catch {
            throw LaunchError(error.description)
        }
    }

    private func setUp(_ server: VarlinkServer, _ app: AppRuntime) {
        server.refusal = { [unowned self, unowned app] peer in self.refusal(of: peer, app) }
        server.handler = { [unowned self, unowned app] call, peer, reply in self.serve(call, peer, reply, app) }
        server.strayCall = { [unowned self, unowned app] _, method in
            self.refusal(ofStray: method, app)
        }
        server.unterminated = { [unowned self, unowned app] peer in
            self.note(
                app,
                .unheard,
                text: "process \(peer.pid) sent a call to its app socket that ends with a newline, and was not "
                    + "answered: end each message with a NUL byte"
            )
        }
        server.foreign = { [unowned self, unowned app] peer in
            self.note(
                app,
                .unheard,
                text: "process \(peer.pid) sent something to its app socket that is no JSON object, and gets no "
                    + "answer: the socket speaks Varlink, JSON objects with a NUL byte behind each"
            )
        }
        server.onDisconnect = { [unowned self, unowned app] connection in self.disconnected(connection, app) }
    }

    private static let limits: VarlinkServer.Limits = {
        var limits = VarlinkServer.Limits()
        limits.connections = 64
        limits.outboundBytes = 1 << 20
        limits.countsTogether = true
        return limits
    }()

    private func refusal(of peer: Peer, _ app: AppRuntime) -> VarlinkServer.Refusal? {
        let sentence: String
        if let tree = app.run.tree {
            if tree.main.pid == peer.pid || tree.contains(peer.pid) { return nil }
            sentence = "process \(peer.pid) is not one of \(app.name): an app's socket is for its own processes"
            // torpord itself connects to see whether the socket is served.
            if peer.pid != ThisProcess.pid {
                note(app, .unheard, text: "refused process \(peer.pid) at its app socket: not one of its own")
            }
        } else {
            sentence = "\(app.name) is not running"
        }
        return VarlinkServer.Refusal(
            error: AppInterface.ErrorName.notPermitted,
            parameters: ["message": .string(sentence)]
        )
    }

    /// The error that ends the Attach call of a delegate that has sent another call on the same connection. Otherwise
    /// the delegate would wait for a reply that never comes.
    private func refusal(ofStray method: String?, _ app: AppRuntime) -> VarlinkServer.Refusal {
        let what = method.map { "called " + ($0.split(separator: ".").last.map(String.init) ?? $0) } ?? "sent something"
        let sentence =
            "\(what) on the connection of Attach, which only carries messages to the delegate: open another "
            + "connection for each call, for Answer too"
        note(app, .unheard, text: sentence)
        return VarlinkServer.Refusal(
            error: AppInterface.ErrorName.wrongConnection,
            parameters: ["method": .optional(method), "message": .string("\(app.name) \(sentence)")]
        )
    }

    private func serve(_ call: VarlinkCall, _ peer: Peer, _ reply: Reply, _ app: AppRuntime) {
        do throws(FieldError) {
            guard let request = try AppRequest(call: call) else {
                return reply.fail(VarlinkErrorName.methodNotFound, ["method": .string(call.method)])
            }
            guard app.run.tree != nil else { return refuse(reply, "\(app.name) has ended") }
            supervisor.processControl.checkStillSuspended(app)
            switch request {
            case .attach(let request): attach(request, peer, reply, app)
            case .answer(let answer): take(answer, reply, app)
            case .beginTask(let name): beginTask(name, reply, app)
            case .endTask(let token): endTask(token, reply, app)
            case .claimTasks(let tokens):
                claim(tokens, reply.connection, app)
                let mine = tasks(of: app).filter { tokens.contains($0.token) }
                reply.send(["tasks": .array(mine.map(\.json))])
            case .backgroundTime: sendBackgroundTime(reply, app)
            case .saveState, .discardState, .saveSnapshot, .discardSnapshot: keep(request, peer, reply, app)
            case .state: reply.send(situation(of: app).json)
            case .post(let request): post(request, reply, app)
            case .openURL(let url, let token): open(url, token, reply, app)
            case .canOpen(let scheme): canOpen(scheme, reply, app)
            case .take(let request):
                supervisor.persistence.whenLoaded { [self] in
                    let mail = supervisor.mailboxes.take(request, app)
                    let left = supervisor.mailboxes.takeable(request, app).count
                    let isMore = left > (request.keep ? mail.count : 0)
                    reply.send(["mail": .array(mail.map(\.json)), "more": .bool(isMore)])
                }
            case .settings:
                supervisor.persistence.whenLoaded { [self] in
                    reply.send(["settings": supervisor.settings.document(of: app)])
                }
            case .setSettings(let request):
                supervisor.settings.set(request, of: app, by: app.name, isApp: true) { outcome in
                    switch outcome {
                    case .success(let result): reply.send(["changed": .strings(result.changed)])
                    case .failure(let refusal):
                        Self.fail(reply, "\(refusal)", refusal.reason)
                    }
                }
            case .subscribe(let request):
                try supervisor.mailboxes.subscribe(request, app) { problem in
                    guard let problem else { return reply.send() }
                    reply.fail(AppInterface.ErrorName.failed, ["message": .string(problem)])
                }
            case .startTransfer, .transfers, .cancelTransfer, .answerLogin: transfer(request, reply, app)
            case .scheduleAlert, .cancelAlert, .alerts, .setBadge: alert(request, reply, app)
            case .permissions, .requestPermission: permission(request, reply, app)
            case .setActivity(let request):
                switch supervisor.activities.set(request, of: app) {
                case nil: reply.send()
                case .invalid(let error)?: reply.fail(error)
                case .failed(let text)?: reply.fail(AppInterface.ErrorName.failed, ["message": .string(text)])
                }
            case .endActivity:
                supervisor.activities.end(of: app)
                reply.send()
            case .setNeedsRefresh(let names):
                supervisor.mailboxes.needsRefresh(names, of: app, from: app.name) { outcome in
                    switch outcome {
                    case .success: reply.send()
                    case .failure(.invalid(let error)): reply.fail(error)
                    case .failure(.failed(let text)), .failure(.full(let text)), .failure(.notSubscribed(let text)):
                        reply.fail(AppInterface.ErrorName.failed, ["message": .string(text)])
                    }
                }
            }
        } catch {
            reply.fail(error)
        }
    }

    private func post(_ request: PostRequest, _ reply: Reply, _ app: AppRuntime) {
        let target: AppRuntime
        do throws(Selection.Unknown) {
            target = try selection.one(request.app)
        } catch {
            if let problem = error.problem { return reply.fail(problem) }
            let hint = error.nearest.map { ": did you mean \($0)?" } ?? ""
            return reply.fail(
                AppInterface.ErrorName.unknownApp,
                [
                    "name": .string(error.name), "nearest": .optional(error.nearest),
                    "message": .string("there is no app \(error.name)\(hint)"),
                ]
            )
        }
        if let sentence = supervisor.mailboxes.refusal(ofPostsFrom: app, to: target) {
            return reply.fail(AppInterface.ErrorName.notPermitted, ["message": .string(sentence)])
        }
        // Only clients of the control socket may post in the name of another sender, or mark a post as remote.
        var request = request
        request.remote = false
        supervisor.mailboxes.post(request, from: app.name, of: app, to: target) { outcome in
            switch outcome {
            case .success(let result): reply.send(result.json)
            case .failure(.notSubscribed(let sentence)):
                reply.fail(
                    AppInterface.ErrorName.notSubscribed,
                    ["app": .string(target.name), "topic": .string(request.topic), "message": .string(sentence)]
                )
            case .failure(.full(let sentence)):
                reply.fail(
                    AppInterface.ErrorName.mailboxFull,
                    ["app": .string(target.name), "message": .string(sentence)]
                )
            case .failure(.invalid(let error)): reply.fail(error)
            case .failure(.failed(let sentence)):
                reply.fail(AppInterface.ErrorName.failed, ["message": .string(sentence)])
            }
        }
    }

    /// Stores or discards saved state or a snapshot, of the app or of a scene inside the app.
    private func keep(_ request: AppRequest, _ peer: Peer, _ reply: Reply, _ app: AppRuntime) {
        let (states, snapshots, scenes) = (supervisor.savedStates, supervisor.snapshots, supervisor.innerScenes)
        switch request {
        case .saveState(_, _, let scene?) where scenes.isDiscarded(scene, of: app),
            .saveSnapshot(_, _, let scene?) where scenes.isDiscarded(scene, of: app):
            // A discarded scene still receives its last messages and saves as usual: accept the data and drop it.
            reply.send(["bytes": 0])
        case .saveState(let data, let file, let scene):
            if let refusal = scene.flatMap({ scenes.refusalToKeep(of: $0, app) }) { return refuse(reply, refusal) }
            states.saveState(of: app, scene: scene, data: data, file: file, by: peer) { outcome in
                Self.tell(saved: outcome, limit: "state_limit allows", reply, app)
            }
        case .discardState(let scene):
            if let refusal = scene.flatMap({ scenes.refusalToKeep(of: $0, app) }) { return refuse(reply, refusal) }
            states.discardState(of: app, scene: scene) { outcome in Self.tell(outcome, reply, app) }
        case .saveSnapshot(let data, let file, let scene):
            if let refusal = scene.flatMap({ scenes.refusalOfSnapshot(of: $0, app) }) { return refuse(reply, refusal) }
            snapshots.saveSnapshot(of: app, scene: scene, data: data, file: file, by: peer) { outcome in
                Self.tell(saved: outcome, limit: "a snapshot may have", reply, app)
            }
        case .discardSnapshot(let scene):
            if let refusal = scene.flatMap({ scenes.refusalToKeep(of: $0, app) }) { return refuse(reply, refusal) }
            snapshots.declineSnapshot(of: app, scene: scene) { outcome in Self.tell(outcome, reply, app) }
        default: break
        }
    }

    private static func tell(
        saved outcome: Result<UInt64, ArchiveFailure>,
        limit: String,
        _ reply: Reply,
        _ app: AppRuntime
    ) {
        if case .success(let bytes) = outcome { return reply.send(["bytes": .int(Int64(clamping: bytes))]) }
        tell(outcome, limit: limit, reply, app)
    }

    private static func tell(
        _ outcome: Result<UInt64, ArchiveFailure>,
        limit kind: String = "",
        _ reply: Reply,
        _ app: AppRuntime
    ) {
        switch outcome {
        case .success: reply.send()
        case .failure(.tooLarge(let limit)):
            let sentence = "\(app.name) gave more than the \(limit) bytes that \(kind)"
            reply.fail(
                AppInterface.ErrorName.tooLarge,
                ["limit": .int(Int64(clamping: limit)), "message": .string(sentence)]
            )
        case .failure(.refused(let sentence)), .failure(.failed(let sentence)):
            reply.fail(AppInterface.ErrorName.failed, ["message": .string(sentence)])
        }
    }

    /// The launch options that the delegate of the current incarnation gets.
    func launchOptions(of app: AppRuntime) -> JSON {
        LaunchOptions(
            order: coordinator[app.id].launchOrder,
            event: app.pendingWake?.event,
            url: supervisor.mailboxes.url(for: app),
            restoredState: stateOffered(to: app)?.path,
            data: supervisor.dataFolders.launch(of: app),
            scene: supervisor.scenes.session(of: app)
        ).json
    }

    /// The saved state that was offered to the current launch; nil if none was offered, or if it no longer exists.
    func stateOffered(to app: AppRuntime) -> ArchiveFolder.Found? {
        app.restoration == .offered ? supervisor.savedStates.archives(of: app).found : nil
    }

    func refuse(_ reply: Reply, _ sentence: String) {
        reply.fail(AppInterface.ErrorName.failed, ["message": .string(sentence)])
    }

    func situation(of app: AppRuntime) -> AppSituation {
        let machine = coordinator.machine(app.id)
        var situation = AppSituation(
            app: app.name,
            incarnation: Int64(machine.incarnation),
            state: machine.state.rawValue,
            transition: machine.transition?.rawValue
        )
        situation.options = launchOptions(of: app)
        situation.tasks = tasks(of: app)
        situation.scenes = supervisor.innerScenes.scenes(of: app)
        return situation
    }

    // MARK: The delegate

    private func attach(_ request: AttachRequest, _ peer: Peer, _ reply: Reply, _ app: AppRuntime) {
        guard reply.more else {
            note(
                app,
                .unheard,
                text: "process \(peer.pid) called Attach without “more”, so it is no delegate: the call must have "
                    + "\"more\": true, since messages are its replies"
            )
            return reply.fail(VarlinkErrorName.expectedMore, .emptyObject)
        }
        let channel = channel(of: app)
        // Refuse a second delegate, since two connected delegates would take messages from each other. If the same
        // process reconnects, or has called execve, its earlier connection is closed already. If it has ended, a
        // process that it has forked may keep its connections open.
        if let ended = channel.delegate, ended.pid != peer.pid, ended.watch?.hasEnded ?? false {
            app.server?.closeConnections(of: ended.pid)
        } else if let there = channel.delegate, !there.reply.isClosed,
            app.server?.isConnected(there.reply.connection) == true
        {
            let sentence =
                there.pid == peer.pid
                ? "this process (\(there.pid)) is the delegate of \(app.name) already, over another connection: an app has "
                    + "one delegate, so close that one first"
                : "process \(there.pid) is the delegate of \(app.name) already"
            return reply.fail(
                AppInterface.ErrorName.alreadyAttached,
                ["pid": .int(Int64(there.pid)), "message": .string(sentence)]
            )
        }
        let incarnation = Int64(coordinator.machine(app.id).incarnation)
        let after = request.incarnation == incarnation ? request.after ?? 0 : 0
        let earlier = channel.delegate?.reply
        let wasSent = channel.delegate?.sent ?? 0
        channel.delegate = AppChannel.Delegate(
            reply: reply,
            pid: peer.pid,
            sent: UInt32(clamping: max(0, min(after, Int64(channel.lastID))))
        )
        watchDelegate(of: app)
        if let earlier, !earlier.isClosed { app.server?.close(connection: earlier.connection) }
        if !request.tasks.isEmpty { claim(request.tasks, reply.connection, app) }
        channel.returnTimer = nil
        if channel.owners.values.contains(.lost) { expectReturn(of: app) }
        reply.send(situation(of: app).json, continues: true)
        app.server?.refuseCalls(on: reply.connection)
        trace(app, .contact)
        let ready = app.specification.ready
        let launch =
            ready == .delegate
            ? ""
            : "; ready is not \"delegate\", so it is not sent the launch messages (restoreState, didFinishLaunching)"
        note(app, .attached, text: "has a delegate: process \(peer.pid)\(launch)")
        deliver(.delegate(attached: true), to: app.id)
        willTellAgain(channel, wasSent: wasSent, app)
        pump(app)
        // If an earlier torpord sent the message that the app works on, start its deadline again: the app gets the full
        // time.
        let isTimed = coordinator.machine(app.id).messageTime(now: loop.now) != nil
        if !isTimed, messageInWork(of: app) != nil { deliver(.messageSent, to: app.id) }
    }

    /// Watches the delegate's process. If the process ends, its connections are closed, also those that own its tasks:
    /// a process that it has forked keeps them open.
    private func watchDelegate(of app: AppRuntime) {
        guard let delegate = app.channel?.delegate, let tree = app.run.tree, tree.main.pid != delegate.pid,
            tree.contains(delegate.pid)
        else { return }
        let (pid, connection) = (delegate.pid, delegate.reply.connection)
        app.channel?.delegate?.watch = DelegateWatch(pid, loop, delay: Self.goneAfter) { [weak self, weak app] in
            guard let self, let app, app.channel?.delegate?.reply.connection == connection,
                app.server?.isConnected(connection) == true
            else { return }
            note(
                app,
                .attached,
                text: "lost its delegate: process \(pid) has ended, and its connections are closed, which a process "
                    + "that it has forked held open"
            )
            app.server?.closeConnections(of: pid)
        }
    }

    /// Called when a connection was closed. If its process neither exits nor reconnects within ``goneAfter``, the
    /// connection's tasks end, and its delegate is gone.
    private func disconnected(_ connection: UInt64, _ app: AppRuntime) {
        guard let channel = app.channel, app.run.tree != nil else { return }
        let wasDelegate = channel.delegate?.reply.connection == connection
        let hadTasks = channel.owners.values.contains(.connection(connection))
        guard wasDelegate || hadTasks else { return }
        let incarnation = coordinator.machine(app.id).incarnation
        channel.goneTimers[connection] = try? loop.timer { [weak self, weak app] in
            guard let self, let app, let channel = app.channel else { return }
            channel.goneTimers[connection] = nil
            guard self.coordinator.machine(app.id).incarnation == incarnation else { return }
            for (token, owner) in channel.owners where owner == .connection(connection) {
                self.finish(task: token, app)
            }
            if channel.delegate?.reply.connection == connection { self.detach(app) }
        }
        channel.goneTimers[connection]?.arm(after: Self.goneAfter)
    }

    /// Called when the delegate is gone, so that no process receives the app's messages.
    func detach(_ app: AppRuntime, since why: String = "its connection was closed") {
        guard let channel = app.channel else { return }
        let wasSent = channel.delegate?.sent ?? 0
        channel.delegate = nil
        guard coordinator.machine(app.id).isAlive else { return }
        note(app, .attached, text: "has no delegate any more: \(why)")
        // During a launch, keep the messages: the launch waits for the next delegate, which gets all of them.
        let isLaunching = coordinator.machine(app.id).transition == .launching
        if !isLaunching {
            brokeOff(channel, wasSent: wasSent, app)
            channel.queue = []
            supervisor.mailboxes.incarnationEnded(app)
        }
        deliver(.delegate(attached: false), to: app.id)
        record(app)
    }
}
