// SPDX-License-Identifier: Apache-2.0

import KeeperProtocol

/// A message from the keeper.
enum KeeperAnswers: FuzzedParser {
    static func run(_ bytes: [UInt8]) throws(Finding) {
        _ = ReceiveAnswer(decoding: bytes)
        guard let (_, message) = KeeperMessage.decode(bytes) else { return }
        switch message {
        case .held(let part):
            try expect(part.names.count * 3 <= bytes.count, "\(part.names.count) names in \(bytes.count) bytes")
        case .names(_, let names):
            try expect(names.count <= bytes.count, "\(names.count) names in \(bytes.count) bytes")
        case .table(let entries):
            try expect(entries.count * 64 <= bytes.count, "\(entries.count) records in \(bytes.count) bytes")
        case .launched(let record), .exited(let record):
            try expect(record.app.utf8.count <= 3 * 64, "a name of \(record.app.utf8.count) bytes")
        case .welcome, .tableEnd, .launchFailed, .orphan, .done, .taken, .refused, .unknown: break
        }
    }
}
