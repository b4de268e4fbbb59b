// SPDX-License-Identifier: Apache-2.0

package import Engine
package import Lifecycle
import Mailbox
import Varlink

/// Sends apps mail about changed settings. This mail waits while the app sleeps, does not wake the app, and is
/// delivered before any other mail. `SettingValues` knows which changes the app was not told of yet. Mail that waits is
/// updated when there are further changes.
extension Mailboxes {
    /// The topic of mail about changed settings; clients may not post to it.
    static let settingsTopic = "torpor.settings"

    /// Sorts mail by the order of delivery. Mail about settings comes first, because the app needs current settings to
    /// handle all other mail.
    static func inOrder(_ items: [Mail]) -> [Mail] {
        guard items.contains(where: { rank($0) != lastRank }) else { return items }
        return (0...lastRank).flatMap { rank in items.filter { Self.rank($0) == rank } }
    }

    private static let lastRank = 4

    private static func rank(_ mail: Mail) -> Int {
        switch mail.draft.topic {
        case settingsTopic: mail.draft.message == Message.identityDidChange.rawValue ? 0 : 1
        // Tell an app that all transfers of a session have ended before it gets the results of these transfers.
        case TransferMail.topic:
            mail.draft.message == Message.handleEventsForBackgroundTransfer.rawValue ? 2 : lastRank
        // Let the app refresh its content before it opens a URL.
        case refreshTopic: 3
        default: lastRank
        }
    }

    /// Sends the app mail that these settings have changed. If such mail still waits, adds the settings to that mail.
    ///
    /// - Parameter reverted: settings that were set back to the value that the app knows.
    package func tellSettings(
        _ changed: [String],
        reverted: Set<String> = [],
        as message: Message,
        _ app: AppRuntime
    ) {
        let waiting = boxes[app.id]?.items.last {
            $0.draft.topic == Self.settingsTopic && $0.draft.message == message.rawValue && !$0.isInFlight
        }
        // Keep the names in the waiting mail: an earlier launch of the app may have got these names without answering.
        let before = waiting.map(Self.settings) ?? []
        let names = before.filter { !changed.contains($0) && !reverted.contains($0) } + changed
        if names == before { return }
        guard !names.isEmpty else {
            if let waiting { acknowledged(waiting.id, by: app) }
            return
        }
        var draft = MailDraft(
            topic: Self.settingsTopic,
            message: message.rawValue,
            payload: ["changed": .strings(names)],
            coalescing: .latest,
            sender: "torpord"
        )
        draft.isOwnEvent = true
        // Add this mail even if the mailbox is full: it stays small, because at most one piece of mail waits for each
        // kind of message, and the number of declared settings is limited.
        _ = try? add(draft, for: app, limits: Mailbox.Limits(count: .max, bytes: .max))
        deliver(to: app)
    }

    /// The settings that the mail is about.
    static func settings(in mail: Mail) -> [String] {
        guard mail.draft.topic == settingsTopic else { return [] }
        return mail.draft.payload["changed"]?.arrayValue?.compactMap(\.stringValue) ?? []
    }

    /// The messages about settings that are being delivered to the app. For each: the settings, and the time of the
    /// last change that the message covers (microseconds since 1970).
    func settingsBeingTold(to app: AppRuntime) -> [(names: [String], until: Int64)] {
        (boxes[app.id]?.items ?? []).filter { $0.draft.topic == Self.settingsTopic && ($0.isInFlight || $0.run != nil) }
            .map { (Self.settings(in: $0), $0.lastAt) }
    }
}
