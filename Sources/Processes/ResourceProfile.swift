// SPDX-License-Identifier: Apache-2.0

import Linux

extension ProcessTree {
    /// Applies a profile to all processes of the app. CPU and I/O weights are set on its cgroup if that has the
    /// controllers, otherwise as the nice value of its sessions and the I/O priority of its threads. `oom_score_adj`
    /// and timer slack are set for each process. Values that a thread has chosen itself (ionice(1), PR_SET_TIMERSLACK)
    /// stay. A process that is forked during this call may be missed until the next call; processes forked later
    /// inherit everything.
    ///
    /// Call this only after the app's exec, because an earlier call would delay the launch.
    ///
    /// A value that is right already is not written again. Of an app with a cgroup, at most ``mostAtOnce`` processes are
    /// handled in one call: if there are more, the report says that it is unfinished, and the next call handles others.
    ///
    /// - Parameter telling: whether the report says in words what was applied.
    @discardableResult
    public func apply(_ profile: StateProfile, telling: Bool = true) -> ProfileReport {
        var report = ProfileReport()
        report.tells = telling
        let given = given ?? GivenProfile(bornWith: born)
        let isRest = !given.rest.isEmpty && given.profile == profile
        let members = isRest ? takeRest(given) : takeFirst(given, profile)
        guard !members.isEmpty else {
            if given.rest.isEmpty, !isRest { report.fail(.ownChoice, "anything (no process is left)") }
            report.isUnfinished = !given.rest.isEmpty
            return report
        }
        self.given = given
        // The others may have the value of any earlier profile.
        if isRest { given.oomScore = nil }
        given.isUncertain = false
        applyProcessorShare(profile, members, given, &report)
        applyDiskShare(profile, members, given, &report)
        applyMemory(profile, given, &report)
        applyOOMScore(profile.oomScoreAdjust, members, given, &report)
        applyTimerSlack(profile.timerSlack, members, given, &report)
        given.profile = profile
        given.isWhole = !given.isUncertain
        if !given.rest.isEmpty { report.isUnfinished = true }
        return report
    }

    /// The processes that get a profile first. If the profile is new, notes the others, which get it later.
    private func takeFirst(_ given: GivenProfile, _ profile: StateProfile) -> [ProcessStat] {
        // Without a cgroup, a list takes reading all of /proc.
        if !isContainer, stopped.count <= mostAtOnce, let members = stoppedMembers {
            given.rest = []
            return members
        }
        let listing = listing(atMost: mostAtOnce)
        let first = Set(listing.members.map(\.pid))
        let isNew = listing.leftOut > 0 && given.profile != profile
        given.rest = isNew ? (pidsOfCgroup() ?? []).filter { !first.contains($0) }[...] : []
        return listing.members
    }

    /// The next processes that have not got the profile yet.
    private func takeRest(_ given: GivenProfile) -> [ProcessStat] {
        let pids = given.rest.prefix(mostAtOnce)
        given.rest = given.rest.dropFirst(mostAtOnce)
        return pids.filter(contains).compactMap { try? ProcFS.stat($0) }
    }

    /// The profile that was applied last. If none was applied, the values that the app had at its exec.
    public var profile: StateProfile {
        if let profile = given?.profile { return profile }
        var profile = StateProfile.ordinary
        if let born, born != Self.inheritedOOMScore { profile.oomScoreAdjust = born }
        return profile
    }

    /// Records that the app still has `profile`, which an earlier torpord applied.
    public func restore(_ profile: StateProfile) {
        let given = GivenProfile(bornWith: profile.oomScoreAdjust)
        given.profile = profile
        given.timerSlack = Self.nanoseconds(profile.timerSlack)
        given.ioPriority = Self.ioPriority(forWeight: profile.ioWeight)
        self.given = given
    }

    // MARK: Processor

