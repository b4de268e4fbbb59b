// SPDX-License-Identifier: Apache-2.0

import Engine
import Lifecycle
import Mailbox
import Store
import Varlink

/// That scenes inside an app are no more is mail: the app removes what it keeps of them, whenever it runs next.
extension Mailboxes {
    /// The topic; nobody may post about it.
    private static let scenesTopic = "torpor.scenes"
    /// Names in one message.
    private static let mostNames = 100

    /// Has the app told that these scenes are discarded: in one message with what waits of it already. Calls back when that
    /// is on the disk.
    func tellDiscarded(_ names: [String], _ app: AppRuntime, _ then: @escaping () -> Void) {
        whenLoaded { [weak self, weak app] in
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
            // How many there are is bounded by how many scenes there were.
            _ = try? add(draft, for: app, limits: Mailbox.Limits(count: .max, bytes: .max))
            deliver(to: app)
            host.store.sync { _ in then() }
        }
    }
}
