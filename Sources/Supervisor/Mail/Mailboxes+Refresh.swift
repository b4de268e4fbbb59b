// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
import Lifecycle
import Mailbox
import Store
import TorporAPI
import Varlink
import WireText

/// Names of what an app must refresh when users see it: its own (`SetNeedsRefresh`), and those of topics with
/// `refresh = true`. Names gather in one piece of mail while the app is not in the foreground. It wakes no app, and is
/// delivered after willEnterForeground, before URLs and didBecomeActive.
extension Mailboxes {
    /// The topic of this mail; clients may not post to it.
    static let refreshTopic = "torpor.refresh"

    /// After so many names, one stands for all.
    static let mostRefreshNames = 64
    /// The name that stands for all.
    static let allNames = "*"

    /// Adds names to those that the app is told when it comes to the foreground; an app in the foreground is told now.
    /// `completion` is called when that is on disk, or with the reason why it is not.
    package func needsRefresh(
        _ names: [String],
        of app: AppRuntime,
        from sender: String,
        _ completion: @escaping (Result<Void, PostRefusal>) -> Void
    ) {
        guard isLoaded else {
            return host.whenLoaded { [weak self] in self?.needsRefresh(names, of: app, from: sender, completion) }
        }
        if let problem = Self.problem(ofRefreshNames: names) {
            return completion(.failure(.invalid(FieldError(field: "names", problem: problem))))
        }
        gather(names, of: app, from: sender)
        host.store.sync { problem in
            guard let problem else { return completion(.success(())) }
            completion(.failure(.failed("it is kept in memory, but cannot be stored (\(problem))")))
        }
    }

    private static func problem(ofRefreshNames names: [String]) -> String? {
        if names.isEmpty { return "must have a name" }
        if names.count > mostRefreshNames {
            return "has more than \(mostRefreshNames) names: \"\(allNames)\" stands for all"
        }
        let isBad = names.contains { name in
            name.isEmpty || name.utf8.count > TopicRule.longestName || name.utf8.contains { $0 < 0x20 || $0 == 0x7f }
        }
        return isBad ? "must have names of 1 to \(TopicRule.longestName) bytes without control characters" : nil
    }

    /// Adds names to the mail that waits, and delivers it if it is time. Nil if the names wait already.
    @discardableResult
    func gather(_ names: [String], of app: AppRuntime, from sender: String) -> Mailbox.Change? {
        let waiting = boxes[app.id]?.items.last { $0.draft.topic == Self.refreshTopic && !$0.isInFlight }
        let before = waiting.map(Self.refreshNames) ?? []
        var all = before
        var known = Set(before)
        for name in names where known.insert(name).inserted { all.append(name) }
        if all.count > Self.mostRefreshNames || known.contains(Self.allNames) { all = [Self.allNames] }
        guard all != before else { return nil }
        var draft = MailDraft(
            topic: Self.refreshTopic,
            message: Message.refresh.rawValue,
            payload: ["names": .strings(all)],
            coalescing: .latest,
            sender: sender
        )
        draft.isOwnEvent = true
        // No limit is needed: the names are limited, and at most one piece of this mail waits.
        let change = try? add(draft, for: app, limits: Mailbox.Limits(count: .max, bytes: .max))
        deliver(to: app)
        return change
    }

    private static func refreshNames(of mail: Mail) -> [String] {
        mail.draft.payload["names"]?.arrayValue?.compactMap(\.stringValue) ?? []
    }
}
