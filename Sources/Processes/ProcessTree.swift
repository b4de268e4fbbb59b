// SPDX-License-Identifier: Apache-2.0

public import Linux

/// The processes of one incarnation of an app.
///
/// If the app has a cgroup, its processes are all processes in that cgroup. If not, a process belongs to the app if at
/// least one of these rules applies:
///
/// - The process is in the session that the app was launched into.
/// - The process is a descendant of a process of the app.
/// - An earlier listing found that the process belongs to the app.
/// - The process is an orphan, and its environment has the app's name and incarnation. Orphans (after a double fork and
///   setsid) are children of the keeper, or of any process if the keeper is lost.
///
/// No rule finds an orphan that created its own session and cleared its environment before it was first listed. Only a
/// cgroup can prevent that.
///
/// All functions return at once. Longer work is done in passes, single attempts that the caller repeats: `stopPass`,
/// `killPass`.
public final class ProcessTree {
    /// The app and the number of its incarnation.
    public let tag: AppTag
    /// The process that was launched, which is the leader of the app's session.
    public let leader: Identity
    /// The main process: `leader`, unless the app named another process (MAINPID).
    public private(set) var main: Identity
    /// The pidfd of the main process, which is readable once that process has ended. Nil if the process had ended
    /// before its pidfd could be opened.
    public private(set) var pidfd: Descriptor?
    /// The absolute path of the app's cgroup; nil if it has none.
    public let cgroupPath: String?
    /// Whether podman runs the app in a container (Container.swift).
    public var isContainer = false

    let table: ProcessTable
    /// The pid of the keeper, to which the kernel reparents orphans of the app. Nil if that keeper is lost; orphans may
    /// then be children of any process.
    let adopter: Int32?
    /// Used only without a cgroup: processes that were found to belong to the app, as pid and start time.
    var known: [Int32: UInt64] = [:]

    // Used in Stopping.swift: the processes that torpord has stopped, and those that were stopped already before.
    var stopped: [Identity] = []
    /// Whether the last pass found that `stopped` are all processes that the app has.
    var isWhollyStopped = false
    var stoppedByThemselves: Set<Identity> = []
    /// The `oom_score_adj` that the app's first process had at its exec, if torpord has not set another value. Nil if
    /// an earlier torpord may have set one.
    public var born: Int32?
    // Used in ResourceProfile.swift: the values that profiles have set.
    var given: GivenProfile?
    // Used in Ending.swift: the processes that were killed already.
    var killed: Set<Identity> = []

    /// Creates the tree of a launched process. `adopter` is the pid of the torpor-keeper that launched the process; nil
    /// if that torpor-keeper has ended.
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

    /// Whether the main process has ended, even if it was not reaped yet.
    public var mainHasEnded: Bool { pidfd.map { Pidfd.hasEnded($0.raw) } ?? true }

    /// Makes another process of the app its main process (MAINPID) and opens its pidfd. Throws ESRCH if there is no
    /// such process, EPERM if it does not belong to the app.
    public func changeMain(to pid: Int32) throws(Errno) {
        let identity = try Identity(of: pid)
        let descriptor = try identity.open()
        guard contains(pid) else { throw .notPermitted }
        main = identity
        pidfd = descriptor
        if cgroupPath == nil { known[pid] = identity.startTime }
    }

    /// Restores the main process that the app named to an earlier torpord. That process may have ended.
    public func restoreMain(_ identity: Identity) {
        main = identity
        pidfd = try? identity.open()
        if pidfd != nil, cgroupPath == nil { known[identity.pid] = identity.startTime }
    }

    // MARK: Members

    /// The most processes of an app with a cgroup that are read or signalled in one turn of torpord's loop: each takes
    /// 10 to 50 µs, and the app determines how many there are.
    public internal(set) var mostAtOnce = 500

    /// The app's living processes, parents before children.
    public func members() -> [Int32] { list().map(\.pid) }

