// SPDX-License-Identifier: Apache-2.0

import Linux

/// Apps that podman runs in a container. The main process, torpor-container, waits for its child conmon, which waits for the
/// first process of the container. That one alone gets the signals for the app, as from `podman kill`: the processes inside
/// belong to it.
extension ProcessTree {
    /// The process that signals for the app's main process are sent to.
    public var addressee: Identity { insideContainer.first ?? main }

    /// Whether the container has been started and has not ended.
    public var hasContainer: Bool { !insideContainer.isEmpty }

    /// The first process of the container; empty if there is none, or for an app without one.
    var insideContainer: [Identity] {
        guard isContainer, let conmon = children(leader).first(where: { $0.comm == Self.conmon }) else { return [] }
        let place = try? ProcFS.mountNamespace(conmon.pid)
        return children(Identity(conmon)).filter { Self.isInside($0, place) }.map(Identity.init)
    }

    /// What is not stopped with the app. torpor-container and conmon do nothing while the container lives, and must notice
    /// when another program ends it: otherwise it would stay suspended for ever. What conmon starts then to clean up holds
    /// podman's locks.
    func spared(among members: [ProcessStat]) -> Set<Identity> {
        guard isContainer else { return [] }
        var result: Set<Identity> = [leader]
        guard let conmon = members.first(where: { $0.parent == leader.pid && $0.comm == Self.conmon }) else {
            return result
        }
        let place = try? ProcFS.mountNamespace(conmon.pid)
        var parents: Set<Int32> = [conmon.pid]
        result.insert(Identity(conmon))
        // Parents come before children.
        for member in members where parents.contains(member.parent) && !Self.isInside(member, place) {
            parents.insert(member.pid)
            result.insert(Identity(member))
        }
        return result
    }

    private func children(_ parent: Identity) -> [ProcessStat] {
        guard (try? ProcFS.stat(parent.pid))?.startTime == parent.startTime else { return [] }
        return ((try? ProcFS.children(parent.pid)) ?? []).compactMap { try? ProcFS.stat($0) }
    }

    /// A container has a mount namespace of its own, whatever else it shares with the machine. One that cannot be read is
    /// taken for the container's.
    private static func isInside(_ process: ProcessStat, _ conmons: UInt64?) -> Bool {
        guard let conmons, let place = try? ProcFS.mountNamespace(process.pid) else { return true }
        return place != conmons
    }

    private static let conmon = "conmon"
}