    private func applyProcessorShare(
        _ profile: StateProfile,
        _ members: [ProcessStat],
        _ given: GivenProfile,
        _ report: inout ProfileReport
    ) {
        applyProcessorLimit(profile.cpuMaximum, given, &report)
        let weight = max(1, min(profile.cpuWeight, 10_000))
        let before = given.profile?.cpuWeight ?? 100
        if write("cpu.weight", "\(weight)", "\(before)", given, .processorShare, &report) { return }
        let nice = Self.nice(forWeight: weight)
        var what: String { "autogroup nice \(nice)" }
        // Looked for again each time that the app had the usual share before.
        if given.autogroupObstacle == nil || given.profile?.cpuWeight ?? 100 == 100 {
            given.autogroupObstacle = .some(ProcFS.autogroupObstacle(members[0].pid))
        }
        if let obstacle = given.autogroupObstacle ?? nil {
            if nice != 0 { report.fail(.processorShare, "\(what) (\(obstacle))") }
            return
        }
        // Set the values only for sessions that the app created: other sessions also contain processes of other
        // programs.
        let own = Set(members.map(\.pid)).union([leader.pid])
        var sessions: Set<Int32> = []
        var count = 0
        var failure: Errno?
        for member in members where own.contains(member.session) && sessions.insert(member.session).inserted {
            do throws(Errno) {
                if try ProcFS.autogroupNice(member.pid) != nice { try ProcFS.setAutogroupNice(member.pid, nice) }
                count += 1
            } catch {
                if !error.isGone { failure = error }
            }
        }
        if count > 0 { report.did(count == 1 ? what : "\(what) for \(count) sessions") }
        if let failure {
            report.fail(.processorShare, "\(what) (\(failure))")
            if failure == .resourceTemporarilyUnavailable { report.isWorthRepeating = true }
        }
        if sessions.isEmpty, nice != 0 {
            report.fail(.processorShare, "\(what) (it has no session of its own)")
        }
    }

    /// Gives an app that is about to end at least the share of the processors of this profile. With a small one, its
    /// processes would take seconds to exit on a busy machine, even after SIGKILL, and hold their files, locks and ports
    /// for so long. Nothing else is changed, because this is called when memory is short.
    public func raiseProcessorShare(to target: StateProfile) {
        guard let given, var profile = given.profile else { return }
        let limit = profile.cpuMaximum.flatMap { own in target.cpuMaximum.map { max(own, $0) } }
        let weight = max(profile.cpuWeight, target.cpuWeight)
        guard weight != profile.cpuWeight || limit != profile.cpuMaximum else { return }
        let members = listing(atMost: mostAtOnce).members
        guard !members.isEmpty else { return }
        (profile.cpuWeight, profile.cpuMaximum) = (weight, limit)
        var report = ProfileReport()
        applyProcessorShare(profile, members, given, &report)
        given.profile = profile
        given.isWhole = given.isWhole && !given.isUncertain
    }

    private func applyProcessorLimit(_ wish: Int?, _ given: GivenProfile, _ report: inout ProfileReport) {
        func text(_ limit: Int?) -> String { (limit.map { "\(max(1000, $0))" } ?? "max") + " 100000" }
        guard wish != nil || given.profile?.cpuMaximum != nil || !given.isWhole else { return }
        let before = text(given.profile?.cpuMaximum)
        if write("cpu.max", text(wish), before, given, .processorLimit, &report, isQuiet: wish == nil) { return }
        guard let wish else { return }
        report.fail(.processorLimit, "cpu.max \(text(wish)) (no cpu controller)")
    }

    /// The nice value that corresponds to the weight: each step is a factor of 1.25 (sched(7)).
    static func nice(forWeight weight: Int) -> Int32 {
        var nice: Int32 = 0
        var step = 100.0
        // The border between two nice values is the geometric mean of their steps: a factor of √1.25, about 1.118, from
        // each.
        let half = 1.118
        while nice < 19, Double(weight) * half < step { (nice, step) = (nice + 1, step / 1.25) }
        while nice > -20, Double(weight) > step * half { (nice, step) = (nice - 1, step * 1.25) }
        return nice
    }

    // MARK: Disks

    private func applyDiskShare(
        _ profile: StateProfile,
        _ members: [ProcessStat],
        _ given: GivenProfile,
        _ report: inout ProfileReport
    ) {
        let weight = max(1, min(profile.ioWeight, 10_000))
        let before = given.profile?.ioWeight ?? 100
        let isWeighed = write("io.weight", "default \(weight)", "default \(before)", given, .diskShare, &report)
        // The I/O scheduler BFQ has its own file, with a smaller range of weights.
        let (bfq, bfqBefore) = (min(weight, 1000), min(before, 1000))
        if write("io.bfq.weight", "\(bfq)", "\(bfqBefore)", given, .diskShare, &report) || isWeighed { return }
        let priority = Self.ioPriority(forWeight: weight)
        let ours = Set([.none, given.ioPriority ?? .none] + Self.usualPriorities)
        var count = 0
        var kept = 0
        var failure: Errno?
        for thread in threads(of: members) {
            do throws(Errno) {
                let present = try IOPriority.of(thread)
                if !ours.contains(present) {
                    kept += 1
                    continue
                }
                if present != priority { try priority.set(thread) }
                count += 1
            } catch {
                if !error.isGone { failure = error }
            }
        }
        given.ioPriority = priority
        if count > 0 { report.did("I/O priority \(priority) for \(Self.count(count, "thread"))") }
        if kept > 0 {
            report.fail(.ownChoice, "I/O priority of \(Self.count(kept, "thread")) (it is the app's own choice)")
        }
        if let failure { report.fail(.diskShare, "I/O priority \(priority) (\(failure))") }
    }

