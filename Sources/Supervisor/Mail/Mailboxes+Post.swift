// SPDX-License-Identifier: Apache-2.0

package import Configuration
package import Engine
import EventLoop
import EventSources
import Lifecycle
import Linux
package import Mailbox
import Store
package import TorporAPI
package import Varlink
import VarlinkServer
import WireText

/// Why a post is not accepted.
package enum PostRefusal: Error {
    /// The app does not accept the topic.
    case notSubscribed(String)
    /// The app's mailbox is full.
    case full(String)
    /// The request is invalid.
    case invalid(FieldError)
    case failed(String)
}

/// Messages that clients and other apps post to an app; subscriptions; access to mailboxes.
extension Mailboxes {
    /// Queues a message for an app, and wakes the app if the rule of its topic says so. `completion` is called when
    /// the message is on disk, or with the reason why it was not accepted.
    ///
    /// - Parameter source: the app that posts; nil if a client posts. What an app posts to another may fill only a share
    ///   of the mailbox.
    package func post(
        _ request: PostRequest,
        from sender: String,
        of source: AppRuntime? = nil,
        to app: AppRuntime,
        _ completion: @escaping (Result<PostResult, PostRefusal>) -> Void
    ) {
        let message: Message = request.remote ? .didReceiveRemoteNotification : .didReceiveEvent
        post(request, as: message, from: sender, of: source, to: app, completion)
    }

    func post(
        _ request: PostRequest,
        as message: Message,
        from sender: String,
        of source: AppRuntime?,
        to app: AppRuntime,
        _ completion: @escaping (Result<PostResult, PostRefusal>) -> Void
    ) {
        guard isLoaded else {
            return host.whenLoaded { [weak self] in
                self?.post(request, as: message, from: sender, of: source, to: app, completion)
            }
        }
        do throws(PostRefusal) {
            let (id, result) = try take(request, as: message, from: sender, of: source, for: app)
            host.store.sync { [weak self, weak app] problem in
                guard let problem, let self, let app else { return completion(.success(result)) }
                if result.change == "added" {
                    // If the app has got the mail, it cannot be taken back: report success.
                    guard let id, self.takeBack(id, of: app) else { return completion(.success(result)) }
                    app.tokens.giveBack(request.token)
                    self.record(app)
                    let text = "the message about \(request.topic) was taken back, since it cannot be stored"
                    self.note(app, .posted, text: text, reason: sender)
                    return completion(.failure(.failed("nothing was posted: it cannot be stored (\(problem))")))
                }
                // The message was merged with other mail, so it cannot be taken back.
                if result.change != "repeated" {
                    app.tokens.giveBack(request.token)
                    self.record(app)
                }
                completion(.failure(.failed("it is queued in memory, but cannot be stored (\(problem))")))
            }
        } catch {
            completion(.failure(error))
        }
    }

