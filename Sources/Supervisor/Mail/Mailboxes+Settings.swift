// SPDX-License-Identifier: Apache-2.0

package import Engine
package import Lifecycle
import Mailbox
import Varlink

/// That settings have changed is mail: it waits while the app sleeps, is told before any other mail, and wakes nobody. What
/// the app has still to be told is what counts (`SettingValues`): the message that waits follows it.
extension Mailboxes {
    /// The topic; nobody may post about it.
    static let settingsTopic = "torpor.settings"

    /// What is about settings first: the app shall go by them before it is told anything else.
    static func inOrder(_ items: [Mail]) -> [Mail] {
        guard items.contains(where: { rank($0) != lastRank }) else { return items }
        return (0...lastRank).flatMap { rank in items.filter { Self.rank($0) == rank } }
    }

    private static let lastRank = 3

    private static func rank(_ mail: Mail) -> Int {
        switch mail.draft.topic {
        case settingsTopic: mail.draft.message == Message.identityDidChange.rawValue ? 0 : 1
        // That a session is over comes before what became of it.
        case TransferMail.topic:
            mail.draft.message == Message.handleEventsForBackgroundTransfer.rawValue ? 2 : lastRank
        default: lastRank
        }
    }

    /// Has the app told that these settings have changed: in one message with what waits of it already.
    ///
    /// - Parameter reverted: these are as the app knows them again.
    package func tellSettings(
        _ changed: [String],
        reverted: Set<String> = [],
        as message: Message,
        _ app: AppRuntime
    ) {
        let waiting = boxes[app.id]?.items.last {
            $0.draft.topic == Self.settingsTopic && $0.draft.message == message.rawValue && !$0.isInFlight
        }
        // What an earlier run was told and has not answered is told the next one.
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
        // Its names are bounded, and there is one of each message.
        _ = try? add(draft, for: app, limits: Mailbox.Limits(count: .max, bytes: .max))
        deliver(to: app)
    }

    /// The settings that mail tells of.
    static func settings(in mail: Mail) -> [String] {
        guard mail.draft.topic == settingsTopic else { return [] }
        return mail.draft.payload["changed"]?.arrayValue?.compactMap(\.stringValue) ?? []
    }

    /// The settings of which the app is being told, and until when they count.
    func settingsBeingTold(to app: AppRuntime) -> [(names: [String], until: Int64)] {
        (boxes[app.id]?.items ?? []).filter { $0.draft.topic == Self.settingsTopic && ($0.isInFlight || $0.run != nil) }
            .map { (Self.settings(in: $0), $0.lastAt) }
    }
}
