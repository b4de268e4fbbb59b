// SPDX-License-Identifier: Apache-2.0

import Linux

/// How far ending an app has come.
public enum KillResult: Hashable, Sendable {
    /// Some processes are left: look again soon (1 ms at first).
    case again
    /// No process is left, save those that wait to be reaped.
    case gone
}

extension ProcessTree {
    /// One pass of ending by force: `cgroup.kill` where there is one, else SIGKILL through pidfds, parents first, the
    /// list read again until nobody in it is new. A frozen cgroup is thawed once it is empty.
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
                // As in stopPass: who ended meanwhile may have forked just before.
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

    /// Sends SIGKILL to all of the app now; `isEmpty` or `killPass` says when they are gone.
    public func kill() { _ = killPass() }

    private func ended() -> KillResult {
        killed = []
        stopped = []
        stoppedByThemselves = []
        if let cgroupPath { try? Cgroup.freeze(cgroupPath, false) }
        return .gone
    }
}