    func take(
        _ request: PostRequest,
        as message: Message,
        from sender: String,
        of source: AppRuntime?,
        for app: AppRuntime
    ) throws(PostRefusal) -> (id: Int64?, PostResult) {
        switch app.tokens.standing(of: request.token) {
        case .taken:
            let isThere = waiting(for: app).contains {
                $0.draft.token == request.token?.value && !isBeingTold($0.id, to: app)
            }
            let outcome = isThere ? "waits" : "told"
            return (nil, PostResult(id: nil, change: "repeated", outcome: outcome))
        // An import that is repeated posts more messages again than the app has tokens.
        case .unknown where isWaiting(request.token, app):
            return (nil, PostResult(id: nil, change: "repeated", outcome: "waits"))
        case .uncertain:
            throw .failed(
                "torpord was replaced while it took the message, which may or may not be queued: "
                    + "‘torpor mailbox \(app.name)’ lists the queued messages"
            )
        case .unknown: break
        }
        // Its mailbox is removed as soon as its processes have ended.
        if coordinator.isLeaving(app.id) {
            throw .failed("\(app.name) was removed from the configuration, and is terminating: nothing was posted")
        }
        var draft = try draft(request, as: message, from: sender, for: app)
        draft.isOfOtherApp = source.map { $0 !== app } ?? false
        draft.token = request.token?.value
        let rule = rule(for: request.topic, app) ?? TopicRule()
        if rule.refresh {
            let change = gather([request.topic], of: app, from: sender)
            note(app, .posted, text: "\(draft.topic) was posted to it: a name to refresh", reason: sender)
            guard let change else { return (nil, PostResult(id: nil, change: "changed", outcome: "waits")) }
            let (id, word) = Self.words(change)
            return (id, PostResult(id: id, change: word, outcome: id.map { waits($0, app) } ?? true ? "waits" : "told"))
        }
        let order = wakeOrder(
            rule,
            isUrgent: request.urgent ?? rule.urgent,
            isRemote: message == .didReceiveRemoteNotification,
            app
        )
        draft.wake = order.map { $0.foreground ? .foreground : .background }
        app.tokens.take(request.token, isUncertain: true)
        if request.token != nil { record(app) }
        let change: Mailbox.Change
        do throws(Mailbox.Refusal) {
            change = try add(draft, for: app)
        } catch {
            app.tokens.giveBack(request.token)
            if case .payload(let sentence) = error {
                throw .invalid(FieldError(field: "payload", problem: "is refused: \(app.name) \(sentence)"))
            }
            throw .full("\(app.name) \(error)")
        }
        app.tokens.take(request.token)
        if request.token != nil { record(app) }
        let what = draft.key.map { "\(draft.topic) (\($0))" } ?? draft.topic
        note(app, .posted, text: "\(what) was posted to it", reason: sender)
        let (id, word) = Self.words(change)
        let outcome = wake(app, for: draft, order)
        var result = PostResult(id: id, change: word, outcome: "waits")
        switch outcome {
        case .woken: result.outcome = "woken"
        case .heldBack(let reason, _):
            result.outcome = "held-back"
            result.message = reason
        case .runs:
            if let id, !waits(id, app) {
                result.outcome = "told"
            } else if id != nil, machine(app).hasProcess, !hears(app, message) {
                result.message = "runs without a delegate and without a signal for it, and gets it when it takes it"
            }
        }
        return (id, result)
    }

    /// Whether the mail is in the mailbox, and its delivery has not begun.
    private func waits(_ id: Int64, _ app: AppRuntime) -> Bool {
        mail(id, of: app) != nil && !isBeingTold(id, to: app)
    }

    private static func words(_ change: Mailbox.Change) -> (Int64?, String) {
        switch change {
        case .added(let mail): (mail.id, "added")
        case .changed(let mail): (mail.id, "changed")
        case .cancelled: (nil, "cancelled")
        }
    }

    private func draft(
        _ request: PostRequest,
        as message: Message,
        from sender: String,
        for app: AppRuntime
    ) throws(PostRefusal) -> MailDraft {
        if let problem = TopicRule.problem(request.topic) {
            throw .invalid(FieldError(field: "topic", problem: "cannot be used: \(problem)"))
        }
        if request.topic.utf8.starts(with: OpenedURL.reserved.utf8), message != .openURL {
            throw .invalid(FieldError(field: "topic", problem: Self.isReserved))
        }
        if let key = request.key, key.utf8.count > TopicRule.longestName {
            throw .invalid(FieldError(field: "key", problem: "has at most \(TopicRule.longestName) bytes"))
        }
        guard let rule = rule(for: request.topic, app) else {
            throw .notSubscribed(
                "\(app.name) does not accept the topic \(request.topic): name it, or \"*\" for all, in "
                    + "[apps.\(app.specification.template).topics]"
            )
        }
        var coalescing = rule.coalesce
        if let word = request.coalesce {
            guard let chosen = Coalescing(rawValue: word) else {
                let words = Coalescing.allCases.map(\.rawValue).joined(separator: ", ")
                throw .invalid(FieldError(field: "coalesce", problem: "must be one of \(words)"))
            }
            coalescing = chosen
        }
        return MailDraft(
            topic: request.topic,
            message: message.rawValue,
            payload: request.payload,
            coalescing: coalescing,
            key: request.key,
            sender: sender
        )
    }

