// SPDX-License-Identifier: Apache-2.0

public import Linux

/// The result of one pass: one attempt to stop all processes of an app.
public enum StopResult: Hashable, Sendable {
    /// All threads of all processes are stopped, and no new process was found after that.
    case stopped
    /// Some threads are not stopped yet: try again soon (1 ms later at first).
    case again
    /// No process is left.
    case gone
}

/// The combined state of a process's threads.
enum StopState {
    case running
    case stopped
    /// The process is exiting: it is not stopped, but no longer runs code of its program. On a busy machine this can
    /// last for seconds.
    case dying
    case ended
    /// The state cannot be read, because torpord lacks descriptors or memory.
    case unknown

    /// The state of a process. It counts as stopped if every thread is T or t, or D (uninterruptible sleep) with
    /// SIGSTOP pending, or D while other threads are stopped (lifecycle.md).
    static func of(_ pid: Int32) -> StopState {
        do throws(Errno) {
            return of(try ProcFS.stat(pid))
        } catch {
            return error.isShortage ? .unknown : .ended
        }
    }

    /// The state of a process, judged by its `stat`. The threads are read only if the process has several or is in
    /// state D.
    static func of(_ stat: ProcessStat) -> StopState {
        guard stat.threads == 1, stat.state != "D" else { return ofThreads(stat.pid) }
        switch stat.state {
        case "T", "t": return .stopped
        case "Z", "X": return .ended
        default: return stat.isExiting ? .dying : .running
        }
    }

    /// Whether a process that is not stopped has got a SIGKILL, which the kernel makes pending for each of its threads.
    /// The file that tells it takes the kernel longer than all others of a stop, so this is not asked while a stop is
    /// under way.
    static func isKilled(_ pid: Int32) -> Bool {
        let killBit = UInt64(1) << UInt64(Signal.kill - 1)
        return ((try? ProcFS.pendingSignals(pid, task: pid)) ?? 0) & killBit != 0
    }

    private static func ofThreads(_ pid: Int32) -> StopState {
        let tasks: [Int32]
        do throws(Errno) {
            tasks = try ProcFS.tasks(pid)
        } catch {
            return error.isShortage ? .unknown : .ended
        }
        var stopped = 0
        var exiting = 0
        var waiting: [Int32] = []
        for task in tasks {
            let stat: ProcessStat
            do throws(Errno) {
                stat = try ProcFS.taskStat(pid, task)
            } catch {
                if error.isShortage { return .unknown }
                continue
            }
            switch stat.state {
            case "T", "t": stopped += 1
            case "Z", "X": break
            case _ where stat.isExiting: exiting += 1
            case "D": waiting.append(task)
            default: return .running
            }
        }
        if waiting.isEmpty { return stopped > 0 ? .stopped : exiting > 0 ? .dying : .ended }
        if stopped > 0 { return .stopped }
        let stopBit = UInt64(1) << UInt64(Signal.stop - 1)
        return waiting.allSatisfy { ((try? ProcFS.pendingSignals(pid, task: $0)) ?? 0) & stopBit != 0 }
            ? .stopped : .running
    }
}

extension ProcessTree {
    /// Tries once to stop all processes with SIGSTOP, parents before children. Lists the processes again until no
    /// process is new and none is running. Notes which processes were already stopped before, so that `continue` leaves
    /// these stopped.
    ///
    /// - Parameter read: ``pidsOfCgroup()``, if it was called just before.
    public func stopPass(read: [Int32]? = nil) -> StopResult {
        let result = attempt(read)
        isWhollyStopped = result == .stopped
        return result
    }

    /// Of how many processes the file that shows whether they have stopped is kept open during one pass. A look at such
    /// a process takes less than 3 µs, at another one 10.
    private static let mostStatFiles = 8

