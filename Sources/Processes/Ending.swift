// SPDX-License-Identifier: Apache-2.0

import Linux

/// The result of one pass of killing an app.
public enum KillResult: Hashable, Sendable {
    /// Some processes are left: call again soon (after 1 ms at first).
    case again
    /// No process is left, except zombies.
    case gone
}

extension ProcessTree {
    /// One pass of killing: by `cgroup.kill` if available, else SIGKILL through pidfds, parents first, listing
    /// processes again until no new one appears. A frozen cgroup is thawed once it is empty.
    public func killPass() -> KillResult {
        if let cgroupPath {
            if (try? Cgroup.kill(cgroupPath)) != nil {
                if let pidfd, !mainHasEnded { try? Pidfd.sendSignal(pidfd.raw, Signal.kill) }
                do throws(Errno) {
                    if try Cgroup.events(cgroupPath).populated { return .again }
                } catch {
                    if error.isShortage { return .again }
                }
                if !mainHasEnded { return .again }
                return ended()
            }
        }
        var doubtful = 0
        for _ in 0..<16 {
            let listing = listing()
            let members = listing.members.map(Identity.init)
            let hasNewlyEnded = listing.ended.reduce(false) { killed.insert($1).inserted || $0 }
            if members.isEmpty {
                if listing.isIncomplete { return .again }
                // As in stopPass: a process that ended since the last listing may have forked just before.
                doubtful += 1
                if !hasNewlyEnded, !listing.hasVanished || doubtful >= 3 { return ended() }
                continue
            }
            doubtful = 0
            let fresh = members.filter { !killed.contains($0) }
            if fresh.isEmpty { return .again }
            for identity in fresh where (try? send(Signal.kill, to: identity)) == true { killed.insert(identity) }
            ThisProcess.yield()
        }
        return .again
    }

    /// Sends SIGKILL to the whole app; `isEmpty` or `killPass` tells when it is gone.
    public func kill() { _ = killPass() }

    private func ended() -> KillResult {
        killed = []
        stopped = []
        stoppedByThemselves = []
        if let cgroupPath { try? Cgroup.freeze(cgroupPath, false) }
        return .gone
    }
}