    /// The I/O priority nearest to an I/O weight, which has no exact equivalent.
    static func ioPriority(forWeight weight: Int) -> IOPriority {
        switch weight {
        case ...5: .idle
        case ...25: .bestEffort(7)
        case ...50: .bestEffort(6)
        case ..<100: .bestEffort(5)
        case 100: .none
        case ..<200: .bestEffort(3)
        case ..<400: .bestEffort(2)
        case ..<800: .bestEffort(1)
        default: .bestEffort(0)
        }
    }

    /// The I/O priorities that torpord's profiles use. A thread that has one of them may have got it from an earlier
    /// torpord.
    private static let usualPriorities = [25, 1].map(ioPriority(forWeight:))

    // MARK: Memory

    private func applyMemory(_ profile: StateProfile, _ given: GivenProfile, _ report: inout ProfileReport) {
        func apply(
            _ file: String,
            _ wish: UInt64?,
            _ before: UInt64?,
            none: String,
            _ kind: ProfileFailure.Kind,
            _ report: inout ProfileReport
        ) {
            guard wish != nil || before != nil || !given.isWhole else { return }
            let text = wish.map { "\($0)" } ?? none
            let old = before.map { "\($0)" } ?? none
            if write(file, text, old, given, kind, &report, isQuiet: wish == nil) { return }
            if wish != nil { report.fail(kind, "\(file) \(text) (no memory controller)") }
        }
        let before = given.profile
        if before?.memoryHigh != profile.memoryHigh { given.loweredFrom = nil }
        apply("memory.high", profile.memoryHigh, before?.memoryHigh, none: "max", .memoryHigh, &report)
        apply("memory.low", profile.memoryLow, before?.memoryLow, none: "0", .memoryLow, &report)
    }

    /// The `oom_score_adj` that apps inherit: torpord's own value, but 0 if torpord's is negative, because a negative
    /// value must protect only torpord.
    public static let inheritedOOMScore = max(0, (try? ProcFS.oomScoreAdjust(ThisProcess.pid)) ?? 0)

    /// The `oom_score_adj` to set for a child before its exec; nil if the child inherits the right value.
    public static let oomScoreForChildren: Int32? = {
        let own = (try? ProcFS.oomScoreAdjust(ThisProcess.pid)) ?? 0
        return own < 0 ? 0 : nil
    }()

    private func applyOOMScore(
        _ wish: Int32,
        _ members: [ProcessStat],
        _ given: GivenProfile,
        _ report: inout ProfileReport
    ) {
        let inherited = Self.inheritedOOMScore
        let living = Set(members.map(Identity.init))
        given.ownScores = given.ownScores.filter { living.contains($0.key) }
        var counts: [Int32: Int] = [:]
        var failure: Errno?
        for member in members {
            let identity = Identity(member)
            do throws(Errno) {
                let present = try ProcFS.oomScoreAdjust(member.pid)
                let own = ownScore(identity, present, inherited, given)
                given.ownScores[identity] = own == inherited ? nil : own
                var score = Self.score(wish, own: own, inherited: inherited)
                if present != score {
                    do throws(Errno) {
                        try ProcFS.setOOMScoreAdjust(member.pid, score)
                    } catch {
                        // Without privileges, a process cannot get a lower value than it had at its exec, so use the
                        // value at its exec.
                        guard error.isRefusal, score < inherited else { throw error }
                        score = inherited
                        if present != score { try ProcFS.setOOMScoreAdjust(member.pid, score) }
                    }
                }
                counts[score, default: 0] += 1
            } catch {
                if !error.isGone { failure = error }
            }
        }
        given.oomScore = wish
        for (score, count) in counts.sorted(by: { $0.key < $1.key }) {
            report.did("oom_score_adj \(score) for \(Self.count(count, "process", "processes"))")
        }
        if let failure { report.fail(.oomScore, "oom_score_adj \(wish) (\(failure))") }
    }

