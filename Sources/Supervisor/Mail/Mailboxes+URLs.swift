// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
import EventSources
import Lifecycle
import Mailbox
import TorporAPI

/// URLs that apps are to open. They are mail: they wait in order, are told once, and outlive the app, torpord and the boot.
/// They are told when the app comes to the foreground, before didBecomeActive, and at once while it is active.
extension Mailboxes {
    /// How an app that takes URLs hears of them: each by itself, and not by a signal alone.
    static let urlRule: TopicRule = {
        var rule = TopicRule()
        rule.keep = true
        return rule
    }()

    /// Whether the app can be told of a URL at all.
    func takesURLs(_ app: AppRuntime) -> Bool { hears(app, .openURL) }

    /// Takes a URL in, which is told when the app comes to the foreground. Returns its number.
    ///
    /// - Parameter key: names the request. While a URL with it waits, no other is taken in for it.
    package func open(
        _ url: String,
        from sender: String,
        key: String?,
        _ app: AppRuntime
    ) throws(URLRefusal) -> Int64 {
        if let problem = OpenedURL.problem(url) { throw URLRefusal("cannot be told: a URL \(problem)") }
        guard takesURLs(app) else {
            throw URLRefusal(
                "cannot be told of a URL: it has no delegate, and no signal for openURL is named in "
                    + "[apps.\(app.specification.template).signals]"
            )
        }
        let urls = waiting(for: app).filter { $0.draft.topic == OpenedURL.topic }
        if let key, let same = urls.first(where: { $0.draft.key == key }) { return same.id }
        guard urls.count < OpenedURL.mostWaiting else {
            throw URLRefusal("has \(urls.count) URLs waiting already, and more are not kept")
        }
        do throws(Mailbox.Refusal) {
            guard case .added(let mail) = try add(OpenedURL.draft(url, from: sender, key: key), for: app) else {
                return 0
            }
            return mail.id
        } catch {
            throw URLRefusal("\(error)")
        }
    }

    /// Takes a URL back that was taken in, for a request that is refused.
    package func withdraw(_ id: Int64, of app: AppRuntime) { _ = takeBack(id, of: app) }

    /// The first URL that waits for the app.
    func url(for app: AppRuntime) -> String? { boxes[app.id]?.items.lazy.compactMap(\.url).first }

    /// The app does not want the URLs that wait for it.
    func declineURLs(_ app: AppRuntime) {
        for mail in waiting(for: app) where mail.draft.topic == OpenedURL.topic && !mail.isInFlight {
            passOver(mail.id, by: app)
        }
    }

    /// Whether it may be told now: a URL is opened in the foreground.
    func isTime(for mail: Mail, _ app: AppRuntime, comesToForeground: Bool) -> Bool {
        guard mail.draft.topic == OpenedURL.topic, !comesToForeground else { return true }
        let machine = machine(app)
        return machine.state == .active && machine.transition == nil
    }
}

/// Why a URL is not taken in for an app, in a sentence without its name.
package struct URLRefusal: Error, CustomStringConvertible {
    /// The sentence.
    package let description: String

    init(_ description: String) { self.description = description }
}
