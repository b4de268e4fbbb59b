// SPDX-License-Identifier: Apache-2.0

public import Linux

/// The processes of one incarnation of an app.
///
/// Membership: with a cgroup, every process in it. Without one, four rules, each for processes that escape the one
/// before: the session that the app was launched into; descendants; processes seen to belong earlier; and orphans
/// reparented to the keeper (double fork and setsid; to any process if that keeper is lost) whose environment has the
/// app's name and incarnation. Only an orphan in its own session that also cleared its environment before it was ever
/// seen escapes: that takes a cgroup.
///
/// No call blocks. Longer work is a pass that the caller repeats: `stopPass`, `killPass`.
public final class ProcessTree {
    /// The app and incarnation.
    public let tag: AppTag
    /// The launched process, leader of the app's session.
    public let leader: Identity
    /// The main process: the leader, unless the app named another (MAINPID).
    public private(set) var main: Identity
    /// The main process's pidfd, readable when it has ended. nil if it had ended before it could be opened.
    public private(set) var pidfd: Descriptor?
    /// The absolute path of its cgroup.
    public let cgroupPath: String?
    /// Whether podman runs the app in a container (Container.swift).
    public var isContainer = false

    let table: ProcessTable
    /// The keeper's pid: orphans of the app are reparented to it. nil if that keeper is lost: they may be children of
    /// any process.
    let adopter: Int32?
    /// Processes found to belong, without a cgroup: pid to start time.
    var known: [Int32: UInt64] = [:]

    // Used for stopping, in Stopping.swift.
    var stopped: [Identity] = []
    var stoppedByThemselves: Set<Identity> = []
    /// The `oom_score_adj` of its first process at exec, if nothing else was set for the app; nil if an earlier
    /// supervisor may have set it.
    public var born: Int32?
    // Used for profiles, in ResourceProfile.swift.
    var given: GivenProfile?
    // Used for killing, in Ending.swift.
    var killed: Set<Identity> = []

    /// The tree of a launched process. `adopter`: the pid of the keeper that launched it, while that keeper lives.
    public init(
        tag: AppTag,
        main: Identity,
        pidfd: Descriptor?,
        cgroupPath: String? = nil,
        table: ProcessTable = ProcessTable(),
        adopter: Int32? = nil
    ) {
        self.tag = tag
        self.leader = main
        self.main = main
        self.pidfd = pidfd
        self.cgroupPath = cgroupPath
        self.table = table
        self.adopter = adopter
        if cgroupPath == nil { known[main.pid] = main.startTime }
    }

    /// Whether the main process has ended; it may be a zombie.
    public var mainHasEnded: Bool { pidfd.map { Pidfd.hasEnded($0.raw) } ?? true }

    /// Makes another process of the app the main one (MAINPID) and opens its pidfd. Throws ESRCH if there is no such
    /// process, EPERM if it does not belong to the app.
    public func changeMain(to pid: Int32) throws(Errno) {
        let identity = try Identity(of: pid)
        let descriptor = try identity.open()
        guard contains(pid) else { throw .notPermitted }
        main = identity
        pidfd = descriptor
        if cgroupPath == nil { known[pid] = identity.startTime }
    }

    /// Restores a main process that the app named to an earlier supervisor. It may have ended.
    public func restoreMain(_ identity: Identity) {
        main = identity
        pidfd = try? identity.open()
        if pidfd != nil, cgroupPath == nil { known[identity.pid] = identity.startTime }
    }

    // MARK: Members

    /// The app's living processes, parents before children.
    public func members() -> [Int32] { list().map(\.pid) }

    /// Whether no process of the app is left, not counting zombies.
    ///
    /// False if that cannot be read.
    public var isEmpty: Bool {
        let listing = listing()
        return listing.members.isEmpty && !listing.isIncomplete
    }

    /// Whether a process belongs to the app. Cheap: it checks only the process and its ancestors.
    public func contains(_ pid: Int32) -> Bool {
        contains(pid, in: cgroupPath == nil ? nil : (try? ProcFS.cgroup(pid)) ?? nil)
    }

    /// The same for a caller that asks many apps about one process, and has read its cgroup (`ProcFS.cgroup`).
    public func contains(_ pid: Int32, in cgroup: String?) -> Bool {
        if let cgroupPath { return cgroup.map { Self.isWithin($0, cgroupPath) } ?? false }
        var current = pid
        for _ in 0..<64 {
            guard current > 1, current != adopter, current != ThisProcess.pid, let stat = try? ProcFS.stat(current)
            else { return false }
            let identity = Identity(stat)
            if known[current] == stat.startTime || isInSession(stat) { return true }
            if adopter == nil {
                if table.tag(identity) == tag { return true }
            } else if stat.parent == adopter || stat.parent == 1 {
                return table.tag(identity) == tag
            }
            current = stat.parent
        }
        return false
    }

    private func isInSession(_ stat: ProcessStat) -> Bool {
        guard stat.session == leader.pid else { return false }
        // While the session lives, its id is not reused: another process with that pid means the session is gone.
        guard let now = try? ProcFS.stat(leader.pid) else { return true }
        return now.startTime == leader.startTime
    }

    static func isWithin(_ relative: String, _ path: String) -> Bool {
        guard let mount = Cgroup.mount else { return false }
        let full = mount + relative
        return full == path || full.hasPrefix(path + "/")
    }

    /// One listing. Pids are read first and inspected afterwards: a process that forks and ends in between hides its
    /// child. So after a listing in which a process ended, list again before you conclude that none is left.
    struct Listing {
        /// Living processes, parents first.
        var members: [ProcessStat] = []
        /// Processes that had ended but were not reaped when inspected.
        var ended: [Identity] = []
        /// Whether a process, perhaps the app's, ended and was reaped in between.
        var hasVanished = false
        /// Whether something could not be read, so members may be missing.
        var isIncomplete = false
    }