    private func attempt(_ read: [Int32]?) -> StopResult {
        var read = read
        if stopped.isEmpty { stoppedByThemselves = [] }
        // True if this is the first attempt to stop the app and its main process was running before. If the main
        // process was already stopped, an earlier torpord may have stopped the app. Then `continue` must also continue
        // the processes that are found stopped now.
        var isFirst: Bool?
        let lead = addressee
        var settled: Set<Identity> = []
        var doubtful = 0
        for _ in 0..<16 {
            if hasNobodyBut(settled) { return .stopped }
            let listing = listing(read: read)
            read = nil
            let members = listing.members
            settled.formUnion(spared(among: members))
            if isFirst == nil {
                let first = members.first { Identity($0) == lead }
                isFirst = stopped.isEmpty && (first.map(StopState.of) ?? StopState.of(lead.pid)) == .running
            }
            let unknown = members.filter { !settled.contains(Identity($0)) }
            // A process that ended since the last listing may have forked just before, so list once more. If a process
            // was reaped before it was known whether it belonged to the app, list twice more.
            let hasNewlyEnded = listing.ended.reduce(false) { settled.insert($1).inserted || $0 }
            if unknown.isEmpty, !hasNewlyEnded {
                if listing.isIncomplete { return .again }
                doubtful += 1
                if !listing.hasVanished || doubtful == 3 { return members.isEmpty ? .gone : .stopped }
                continue
            }
            doubtful = 0
            var waiting: [(identity: Identity, file: ProcFS.StatFile?)] = []
            func watch(_ identity: Identity) {
                let file = waiting.count < Self.mostStatFiles ? try? ProcFS.StatFile(identity.pid) : nil
                waiting.append((identity, file))
            }
            for member in unknown {
                let identity = Identity(member)
                switch StopState.of(member) {
                case .ended: continue
                // SIGSTOP has no effect on it: wait for its end.
                case .dying: watch(identity)
                case .stopped:
                    settled.insert(identity)
                    if isFirst == true, identity != lead, !stopped.contains(identity) {
                        stoppedByThemselves.insert(identity)
                    }
                case .running, .unknown:
                    if (try? send(Signal.stop, to: identity)) == true { watch(identity) }
                }
                if !stopped.contains(identity) { stopped.append(identity) }
            }
            // The kernel stops a process within microseconds, unless no processor is free, so check a few times without
            // a pause. But a process that waits for the processor of this thread stops only while this thread sleeps:
            // with cgroups or autogroups, sched_yield(2) gives way to no other group.
            var checksInTheWay = 0
            let mostChecks = waiting.count > Self.mostStatFiles ? 16 : 64
            for _ in 0..<mostChecks where !waiting.isEmpty && checksInTheWay < 2 {
                var isInTheWay = false
                waiting.removeAll { identity, file in
                    guard let stat = try? file?.read() ?? ProcFS.stat(identity.pid) else { return false }
                    guard StopState.of(stat) == .stopped else {
                        isInTheWay = isInTheWay || (stat.state == "R" && stat.processor == Processor.current)
                        return false
                    }
                    settled.insert(identity)
                    return true
                }
                checksInTheWay += isInTheWay ? 1 : 0
                if !waiting.isEmpty { ThisProcess.yield() }
            }
            waiting.removeAll { identity, _ in
                if StopState.of(identity.pid) == .ended { return true }
                guard isFrozenBelow(identity.pid) else { return false }
                settled.insert(identity)
                return true
            }
            if !waiting.isEmpty { return .again }
        }
        return .again
    }

    /// Whether the app's cgroup contains only these processes. Because they are all stopped, they cannot fork, so no
    /// further process can appear.
    private func hasNobodyBut(_ settled: Set<Identity>) -> Bool {
        guard !settled.isEmpty, let cgroupPath, let pids = try? Cgroup.procs(cgroupPath), !pids.isEmpty else {
            return false
        }
        let known = Set(settled.map(\.pid))
        return pids.allSatisfy(known.contains)
    }

    /// Whether every process of the app is stopped, or is dying without having been continued. With `thoroughly`, also
    /// searches for new processes, which may require reading all of /proc. Otherwise only the processes that were
    /// stopped are checked.
    public func isStopped(thoroughly: Bool = true) -> Bool {
        if !thoroughly, !stopped.isEmpty {
            return stopped.allSatisfy { identity in
                guard let stat = try? ProcFS.stat(identity.pid), stat.startTime == identity.startTime else {
                    return true
                }
                return isAtRest(stat)
            }
        }
        let all = list()
        let spared = spared(among: all)
        let members = all.filter { !spared.contains(Identity($0)) }
        // If the only processes left are those that are not stopped with the app (`spared`), the container has ended
        // and podman is cleaning up. The app then counts as stopped.
        if members.isEmpty { return !spared.isEmpty }
        return members.allSatisfy(isAtRest)
    }

