// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
import EventLoop
package import Lifecycle
import Linux
import Notify
package import Processes

/// The measured memory of an app. While the app is suspended, its memory use does not change, so one measurement is
/// enough.
struct KnownFootprint {
    var footprint: Footprint
    let incarnation: UInt32
    let at: Duration
}

/// The order in which policies want apps terminated, from their last answer.
struct PolicyOrder {
    /// The policy that gave the order; nil if none did. If there is one, apps that the policy does not name are not
    /// terminated.
    var policy: String?
    var places: [AppID: (place: Int, reason: String)] = [:]
    /// When policies were asked for an order; nil if no answer is awaited.
    var askedAt: Duration?
    /// When the last answer came; nil if none did.
    var answeredAt: Duration?
    /// Whether memory was urgently short and no answer came in time. Apps are then terminated without an order from
    /// policies.
    var isGivenUp = false
}

/// The apps among which the ladder (``MemoryLadder``) chooses: those that could free memory or be terminated.
extension MemoryWatch {
    /// How long some data stays valid: the measured memory of a running app, whether swap has room, and the policies'
    /// order.
    private static let goodFor = Duration.seconds(1)
    /// How long a step waits for the policies' answer, unless memory is urgently short.
    private static let policyTime = Duration.milliseconds(100)
    /// If memory is urgently short and the policies have not answered this long after they were asked, apps are
    /// terminated without the policies' order.
    private static let longestPolicyTime = Duration.seconds(1)

    /// All apps with processes, as candidates for the steps of the ladder (``MemoryLadder``).
    package func candidates() -> [MemoryLadder.Candidate] {
        var candidates: [MemoryLadder.Candidate] = []
        candidates.reserveCapacity(apps.count)
        let canSwap = canSwap
        for app in apps where app.run.tree != nil { candidates.append(candidate(app, canSwap)) }
        return candidates
    }

    package func candidate(_ app: AppRuntime, _ canSwap: Bool) -> MemoryLadder.Candidate {
        let machine = machine(app)
        var candidate = MemoryLadder.Candidate(app: app.id, state: machine.state)
        let known = footprints[app.id].flatMap { $0.incarnation == machine.incarnation ? $0.footprint : nil }
        candidate.protection = coordinator.memoryProtection(
            app.id,
            lastResort: app.specification.lastResort
        )
        if candidate.protection == nil, let at = refused[app.id] {
            if now - at < Self.refusal { candidate.protection = .busy } else { refused[app.id] = nil }
        }
        candidate.hears =
            machine.transition != .launching
            && (host.hearsByChannel(app.id)
                || app.specification.signals[.didReceiveMemoryWarning] != nil)
        candidate.isPurgeable = app.store.hasPurgeable || !app.specification.purgeable.isEmpty
        candidate.canPageOut =
            canSwap && machine.state == .suspended && machine.transition == nil && app.run.isPagedOut != true
            && known.map { $0.resident >= Self.worthPaging } ?? true
        candidate.bytes = known?.total ?? 0
        candidate.priority = app.specification.priority
        candidate.lastUse = app.times.lastUse == StateTimes.never ? nil : .microseconds(app.times.lastUse)
        candidate.rank = order.places[app.id]?.place
        if candidate.protection == nil, order.policy != nil, !order.isGivenUp, candidate.rank == nil {
            candidate.protection = .unnamed
        }
        return candidate
    }

    private static let refusal = Duration.seconds(2)
    /// An app with less resident memory than this, in bytes, is not paged out.
    private static let worthPaging: UInt64 = 1 << 20

    /// Whether swap has room for paging out. The answer is cached for up to 1 s, because it may be needed once per
    /// app.
    var canSwap: Bool {
        let now = now
        if let known = swapRoom, now - known.at < Self.goodFor { return known.isThere }
        let isThere = memory().map { rules.canSwap(free: $0.swapFree, of: $0.swapTotal) } ?? false
        swapRoom = (isThere, now)
        return isThere
    }

    // MARK: Measuring

