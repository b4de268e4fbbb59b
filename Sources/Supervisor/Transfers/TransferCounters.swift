// SPDX-License-Identifier: Apache-2.0

package import Engine
import Lifecycle
import TransferProtocol
import Transfers

/// What was transferred for an app since this torpord started.
package struct TransferCounters: Hashable, Sendable {
    /// How a transfer ended, as metrics call it.
    package enum Result: String, Hashable, Sendable, CaseIterable { case done, failed, cancelled }

    /// How many ended so.
    package private(set) var ended: [Result: Int] = [:]
    /// Bytes that moved, by direction.
    package private(set) var bytes: [String: Int64] = [:]

    mutating func count(_ result: Result) { ended[result, default: 0] += 1 }

    /// So many bytes more; a try that begins anew takes none back.
    mutating func count(_ more: Int64, _ direction: TransferDirection) {
        guard more > 0 else { return }
        let (sum, isTooMuch) = bytes[direction.rawValue, default: 0].addingReportingOverflow(more)
        bytes[direction.rawValue] = isTooMuch ? .max : sum
    }
}

extension AppRuntime {
    /// What was transferred for it.
    package var transferCounters: TransferCounters {
        get { slots[TransferCountersSlot.self, default: TransferCounters()] }
        _modify { yield &slots[TransferCountersSlot.self, default: TransferCounters()] }
    }
}

private enum TransferCountersSlot: Slot { typealias Value = TransferCounters }

extension AppTransfers {
    /// How many of an app's transfers are in each state, its subscriptions included.
    package func states(of app: AppRuntime) -> [(state: String, count: Int)] {
        var counts = ["queued": 0, "running": 0, "waiting": 0]
        for transfer in queue.transfers(of: app.name) { counts[transfer.state.word, default: 0] += 1 }
        return counts.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }

    /// Counts what moved since it was heard of last.
    func count(_ bytes: Int64, of transfer: Transfer) {
        guard let app = coordinator.id(of: transfer.app).map({ apps[$0] }) else { return }
        app.transferCounters.count(bytes - transfer.bytes, transfer.order.direction)
    }
}