    /// The processes of an app that torpord has stopped, if all of them still are; nil otherwise. Since they cannot
    /// fork, they are all that the app has.
    var stoppedMembers: [ProcessStat]? {
        guard isWhollyStopped else { return nil }
        var result: [ProcessStat] = []
        for identity in stopped {
            guard let stat = try? ProcFS.stat(identity.pid), Identity(stat) == identity else { continue }
            switch StopState.of(stat) {
            case .stopped: result.append(stat)
            case .ended: continue
            case .running, .dying, .unknown: return nil
            }
        }
        return result.isEmpty ? nil : result
    }

    /// Whether a process is stopped, frozen or dying.
    private func isAtRest(_ stat: ProcessStat) -> Bool {
        StopState.of(stat) != .running || StopState.isKilled(stat.pid) || isFrozenBelow(stat.pid)
    }

    /// Whether a process is frozen in a cgroup below the app's, because the app froze it or torpord froze one of the
    /// app's scenes. A pending SIGSTOP then stops the process when it is thawed, before it runs.
    private func isFrozenBelow(_ pid: Int32) -> Bool {
        guard let cgroupPath, let mount = Cgroup.mount, let place = try? ProcFS.cgroup(pid) else { return false }
        let path = mount + place
        return path != cgroupPath && Self.isWithin(place, cgroupPath) && (try? Cgroup.events(path).frozen) == true
    }

    /// Continues the app: thaws its cgroup, and sends SIGCONT to processes that were stopped, children before parents,
    /// in the reverse of the order in which they were stopped. Processes that were stopped before the app was stopped
    /// stay stopped. If another torpord stopped the app, this function lists the processes first. Throws EPERM if a
    /// process may not be signalled; the others are still continued.
    public func `continue`() throws(Errno) {
        if try thaw(), stopped.isEmpty { return }
        var order = stopped.isEmpty ? list().map(Identity.init) : stopped
        if !order.contains(main) { order.insert(main, at: 0) }
        var failure: Errno?
        for identity in order.reversed() where !stoppedByThemselves.contains(identity) {
            do throws(Errno) {
                _ = try send(Signal.continue, to: identity)
            } catch {
                // torpord lacks descriptors for a pidfd, so use the pid. This is safe: a stopped process does not exit
                // by itself, so its pid was not reused.
                if error.isShortage, (try? Signal.send(Signal.continue, to: identity.pid)) != nil { continue }
                failure = error
            }
        }
        stopped = []
        isWhollyStopped = false
        stoppedByThemselves = []
        if let failure { throw failure }
    }

    // MARK: The freezer

    /// Freezes the app's cgroup (`suspend_with = "freezer"`). The kernel completes this later: see `isFrozen`. Throws
    /// ENOTSUP if the app has no cgroup.
    public func freeze() throws(Errno) {
        guard let cgroupPath else { throw .notSupported }
        try Cgroup.freeze(cgroupPath, true)
    }

    /// Thaws the app's cgroup if it is frozen or being frozen, no matter which process froze it. Cgroups below it that
    /// the app itself has frozen stay frozen. Returns false if there was nothing to thaw.
    @discardableResult
    public func thaw() throws(Errno) -> Bool {
        guard let cgroupPath, Cgroup.isFreezeWanted(cgroupPath) else { return false }
        try Cgroup.freeze(cgroupPath, false)
        return true
    }

    /// Makes a frozen app one that is stopped by SIGSTOP, because torpord ends and nothing would thaw the app: frozen
    /// processes get no SIGTERM, and systemd kills them at a shutdown of the machine after 90 s. The pending SIGSTOP
    /// stops each process when it is thawed, before it runs.
    public func stopInPlaceOfFreezing() {
        guard let cgroupPath, Cgroup.isFreezeWanted(cgroupPath) else { return }
        _ = try? signal(Signal.stop, toAll: true)
        _ = try? thaw()
    }

    /// Whether every process in the app's cgroup is frozen.
    public var isFrozen: Bool {
        guard let cgroupPath else { return false }
        return Cgroup.isFrozen(cgroupPath)
    }
}
