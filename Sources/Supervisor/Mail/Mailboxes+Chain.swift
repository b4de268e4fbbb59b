// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
package import EventSources
package import Lifecycle
import Mailbox
import Store
package import TorporAPI

/// Passes mail that an app does not handle on to the apps that its topic names as `next`.
extension Mailboxes {
    /// Messages that other apps can handle as well. All other messages concern only the app that they were sent to, so
    /// they are removed if that app does not handle them.
    private static let passedOn: Set = [
        Message.openURL, .didReceiveEvent, .didReceiveNotification, .didReceiveRemoteNotification,
    ]

    /// Called when the app answered that it does not handle the mail. Passes the mail on to the next app in the chain.
    /// If no app is left in the chain, the mail is kept as unhandled.
    func passOver(_ id: Int64, by app: AppRuntime) {
        guard let mail = mail(id, of: app), Message(rawValue: mail.draft.message).map(Self.passedOn.contains) ?? true
        else {
            return acknowledged(id, by: app)
        }
        var chain = mail.draft.chain ?? MailChain(sender: mail.draft.sender)
        chain.passedOver(app.name, source: id, next: next(for: mail, after: app))
        while let name = chain.takeNext() {
            guard let id = coordinator.id(of: name) else { continue }
            guard let (draft, order) = draft(mail, chain, from: app, to: apps[id]) else { continue }
            // Do not pass the mail on twice. If the next app has it already, an earlier torpord was killed after it had
            // passed the mail on and before it could remove the mail from this app's mailbox.
            let isThere = waiting(for: apps[id]).contains { $0.draft.chain?.source == mail.id }
            if !isThere, (try? add(draft, for: apps[id])) == nil { continue }
            if !isThere {
                note(
                    apps[id],
                    .posted,
                    text: "\(draft.topic) was passed on to it: \(app.name) does not handle it",
                    reason: draft.sender
                )
            }
            let outcome = isThere ? .runs : wake(apps[id], for: draft, order)
            if let there = waiting(for: apps[id]).first(where: { $0.draft.chain?.source == mail.id }) {
                app.passedOn = PassedOnMail(id: mail.id, app: id, newID: there.id, outcome: outcome)
            }
            return acknowledged(mail.id, by: app)
        }
        if mail.draft.isOwnEvent { return acknowledged(mail.id, by: app) }
        // Keep the mail as unhandled for the app that got it first.
        let first = chain.asked.first.flatMap { coordinator.id(of: $0) }.map { apps[$0] } ?? app
        var kept = mail
        kept.setChain(chain)
        unhandled.add(StoredMail(kept, of: first.name), .unhandled, first)
        acknowledged(mail.id, by: app)
    }

    /// The names of the apps that the mail is passed on to, in this order, if `app` does not handle it. Apps that do
    /// not exist are left out.
    private func next(for mail: Mail, after app: AppRuntime) -> [String] {
        let topic = mail.draft.topic
        if topic == OpenedURL.topic { return nextHandlers(of: mail, after: app) }
        guard let rule = app.specification.topics.rule(for: topic) else { return [] }
        return rule.next.flatMap { pattern in
            (try? selection.resolve([pattern]))?.filter { self.rule(for: topic, $0) != nil }.map(\.name) ?? []
        }
    }

    /// The mail in the form for the next app, and how it wakes that app; nil if that app does not accept the topic.
    private func draft(
        _ mail: Mail,
        _ chain: MailChain,
        from app: AppRuntime,
        to next: AppRuntime
    ) -> (MailDraft, Wake?)? {
        guard let rule = rule(for: mail.draft.topic, next) else { return nil }
        var draft = MailDraft(
            topic: mail.draft.topic,
            message: mail.draft.message,
            payload: mail.draft.payload,
            coalescing: rule.coalesce,
            key: mail.draft.key,
            sender: mail.draft.sender
        )
        let isRemote = mail.draft.message == Message.didReceiveRemoteNotification.rawValue
        let order = wakeOrder(rule, isUrgent: rule.urgent, isRemote: isRemote, next)
        draft.wake = order.map { $0.foreground ? .foreground : .background }
        draft.chain = chain
        draft.isOwnEvent = mail.draft.isOwnEvent
        // Otherwise an app could fill the whole mailbox through an app that passes mail on.
        draft.isOfOtherApp = coordinator.id(of: draft.sender).map { $0 != next.id } ?? false
        return (draft, order)
    }

    /// Posts unhandled mail to an app again, as if the mail were new. `completion` is called when the new mail is on
    /// disk.
    package func replay(
        _ id: Int64,
        of app: AppRuntime,
        to next: AppRuntime,
        by person: String,
        _ completion: @escaping (Result<PostResult, ReplayRefusal>) -> Void
    ) {
        var query = UnhandledQuery()
        query.ids = [id]
        unhandled.list(query) { [weak self] result in
            guard let self else { return }
            switch result {
            case .failure(let problem):
                completion(.failure(.refused(.failed("it cannot be read: \(problem)"), topic: "")))
            case .success(let rows):
                // Another client may have removed the mail since the request.
                guard let item = rows.first, self.unhandled.has(id, of: app) else { return completion(.failure(.gone)) }
                self.replay(item, of: app, to: next, by: person, completion)
            }
        }
    }

    private func replay(
        _ item: StoredUnhandled,
        of app: AppRuntime,
        to next: AppRuntime,
        by person: String,
        _ completion: @escaping (Result<PostResult, ReplayRefusal>) -> Void
    ) {
        let topic = item.mail.topic
        guard let mail = Mail(item.mail), let message = Message(rawValue: mail.draft.message) else {
            let sentence =
                "this version does not know the message: ‘torpor unhandled --drop \(item.mail.id)’ drops it"
            return completion(.failure(.refused(.failed(sentence), topic: topic)))
        }
        var request = PostRequest(app: next.name, topic: topic)
        request.payload = mail.draft.payload
        request.key = mail.draft.key
        let sender = mail.draft.chain?.sender ?? mail.draft.sender
        do throws(PostRefusal) {
            let (_, result) = try take(request, as: message, from: sender, of: nil, for: next)
            unhandled.drop(item.mail.id, of: app)
            note(next, .posted, text: "unhandled \(topic) was posted to it again", reason: person)
            host.store.sync { problem in
                if let problem {
                    let sentence = "it was posted again, but that cannot be stored (\(problem))"
                    return completion(.failure(.refused(.failed(sentence), topic: topic)))
                }
                completion(.success(result))
            }
        } catch {
            completion(.failure(.refused(error, topic: topic)))
        }
    }
}

/// Mail that an app did not handle, and that was passed on to another app.
package struct PassedOnMail {
    /// The number that the mail had for the app that did not handle it.
    package let id: Int64
    /// The app that has the mail now.
    package let app: AppID
    /// The number that the mail has for the app that has it now.
    package let newID: Int64
    /// Whether the app that has the mail now was woken for it.
    package let outcome: WakeOutcome
}

extension AppRuntime {
    /// The last mail that was passed on because this app did not handle it.
    package var passedOn: PassedOnMail? {
        get { slots[PassedOnSlot.self] }
        set { slots[PassedOnSlot.self] = newValue }
    }
}

private enum PassedOnSlot: Slot { typealias Value = PassedOnMail }

/// Why unhandled mail is not posted again.
package enum ReplayRefusal: Error {
    /// The mail is no longer stored as unhandled.
    case gone
    /// The app does not accept the mail.
    case refused(PostRefusal, topic: String)
}
