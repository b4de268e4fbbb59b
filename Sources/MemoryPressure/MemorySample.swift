// SPDX-License-Identifier: Apache-2.0

import Engine
package import Lifecycle
import Linux

/// The kernel's memory statistics at one moment. Two samples together give a ``MemoryReading``.
struct MemorySample {
    let at: Duration
    let memory: MachineMemory
    let pressure: Pressure?
    let activity: MemoryActivity?

    /// Reads the statistics of the machine, or of the limit `bound` around all apps; nil if `/proc/meminfo` cannot be
    /// read. `root` is a prefix for paths below /proc. `now` is evaluated only after the first file was read, because
    /// that read may take long.
    init?(at now: @autoclosure () -> Duration, root: String, bound: MemoryBound? = nil) {
        guard let machine = MachineMemory(root: root) else { return nil }
        at = now()
        guard let bound else {
            memory = machine
            pressure = Pressure(on: .memory, root: root)
            activity = MemoryActivity(root: root)
            return
        }
        guard let memory = bound.memory(of: machine) else { return nil }
        self.memory = memory
        pressure = bound.pressure ?? Pressure(on: .memory, root: root)
        activity = bound.activity
    }

    /// The changes since an earlier sample. Without an earlier sample, stall times and page counts are missing.
    func reading(since earlier: MemorySample?) -> MemoryReading {
        var reading = MemoryReading(
            total: memory.total,
            available: memory.available,
            swapTotal: memory.swapTotal,
            swapFree: memory.swapFree
        )
        guard let earlier, at > earlier.at else { return reading }
        let span = (at - earlier.at).inSeconds
        func part(_ now: UInt64?, _ before: UInt64?) -> Double? {
            guard let now, let before else { return nil }
            return now > before ? min(1, Double(now - before) / 1_000_000 / span) : 0
        }
        reading.some = part(pressure?.someTotal, earlier.pressure?.someTotal)
        reading.full = part(pressure?.fullTotal, earlier.pressure?.fullTotal)
        if let activity, let before = earlier.activity {
            let since = activity.since(before)
            reading.scanned = since.scannedInBackground &+ since.scannedDirectly
            reading.refaulted = since.refaultsOfFiles &+ since.refaultsOfSwap
        }
        return reading
    }
}

extension MemoryReading {
    /// The reading as text, such as `212 MiB of 4 GiB available (5.2 %), swap 3 % free, some task waited …`.
    package var text: String {
        var parts = ["\(Self.size(available)) of \(Self.size(total)) available (\(Self.percent(availablePart)))"]
        parts.append(swapTotal == 0 ? "no swap" : "swap \(Self.percent(swapPart)) free")
        if let some, let full {
            parts.append("some task waited \(Self.percent(some)) of the time, all \(Self.percent(full))")
        }
        return parts.joined(separator: ", ")
    }

    package static func percent(_ part: Double) -> String {
        let tenths = Int((part * 1000).rounded())
        return tenths >= 100 || tenths % 10 == 0 ? "\((tenths + 5) / 10) %" : "\(tenths / 10).\(tenths % 10) %"
    }

    /// A number of bytes as text, such as `61 MiB` or `4.2 GiB`, rounded as in the tables of **torpor memory**.
    package static func size(_ bytes: UInt64) -> String {
        if bytes < 10 << 10 { return "\(bytes) bytes" }
        if bytes < 10 << 20 { return "\((bytes + (1 << 9)) >> 10) KiB" }
        if bytes < 10 << 30 { return "\((bytes + (1 << 19)) >> 20) MiB" }
        let tenths = bytes / (1 << 30) * 10 + bytes % (1 << 30) * 10 / (1 << 30)
        return "\(tenths / 10).\(tenths % 10) GiB"
    }
}
