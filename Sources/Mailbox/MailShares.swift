// SPDX-License-Identifier: Apache-2.0

import Varlink

/// How much of a mailbox the messages of each sender take. An app may fill at most half of another app's mailbox, and
/// have at most half of the URLs and of the activities that may wait there, so that there is room for other senders.
/// The instances of an app count as one sender.
struct MailShares: Sendable {
    private struct Share {
        var count = 0
        var bytes = 0
        var scarce: [ScarceMail: Int] = [:]
    }

    private var shares: [Substring: Share] = [:]

    mutating func add(_ mail: Mail) {
        let key = Self.key(of: mail)
        shares[key, default: Share()].count += 1
        shares[key, default: Share()].bytes += mail.size
        if let kind = ScarceMail(mail.draft) { shares[key, default: Share()].scarce[kind, default: 0] += 1 }
    }

    mutating func remove(_ mail: Mail) {
        let key = Self.key(of: mail)
        guard var share = shares[key] else { return }
        share.count -= 1
        share.bytes -= mail.size
        if let kind = ScarceMail(mail.draft) { share.scarce[kind, default: 0] -= 1 }
        shares[key] = share.count > 0 ? share : nil
    }

    /// - Throws: ``Mailbox/Refusal`` if the sender has its share of messages already.
    func checkCount(of mail: Mail, _ limits: Mailbox.Limits) throws(Mailbox.Refusal) {
        let share = share(of: mail)
        // With `mailbox_limit = 1`, an app may still send one message.
        guard share.count < max(1, limits.count / 2) else {
            throw .tooManyOfSender(String(Self.key(of: mail)), share.count)
        }
        guard let kind = ScarceMail(mail.draft), let count = share.scarce[kind] else { return }
        guard count < kind.mostWaiting / 2 else { throw .tooManyOfKind(kind, String(Self.key(of: mail)), count) }
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

    /// The name of the sender without that of its instance: `worker` for `worker@2`. The sender of an activity is the
    /// app to which the activity belongs, even if a user asked to continue it.
    private static func key(of mail: Mail) -> Substring {
        let isActivity = ScarceMail(mail.draft) == .activities
        let source = isActivity ? mail.draft.payload["source"]?.stringValue : nil
        return (source ?? mail.draft.sender).prefix { $0 != "@" }
    }
}
