// SPDX-License-Identifier: Apache-2.0

import Engine
import EventLoop
import Lifecycle
import Linux
import Policies
import PolicyHost
import Supervisor
import TorporAPI
import TorporPolicyABI
import VarlinkServer

/// Requests of clients about policies.
extension ControlService {
    func policies(_ reply: Reply) {
        reply.send(Replies.policies((supervisor.policyManager?.chain.slots ?? []).map(status)))
    }

    func reloadPolicy(_ name: String, _ reply: Reply) {
        guard let policyManager = supervisor.policyManager, policyManager.reload(name) else {
            let known = (supervisor.policyManager?.chain.slots ?? []).map(\.settings.name)
            let names = known.isEmpty ? "none is configured" : "there are \(known.joined(separator: ", "))"
            return reply.fail("there is no policy \(name): \(names)")
        }
        policyManager.whenSettled(name) { [weak self] in
            guard let self, let slot = policyManager.chain.slots.first(where: { $0.settings.name == name }) else {
                return reply.send(Replies.policies([]))
            }
            reply.send(Replies.policy(self.status(slot)))
        }
    }

    func recordPolicies(_ request: RecordRequest, _ reply: Reply) {
        if supervisor.policyManager == nil {
            do throws(Errno) {
                try supervisor.showPolicies()
            } catch {
                return reply.fail("cannot make the view that policies get: \(error)")
            }
        }
        supervisor.policyManager?.record(request, reply)
    }

    func evictionOrder(_ reply: Reply) {
        guard let policyManager = supervisor.policyManager, !policyManager.chain.slots.isEmpty else {
            return reply.fail("no policy is configured, so there is no order of eviction: add Jetsam")
        }
        policyManager.evictionOrder { [weak self] candidates in
            guard let self else { return }
            let list = candidates.map { app, policy, reason in
                let memory = policyManager.view[app.id].memory
                return EvictionCandidate(
                    app: app.name,
                    state: self.coordinator.machine(app.id).state.rawValue,
                    memoryBytes: memory == 0 ? nil : Int64(clamping: memory),
                    policy: policy,
                    reason: reason
                )
            }
            reply.send(Replies.evictionOrder(list))
        }
    }

    private func status(_ slot: PolicySlot) -> PolicyStatus {
        let settings = slot.settings
        let statistics = slot.statistics
        var status = PolicyStatus(
            name: settings.name,
            path: settings.path,
            state: slot.state.name,
            mode: settings.onlyAdvises ? "advise" : "decide",
            isolation: settings.isIsolated ? "process" : "none"
        )
        let names: [(PolicyConfinement, String)] = [(.files, "landlock"), (.systemCalls, "seccomp"), (.user, "user")]
        status.confinement = names.filter { slot.description?.confinement.contains($0.0) ?? false }.map(\.1)
        status.pid = slot.pid
        status.version = slot.description?.version
        status.summary = slot.description?.summary
        status.abi = slot.description.map { Int64($0.abi) }
        status.questions = Int64(statistics.questions)
        status.taken = Int64(statistics.taken)
        status.idle = Int64(statistics.idle)
        status.told = Int64(statistics.told)
        status.refused = Int64(statistics.refused)
        status.damped = Int64(statistics.damped)
        status.overruled = Int64(statistics.overruled)
        status.failures = Int64(statistics.failures)
        status.stalls = Int64(statistics.stalls)
        status.restarts = Int64(statistics.restarts)
        status.medianMicroseconds = statistics.latency.quantile(0.5).map { $0.inSeconds * 1_000_000 }
        status.p99Microseconds = statistics.latency.quantile(0.99).map { $0.inSeconds * 1_000_000 }
        status.deadlineMilliseconds = settings.deadline.microseconds / 1000
        status.retryMilliseconds = slot.retryAt.map { max(0, ($0 - loop.now).microseconds / 1000) }
        status.asksAgainMilliseconds = slot.asksAgainAt.map { max(0, ($0 - loop.now).microseconds / 1000) }
        status.lastFailure = slot.lastFailure
        return status
    }
}
