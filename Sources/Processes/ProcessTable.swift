// SPDX-License-Identifier: Apache-2.0

public import Linux

/// All processes at one moment, from one reading of /proc (about 6 µs a process).
public struct ProcessSnapshot {
    /// The processes by pid, including zombies.
    public private(set) var byPid: [Int32: ProcessStat] = [:]
    /// Pids of children by pid of the parent.
    public private(set) var children: [Int32: [Int32]] = [:]
    /// Pids by session.
    public private(set) var sessions: [Int32: [Int32]] = [:]

    /// Whether a process ended and was reaped during the reading: a child that it forked just before may be missing.
    public private(set) var hasVanished = false

    /// Whether something could not be read for lack of descriptors or memory: existing processes may be missing.
    public internal(set) var isIncomplete = false

    private(set) var orphans = Orphans()

    /// Reads /proc now. Processes that end in the meantime are omitted.
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
        // Skip kernel threads: kthreadd (pid 2) and its children.
        if pid == 2 || stat.parent == 2 { return }
        byPid[pid] = stat
        children[stat.parent, default: []].append(pid)
        sessions[stat.session, default: []].append(pid)
    }

    /// Orphans that were reparented to the keeper or to process 1, by tag; searched on first use.
    final class Orphans {
        fileprivate var adopter: Int32?
        fileprivate var byTag: [AppTag: [Int32]] = [:]
    }
}

/// Reads /proc in steps, for callers that must not block for long.
public struct SnapshotReading {
    /// The processes read so far.
    public private(set) var snapshot = ProcessSnapshot(nothing: ())
    private var rest: ArraySlice<Int32>

    /// Prepares to read the processes that exist now.
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

/// State shared by all apps' trees: snapshots, and a cache of tags (an environment is read only once per process).
public final class ProcessTable {
    private var tags: [Identity: AppTag] = [:]
    private var untagged: Set<Identity> = []
    /// The control socket of the apps' supervisor; nil accepts any supervisor's.
    private let manager: String?
    /// The user of an app's processes. Any user can give a process any environment, so a tag is trusted only for
    /// processes of this user, of root and of the supervisor's own. nil if the app is unknown.
    public var owner: (_ app: String) -> UInt32? = { _ in Users.effectiveUID }

    /// Creates an empty table.
    public init(manager: String? = nil) { self.manager = manager }

    /// Whether a process with the app's tag may belong to the app, by its real uid (a setuid program keeps its
    /// caller's).
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

    /// Removes processes that have ended from the cache.
    private func tidy(after snapshot: ProcessSnapshot) {
        if tags.count > 2 * snapshot.byPid.count + 64 {
            tags = tags.filter { snapshot.byPid[$0.key.pid]?.startTime == $0.key.startTime }
        }
        if untagged.count > 2 * snapshot.byPid.count + 64 {
            untagged = untagged.filter { snapshot.byPid[$0.pid]?.startTime == $0.startTime }
        }
    }

    /// Processes of the supervisor whose control socket is at `manager`, whoever their parent is, by their initial
    /// environment. The first of each incarnation is its probable main process: the leader of its session, else the
    /// oldest. `helpers` are commands that ran on behalf of apps, such as hooks. Owners are not checked: call
    /// ``mayBe(_:of:)`` before you treat one as the app's.
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

    /// A child whose keeper died just before the child's exec has no tag yet. It has the keeper's name, its own
    /// session, no children and no keeper as parent. That lasts microseconds, on a busy machine milliseconds.
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

    /// All processes of an incarnation in a snapshot, whoever their parents are.
    ///
    /// Each environment is read once. One without a tag never gets one, except for a child of the keeper before its
    /// exec, which still has the keeper's name.
    func pids(of tag: AppTag, in snapshot: ProcessSnapshot) -> [Int32] {
        snapshot.byPid.values.compactMap { stat in
            stat.hasEnded || self.tag(stat, keeper: Self.keeperName) != tag ? nil : stat.pid
        }
    }

    /// Children of the keeper and of process 1 with this tag. All of them are checked once per snapshot, since many
    /// apps may be searched in it.
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

    /// The tag of a process. Its absence is cached once the process no longer has the keeper's name.
    private func tag(_ stat: ProcessStat, keeper: String) -> AppTag? {
        let identity = Identity(stat)
        if untagged.contains(identity) { return nil }
        if let found = tag(identity) { return found }
        // A process with a tag may still change to a user whose tag is trusted, so cache only a missing tag.
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

    /// The tag of a process. Its absence is not cached: between fork and exec it has none yet.
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
