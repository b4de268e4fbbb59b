// SPDX-License-Identifier: Apache-2.0

import TransferProtocol
import Transfers
import Varlink

/// What torpor-transfer says, what it is told, and what is kept of a transfer: a process of the app's user, and a database,
/// may say anything.
enum TransferWires: FuzzedParser {
    static var nanosecondsPerByte: Int { 8_000 }

    static func run(_ bytes: [UInt8]) throws(Finding) {
        guard let json = try? JSON.parse(bytes) else { return }
        if let report = try? TransferReport(json: json) {
            try expect((try? TransferReport(json: report.json)) == report, "it is another report when it is said again")
        }
        if let command = try? TransferCommand(json: json) {
            try expect(
                (try? TransferCommand(json: command.json)) == command,
                "it is another command when it is said again"
            )
        }
        guard let transfer = try? Transfer(json: json), transfer.order.credentials == nil else { return }
        try expect(
            (try? Transfer(json: transfer.json)) == transfer,
            "it is another transfer when it is kept and read again"
        )
        var queue = TransferQueue()
        queue.add(transfer)
        _ = queue.due(at: .max)
        let limits = TransferQueue.Limits(connections: 1, perApp: 1, perServer: 1)
        _ = queue.next(limits, isInForeground: { _ in false }, user: { _ in "" }) { _, _ in true }
        queue.remove(transfer.id)
        try expect(queue.count == 0 && queue.apps.isEmpty, "something is left of it")
    }
}
