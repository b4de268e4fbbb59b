// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
import EventLoop
package import Lifecycle
import Linux
import Notify
package import Processes

/// What was measured of an app's memory. A suspended one keeps what it has: it is measured once.
struct KnownFootprint {
    var footprint: Footprint
    let incarnation: UInt32
    let at: Duration
}

/// The order in which policies would end apps, as they said last.
struct PolicyOrder {
    /// Who says so; nil: nobody. One that names nobody leaves nobody to be ended.
    var policy: String?
    var places: [AppID: (place: Int, reason: String)] = [:]
    /// An answer is awaited, since then.
    var askedAt: Duration?
    /// As of when this is right.
    var answeredAt: Duration?
    /// It did not answer in time, and there was no more: it goes without it.
    var isGivenUp = false
}

/// Who could do with less, or go.
extension MemoryWatch {
    /// How long what was measured of an app that runs is good.
    private static let goodFor = Duration.seconds(1)
    /// How long policies are waited for before anything is done.
    private static let policyTime = Duration.milliseconds(100)
    /// How long nobody is ended without their word where there is no time to lose.
    private static let longestPolicyTime = Duration.seconds(1)

    /// All that have processes.
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
    /// Less is not worth a look.
    private static let worthPaging: UInt64 = 1 << 20

    /// Whether there is room in swap: as of a second ago at most, since a thousand apps may want to know it at once.
    var canSwap: Bool {
        let now = now
        if let known = swapRoom, now - known.at < Self.goodFor { return known.isThere }
        let isThere = memory().map { rules.canSwap(free: $0.swapFree, of: $0.swapTotal) } ?? false
        swapRoom = (isThere, now)
        return isThere
    }

    // MARK: Measuring

    /// Measures those of whom nothing is known, or nothing since that moment (a second ago); then goes on, at once where
    /// all is known.
    package func measure(since: Duration? = nil, _ then: @escaping () -> Void) {
        let now = now
        let since = since ?? now - Self.goodFor
        guard afterMeasuring.isEmpty else {
            // What is under way may have begun before that, or before an app was launched.
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
            // A run that has ended meanwhile is not measured for the next one, or for another app in its place.
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

    /// An app's memory in words: `61 MiB`, `4 MiB and 57 MiB in swap`.
    package func text(_ footprint: Footprint?) -> String {
        guard let footprint else { return "an unknown amount of memory" }
        let resident = MemoryReading.size(footprint.resident)
        return footprint.swapped == 0 ? resident : "\(resident) and \(MemoryReading.size(footprint.swapped)) in swap"
    }

    // MARK: Policies

    /// Has policies say again who goes first, then goes on: at once where none says anything about it.
    func askPolicies(_ then: @escaping () -> Void = {}) {
        guard let policy = host.evictionPolicy else {
            order = PolicyOrder()
            return then()
        }
        // Until it has answered it may be anybody whom it protects.
        if order.policy == nil { order.policy = policy }
        order.askedAt = now
        host.evictionOrder { [weak self] ranked in
            guard let self else { return }
            // One that has failed protects nobody.
            let policy = ranked.first?.policy ?? self.host.evictionPolicy
            self.order = PolicyOrder(policy: policy, answeredAt: self.now)
            for (place, entry) in ranked.enumerated() { self.order.places[entry.app.id] = (place, entry.reason) }
            then()
        }
    }

    /// What they said a while ago says nothing of apps that went to sleep since.
    func keepOrder(_ isUrgent: Bool) {
        let now = now
        if let asked = order.askedAt {
            if isUrgent, now - asked > Self.longestPolicyTime { order.isGivenUp = true }
        } else if order.answeredAt.map({ now - $0 > Self.goodFor }) ?? false {
            askPolicies()
        }
    }

    /// Whether what policies say may still change who can be ended.
    var mayBeNamed: Bool { order.askedAt.map { now - $0 <= Self.longestPolicyTime } ?? false }

    /// Whether what policies say is still to come, and worth waiting for.
    var waitsForPolicies: Bool {
        guard let asked = order.askedAt else { return false }
        return now - asked < Self.policyTime
    }
}
