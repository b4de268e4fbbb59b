public import Linux

/// All processes at one moment, as one reading of /proc shows them (about 6 µs a process).
public struct ProcessSnapshot {
    /// The processes by number, zombies included.
    public private(set) var byPid: [Int32: ProcessStat] = [:]
    /// Numbers of children by number of parent.
    public private(set) var children: [Int32: [Int32]] = [:]
    /// Numbers by session.
    public private(set) var sessions: [Int32: [Int32]] = [:]

    /// Whether a process ended and was reaped during the reading: what it forked just before may be missing.
    public private(set) var hasVanished = false

    /// Reads /proc now. What ends meanwhile is left out.
    public init() {
        let pids = (try? ProcFS.allPids()) ?? []
        byPid.reserveCapacity(pids.count)
        for pid in pids {
            guard let stat = try? ProcFS.stat(pid) else {
                hasVanished = true
                continue
            }
            // The kernel's own threads and those below them are nobody's app.
            if pid == 2 || stat.parent == 2 { continue }
            byPid[pid] = stat
            children[stat.parent, default: []].append(pid)
            sessions[stat.session, default: []].append(pid)
        }
    }
}

/// What all apps' trees share: snapshots, and the tags that were read (an environment is read once for a process).
public final class ProcessTable {
    private var tags: [Identity: AppTag] = [:]
    private var untagged: Set<Identity> = []
    /// The control socket of the supervisor whose apps these are; nil takes those of any.
    private let manager: String?

    /// An empty one.
    public init(manager: String? = nil) { self.manager = manager }

    /// Reads /proc now.
    public func snapshot() -> ProcessSnapshot {
        let snapshot = ProcessSnapshot()
        if tags.count > 2 * snapshot.byPid.count + 64 {
            tags = tags.filter { snapshot.byPid[$0.key.pid]?.startTime == $0.key.startTime }
        }
        return snapshot
    }

    /// Processes that answer to the supervisor whose control socket is at `manager`, whoever their parent is: by the
    /// environment that they were started with. The first of each incarnation is its main process, as far as that can be
    /// told: the leader of its session, else the oldest. `helpers` are commands that ran for apps, such as hooks.
    public func strays(manager: String) -> (apps: [AppTag: [Identity]], helpers: [Identity]) {
        var found: [AppTag: [(isLeader: Bool, stat: ProcessStat)]] = [:]
        var helpers: [Identity] = []
        for stat in snapshotWithoutLaunches().byPid.values where !stat.hasEnded && stat.pid != ThisProcess.pid {
            var isHelper = false
            guard let tag = AppTag(of: stat.pid, manager: manager, isHelper: &isHelper) else { continue }
            if isHelper {
                helpers.append(Identity(stat))
            } else {
                found[tag, default: []].append((stat.session == stat.pid, stat))
            }
        }
        let apps = found.mapValues { members in
            members.sorted {
                $0.isLeader != $1.isLeader
                    ? $0.isLeader : ($0.stat.startTime, $0.stat.pid) < ($1.stat.startTime, $1.stat.pid)
            }.map { Identity($0.stat) }
        }
        return (apps, helpers)
    }

    /// A child that lost its keeper right before its exec has no tag yet: it has the keeper's name, a session of its own,
    /// no children and no keeper above it. It is past that within microseconds, on a busy machine milliseconds.
    private func snapshotWithoutLaunches() -> ProcessSnapshot {
        let name = (try? ProcFS.stat(ThisProcess.parent).comm) ?? Self.keeperName
        let pause = try? Descriptor.event()
        for _ in 0..<200 {
            let snapshot = snapshot()
            let isUnderWay = snapshot.byPid.values.contains { stat in
                stat.comm == name && !stat.hasEnded && stat.pid != ThisProcess.parent && stat.session == stat.pid
                    && snapshot.byPid[stat.parent]?.comm != name && snapshot.children[stat.pid] == nil
            }
            guard isUnderWay, let pause else { return snapshot }
            _ = try? Descriptor.wait(pause.raw, timeout: .milliseconds(1))
        }
        return snapshot()
    }

    /// All processes of an incarnation in a snapshot, whoever their parents are.
    ///
    /// Every environment is read once. One without a tag keeps having none, but for a child of the keeper before its
    /// exec, which still bears the keeper's name.
    func pids(of tag: AppTag, in snapshot: ProcessSnapshot) -> [Int32] {
        if untagged.count > 2 * snapshot.byPid.count + 64 {
            untagged = untagged.filter { snapshot.byPid[$0.pid]?.startTime == $0.startTime }
        }
        return snapshot.byPid.values.compactMap { stat in
            let identity = Identity(stat)
            guard !stat.hasEnded, !untagged.contains(identity) else { return nil }
            if let found = self.tag(identity) { return found == tag ? stat.pid : nil }
            if stat.comm != Self.keeperName { untagged.insert(identity) }
            return nil
        }
    }

    private static let keeperName = "torpor-keeper"

    /// The tag of a process. That it has none is not remembered: between fork and exec it does not have it yet.
    func tag(_ identity: Identity) -> AppTag? {
        if let known = tags[identity] { return known }
        var isHelper = false
        guard let tag = AppTag(of: identity.pid, manager: manager, isHelper: &isHelper), !isHelper else { return nil }
        tags[identity] = tag
        return tag
    }
}
