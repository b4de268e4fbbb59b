// SPDX-License-Identifier: Apache-2.0

package import Engine
import Lifecycle
import TransferProtocol
import Transfers

/// Counts of the transfers of an app since this torpord started.
package struct TransferCounters: Hashable, Sendable {
    /// The result of a transfer, as metrics name it.
    package enum Result: String, Hashable, Sendable, CaseIterable { case done, failed, cancelled }

    /// The number of transfers that have ended with each result.
    package private(set) var ended: [Result: Int] = [:]
    /// The number of bytes that were transferred, by direction.
    package private(set) var bytes: [String: Int64] = [:]

    mutating func count(_ result: Result) { ended[result, default: 0] += 1 }

    /// Adds transferred bytes to the count. Negative numbers are ignored. They occur if a retry starts from the
    /// beginning.
    mutating func count(_ more: Int64, _ direction: TransferDirection) {
        guard more > 0 else { return }
        let (sum, isTooMuch) = bytes[direction.rawValue, default: 0].addingReportingOverflow(more)
        bytes[direction.rawValue] = isTooMuch ? .max : sum
    }
}

extension AppRuntime {
    package var transferCounters: TransferCounters {
        get { slots[TransferCountersSlot.self, default: TransferCounters()] }
        _modify { yield &slots[TransferCountersSlot.self, default: TransferCounters()] }
    }
}

private enum TransferCountersSlot: Slot { typealias Value = TransferCounters }

extension AppTransfers {
    /// The number of transfers of an app in each state. Subscriptions are included.
    package func states(of app: AppRuntime) -> [(state: String, count: Int)] {
        var counts = ["queued": 0, "running": 0, "waiting": 0]
        for transfer in queue.transfers(of: app.name) { counts[transfer.state.word, default: 0] += 1 }
        return counts.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }

    /// Counts the bytes of a transfer that were transferred since its last report.
    func count(_ bytes: Int64, of transfer: Transfer) {
        guard let app = coordinator.id(of: transfer.app).map({ apps[$0] }) else { return }
        app.transferCounters.count(bytes - transfer.bytes, transfer.order.direction)
    }
}
