// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
import EventLoop
package import Lifecycle
import Linux
import Notify
package import Processes

/// The measured memory of an app. A suspended app is measured only once, because its memory does not change.
struct KnownFootprint {
    var footprint: Footprint
    let incarnation: UInt32
    let at: Duration
}

/// The order in which policies want apps terminated, from their last answer.
struct PolicyOrder {
    /// The policy that answered; nil for none. If there is one, apps that it does not name are not terminated.
    var policy: String?
    var places: [AppID: (place: Int, reason: String)] = [:]
    /// When policies were asked for an order; nil if no answer is awaited.
    var askedAt: Duration?
    /// When the last answer came; nil if none did.
    var answeredAt: Duration?
    /// Whether memory was urgently short and no answer came in time: then steps are taken without the policies.
    var isGivenUp = false
}

/// The apps that the ladder may choose from: those that could free memory or be terminated.
extension MemoryWatch {
    /// How long a measurement stays valid: of a running app's memory, of free swap, and of the policies' order.
    private static let goodFor = Duration.seconds(1)
    /// How long to wait for the policies' answer before the first step.
    private static let policyTime = Duration.milliseconds(100)
    /// How long no app is terminated without the policies' answer, even if memory is urgently short.
    private static let longestPolicyTime = Duration.seconds(1)

    /// All apps with processes, as candidates for the ladder.
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
    /// An app with less resident memory, in bytes, is not worth paging out.
    private static let worthPaging: UInt64 = 1 << 20

    /// Whether swap has room. The answer is cached for up to a second, because the question may come once per app.
    var canSwap: Bool {
        let now = now
        if let known = swapRoom, now - known.at < Self.goodFor { return known.isThere }
        let isThere = memory().map { rules.canSwap(free: $0.swapFree, of: $0.swapTotal) } ?? false
        swapRoom = (isThere, now)
        return isThere
    }

    // MARK: Measuring

    /// Measures apps whose last measurement is from before `since` (by default, 1 s ago), then calls `then`. Calls it
    /// at once if no app has to be measured.
    package func measure(since: Duration? = nil, _ then: @escaping () -> Void) {
        let now = now
        let since = since ?? now - Self.goodFor
        guard afterMeasuring.isEmpty else {
            // The measurement in progress may have begun before `since`, or before an app was launched.
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
            // Discard the result if that run of the app has ended: its id may belong to another run or app now.
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

    /// Asks policies again for the order of eviction, then calls `then`. Calls it at once if no policy gives an order.
    func askPolicies(_ then: @escaping () -> Void = {}) {
        guard let policy = host.evictionPolicy else {
            order = PolicyOrder()
            return then()
        }
        // Until the policy answers, it may protect any app.
        if order.policy == nil { order.policy = policy }
        order.askedAt = now
        host.evictionOrder { [weak self] ranked in
            guard let self else { return }
            // If a policy failed, it protects no app.
            let policy = ranked.first?.policy ?? self.host.evictionPolicy
            self.order = PolicyOrder(policy: policy, answeredAt: self.now)
            for (place, entry) in ranked.enumerated() { self.order.places[entry.app.id] = (place, entry.reason) }
            then()
        }
    }

    /// Asks policies again if their answer is old, because it does not cover apps that were suspended since.
    func keepOrder(_ isUrgent: Bool) {
        let now = now
        if let asked = order.askedAt {
            if isUrgent, now - asked > Self.longestPolicyTime { order.isGivenUp = true }
        } else if order.answeredAt.map({ now - $0 > Self.goodFor }) ?? false {
            askPolicies()
        }
    }

    /// Whether an answer from a policy may still change which apps can be terminated.
    var mayBeNamed: Bool { order.askedAt.map { now - $0 <= Self.longestPolicyTime } ?? false }

    /// Whether an answer from policies is awaited and worth waiting for.
    var waitsForPolicies: Bool {
        guard let asked = order.askedAt else { return false }
        return now - asked < Self.policyTime
    }
}
