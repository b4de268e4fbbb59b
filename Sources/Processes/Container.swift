// SPDX-License-Identifier: Apache-2.0

public import Linux

/// Handles apps that podman runs in a container. The app's main process, torpor-container, waits for its child conmon,
/// and conmon waits for the first process of the container. Only that first process gets the signals for the app, as
/// with `podman kill`, because it is responsible for the other processes in the container.
extension ProcessTree {
    /// The process to which signals for the app are sent: the container's first process if there is one, otherwise the
    /// main process.
    public var addressee: Identity { insideContainer.first ?? main }

    /// Whether the container has started and has not ended yet.
    public var hasContainer: Bool { !insideContainer.isEmpty }

    /// The first process of the container, as an array of one element; empty if there is no container, or if it is not
    /// running.
    var insideContainer: [Identity] { (try? findInside()) ?? [] }

    /// The same. Throws if /proc could not be read, for instance for lack of descriptors (EMFILE).
    private func findInside() throws(Errno) -> [Identity] {
        guard isContainer, let conmon = try findChildren(leader).first(where: { $0.comm == Self.conmon }) else {
            return []
        }
        let place = try? ProcFS.mountNamespace(conmon.pid)
        return try findChildren(Identity(conmon)).filter { Self.isInside($0, place) }.map(Identity.init)
    }

    /// Whether the container's first process ignores a signal that would terminate other programs. The kernel delivers
    /// a signal to the first process of a PID namespace only if the process has installed a handler for the signal
    /// (except for SIGKILL and SIGSTOP).
    public func isDeaf(to number: Int32) -> Bool {
        guard let first = insideContainer.first, number != Signal.kill, number != Signal.stop else { return false }
        return (try? ProcFS.isFirstOfNamespace(first.pid) && ProcFS.leavesToDefault(number, first.pid)) == true
    }

    /// The processes of the container except the first one, parents first.
    public var othersInContainer: [Identity] {
        let inside = insideContainer
        guard let first = inside.first else { return [] }
        let members = list()
        let outside = spared(among: members)
        return members.map(Identity.init).filter { $0 != first && !outside.contains($0) }
    }

    /// The number of context switches of the container's first process. As long as the number is the same, the process
    /// has slept. Nil unless the process is alone in the container, sleeps, and has no child to reap.
    public func firstRestsAlone() -> UInt64? {
        guard let first = insideContainer.first, othersInContainer.isEmpty,
            (try? ProcFS.children(first.pid))?.isEmpty == true, (try? ProcFS.stat(first.pid))?.state == "S"
        else { return nil }
        let switches = try? ProcFS.statusField(first.pid, "voluntary_ctxt_switches")
        return switches.flatMap { $0 }.flatMap { UInt64($0) }
    }

    /// A pidfd of the container's first process, readable once that has ended; nil if it has ended and was reaped. Throws
    /// if that is not known, for instance for lack of descriptors (EMFILE).
    public func openFirstInContainer() throws(Errno) -> Descriptor? {
        do throws(Errno) {
            return try findInside().first?.open()
        } catch {
            if error.isGone { return nil }
            throw error
        }
    }

    /// Kills the container's first process with SIGKILL. The kernel then kills all other processes of the container.
    public func killFirstInContainer() {
        for first in insideContainer { _ = try? send(Signal.kill, to: first) }
    }

    /// The processes that hold the app's published ports open on the host, and that are not stopped with the app:
    /// conmon.
    public func portReservers() -> [Int32] {
        guard isContainer else { return [] }
        return children(leader).filter { $0.comm == Self.conmon }.map(\.pid)
    }

    /// The processes that are not stopped with the app: torpor-container, conmon, and the processes that conmon starts
    /// to clean up, which hold podman's locks. torpor-container and conmon are idle while the container lives. They
    /// must keep running so that they notice when another program ends the container: otherwise the app would stay
    /// suspended forever.
    func spared(among members: [ProcessStat]) -> Set<Identity> {
        guard isContainer else { return [] }
        var result: Set<Identity> = [leader]
        guard let conmon = members.first(where: { $0.parent == leader.pid && $0.comm == Self.conmon }) else {
            return result
        }
        let place = try? ProcFS.mountNamespace(conmon.pid)
        var parents: Set<Int32> = [conmon.pid]
        result.insert(Identity(conmon))
        // Members are sorted, so parents come before their children.
        for member in members where parents.contains(member.parent) && !Self.isInside(member, place) {
            parents.insert(member.pid)
            result.insert(Identity(member))
        }
        return result
    }

    private func children(_ parent: Identity) -> [ProcessStat] { (try? findChildren(parent)) ?? [] }

    /// The children of a process; empty if it has ended. Throws if /proc could not be read.
    private func findChildren(_ parent: Identity) throws(Errno) -> [ProcessStat] {
        func stat(_ pid: Int32) throws(Errno) -> ProcessStat? {
            do throws(Errno) { return try ProcFS.stat(pid) } catch {
                if error.isGone { return nil }
                throw error
            }
        }
        guard try stat(parent.pid)?.startTime == parent.startTime else { return [] }
        var found: [ProcessStat] = []
        do throws(Errno) {
            for pid in try ProcFS.children(parent.pid) { if let child = try stat(pid) { found.append(child) } }
        } catch {
            if !error.isGone { throw error }
        }
        return found
    }

    /// Whether a process is inside the container. The test is the process's mount namespace, because every container
    /// has its own, even if it shares other namespaces with the host. If a process's namespace cannot be read, the
    /// process counts as inside.
    private static func isInside(_ process: ProcessStat, _ conmons: UInt64?) -> Bool {
        guard let conmons, let place = try? ProcFS.mountNamespace(process.pid) else { return true }
        return place != conmons
    }

    private static let conmon = "conmon"
}
