// SPDX-License-Identifier: Apache-2.0

package import Configuration
package import Engine
import EventSources
import Lifecycle
package import Mailbox
package import TorporAPI

/// URLs for apps to open. They are mail: they wait in order, are delivered once, and survive the end of the app, a
/// restart of torpord and a reboot. They are delivered when the app comes to the foreground, before didBecomeActive,
/// and at once while the app is active.
extension Mailboxes {
    /// How an app gets URLs.
    enum URLRoute {
        /// The app gets URLs by the message openURL to its delegate.
        case delegate
        /// The app gets URLs by the signal that its configuration names for openURL.
        case signal
        /// The app gets URLs by running its `open_command`.
        case command
        /// The app gets a URL in the arguments of its launch, and none while it runs.
        case launch
    }

    /// The rule for URLs: they do not coalesce, they stay in the mailbox after a signal, and they wake the app into
    /// the foreground.
    static let urlRule: TopicRule = {
        var rule = TopicRule()
        rule.keep = true
        rule.urgent = true
        rule.wake = .foreground
        return rule
    }()

    /// How the app gets URLs; nil if it cannot open any.
    func urlRoute(_ app: AppRuntime) -> URLRoute? {
        if mayHaveDelegate(app) { return .delegate }
        if app.specification.signals[.openURL] != nil { return .signal }
        if !app.specification.opening.command.isEmpty { return .command }
        return OpenPlaceholder.isIn(app.specification.exec) ? .launch : nil
    }

    /// Whether a caller that opens a URL learns how the app handled it.
    package func answersURLs(_ app: AppRuntime) -> Bool {
        switch urlRoute(app) {
        case .delegate: machine(app).hasDelegate
        case .command, .launch: true
        case .signal, nil: false
        }
    }

    /// Queues a URL, which is delivered when the app comes to the foreground. Returns the number of the URL's mail.
    ///
    /// - Parameter key: identifies the request. If a URL with this key is waiting already, a repeated request queues no
    ///   second one.
    package func open(
        _ target: OpenTarget,
        from sender: String,
        key: String?,
        _ app: AppRuntime
    ) throws(URLRefusal) -> Int64 {
        if let problem = target.problem { throw URLRefusal("cannot open it: a URL \(problem)") }
        let urls = waitingURLs(app)
        if let key, let same = urls.first(where: { $0.draft.key == key }) { return same.id }
        if let refusal = refusal(ofURLsFor: app) { throw refusal }
        do throws(Mailbox.Refusal) {
            guard case .added(let mail) = try add(OpenedURL.draft(target, from: sender, key: key), for: app) else {
                return 0
            }
            return mail.id
        } catch {
            throw URLRefusal("\(error)")
        }
    }

    /// Queues a URL that one app, `source`, wants another app to open, as if `source` had posted it. `completion` is
    /// called when the URL is on disk, or with the reason why it was not accepted.
    package func open(
        _ target: OpenTarget,
        from source: AppRuntime,
        _ token: RequestToken?,
        _ app: AppRuntime,
        _ completion: @escaping (Result<PostResult, PostRefusal>) -> Void
    ) {
        if let refusal = refusal(ofURLsFor: app), app.tokens.standing(of: token) == .unknown {
            return completion(.failure(.failed("\(app.name) \(refusal)")))
        }
        var request = PostRequest(app: app.name, topic: OpenedURL.topic)
        request.payload = OpenedURL.payload(target, source: source.name)
        request.token = token
        post(request, as: .openURL, from: source.name, of: source, to: app, completion)
    }

    /// Why the app's mailbox accepts no further URL; nil if it accepts one.
    func refusal(ofURLsFor app: AppRuntime) -> URLRefusal? {
        let waiting = waitingURLs(app).count
        switch urlRoute(app) {
        case nil:
            return URLRefusal(
                "cannot open URLs: it has no delegate, no open_command, no argument %u in exec, and no signal for "
                    + "openURL in [apps.\(app.specification.template).signals]"
            )
        case .launch where machine(app).isAlive:
            return URLRefusal(
                "is running, and takes a URL only at its launch, by %u in exec: write an open_command, or stop it first"
            )
        case .launch where waiting > 0:
            return URLRefusal("is about to be launched with another URL, and takes only one per launch")
        case .launch, .command, .delegate, .signal:
            guard waiting >= OpenedURL.mostWaiting else { return nil }
            return URLRefusal("has \(waiting) URLs waiting already, which is the most")
        }
    }