    /// The current members, parents first, from the cgroup or a full reading of /proc.
    func list() -> [ProcessStat] { listing().members }

    /// The current members, and reasons why the list may be incomplete.
    func listing() -> Listing {
        guard let cgroupPath else { return listing(in: table.snapshot()) }
        var result = Listing()
        var pids: [Int32] = []
        do throws(Errno) {
            pids = try Cgroup.procs(cgroupPath)
        } catch {
            result.isIncomplete = error.isShortage
        }
        if !pids.contains(main.pid), !mainHasEnded { pids.append(main.pid) }
        // If a pid was reused just now, `pin` rejects it when it is signalled.
        for pid in pids {
            let stat: ProcessStat
            do throws(Errno) {
                stat = try ProcFS.stat(pid)
            } catch {
                if error.isShortage { result.isIncomplete = true } else { result.hasVanished = true }
                continue
            }
            if !stat.hasEnded || stat.threads > 1 {
                result.members.append(stat)
            } else {
                result.ended.append(Identity(stat))
            }
        }
        result.members = ordered(result.members)
        return result
    }

    /// The members in a snapshot, parents first, without a cgroup.
    func list(in snapshot: ProcessSnapshot) -> [ProcessStat] { listing(in: snapshot).members }

    private func listing(in snapshot: ProcessSnapshot) -> Listing {
        var found: Set<Int32> = []
        var queue: [Int32] = []
        func add(_ pid: Int32) {
            guard pid > 1, pid != adopter, pid != ThisProcess.pid, snapshot.byPid[pid] != nil,
                found.insert(pid).inserted
            else { return }
            queue.append(pid)
        }
        for (pid, start) in known {
            if snapshot.byPid[pid]?.startTime == start {
                add(pid)
            } else if snapshot.byPid[pid] != nil || !snapshot.isIncomplete {
                known[pid] = nil
            }
        }
        if snapshot.byPid[leader.pid].map({ $0.startTime == leader.startTime }) ?? true {
            for pid in snapshot.sessions[leader.pid] ?? [] { add(pid) }
        }
        if let adopter {
            for pid in table.orphans(of: tag, adopter: adopter, in: snapshot) { add(pid) }
        } else {
            for pid in table.pids(of: tag, in: snapshot) { add(pid) }
        }
        while let pid = queue.popLast() {
            for child in snapshot.children[pid] ?? [] { add(child) }
        }
        var result = Listing(hasVanished: snapshot.hasVanished, isIncomplete: snapshot.isIncomplete)
        for pid in found {
            guard let stat = snapshot.byPid[pid] else { continue }
            known[pid] = stat.startTime
            // A main thread that has ended before the process's other threads shows Z.
            if !stat.hasEnded || stat.threads > 1 {
                result.members.append(stat)
            } else {
                result.ended.append(Identity(stat))
            }
        }
        result.members = ordered(result.members)
        return result
    }

    /// Parents before children, in a stable order.
    private func ordered(_ members: [ProcessStat]) -> [ProcessStat] {
        if members.count < 2 { return members }
        let byPid = Dictionary(members.map { ($0.pid, $0) }, uniquingKeysWith: { first, _ in first })
        func depth(_ stat: ProcessStat) -> Int {
            var depth = 0
            var parent = stat.parent
            while let above = byPid[parent], depth < members.count {
                depth += 1
                parent = above.parent
            }
            return depth
        }
        return byPid.values.map { (depth($0), $0) }
            .sorted { $0.0 != $1.0 ? $0.0 < $1.0 : ($0.1.startTime, $0.1.pid) < ($1.1.startTime, $1.1.pid) }
            .map { $0.1 }
    }

    // MARK: Signals

    /// A pidfd for a member, after checking its membership again.
    func pin(_ identity: Identity) throws(Errno) -> Descriptor {
        if identity == main {
            guard let pidfd else { throw .noSuchProcess }
            return pidfd
        }
        let descriptor = try identity.open()
        if let cgroupPath {
            guard let path = try ProcFS.cgroup(identity.pid), Self.isWithin(path, cgroupPath) else {
                throw .noSuchProcess
            }
        }
        return descriptor
    }

    /// Sends a signal to one member; false if it has ended.
    func send(_ number: Int32, to identity: Identity) throws(Errno) -> Bool {
        do throws(Errno) {
            try pin(identity).withRaw { raw throws(Errno) in try Pidfd.sendSignal(raw, number) }
            return true
        } catch {
            if error.isGone { return false }
            throw error
        }
    }

    /// Sends a signal to the main process or to all, parents first; returns how many got it. In a container, only the
    /// first process inside gets it. Throws ESRCH if none did; another error if one could not be reached (the rest are
    /// still tried).
    @discardableResult
    public func signal(_ number: Int32, toAll: Bool) throws(Errno) -> Int {
        // Before the container runs, torpor-container lets podman finish.
        let inside = insideContainer
        let all = toAll && (!isContainer || mainHasEnded)
        return try signal(number, inside.isEmpty ? (all ? list().map(Identity.init) : [main]) : inside)
    }

    /// Sends a signal to these processes of the app; returns and throws as ``signal(_:toAll:)``.
    @discardableResult
    public func signal(_ number: Int32, _ members: [Identity]) throws(Errno) -> Int {
        var reached = 0
        var failure: Errno?
        for identity in members {
            do throws(Errno) {
                if try send(number, to: identity) { reached += 1 }
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
        if reached == 0 { throw .noSuchProcess }
        return reached
    }
}