    /// How a posted message wakes the app; nil if the message wakes no app.
    func wakeOrder(_ rule: TopicRule, isUrgent: Bool, isRemote: Bool, _ app: AppRuntime) -> Wake? {
        guard isUrgent else { return nil }
        if isRemote, !app.specification.backgroundModes.contains(.remoteNotification) { return nil }
        return rule.wake.wake()
    }

    /// Wakes the app for mail as `order` says, and delivers waiting mail.
    @discardableResult
    func wake(_ app: AppRuntime, for draft: MailDraft, _ order: Wake?) -> WakeOutcome {
        let text = "\(draft.topic) from \(draft.sender)"
        return host.wake(app, WakeEvent(.message, draft.topic, text, wake: order, mail: draft, at: loop.now))
    }

    // MARK: Topics

    /// The app's rule for a topic: from its subscription, or otherwise from its configuration. Nil if the app does not
    /// accept the topic.
    func rule(for topic: String, _ app: AppRuntime) -> TopicRule? {
        if topic == ActivityMail.topic { return hearsActivities(app) ? Self.urlRule : nil }
        if topic == OpenedURL.topic { return urlRoute(app) == nil ? nil : Self.urlRule }
        return app.subscriptions?.rule(for: topic) ?? app.specification.topics.rule(for: topic)
    }

    /// Whether mail stays in the mailbox after a signal has announced it, until the app takes it.
    func keepsUntilTaken(_ draft: MailDraft, _ app: AppRuntime) -> Bool {
        rule(for: draft.topic, app)?.keep ?? false
    }

    /// Carries out an app's request to subscribe to a topic, or to end a subscription. `completion` is called when the
    /// change is on disk, or with the reason why it was taken back, as a sentence.
    func subscribe(
        _ request: SubscribeRequest,
        _ app: AppRuntime,
        _ completion: @escaping (String?) -> Void
    ) throws(FieldError) {
        if let problem = TopicRule.problem(request.topic) {
            throw FieldError(field: "topic", problem: "cannot be used: \(problem)")
        }
        // A subscription that an earlier version took can still be ended.
        if request.topic.utf8.starts(with: OpenedURL.reserved.utf8), !request.end {
            throw FieldError(field: "topic", problem: Self.isReserved)
        }
        let former = app.subscriptions?[request.topic]
        let isRoom = former != nil || app.subscriptions?.count ?? 0 < Self.mostSubscriptions
        guard request.end || isRoom else {
            throw FieldError(field: "topic", problem: "is one too many: at most \(Self.mostSubscriptions) are kept")
        }
        let rule = request.end ? nil : try TopicRule(request)
        keep(rule, for: request.topic, app)
        host.store.sync { [weak self, weak app] problem in
            guard let problem else { return completion(nil) }
            // A later request may have changed it again.
            if let self, let app, app.subscriptions?[request.topic] == rule {
                self.keep(former, for: request.topic, app)
            }
            completion("the subscription was not changed: it cannot be stored (\(problem))")
        }
    }

    /// Remembers an app's subscription to a topic; nil if it has none.
    private func keep(_ rule: TopicRule?, for topic: String, _ app: AppRuntime) {
        var topics = app.subscriptions ?? [:]
        topics[topic] = rule
        app.subscriptions = topics.isEmpty ? nil : topics
        guard let rule else { return host.store.remove(StoredSubscription.Key(app: app.name, topic: topic)) }
        let text = String(wire: rule.json.serialised())
        host.store.save(StoredSubscription(app: app.name, topic: topic, rule: text))
    }

