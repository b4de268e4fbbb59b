// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EventLoop
import Lifecycle
import Linux
import Permissions
import Processes
import Supervisor
import TorporAPI
import Varlink
import VarlinkServer

extension ControlService {
    /// What the app's sandbox permits, and which restrictions this machine does not enforce.
    func sandbox(of app: AppRuntime) -> SandboxInfo? {
        let sandbox = app.specification.sandbox
        guard let mode = sandbox.mode else { return nil }
        var info = SandboxInfo(mode: mode.rawValue)
        info.permissions = supervisor.permissions.infos(of: app)
        info.unenforced = Unenforced.sentences(
            sandbox,
            app.grants,
            version: Landlock.version,
            isRoot: Users.isRoot && app.specification.user.map { $0 == "root" || $0 == "0" } ?? true
        )
        return info
    }

    /// Why torpord refuses every request of a peer; nil if it does not.
    func refusal(ofAllBy peer: Peer) -> String? {
        supervisor.inForce.accounts.authority.refusal(ofAllBy: peer) ?? refusal(ofSandboxed: peer)
    }

    /// Why torpord refuses every request of a peer that is a process of a sandboxed app: it could grant the app's
    /// permissions itself. Nil for other peers.
    ///
    /// If the peer has ended or may have left its app's process tree, it counts as sandboxed if it is confined like a
    /// sandboxed process.
    private func refusal(ofSandboxed peer: Peer) -> String? {
        for app in apps where app.specification.sandbox.mode != nil {
            // The app's main process may already send requests before its launch is recorded.
            let isMember = app.run.tree.map { $0.main.pid == peer.pid || $0.contains(peer.pid) } ?? false
            guard isMember || supervisor.launcher.userID(of: app) == peer.uid && isDoubtful(peer) else { continue }
            let whose = "process \(peer.pid) belongs to \(app.name), which is in a sandbox"
            return whose + ": only the app's own socket is for it"
        }
        return isConfinedByAnother(peer)
            ? "process \(peer.pid) may be in a sandbox of another supervisor: only its app's own socket is for it" : nil
    }

    /// Whether a peer may be a process of a sandboxed app of another supervisor, whose user this supervisor trusts.
    private func isConfinedByAnother(_ peer: Peer) -> Bool {
        // Process 0 is one outside of this pid namespace: no supervisor inside has launched it.
        guard peer.pid != 0 else { return false }
        do throws(Errno) {
            // Every sandbox has a filter of system calls and no new privileges, neither of which a process can lose. A
            // kernel without these fields has no such filters.
            guard try ProcFS.statusField(peer.pid, "Seccomp") == "2",
                try ProcFS.statusField(peer.pid, "NoNewPrivs") == "1"
            else { return false }
        } catch {
            // A process that has connected and ended may have left the connection to any other. A shortage of
            // descriptors says nothing of the process.
            return error == .noSuchFileOrDirectory || error == .noSuchProcess
        }
        var pid = peer.pid
        // Orphans of an app become children of its keeper, so that all its processes descend from that.
        while pid > 1 {
            guard let stat = try? ProcFS.stat(pid) else { return true }
            if stat.comm.utf8.elementsEqual("torpor-keeper".utf8) { return pid != supervisor.keeper.pid }
            pid = stat.parent
        }
        return false
    }

    private func isDoubtful(_ peer: Peer) -> Bool {
        guard let filter = try? ProcFS.statusField(peer.pid, "Seccomp") else { return true }
        guard filter == "2" else { return false }
        // A sandboxed process cannot leave its cgroup. That is below `base` (also for a command that runs inside the
        // sandbox), or it is torpord's own. Without cgroups, every process of the user that has a seccomp filter
        // counts as sandboxed.
        guard let tree = supervisor.place.cgroups, let mount = Cgroup.mount,
            let path = try? ProcFS.cgroup(peer.pid)
        else { return true }
        return (mount + path).utf8.starts(with: (tree.base + "/").utf8) || path == (try? ProcFS.cgroup(ThisProcess.pid))
    }

    /// Replies with the permissions that these apps declare.
    func permissions(of chosen: [AppRuntime], _ reply: Reply) {
        supervisor.persistence.whenLoaded { [self] in
            let infos = chosen.flatMap { supervisor.permissions.infos(of: $0) }
            reply.send(["permissions": .array(infos.map(\.json))])
        }
    }

    func answer(_ request: AnswerPermissionsRequest, by person: String, _ reply: Reply) throws(Selection.Unknown) {
        // Answers are kept after their app was removed from the configuration.
        if request.answer == .reset, coordinator.id(of: request.app) == nil {
            return supervisor.permissions.resetAbsent(request.app) { [self] outcome in
                switch outcome {
                case .success(true): reply.send(["message": .null])
                case .success(false):
                    do throws(Selection.Unknown) {
                        let app = try selection.one(request.app)
                        answer(request, of: app, by: person, reply)
                    } catch {
                        reply.fail(error)
                    }
                case .failure(let refusal): reply.fail("\(refusal)")
                }
            }
        }
        answer(request, of: try selection.one(request.app), by: person, reply)
    }

    private func answer(_ request: AnswerPermissionsRequest, of app: AppRuntime, by person: String, _ reply: Reply) {
        supervisor.permissions.answer(request, of: app, by: person) { outcome in
            switch outcome {
            case .success(let message): reply.send(["message": .optional(message)])
            case .failure(let refusal): reply.fail("\(refusal)")
            }
        }
    }
}
