// SPDX-License-Identifier: Apache-2.0

import Linux

/// The result of one pass: one attempt to kill all processes of an app.
public enum KillResult: Hashable, Sendable {
    /// Some processes are left: try again soon (1 ms later at first).
    case again
    /// No process is left, except zombies.
    case gone
}

extension ProcessTree {
    /// Tries once to kill all processes of the app. Uses `cgroup.kill` if available. Otherwise sends SIGKILL through
    /// pidfds, parents first, and lists the processes again until no new one appears. Thaws a frozen cgroup when it is
    /// empty.
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
                // A process that ended since the last listing may have forked just before, so list again.
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

    /// Sends SIGKILL to all processes of the app. Use `isEmpty` or `killPass` to find out when they are gone.
    public func kill() { _ = killPass() }

    private func ended() -> KillResult {
        killed = []
        stopped = []
        stoppedByThemselves = []
        if let cgroupPath { try? Cgroup.freeze(cgroupPath, false) }
        return .gone
    }
}