    /// Measures the apps whose last measurement is older than the time `since` (by default, 1 s ago), then calls
    /// `then`. If no app needs to be measured, calls `then` at once.
    package func measure(since: Duration? = nil, _ then: @escaping () -> Void) {
        let now = now
        let since = since ?? now - Self.goodFor
        guard afterMeasuring.isEmpty else {
            // A measurement is in progress. Measure again when it is done, because that measurement may have begun
            // before `since`, or before an app was launched.
            return afterMeasuring.append { [weak self] in self?.measure(since: since, then) }
        }
        let due = apps.filter { app in
            guard app.run.tree != nil else { return false }
            let machine = machine(app)
            guard let known = footprints[app.id], known.incarnation == machine.incarnation else { return true }
            let standsStill = machine.state == .suspended && known.at.microseconds >= app.times.since.4
            return !standsStill && known.at < since
        }
        guard !due.isEmpty else { return then() }
        let trees = due.compactMap(\.run.tree)
        let incarnations = due.map { coordinator.machine($0.id).incarnation }
        afterMeasuring.append(then)
        worker.footprints(of: trees) { [weak self] found in
            guard let self else { return }
            // Discard the result if the run of the app that was measured has ended: the app may have been launched
            // again since.
            for (index, app) in due.enumerated()
            where found.indices.contains(index) && app.run.tree === trees[index] {
                self.footprints[app.id] = KnownFootprint(
                    footprint: found[index],
                    incarnation: incarnations[index],
                    at: now
                )
            }
            let waiting = self.afterMeasuring
            self.afterMeasuring = []
            for then in waiting { then() }
        }
    }

    /// The memory of an app as text, such as `61 MiB` or `4 MiB and 57 MiB in swap`.
    package func text(_ footprint: Footprint?) -> String {
        guard let footprint else { return "an unknown amount of memory" }
        let resident = MemoryReading.size(footprint.resident)
        return footprint.swapped == 0 ? resident : "\(resident) and \(MemoryReading.size(footprint.swapped)) in swap"
    }

    // MARK: Policies

    /// Asks policies for the order of eviction, and calls `then` when it is stored. If no policy orders evictions,
    /// calls `then` at once.
    func askPolicies(_ then: @escaping () -> Void = {}) {
        guard let policy = host.evictionPolicy else {
            order = PolicyOrder()
            return then()
        }
        // Until the policy answers, treat all apps like those that its answer does not name: such apps are not
        // terminated.
        if order.policy == nil { order.policy = policy }
        order.askedAt = now
        host.evictionOrder { [weak self] ranked in
            guard let self else { return }
            // If the answer names no app, ask the host again which policy orders evictions. A policy that has just
            // failed no longer orders evictions, so it does not protect the apps that it left out.
            let policy = ranked.first?.policy ?? self.host.evictionPolicy
            self.order = PolicyOrder(policy: policy, answeredAt: self.now)
            for (place, entry) in ranked.enumerated() { self.order.places[entry.app.id] = (place, entry.reason) }
            then()
        }
    }

    /// Asks policies again if their last answer is older than 1 s, because apps that were suspended since are not in
    /// it. If memory is urgently short and policies have not answered for 1 s, gives up waiting for their answer.
    func keepOrder(_ isUrgent: Bool) {
        let now = now
        if let asked = order.askedAt {
            if isUrgent, now - asked > Self.longestPolicyTime { order.isGivenUp = true }
        } else if order.answeredAt.map({ now - $0 > Self.goodFor }) ?? false {
            askPolicies()
        }
    }

    /// Whether policies were asked at most 1 s ago and have not answered yet, so that they may still name apps to
    /// terminate.
    var mayBeNamed: Bool { order.askedAt.map { now - $0 <= Self.longestPolicyTime } ?? false }

    /// Whether the next step should wait, because policies were asked less than 100 ms ago and have not answered yet.
    var waitsForPolicies: Bool {
        guard let asked = order.askedAt else { return false }
        return now - asked < Self.policyTime
    }
}
