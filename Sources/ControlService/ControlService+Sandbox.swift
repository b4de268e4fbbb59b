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
    /// What the app's sandbox permits, and which restrictions this machine does not enforce; nil without a sandbox.
    func sandbox(of app: AppRuntime) -> SandboxInfo? {
        let sandbox = app.specification.sandbox
        guard let mode = sandbox.mode else { return nil }
        var info = SandboxInfo(mode: mode.rawValue)
        info.permissions = supervisor.permissions.infos(of: app)
        info.unenforced = Unenforced.sentences(
            sandbox,
            app.grants,
            version: Landlock.version,
            isRoot: Users.isRoot && app.specification.user.map { $0 == "root" || $0 == "0" } ?? true,
            sharesIPC: supervisor.sharesIPC(app)
        )
        if let denials = app.denials {
            info.denials = Int64(denials.ledger.total)
            info.lastDenial = denials.last
        }
        return info
    }

    /// The reason why torpord refuses all requests of a peer; nil if torpord accepts requests of this peer.
    private func refusal(ofAllBy peer: Peer) -> String? {
        supervisor.inForce.accounts.authority.refusal(ofAllBy: peer) ?? refusal(ofSandboxed: peer)
    }

    /// The error with which torpord refuses all requests of a peer; nil if it accepts requests of this peer. Rights that
    /// were looked up some time ago are looked up again, for the next requests.
    func refusalError(for peer: Peer) -> VarlinkServer.Refusal? {
        guard let sentence = refusal(ofAllBy: peer) else {
            if peer.uid != 0, peer.uid != Users.effectiveUID {
                supervisor.inForce.renewAuthority(olderThan: .seconds(10))
            }
            return nil
        }
        return VarlinkServer.Refusal(
            error: ManagerInterface.ErrorName.notPermitted,
            parameters: ["message": .string(sentence)]
        )
    }

    /// Decides about a peer that torpord refuses, when the groups that give rights are looked up again.
    func decideAgain(about peer: Peer, _ decide: @escaping (VarlinkServer.Refusal?) -> Void) {
        let inForce = supervisor.inForce
        guard inForce.accounts.authority.refusal(ofAllBy: peer) != nil else { return decide(refusalError(for: peer)) }
        inForce.renewAuthority { [weak self] in
            if let self { decide(refusalError(for: peer)) }
        }
    }

    /// The reason why torpord refuses all requests of a peer that is, or may be, a process of a sandboxed app, whether
    /// of this supervisor or another. Such a process could otherwise grant permissions to its own app. Nil for other
    /// peers.
    ///
    /// A peer outside the process tree of a sandboxed app counts as sandboxed too if two conditions are met. It has
    /// that app's user, and it has ended or is confined like a sandboxed process.
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

    /// Whether a peer may be a process of a sandboxed app of another supervisor, although this supervisor trusts the
    /// peer's user.
    private func isConfinedByAnother(_ peer: Peer) -> Bool {
        // Pid 0 stands for a process outside this pid namespace, which no supervisor inside has launched.
        guard peer.pid != 0 else { return false }
        do throws(Errno) {
            // Every sandboxed process has a system call filter and no_new_privs, and can lose neither. A kernel
            // without these fields of /proc/PID/status has no such filters.
            guard try ProcFS.statusField(peer.pid, "Seccomp") == "2",
                try ProcFS.statusField(peer.pid, "NoNewPrivs") == "1"
            else { return false }
        } catch {
            // A peer that has ended may have passed its connection to any process, so it counts as confined. Other
            // errors, such as too few file descriptors, say nothing about the peer.
            return error == .noSuchFileOrDirectory || error == .noSuchProcess
        }
        var pid = peer.pid
        // Orphaned processes of an app become children of its torpor-keeper, so all processes of an app descend from
        // it.
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
        // A sandboxed process cannot leave its cgroup, which is below `base` (also for a command that runs inside the
        // sandbox) or is the cgroup of torpord itself. Without cgroups, every process of the user that has a seccomp
        // filter counts as sandboxed.
        guard let tree = supervisor.place.cgroups, let mount = Cgroup.mount,
            let path = try? ProcFS.cgroup(peer.pid)
        else { return true }
        return (mount + path).utf8.starts(with: (tree.base + "/").utf8) || path == (try? ProcFS.cgroup(ThisProcess.pid))
    }

    /// Replies with the permissions that these apps declare.
    func permissions(of chosen: [AppRuntime], _ reply: Reply) {
        supervisor.persistence.whenLoaded { [self] in
            let infos = chosen.flatMap { supervisor.permissions.infos(of: $0) }
            reply.send(BoundedReply.list("permissions", infos.map(\.json)))
        }
    }

    func answer(_ request: AnswerPermissionsRequest, by person: String, _ reply: Reply) throws(Selection.Unknown) {
        // torpord keeps the answers for an app that was removed from the configuration, so they can be reset even then.
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