    /// The number of the URL or activity that a request with this key has queued. Only three are known: one that still
    /// waits, the last mail that the app has answered, and the last activity that failed before its delivery. Otherwise
    /// nil.
    package func url(askedForAs key: String, of app: AppRuntime) -> Int64? {
        if let waiting = waiting(for: app).first(where: { $0.isAwaited && $0.draft.key == key }) { return waiting.id }
        return [app.failedActivity, app.lastAnswered].compactMap(\.self).first { $0.key == key }?.id
    }

    private func waitingURLs(_ app: AppRuntime) -> [Mail] {
        waiting(for: app).filter { $0.draft.topic == OpenedURL.topic }
    }

    /// The apps that open the target: the best match first, and among equal matches the most recently used app first.
    package func handlers(of target: OpenTarget) -> [(app: AppRuntime, fit: OpenFit)] {
        apps.compactMap { app in app.specification.opening.fit(target).map { (app, $0) } }
            .sorted { one, other in
                if one.fit != other.fit { return one.fit > other.fit }
                return (one.app.times.lastUse, other.app.name) > (other.app.times.lastUse, one.app.name)
            }
    }

    /// A sentence which says that no app opens the target, and what to do about it.
    package func sentence(ofNoHandlerFor target: OpenTarget) -> String {
        switch target {
        case .url(let url):
            let scheme = OpenedURL.scheme(url) ?? ""
            let schemes = Set(apps.flatMap { $0.specification.opening.schemes }).sorted()
            let host = OpenedURL.host(url).map { ", or \"\($0)\" in its url_hosts" } ?? ""
            let hint = Nearest.hint(scheme, among: schemes)
            return
                "no app opens \(scheme): URLs\(hint.isEmpty ? "." : hint) Write \"\(scheme)\" in url_schemes of an app"
                + "\(host), or choose one with --app"
        case .file(let path, let type):
            let kind = type.map { " (\($0))" } ?? ""
            return
                "no app opens \(path)\(kind): write its type or a pattern of its name in opens of an app, or choose one "
                + "with --app"
        }
    }

    /// The apps that get a URL after `app` did not handle it, the best match first.
    func nextHandlers(of mail: Mail, after app: AppRuntime) -> [String] {
        guard let target = OpenedURL.target(of: mail) else { return [] }
        return handlers(of: target).map(\.app).filter { $0 !== app && refusal(ofURLsFor: $0) == nil }.map(\.name)
    }

    /// Removes a URL or an activity, because the request that has queued it was refused afterwards.
    package func withdraw(_ id: Int64, of app: AppRuntime) {
        guard let mail = mail(id, of: app), takeBack(id, of: app) else { return }
        if mail.draft.message == ActivityMail.continuing { withdrawAnnouncement(of: mail, app) }
    }

    /// The first URL that waits for the app; nil if none waits.
    func url(for app: AppRuntime) -> String? { boxes[app.id]?.items.lazy.compactMap(\.url).first }

    /// Passes the URLs that wait for the app on to other apps, because this app declines them.
    func declineURLs(_ app: AppRuntime) {
        for mail in waiting(for: app) where mail.draft.topic == OpenedURL.topic && !mail.isInFlight {
            passOver(mail.id, by: app)
        }
    }

    /// Whether the mail may be delivered now: URLs, activities and what to refresh are delivered only in the
    /// foreground.
    func isTime(for mail: Mail, _ app: AppRuntime, comesToForeground: Bool) -> Bool {
        let isForForeground = [OpenedURL.topic, Self.refreshTopic, ActivityMail.topic].contains(mail.draft.topic)
        guard isForForeground, !comesToForeground else { return true }
        let machine = machine(app)
        return machine.state == .active && machine.transition == nil
    }
}

/// Why a URL is not accepted for an app, as a sentence without the app's name.
package struct URLRefusal: Error, CustomStringConvertible {
    package let description: String

    init(_ description: String) { self.description = description }
}
