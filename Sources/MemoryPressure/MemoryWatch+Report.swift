// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EventLoop
import Lifecycle
import Linux
import Processes
package import TorporAPI

/// The report that `torpor memory` shows.
extension MemoryWatch {
    /// Measures all apps and asks policies for their order of eviction. Then reports the memory of each app, and the
    /// steps that torpord would take if memory were short.
    package func report(_ completion: @escaping (MemoryStatus) -> Void) {
        measure(since: now) { [weak self] in
            guard let self else { return }
            self.askPolicies { completion(self.status()) }
        }
    }

    private func status() -> MemoryStatus {
        let memory = memory()
        var status = MemoryStatus(
            level: level.rawValue,
            totalBytes: Int64(clamping: memory?.total ?? 0),
            availableBytes: Int64(clamping: memory?.available ?? 0),
            swapTotalBytes: Int64(clamping: memory?.swapTotal ?? 0),
            swapFreeBytes: Int64(clamping: memory?.swapFree ?? 0)
        )
        status.trouble = trouble
        if let pressure = Pressure(on: .memory, root: root) {
            status.somePercent = Double(pressure.some) / 100
            status.fullPercent = pressure.full.map { Double($0) / 100 }
        }
        status.policy = order.policy
        let candidates = MemoryLadder.sorted(candidates())
        let worth = memory.map { rules.worth(MemoryReading(total: $0.total, available: $0.available)) } ?? 0
        status.apps = candidates.map { describe($0, worth: worth) }
        let steps = MemoryLadder.rehearse(.pressure(.critical, urgent: false), candidates, worth: worth)
        status.steps = steps.map(describe)
        return status
    }

    /// - Parameter worth: an app with less memory than this, in bytes, is not terminated, because that would free too
    ///   little.
    private func describe(_ candidate: MemoryLadder.Candidate, worth: UInt64) -> AppMemory {
        let app = apps[candidate.app]
        let footprint = footprints[candidate.app]?.footprint ?? Footprint()
        var memory = AppMemory(
            app: app.name,
            state: candidate.state.rawValue,
            residentBytes: Int64(clamping: footprint.resident),
            swappedBytes: Int64(clamping: footprint.swapped),
            priority: Int64(candidate.priority),
            evict: app.specification.rules.eviction.rawValue,
            endsAtOnce: candidate.state == .suspended
                && coordinator.machine(candidate.app).isEvictedWithoutNotice
        )
        memory.limitBytes = app.specification.memoryLimit.map { Int64(clamping: $0) }
        let isSmall = candidate.bytes > 0 && candidate.bytes < worth
        memory.protection = (candidate.protection ?? (isSmall ? .small : nil)).map { explain($0, candidate.app) }
        return memory
    }

    private func describe(_ step: MemoryLadder.Step) -> TorporAPI.MemoryStep {
        let names = step.apps.map { apps[$0].name }
        let known = step.apps.first.flatMap { footprints[$0]?.footprint }
        let bytes: UInt64?
        let why: String
        switch step.rung {
        case .tell: (bytes, why) = (nil, "they get didReceiveMemoryWarning")
        case .purge: (bytes, why) = (nil, "it has declared something purgeable")
        case .pageOut:
            (bytes, why) = (
                known?.resident, "it is suspended, \(MemoryReading.size(known?.resident ?? 0)) could go to swap"
            )
        case .evict, .endBackground, .endInactive, .endActive:
            (bytes, why) = (known?.total, account(of: apps[step.apps[0]], step))
        }
        return TorporAPI.MemoryStep(
            rung: step.rung.rawValue,
            apps: names,
            bytes: bytes.map { Int64(clamping: $0) },
            why: why
        )
    }
}
