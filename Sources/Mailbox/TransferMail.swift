// SPDX-License-Identifier: Apache-2.0

import Varlink

/// Messages to apps about transfers. They have a topic of their own, to which clients may not post.
public enum TransferMail {
    /// The topic of these messages.
    public static let topic = "torpor.transfers"

    /// Creates the message that a transfer has ended.
    ///
    /// - Parameters:
    ///   - status: the status code of the server's last response; nil if there was none.
    ///   - reason: why the transfer failed, as a word; nil if it succeeded.
    ///   - error: why the transfer failed, as a sentence; nil if it succeeded.
    ///   - total: the full size in bytes; nil if unknown.
    ///   - attempts: how often the transfer was started.
    ///   - token: the token of the request that started the transfer; 0 for none. It is only part of the key.
    public static func ended(
        as message: String,
        transfer: Int64,
        session: String,
        direction: String,
        url: String,
        path: String,
        bytes: Int64,
        status: Int64?,
        sha256: String?,
        reason: String?,
        error: String?,
        total: Int64?,
        attempts: Int64,
        token: UInt64 = 0
    ) -> MailDraft {
        let payload: JSON = [
            "transfer": .int(transfer), "session": .string(session), "direction": .string(direction),
            "url": .string(url), "path": .string(path), "bytes": .int(bytes), "status": .optional(status),
            "sha256": .optional(sha256), "reason": .optional(reason), "error": .optional(error),
            "total": .optional(total), "attempts": .int(attempts),
        ]
        return draft(message, payload, key: token == 0 ? "\(transfer)" : "\(transfer) \(token)")
    }

    /// Creates one of two messages about a session of an app: all its transfers have ended, or one of them waits for
    /// a login. In the second case, a message about that transfer follows.
    public static func sessionOver(as message: String, session: String) -> MailDraft {
        draft(message, ["session": .string(session)], key: "session/\(session)")
    }

    /// Creates the message that a server requests a login for a transfer.
    public static func needsLogin(
        as message: String,
        transfer: Int64,
        session: String,
        url: String,
        realm: String?,
        scheme: String?
    ) -> MailDraft {
        let payload: JSON = [
            "transfer": .int(transfer), "session": .string(session), "url": .string(url), "realm": .optional(realm),
            "scheme": .optional(scheme),
        ]
        return draft(message, payload, key: "login/\(transfer)")
    }

    private static func draft(_ message: String, _ payload: JSON, key: String) -> MailDraft {
        var draft = MailDraft(
            topic: topic,
            message: message,
            payload: payload,
            coalescing: .latest,
            key: key,
            sender: "torpord"
        )
        draft.isOwnEvent = true
        return draft
    }

    /// The number of the transfer that the message is about; nil for other messages.
    public static func transfer(in mail: Mail) -> Int64? {
        mail.draft.topic == topic ? mail.draft.payload["transfer"]?.intValue : nil
    }

    /// The token of the request that started the transfer; 0 if the request had none, or the message is about
    /// something else.
    public static func token(in mail: Mail) -> UInt64 {
        guard mail.draft.topic == topic, let key = mail.draft.key,
            let blank = key.utf8.firstIndex(of: UInt8(ascii: " "))
        else { return 0 }
        return UInt64(key[key.index(after: blank)...]) ?? 0
    }
}
