// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
import Lifecycle
import Mailbox
import Store
import TorporAPI
import Varlink
import WireText

/// Mail that names what an app must refresh before users see it. The names come from the app itself (`SetNeedsRefresh`)
/// and from topics with `refresh = true`. While the app is not in the foreground, one piece of mail collects all names.
/// This mail does not wake the app. It is delivered after willEnterForeground, before URLs and didBecomeActive.
extension Mailboxes {
    /// The topic of mail about refreshing; clients may not post to it.
    static let refreshTopic = "torpor.refresh"

    /// The most names in one message. If there would be more, the app gets only ``allNames``.
    static let mostRefreshNames = 64
    /// The name that means that the app must refresh everything.
    static let allNames = "*"

    /// Tells the app what to refresh: now if the app is in the foreground, otherwise when it comes there. `completion`
    /// is called when the names are on disk, or with the reason why they are not accepted or stored.
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

    /// Adds names to the waiting refresh mail, and delivers the mail if the app is in the foreground. Returns nil if
    /// the waiting mail has all the names already.
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
        // Add this mail even if the mailbox is full: it stays small, because at most one such piece of mail waits, and
        // the number of names in it is limited.
        let change = try? add(draft, for: app, limits: Mailbox.Limits(count: .max, bytes: .max))
        deliver(to: app)
        return change
    }

    private static func refreshNames(of mail: Mail) -> [String] {
        mail.draft.payload["names"]?.arrayValue?.compactMap(\.stringValue) ?? []
    }
}