    /// The app's living processes, and how many were left out because there are more than `most`. The main process is
    /// not left out.
    public func members(atMost most: Int) -> (pids: [Int32], leftOut: Int) {
        let found = processes(atMost: most)
        return (found.stats.map(\.pid), found.leftOut)
    }

    /// The same, with what was read of each process.
    public func processes(atMost most: Int) -> (stats: [ProcessStat], leftOut: Int) {
        let listing = listing(atMost: most)
        let kept = listing.members.prefix(most)
        return (Array(kept), listing.leftOut + listing.members.count - kept.count)
    }

    /// Whether these are too many processes to read or signal in one turn of torpord's loop.
    public func isCrowd(_ pids: [Int32]?) -> Bool { pids?.count ?? 0 > mostAtOnce }

    /// The pids in the app's cgroup, zombies excepted; nil if it has none or it cannot be read.
    public func pidsOfCgroup() -> [Int32]? { cgroupPath.flatMap { try? Cgroup.procs($0) } }

    /// Whether no process of the app is left, not counting zombies.
    ///
    /// False if the processes cannot be read.
    public var isEmpty: Bool {
        if let cgroupPath {
            // One small file, however many processes there are.
            guard mainHasEnded else { return false }
            do throws(Errno) {
                return try !Cgroup.events(cgroupPath).populated
            } catch {
                return !error.isShortage
            }
        }
        let listing = listing()
        return listing.members.isEmpty && !listing.isIncomplete
    }

    /// Whether a process belongs to the app. This is cheap, because it checks only the process and its ancestors.
    public func contains(_ pid: Int32) -> Bool {
        contains(pid, in: cgroupPath == nil ? nil : (try? ProcFS.cgroup(pid)) ?? nil)
    }

