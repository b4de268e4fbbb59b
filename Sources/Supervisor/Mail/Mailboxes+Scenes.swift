// SPDX-License-Identifier: Apache-2.0

import Engine
import Lifecycle
import Mailbox
import Store
import Varlink

/// Sends each app mail that names its discarded inner scenes, so that the app can remove the data it has stored for
/// these scenes.
extension Mailboxes {
    /// The topic of mail about discarded scenes; clients may not post to it.
    private static let scenesTopic = "torpor.scenes"
    /// The most names of scenes in one message.
    private static let mostNames = 100

    /// Sends the app mail that these scenes are discarded. If such mail still waits, adds the names to that mail.
    /// Calls `then` when the mail is on disk.
    func tellDiscarded(_ names: [String], _ app: AppRuntime, _ then: @escaping () -> Void) {
        host.whenLoaded { [weak self, weak app] in
            guard let self, let app, app.isListed else { return then() }
            let waiting = waiting(for: app).last { $0.draft.topic == Self.scenesTopic && !$0.isInFlight }
            let before = waiting?.draft.payload["names"]?.arrayValue?.compactMap(\.stringValue) ?? []
            let names = names.filter { !before.contains($0) }
            if names.isEmpty { return then() }
            let fits = before.count + names.count <= Self.mostNames
            var draft = MailDraft(
                topic: Self.scenesTopic,
                message: Message.didDiscardScenes.rawValue,
                payload: ["names": .strings(fits ? before + names : names)],
                coalescing: fits ? .latest : .all,
                sender: "torpord"
            )
            draft.isOwnEvent = true
            // Add this mail even if the mailbox is full: at most as many such messages wait as the app has scenes.
            _ = try? add(draft, for: app, limits: Mailbox.Limits(count: .max, bytes: .max))
            deliver(to: app)
            host.store.sync { _ in then() }
        }
    }
}
