// SPDX-License-Identifier: Apache-2.0

public import Linux

/// The processes of one incarnation of an app.
///
/// Who belongs to it: with a cgroup, who is in there. Without, four rules, each for what escapes the one before: the
/// session that the app was launched into; descendants; who was seen to belong earlier; and orphans that the keeper
/// has adopted (double fork and setsid; whoever has, if that keeper is lost) whose environment carries the app's name
/// and incarnation. Only an orphan of a
/// session of its own that also cleared its environment before anyone looked escapes: cgroups are for that.
///
/// No call waits. What takes time is a pass that the caller repeats: `stopPass`, `killPass`.
public final class ProcessTree {
    /// The app and incarnation.
    public let tag: AppTag
    /// The process that was launched, leader of the app's session.
    public let leader: Identity
    /// The main process: the leader, unless the app named another (MAINPID).
    public private(set) var main: Identity
    /// The main process, pinned; readable when it has ended. nil when it had ended before anybody could pin it.
    public private(set) var pidfd: Descriptor?
    /// Its cgroup, an absolute path.
    public let cgroupPath: String?

    let table: ProcessTable
    /// The keeper: orphans of the app become its children. nil when it was another's, by now lost: they may be anywhere.
    let adopter: Int32?
    /// Who was found to belong, without a cgroup: number to start time.
    var known: [Int32: UInt64] = [:]

    // Of stopping, in Stopping.swift.
    var stopped: [Identity] = []
    var stoppedByThemselves: Set<Identity> = []
    /// The `oom_score_adj` of its first process at its exec, of an app to which nothing else was given; nil where an
    /// earlier supervisor may have given it anything.
    public var born: Int32?
    // Of profiles, in ResourceProfile.swift.
    var given: GivenProfile?
    // Of ending, in Ending.swift.
    var killed: Set<Identity> = []

    /// The tree of a launched process. `adopter`: the number of the keeper that launched it, while that lives.
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

    /// Whether the main process has ended; it may still wait to be reaped.
    public var mainHasEnded: Bool { pidfd.map { Pidfd.hasEnded($0.raw) } ?? true }

    /// Makes another process of the app the main one (MAINPID); its pidfd is `pidfd` afterwards.
    /// ESRCH when there is no such process, EPERM when it is not the app's.
    public func changeMain(to pid: Int32) throws(Errno) {
        let identity = try Identity(of: pid)
        let descriptor = try identity.open()
        guard contains(pid) else { throw .notPermitted }
        main = identity
        pidfd = descriptor
        if cgroupPath == nil { known[pid] = identity.startTime }
    }

    /// Goes on with a main process that the app named to an earlier supervisor. It may have ended.
    public func restoreMain(_ identity: Identity) {
        main = identity
        pidfd = try? identity.open()
        if pidfd != nil, cgroupPath == nil { known[identity.pid] = identity.startTime }
    }

    // MARK: Members

    /// The processes of the app that have not ended, parents before their children.
    public func members() -> [Int32] { list().map(\.pid) }

    /// Whether no process of the app is left; those that only wait to be reaped do not count.
    ///
    /// False where that cannot be read.
    public var isEmpty: Bool {
        let listing = listing()
        return listing.members.isEmpty && !listing.isIncomplete
    }

    /// Whether a process belongs to the app. Cheap: looks at it and those above it only.
    public func contains(_ pid: Int32) -> Bool {
        if let cgroupPath {
            return (try? ProcFS.cgroup(pid)).flatMap { $0 }.map { Self.isWithin($0, cgroupPath) } ?? false
        }
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
        // As long as the session lives, its number is not given away: another process of that number means it is gone.
        guard let now = try? ProcFS.stat(leader.pid) else { return true }
        return now.startTime == leader.startTime
    }

    static func isWithin(_ relative: String, _ path: String) -> Bool {
        guard let mount = Cgroup.mount else { return false }
        let full = mount + relative
        return full == path || full.hasPrefix(path + "/")
    }

    /// One listing. Numbers are read first and looked at afterwards: a process that forks and ends in between hides
    /// its child, so whoever claims that there is no more must look again when somebody ended meanwhile.
    struct Listing {
        /// Who lives, parents first.
        var members: [ProcessStat] = []
        /// Who had ended when looked at, and waits to be reaped.
        var ended: [Identity] = []
        /// Whether somebody, perhaps of the app, ended and was reaped between the two.
        var hasVanished = false
        /// Whether something could not be read: members may be missing.
        var isIncomplete = false
    }

    /// The members now, parents first, by cgroup or a full reading of /proc.
    func list() -> [ProcessStat] { listing().members }

    /// The members now, and what makes this doubtful.
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
        // A number that only now became another's is turned away when it is signalled (`pin`).
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
            // A leader that has ended while its threads run on shows Z.
            if !stat.hasEnded || stat.threads > 1 {
                result.members.append(stat)
            } else {
                result.ended.append(Identity(stat))
            }
        }
        result.members = ordered(result.members)
        return result
    }

    /// Parents before children; the same order for the same processes.
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

    /// A pidfd for a member, after looking again that it is one.
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

    /// Sends a signal to one member; false when it is gone.
    func send(_ number: Int32, to identity: Identity) throws(Errno) -> Bool {
        do throws(Errno) {
            try pin(identity).withRaw { raw throws(Errno) in try Pidfd.sendSignal(raw, number) }
            return true
        } catch {
            if error.isGone { return false }
            throw error
        }
    }

    /// Sends a signal to the main process or to all, parents first; returns how many got it.
    /// ESRCH when nobody did; another error when somebody could not be reached (the rest are tried nevertheless).
    @discardableResult
    public func signal(_ number: Int32, toAll: Bool) throws(Errno) -> Int {
        var reached = 0
        var failure: Errno?
        for identity in toAll ? list().map(Identity.init) : [main] {
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
