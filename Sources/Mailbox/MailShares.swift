// SPDX-License-Identifier: Apache-2.0

/// How much of a mailbox the messages of each sender take. An app may fill at most half of another app's mailbox, so
/// that there is room for other senders. The instances of an app count as one sender.
struct MailShares: Sendable {
    private struct Share {
        var count = 0
        var bytes = 0
    }

    private var shares: [Substring: Share] = [:]

    mutating func add(_ mail: Mail) {
        shares[Self.key(of: mail), default: Share()].count += 1
        shares[Self.key(of: mail), default: Share()].bytes += mail.size
    }

    mutating func remove(_ mail: Mail) {
        let key = Self.key(of: mail)
        guard var share = shares[key] else { return }
        share.count -= 1
        share.bytes -= mail.size
        shares[key] = share.count > 0 ? share : nil
    }

    /// - Throws: ``Mailbox/Refusal`` if the sender has its share of messages already.
    func checkCount(of mail: Mail, _ limits: Mailbox.Limits) throws(Mailbox.Refusal) {
        let count = share(of: mail).count
        // With `mailbox_limit = 1`, an app may still send one message.
        guard count < max(1, limits.count / 2) else { throw .tooManyOfSender(String(Self.key(of: mail)), count) }
    }

    /// - Parameter earlier: the message in the mailbox that `mail` replaces.
    /// - Throws: ``Mailbox/Refusal`` if the sender would have more than its share of bytes.
    func checkSize(of mail: Mail, replacing earlier: Mail?, _ limits: Mailbox.Limits) throws(Mailbox.Refusal) {
        var share = share(of: mail)
        if let earlier, Self.key(of: earlier) == Self.key(of: mail) {
            share.count -= 1
            share.bytes -= earlier.size
        }
        // A sender's only message may be larger than its share. Otherwise it could never be sent.
        guard share.count == 0 || share.bytes + mail.size <= limits.bytes / 2 else {
            throw .tooLargeOfSender(String(Self.key(of: mail)), limits.bytes / 2)
        }
    }

    private func share(of mail: Mail) -> Share { shares[Self.key(of: mail)] ?? Share() }

    /// The name of the sender without that of its instance: `worker` for `worker@2`.
    private static func key(of mail: Mail) -> Substring { mail.draft.sender.prefix { $0 != "@" } }
}
