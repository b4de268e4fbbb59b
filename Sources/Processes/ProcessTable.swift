// SPDX-License-Identifier: Apache-2.0

public import Linux

/// All processes at one moment, from one reading of /proc (about 6 µs per process).
public struct ProcessSnapshot {
    /// The processes by pid, including zombies.
    public private(set) var byPid: [Int32: ProcessStat] = [:]
    /// The pids of the children of each process, by its pid.
    public private(set) var children: [Int32: [Int32]] = [:]
    /// The pids of the processes of each session, by session id.
    public private(set) var sessions: [Int32: [Int32]] = [:]

    /// Whether a process ended and was reaped while /proc was read. If so, a child that it forked just before may be
    /// missing.
    public private(set) var hasVanished = false

    /// Whether torpord lacked descriptors or memory to read everything, so that existing processes may be missing.
    public internal(set) var isIncomplete = false

    private(set) var orphans = Orphans()

    /// Reads /proc now. Processes that end during the reading are omitted.
    public init() {
        var reading = SnapshotReading()
        _ = reading.read(until: nil)
        self = reading.snapshot
    }

    fileprivate init(nothing: Void) {}

    fileprivate mutating func reserve(_ count: Int) { byPid.reserveCapacity(count) }

    fileprivate mutating func read(_ pid: Int32) {
        let stat: ProcessStat
        do throws(Errno) {
            stat = try ProcFS.stat(pid)
        } catch {
            if error.isShortage { isIncomplete = true } else { hasVanished = true }
            return
        }
        // Skip kernel threads: kthreadd (pid 2) and its children. They belong to no app.
        if pid == 2 || stat.parent == 2 { return }
        byPid[pid] = stat
        children[stat.parent, default: []].append(pid)
        sessions[stat.session, default: []].append(pid)
    }

    /// Orphans that now have torpor-keeper or process 1 as their parent, by tag. They are searched when they are first
    /// used.
    final class Orphans {
        fileprivate var adopter: Int32?
        fileprivate var byTag: [AppTag: [Int32]] = [:]
    }
}

/// Reads /proc in steps, for callers that must not block for long.
public struct SnapshotReading {
    /// The processes that were read so far.
    public private(set) var snapshot = ProcessSnapshot(nothing: ())
    private var rest: ArraySlice<Int32>

    /// Prepares to read all processes that exist now.
    public init() {
        do throws(Errno) {
            rest = try ProcFS.allPids()[...]
        } catch {
            rest = []
            snapshot.isIncomplete = true
        }
        snapshot.reserve(rest.count)
    }

    /// Continues reading until `deadline` (CLOCK_MONOTONIC) at the latest. Returns true when all processes were read.
    public mutating func read(until deadline: Duration?) -> Bool {
        while let pid = rest.popFirst() {
            snapshot.read(pid)
            if let deadline, rest.count % 16 == 0, Clock.monotonic() >= deadline { break }
        }
        return rest.isEmpty
    }
}

/// State that the process trees of all apps share: how to take snapshots of /proc, and a cache of the tags that
/// environments contain.
public final class ProcessTable {
    private var tags: [Identity: AppTag] = [:]
    private var untagged: Set<Identity> = []
    /// The control socket of the supervisor whose apps this table recognises; nil for the apps of any supervisor.
    private let manager: String?
    /// The user that an app's processes run as; nil if the app is unknown. Any user can give a process any
    /// environment, so a tag is trusted only for processes of this user, of root, and of torpord's own user.
    public var owner: (_ app: String) -> UInt32? = { _ in Users.effectiveUID }

    /// Whether the apps' cgroups may have the memory controller. If not, `memory.current` is not looked for.
    public var countsMemory = true

    /// Creates a table without cached tags.
    public init(manager: String? = nil) { self.manager = manager }

    /// Whether a process with the app's tag may really belong to the app, judged by its real uid. For a setuid program,
    /// the real uid is the caller's.
    public func mayBe(_ pid: Int32, of app: String) -> Bool {
        guard let uid = (try? ProcFS.realUser(pid)) else { return false }
        return uid == 0 || uid == Users.effectiveUID || uid == owner(app)
    }

    /// Reads /proc now.
    public func snapshot() -> ProcessSnapshot {
        let snapshot = ProcessSnapshot()
        tidy(after: snapshot)
        return snapshot
    }

    /// Removes processes that have ended from the cache, if it has become large.
    private func tidy(after snapshot: ProcessSnapshot) {
        if tags.count > 2 * snapshot.byPid.count + 64 {
            tags = tags.filter { snapshot.byPid[$0.key.pid]?.startTime == $0.key.startTime }
        }
        if untagged.count > 2 * snapshot.byPid.count + 64 {
            untagged = untagged.filter { snapshot.byPid[$0.pid]?.startTime == $0.startTime }
        }
    }

