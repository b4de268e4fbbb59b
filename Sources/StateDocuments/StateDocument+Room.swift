// SPDX-License-Identifier: Apache-2.0

import TorporAPI
import Varlink

extension StateDocument {
    /// Refuses to import mail for which the app's mailbox has no room, so that nothing of the document is imported.
    func requireRoom(for mail: [MailInfo], _ call: Call) throws(DocumentFault) {
        let status = try Self.mailbox(of: app, call)
        // Mail about transfers does not count towards the limits.
        let waiting = status.mail.filter { !Self.transferMessages.contains($0.name) }
        // An earlier import may have brought messages that wait already: these are not posted again.
        var known: [[UInt8]: Int] = [:]
        for message in waiting { known[Self.content(of: message), default: 0] += 1 }
        var new: [MailInfo] = []
        for message in mail {
            if let count = known[Self.content(of: message)], count > 0 {
                known[Self.content(of: message)] = count - 1
            } else {
                new.append(message)
            }
        }
        let room = max(0, Int(clamping: status.limit) - waiting.count)
        guard new.count <= room else {
            throw DocumentFault(
                "the mailbox of \(app) has room for \(room) of \(new.count) messages, so nothing was imported: take some "
                    + "out with ‘torpor mailbox \(app) --drop ID’, or raise mailbox_limit"
            )
        }
        guard let limit = status.bytesLimit else { return }
        let bytes = new.reduce(0) { $0 + Self.size(of: $1) }
        let space = max(0, Int(clamping: limit) - waiting.reduce(0) { $0 + Self.size(of: $1) })
        guard bytes <= space else {
            throw DocumentFault(
                "the mailbox of \(app) has room for \(space) of \(bytes) bytes of messages, so nothing was imported: take "
                    + "some out with ‘torpor mailbox \(app) --drop ID’, or raise mailbox_size"
            )
        }
    }

    private static let transferMessages: Set<String> = [
        "handleEventsForBackgroundTransfer", "transferDidFinish", "transferNeedsLogin",
    ]

    /// What two posts of the same message have in common.
    private static func content(of message: MailInfo) -> [UInt8] {
        let parts: [JSON] = [
            .string(message.name), .string(message.topic), .optional(message.key), message.payload,
            .string(message.sender),
        ]
        return JSON.array(parts).serialised()
    }

    /// The size of a message in bytes, as the mailbox counts it.
    private static func size(of message: MailInfo) -> Int {
        64 + message.topic.utf8.count + (message.key?.utf8.count ?? 0) + message.payload.serialised().count
    }
}
