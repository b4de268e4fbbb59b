// SPDX-License-Identifier: Apache-2.0

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

    /// Whether something could not be read, for want of descriptors or memory: what is not here may be there all the same.
    public internal(set) var isIncomplete = false

    private(set) var orphans = Orphans()

    /// Reads /proc now. What ends meanwhile is left out.
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
        // The kernel's own threads and those below them are nobody's app.
        if pid == 2 || stat.parent == 2 { return }
        byPid[pid] = stat
        children[stat.parent, default: []].append(pid)
        sessions[stat.session, default: []].append(pid)
    }

    /// Orphans that the keeper or process 1 has adopted, by their tags; found when somebody first asks.
    final class Orphans {
        fileprivate var adopter: Int32?
        fileprivate var byTag: [AppTag: [Int32]] = [:]
    }
}

/// A reading of /proc that goes on piece by piece, for those that must not keep others waiting.
public struct SnapshotReading {
    /// What was read so far.
    public private(set) var snapshot = ProcessSnapshot(nothing: ())
    private var rest: ArraySlice<Int32>

    /// A reading of those that are there now.
    public init() {
        do throws(Errno) {
            rest = try ProcFS.allPids()[...]
        } catch {
            rest = []
            snapshot.isIncomplete = true
        }
        snapshot.reserve(rest.count)
    }

    /// Reads on, at most until the time (CLOCK_MONOTONIC) is come; whether all were read.
    public mutating func read(until deadline: Duration?) -> Bool {
        while let pid = rest.popFirst() {
            snapshot.read(pid)
            if let deadline, rest.count % 16 == 0, Clock.monotonic() >= deadline { break }
        }
        return rest.isEmpty
    }
}

/// What all apps' trees share: snapshots, and the tags that were read (an environment is read once for a process).
public final class ProcessTable {
    private var tags: [Identity: AppTag] = [:]
    private var untagged: Set<Identity> = []
    /// The control socket of the supervisor whose apps these are; nil takes those of any.
    private let manager: String?
    /// Whose processes an app's are. Anybody can give a process any environment: a tag counts for those of this user, of
    /// root and of the supervisor's own. nil where the app is not known.
    public var owner: (_ app: String) -> UInt32? = { _ in Users.effectiveUID }

    /// An empty one.
    public init(manager: String? = nil) { self.manager = manager }

    /// Whether a process that bears the app's tag may be one of the app: by the user that it really is (a program that is
    /// setuid is still of the one who called it).
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

    /// Forgets what was known of processes that are gone.
    private func tidy(after snapshot: ProcessSnapshot) {
        if tags.count > 2 * snapshot.byPid.count + 64 {
            tags = tags.filter { snapshot.byPid[$0.key.pid]?.startTime == $0.key.startTime }
        }
        if untagged.count > 2 * snapshot.byPid.count + 64 {
            untagged = untagged.filter { snapshot.byPid[$0.pid]?.startTime == $0.startTime }
        }
    }

    /// Processes that answer to the supervisor whose control socket is at `manager`, whoever their parent is: by the
    /// environment that they were started with. The first of each incarnation is its main process, as far as that can be
    /// told: the leader of its session, else the oldest. `helpers` are commands that ran for apps, such as hooks. Whose
    /// they are nobody has looked at: before one is taken for the app's, ask ``mayBe(_:of:)``.
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
            guard isUnderWay || snapshot.isIncomplete, let pause else { return snapshot }
            _ = try? Descriptor.wait(pause.raw, timeout: .milliseconds(1))
        }
        return snapshot()
    }

    /// All processes of an incarnation in a snapshot, whoever their parents are.
    ///
    /// Every environment is read once. One without a tag keeps having none, but for a child of the keeper before its
    /// exec, which still bears the keeper's name.
    func pids(of tag: AppTag, in snapshot: ProcessSnapshot) -> [Int32] {
        snapshot.byPid.values.compactMap { stat in
            stat.hasEnded || self.tag(stat, keeper: Self.keeperName) != tag ? nil : stat.pid
        }
    }

    /// Children of the keeper, and of process 1, that bear the tag. All of them are looked at once for a snapshot: many
    /// apps may be looked for in it.
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

    /// The tag of a process. That it has none is remembered once it no longer bears the keeper's name.
    private func tag(_ stat: ProcessStat, keeper: String) -> AppTag? {
        let identity = Identity(stat)
        if untagged.contains(identity) { return nil }
        if let found = tag(identity) { return found }
        // One that bears a tag may still become a user whose tag counts.
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

    /// The tag of a process. That it has none is not remembered: between fork and exec it does not have it yet.
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