    /// The app's topics with their rules: those of its configuration, and those to which it has subscribed.
    package func topics(of app: AppRuntime) -> [String: TopicRule] {
        app.specification.topics.merging(app.subscriptions ?? [:]) { _, subscribed in subscribed }
    }

    private static let isReserved =
        "cannot be used: topics that begin with \(OpenedURL.reserved) are the supervisor's own"

    /// The most topics that an app may subscribe to.
    private static let mostSubscriptions = 256

    /// Restores the subscriptions that apps made in earlier runs.
    func rememberSubscriptions(_ contents: StoreContents) {
        for stored in contents.subscriptions.values {
            guard let id = coordinator.id(of: stored.key.app), let json = try? JSON.parse(stored.rule),
                let rule = try? TopicRule(SubscribeRequest(topic: stored.key.topic, rule: json))
            else { continue }
            var topics = apps[id].subscriptions ?? [:]
            topics[stored.key.topic] = rule
            apps[id].subscriptions = topics
        }
    }

    // MARK: Mailboxes

    /// Lists the app's mail for a user, as much as fits into a reply. Mail that the user takes or drops is removed. What
    /// the user does not get is not taken.
    package func mailbox(_ request: MailboxRequest, of app: AppRuntime, by person: String) -> MailboxStatus {
        let waiting = waiting(for: app)
        let limits = Mailboxes.limits(of: app)
        var chosen = waiting
        let drop = Set(request.drop)
        if !drop.isEmpty { chosen = waiting.filter { drop.contains($0.id) && !$0.isInFlight } }
        if request.take { chosen = chosen.filter { !$0.isInFlight } }
        if let after = request.after { chosen = chosen.filter { $0.id > after } }
        let all = chosen.map { MailInfo($0) }
        let listed = Self.fitting(all)
        if request.take { chosen = Array(chosen.prefix(listed.count)) }
        if request.take || !request.drop.isEmpty {
            for mail in chosen { acknowledged(mail.id, by: app) }
            // A later import of the same document posts them again.
            let tokens = chosen.compactMap { Self.token(of: $0) }
            for token in tokens { app.tokens.giveBack(token) }
            if !tokens.isEmpty { record(app) }
            if !chosen.isEmpty {
                let word = request.take ? "taken out of" : "dropped from"
                let what = chosen.count == 1 ? "a message about \(chosen[0].draft.topic)" : "\(chosen.count) messages"
                note(
                    app,
                    .posted,
                    text: "\(what) \(chosen.count == 1 ? "was" : "were") \(word) its mailbox",
                    reason: person
                )
            }
        }
        var status = MailboxStatus(
            mail: listed,
            limit: Int64(limits.count),
            bytes: Int64(bytes(of: app)),
            bytesLimit: limits.bytes == .max ? nil : Int64(limits.bytes)
        )
        status.unhandled = Int64(unhandled.count(of: app))
        status.hasMore = listed.count < all.count
        return status
    }

    /// Whether a message waits that a request with this token has posted.
    private func isWaiting(_ token: RequestToken?, _ app: AppRuntime) -> Bool {
        guard let token else { return false }
        return waiting(for: app).contains { $0.draft.token == token.value }
    }

    private static func token(of mail: Mail) -> RequestToken? {
        mail.draft.token.flatMap { RequestToken(text: String($0, radix: 16)) }
    }

    /// The first pieces of mail, as many as fit into a reply.
    private static func fitting(_ mail: [MailInfo]) -> [MailInfo] {
        Array(mail.prefix(BoundedReply.fitting(mail) { $0.json.serialisedSize }))
    }

    /// The mail that a request of the app is about, and that is not being delivered.
    package func takeable(_ request: TakeRequest, _ app: AppRuntime) -> [Mail] {
        let only = Set(request.only)
        return waiting(for: app).filter { !$0.isInFlight && (only.isEmpty || only.contains($0.id)) }
    }

