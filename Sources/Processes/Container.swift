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

    /// Whether a signal that ends other programs has no effect on the first process of the container: the kernel gives the
    /// first process of a PID namespace no signal that it leaves to the default action.
    public func isDeaf(to number: Int32) -> Bool {
        guard let first = insideContainer.first, number != Signal.kill, number != Signal.stop else { return false }
        return (try? ProcFS.isFirstOfNamespace(first.pid) && ProcFS.leavesToDefault(number, first.pid)) == true
    }

    /// The processes of the container but the first one, parents first.
    public var othersInContainer: [Identity] {
        let inside = insideContainer
        guard let first = inside.first else { return [] }
        let members = list()
        let outside = spared(among: members)
        return members.map(Identity.init).filter { $0 != first && !outside.contains($0) }
    }

    /// A number for the time since which the first process has been asleep, if it is alone in the container: it has no
    /// child left to reap, either. nil if it is not alone, or does something.
    public func firstRestsAlone() -> UInt64? {
        guard let first = insideContainer.first, othersInContainer.isEmpty,
            (try? ProcFS.children(first.pid))?.isEmpty == true, (try? ProcFS.stat(first.pid))?.state == "S"
        else { return nil }
        let switches = try? ProcFS.statusField(first.pid, "voluntary_ctxt_switches")
        return switches.flatMap { $0 }.flatMap { UInt64($0) }
    }

    /// Ends the container by SIGKILL to its first process, with which the kernel ends all others.
    public func killFirstInContainer() {
        for first in insideContainer { _ = try? send(Signal.kill, to: first) }
    }

    /// Processes that are not stopped with the app and reserve its published ports on the machine: conmon.
    public func portReservers() -> [Int32] {
        guard isContainer else { return [] }
        return children(leader).filter { $0.comm == Self.conmon }.map(\.pid)
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