    /// All processes whose initial environment names the supervisor with the control socket `manager`, whatever their
    /// parents. The first process of each incarnation is probably its main process: the session leader if there is one,
    /// otherwise the oldest process. `helpers` are commands that torpord ran for apps, such as hooks. Owners are not
    /// checked: call ``mayBe(_:of:)`` before you treat a process as the app's.
    public func strays(manager: String) -> (apps: [AppTag: [Identity]], helpers: [(tag: AppTag, process: Identity)]) {
        var found: [AppTag: [(isLeader: Bool, stat: ProcessStat)]] = [:]
        var helpers: [(tag: AppTag, process: Identity)] = []
        for stat in snapshotWithoutLaunches().byPid.values where !stat.hasEnded && stat.pid != ThisProcess.pid {
            var isHelper = false
            guard let tag = AppTag(of: stat.pid, manager: manager, isHelper: &isHelper) else { continue }
            if isHelper {
                helpers.append((tag, Identity(stat)))
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

    /// Waits, for microseconds or milliseconds, until no child of a lost torpor-keeper is between fork and exec, and
    /// then takes a snapshot. The wait is needed because such a child has no tag yet. It is recognised by
    /// torpor-keeper's name, its own session, no children, and a parent other than torpor-keeper.
    private func snapshotWithoutLaunches() -> ProcessSnapshot {
        let name = (try? ProcFS.stat(ThisProcess.parent).comm) ?? Self.keeperName
        let pause = try? Descriptor.event()
        for _ in 0..<200 {
            let snapshot = snapshot()
            let isUnderWay = snapshot.byPid.values.contains { stat in
                stat.comm == name && !stat.hasEnded && stat.pid != ThisProcess.parent && stat.session == stat.pid
                    && snapshot.byPid[stat.parent]?.comm != name && snapshot.children[stat.pid] == nil
            }
            guard isUnderWay || snapshot.isIncomplete, let pause else { return snapshot }
            _ = try? Descriptor.wait(pause.raw, timeout: .milliseconds(1))
        }
        return snapshot()
    }

    /// All processes of an incarnation in a snapshot, whatever their parents.
    ///
    /// Each environment is read only once, because a process without a tag never gets one later. The exception is a
    /// child of torpor-keeper before its exec: it has torpor-keeper's name, and gets its tag at the exec.
    func pids(of tag: AppTag, in snapshot: ProcessSnapshot) -> [Int32] {
        snapshot.byPid.values.compactMap { stat in
            stat.hasEnded || self.tag(stat, keeper: Self.keeperName) != tag ? nil : stat.pid
        }
    }

    /// The children of the keeper and of process 1 that have this tag. All these children are checked once per
    /// snapshot, because a snapshot may be used to search for the orphans of many apps.
    func orphans(of tag: AppTag, adopter: Int32, in snapshot: ProcessSnapshot) -> [Int32] {
        let orphans = snapshot.orphans
        if orphans.adopter != adopter {
            tidy(after: snapshot)
            orphans.adopter = adopter
            orphans.byTag = [:]
            let keeper = snapshot.byPid[adopter]?.comm ?? Self.keeperName
            for parent in Set([adopter, 1]) {
                for pid in snapshot.children[parent] ?? [] {
                    guard let stat = snapshot.byPid[pid], let found = self.tag(stat, keeper: keeper) else { continue }
                    orphans.byTag[found, default: []].append(pid)
                }
            }
        }
        return orphans.byTag[tag] ?? []
    }

    /// The tag of a process; nil if it has none. A process is remembered as one without a tag only once it has executed
    /// its program, because an app's process gets its tag at its exec. Until then, the process has torpor-keeper's
    /// name.
    private func tag(_ stat: ProcessStat, keeper: String) -> AppTag? {
        let identity = Identity(stat)
        if untagged.contains(identity) { return nil }
        if let found = tag(identity) { return found }
        // Cache only that a process has no tag. A tag that is not trusted now may be trusted later, when its process
        // has changed to a trusted user.
        if !stat.hasEnded, stat.comm != keeper {
            var isHelper = false
            do throws(Errno) {
                if try AppTag.read(of: stat.pid, manager: manager, isHelper: &isHelper) == nil {
                    untagged.insert(identity)
                }
            } catch {
                if !error.isShortage { untagged.insert(identity) }
            }
        }
        return nil
    }

    private static let keeperName = "torpor-keeper"

    /// The tag of a process; nil if it has none. That a process has no tag is not cached, because a process gets its
    /// tag only at its exec.
    func tag(_ identity: Identity) -> AppTag? {
        if let known = tags[identity] { return known }
        var isHelper = false
        guard let tag = AppTag(of: identity.pid, manager: manager, isHelper: &isHelper), !isHelper,
            mayBe(identity.pid, of: tag.app)
        else { return nil }
        tags[identity] = tag
        return tag
    }
}