    /// Gives the app its waiting mail, as much as fits into a reply. This mail is removed from the mailbox unless the
    /// request says to keep it.
    package func take(_ request: TakeRequest, _ app: AppRuntime) -> [MailInfo] {
        for id in request.done { taken(id, by: app) }
        let waiting = takeable(request, app)
        let chosen = request.max.map { Array(waiting.prefix(Int(clamping: $0))) } ?? waiting
        let given = Self.fitting(chosen.map { MailInfo($0) })
        if !request.keep { for mail in given { taken(mail.id, by: app) } }
        return given
    }

    /// Removes mail that the app has taken. If the mail is an activity, the app counts as continuing it.
    private func taken(_ id: Int64, by app: AppRuntime) {
        if let mail = mail(id, of: app) { activityWasContinued(mail, by: app) }
        acknowledged(id, by: app)
    }

    /// Why an app may not post to another, as a sentence; nil if it may.
    package func refusal(ofPostsFrom sender: AppRuntime, to app: AppRuntime) -> String? {
        if sender === app { return nil }
        let isAccepted = app.specification.acceptsFrom.contains { pattern in
            if pattern.hasPrefix("tag:") { return sender.specification.tags.contains(String(pattern.dropFirst(4))) }
            if pattern == sender.specification.template { return true }
            return Selection.matches(Array(sender.name.utf8)[...], Array(pattern.utf8)[...])
        }
        return isAccepted
            ? nil : "\(app.name) accepts no messages from \(sender.name): name it in accepts_from of \(app.name)"
    }
}

extension TopicRule {
    fileprivate init(_ request: SubscribeRequest) throws(FieldError) {
        self.init()
        func choice<T: RawRepresentable & CaseIterable>(_ name: String, _ word: String) throws(FieldError) -> T
        where T.RawValue == String {
            if let choice = T(rawValue: word) { return choice }
            let words = T.allCases.map(\.rawValue).joined(separator: ", ")
            throw FieldError(field: name, problem: "must be one of \(words)")
        }
        if let word = request.coalesce { coalesce = try choice("coalesce", word) }
        if let word = request.wake { wake = try choice("wake", word) }
        urgent = request.urgent ?? urgent
        keep = request.keep ?? keep
    }

    fileprivate var json: JSON {
        [
            "coalesce": .string(coalesce.rawValue), "urgent": .bool(urgent), "wake": .string(wake.rawValue),
            "keep": .bool(keep),
        ]
    }
}

extension SubscribeRequest {
    /// Reads a stored subscription as the request that made it.
    fileprivate init(topic: String, rule: JSON) {
        self.init(topic: topic)
        coalesce = rule["coalesce"]?.stringValue
        urgent = rule["urgent"]?.boolValue
        wake = rule["wake"]?.stringValue
        keep = rule["keep"]?.boolValue
    }
}

extension MailInfo {
    /// Mail, as clients see it.
    package init(_ mail: Mail) {
        self.init(
            id: mail.id,
            topic: mail.draft.topic,
            name: mail.draft.message,
            key: mail.draft.key,
            payload: mail.draft.payload,
            sender: mail.draft.sender,
            count: mail.count,
            firstAt: mail.firstAt,
            lastAt: mail.lastAt
        )
        wake = mail.draft.wake?.rawValue
        inFlight = mail.isInFlight
        attempts = Int64(mail.attempts)
    }
}

extension AppRuntime {
    /// The topics that the app itself has subscribed to, with their rules; nil if there are none.
    var subscriptions: [String: TopicRule]? {
        get { slots[SubscriptionsSlot.self] }
        set { slots[SubscriptionsSlot.self] = newValue }
    }
}

private enum SubscriptionsSlot: Slot { typealias Value = [String: TopicRule] }