    /// The `oom_score_adj` that a process has without a profile: the value that it had at its exec, or a value that it
    /// has set itself since.
    private func ownScore(_ identity: Identity, _ present: Int32, _ inherited: Int32, _ given: GivenProfile) -> Int32 {
        guard let before = given.oomScore else {
            // A present value that torpord's profiles use may come from an earlier torpord, so assume the inherited
            // value.
            return Self.usualScores.contains(present) ? inherited : present
        }
        let own = given.ownScores[identity] ?? inherited
        return present == Self.score(before, own: own, inherited: inherited) ? own : present
    }

    static func score(_ wish: Int32, own: Int32, inherited: Int32) -> Int32 {
        if wish < 0 { return max(wish, -1000) }
        // The process has chosen its own value: keep it.
        if wish == 0, own != inherited { return own }
        return min(max(wish, own), 1000)
    }

    private static let usualScores: Set<Int32> = [50, 300, 900]

    // MARK: Timers

    private static let ordinarySlack: UInt64 = 50_000
    /// The timer slack of an app with more threads than this is not set, because the kernel takes 20 µs per thread.
    private static let mostThreads = 512

    private static func nanoseconds(_ slack: Duration?) -> UInt64 {
        slack.map { UInt64(clamping: max(0, $0.microseconds)) &* 1000 } ?? ordinarySlack
    }

    private func applyTimerSlack(
        _ wish: Duration?,
        _ members: [ProcessStat],
        _ given: GivenProfile,
        _ report: inout ProfileReport
    ) {
        let slack = Self.nanoseconds(wish)
        let what = "timer slack"
        if members.reduce(0, { $0 + Int($1.threads) }) > Self.mostThreads {
            if wish != nil { report.fail(.timerSlack, "\(what) (it has more than \(Self.mostThreads) threads)") }
            return
        }
        let usual = UInt64(StateProfile.backgroundSlack.microseconds) * 1000
        let ours: Set = [Self.ordinarySlack, usual, given.timerSlack ?? usual]
        var count = 0
        for thread in threads(of: members) {
            do throws(Errno) {
                let present = try ProcFS.timerSlack(thread)
                guard ours.contains(present) else { continue }
                if present != slack { try ProcFS.setTimerSlack(thread, slack) }
                count += 1
            } catch {
                if error.isGone { continue }
                // Without permission, the timer slack was never set, so no earlier value needs to be restored.
                if wish != nil { report.fail(.timerSlack, "\(what) (\(error))") }
                return
            }
        }
        given.timerSlack = slack
        guard wish != nil, count > 0 else { return }
        report.did("\(what) \(Self.text(slack)) for \(Self.count(count, "thread"))")
    }

    // MARK: Together

    /// Writes a file of the app's cgroup, unless the file already has that content. Returns false if the file does not
    /// exist. `before` is the file's content as far as known. With `isQuiet`, success is not reported, because a value
    /// is only reset to its default.
    private func write(
        _ file: String,
        _ text: @autoclosure () -> String,
        _ before: @autoclosure () -> String,
        _ given: GivenProfile,
        _ kind: ProfileFailure.Kind,
        _ report: inout ProfileReport,
        isQuiet: Bool = false
    ) -> Bool {
        guard let cgroupPath, File.exists(cgroupPath + "/" + file) else { return false }
        let text = text()
        do throws(Errno) {
            if !given.isWhole || text != before() {
                let present = try? File.readString(cgroupPath + "/" + file).split(separator: "\n").first
                if present.map(String.init) == text {
                    given.loweredFrom = nil
                } else if kind == .memoryHigh, let bytes = UInt64(text) {
                    let isDone = try Cgroup.lowerMemory(cgroupPath, file, to: bytes, usage: &given.loweredFrom)
                    if isDone {
                        given.loweredFrom = nil
                    } else {
                        report.isUnfinished = true
                        given.isUncertain = true
                    }
                } else {
                    try File.writeControl(cgroupPath + "/" + file, text + "\n")
                }
            }
            if !isQuiet { report.did("\(file) \(text)") }
        } catch {
            given.isUncertain = true
            report.fail(kind, "\(file) \(text) (\(error))")
        }
        return true
    }

    private func threads(of members: [ProcessStat]) -> [Int32] {
        members.flatMap { $0.threads == 1 ? [$0.pid] : (try? ProcFS.tasks($0.pid)) ?? [] }
    }

    private static func count(_ count: Int, _ one: String, _ many: String? = nil) -> String {
        count == 1 ? "one \(one)" : "\(count) \(many ?? one + "s")"
    }

    private static func text(_ nanoseconds: UInt64) -> String {
        nanoseconds % 1_000_000 == 0 ? "\(nanoseconds / 1_000_000) ms" : "\(nanoseconds / 1000) us"
    }
}