    /// Whether a process belongs to the app. `cgroup` is the cgroup of the process, so that a caller that checks many
    /// apps reads it only once.
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
        // While the session exists, the kernel does not reuse its id as a pid. If another process has that pid, the
        // session has ended.
        guard let now = try? ProcFS.stat(leader.pid) else { return true }
        return now.startTime == leader.startTime
    }

    static func isWithin(_ relative: String, _ path: String) -> Bool {
        guard let mount = Cgroup.mount else { return false }
        let full = mount + relative
        return full == path || full.hasPrefix(path + "/")
    }

    /// One listing of processes. Pids are read first and inspected afterwards. If a process forks and ends in between,
    /// its child may be missing from the list. So if a process ended, list again before you conclude that none is left.
    struct Listing {
        /// Living processes, sorted so that parents come first.
        var members: [ProcessStat] = []
        /// Processes that had ended, but were not yet reaped, when they were inspected.
        var ended: [Identity] = []
        /// Whether a process, perhaps of the app, ended and was reaped while the processes were listed.
        var hasVanished = false
        /// Whether something could not be read, so that members may be missing.
        var isIncomplete = false
        /// How many processes were not inspected, because there are too many.
        var leftOut = 0
    }

    /// The current members of the app, parents first, from its cgroup or by reading all of /proc.
    func list() -> [ProcessStat] { listing().members }

    /// The current members of the app, with information on whether the list may be incomplete. If the app has a cgroup,
    /// at most `most` processes are inspected.
    ///
    /// - Parameters:
    ///   - read: ``pidsOfCgroup()``, if it was called just before.
    ///   - folder: the cgroup above that of the app, if it is open.
    func listing(atMost most: Int = .max, read: [Int32]? = nil, from folder: CgroupFolder? = nil) -> Listing {
        guard let cgroupPath else { return listing(in: table.snapshot()) }
        var result = Listing()
        var pids: [Int32] = []
        do throws(Errno) {
            if let read { pids = read } else { pids = try Cgroup.procs(cgroupPath, from: folder) }
        } catch {
            result.isIncomplete = error.isShortage
        }
        let hasMain = pids.contains(main.pid)
        if !hasMain, !mainHasEnded { pids.append(main.pid) }
        if pids.count > most {
            result.leftOut = pids.count - most
            let others = pids.lazy.filter { [main] in $0 != main.pid }
            pids = hasMain || !mainHasEnded ? [main.pid] + others.prefix(most - 1) : Array(pids.prefix(most))
        }
        // A pid may have been reused just now. `pin` checks this before a signal is sent.
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
        result.members = Self.ordered(result.members)
        return result
    }

    /// The members of an app without a cgroup, in a snapshot, parents first.
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
            // If the main thread has ended before other threads, the process has the state Z but lives.
            if !stat.hasEnded || stat.threads > 1 {
                result.members.append(stat)
            } else {
                result.ended.append(Identity(stat))
            }
        }
        result.members = Self.ordered(result.members)
        return result
    }

    /// Sorts parents before children; otherwise by start time. An app may have a chain of thousands of processes, each
    /// the parent of the next, so each process is passed once on the way to the depth of all.
    static func ordered(_ members: [ProcessStat]) -> [ProcessStat] {
        if members.count < 2 { return members }
        let byPid = Dictionary(members.map { ($0.pid, $0) }, uniquingKeysWith: { first, _ in first })
        var depths: [Int32: Int] = [:]
        depths.reserveCapacity(byPid.count)
        var unknown: [Int32] = []
        for member in members {
            // A pid that was reused while the processes were read may close a circle.
            var pid = member.pid
            while depths[pid] == nil, let stat = byPid[pid], unknown.count < byPid.count {
                unknown.append(pid)
                pid = stat.parent
            }
            var depth = depths[pid].map { $0 + 1 } ?? 0
            while let pid = unknown.popLast() {
                depths[pid] = depth
                depth += 1
            }
        }
        return byPid.values.map { (depths[$0.pid] ?? 0, $0) }
            .sorted { $0.0 != $1.0 ? $0.0 < $1.0 : ($0.1.startTime, $0.1.pid) < ($1.1.startTime, $1.1.pid) }
            .map { $0.1 }
    }

    // MARK: Signals

    /// Opens a pidfd of a member. Then checks that the pidfd refers to this very process, and that the process is still
    /// in the app's cgroup; throws ESRCH if not.
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

    /// Sends a signal to one member; returns false if that process has ended.
    func send(_ number: Int32, to identity: Identity) throws(Errno) -> Bool {
        do throws(Errno) {
            try pin(identity).withRaw { raw throws(Errno) in try Pidfd.sendSignal(raw, number) }
            return true
        } catch {
            if error.isGone { return false }
            throw error
        }
    }

    /// Sends a signal to the main process or, if `toAll`, to all processes, parents first. Returns how many got the
    /// signal. In a container, only the first process gets it. Throws ESRCH if no process got the signal, or another
    /// error if some process could not be signalled (the others still get the signal).
    ///
    /// - Parameter read: ``pidsOfCgroup()``, if it was called just before.
    @discardableResult
    public func signal(_ number: Int32, toAll: Bool, read: [Int32]? = nil) throws(Errno) -> Int {
        // Until the container runs, send signals only to the main process, torpor-container: its child podman must
        // not get them.
        let inside = insideContainer
        guard inside.isEmpty else { return try signal(number, inside) }
        guard toAll, !isContainer || mainHasEnded else { return try signal(number, [main]) }
        var read = read
        // An app whose only process is the main process, as most are, needs no order, and no look at that process.
        if let pids = read, pids.count == 1, pids[0] == main.pid {
            if try send(number, to: main) { return 1 }
            // It was reaped since, and may have left others.
            read = nil
        }
        return try signal(number, listing(read: read).members.map(Identity.init))
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

    /// Sends signals to those of these processes that still belong to the app; returns how many got them.
    public func signal(_ numbers: [Int32], pids: ArraySlice<Int32>) -> Int {
        pids.count { pid in
            guard let pinned = (try? Identity(of: pid)).flatMap({ try? pin($0) }) else { return false }
            return numbers.allSatisfy { number in
                (try? pinned.withRaw { raw throws(Errno) in try Pidfd.sendSignal(raw, number) }) != nil
            }
        }
    }
}
