// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import Lifecycle
import Mailbox
import Permissions
import TorporAPI
import Varlink
import VarlinkServer

/// Requests of an app to open URLs in other apps.
extension AppSockets {
    /// The longest scheme of a URL, in bytes. It is limited because the reply repeats the scheme.
    private static let longestScheme = 256

    func open(_ url: String, _ token: RequestToken?, _ reply: Reply, _ app: AppRuntime) {
        let target = OpenTarget.url(url)
        if let problem = target.problem { return reply.fail(FieldError(field: "url", problem: problem)) }
        guard let scheme = OpenedURL.scheme(url), permits(scheme, reply, app) else { return }
        guard let other = handlers(of: target, askedBy: app).first else {
            return reply.fail(
                AppInterface.ErrorName.noHandler,
                ["url": .string(url), "message": .string("no app opens \(url)")]
            )
        }
        supervisor.mailboxes.open(target, from: app, token, other) { [unowned self] outcome in
            switch outcome {
            case .success(let result):
                // If the user sees the app, the user has clicked a link in it, so the other app gets the focus. Apps in
                // the background must not move the focus.
                if self.supervisor.alerts.isInForeground(app), self.coordinator.machine(other.id).goal == .active {
                    self.supervisor.desktop.raise(other)
                }
                var json = result.json.objectValue ?? [:]
                json["app"] = .string(other.name)
                json["change"] = nil
                reply.send(.object(json))
            case .failure(.full(let sentence)):
                let error = AppInterface.ErrorName.mailboxFull
                reply.fail(error, ["app": .string(other.name), "message": .string(sentence)])
            case .failure(.invalid(let error)): reply.fail(error)
            case .failure(.failed(let sentence)), .failure(.notSubscribed(let sentence)):
                reply.fail(AppInterface.ErrorName.failed, ["message": .string(sentence)])
            }
        }
    }

    func canOpen(_ scheme: String, _ reply: Reply, _ app: AppRuntime) {
        guard scheme.utf8.count <= Self.longestScheme, OpenedURL.isScheme(scheme.utf8) else {
            let problem = "must be the name of a scheme, as notes, without a colon (RFC 3986)"
            return reply.fail(FieldError(field: "scheme", problem: problem))
        }
        let scheme = scheme.lowercased()
        guard permits(scheme, reply, app) else { return }
        let can = apps.contains { $0 !== app && $0.specification.opening.schemes.contains(scheme) }
        reply.send(["can": .bool(can)])
    }

    /// Whether the app may open URLs of this scheme, and so may learn whether another app opens them.
    private func permits(_ scheme: String, _ reply: Reply, _ app: AppRuntime) -> Bool {
        guard app.allows(.openURL) else {
            let sentence = "\(app.name) is in a sandbox: it needs the permission open-url"
            reply.fail(AppInterface.ErrorName.notPermitted, ["message": .string(sentence)])
            return false
        }
        if app.specification.opening.mayOpen(scheme: scheme) { return true }
        let sentence = "\(app.name) may not open \(scheme): URLs: name the scheme in may_open of \(app.name)"
        reply.fail(AppInterface.ErrorName.notPermitted, ["message": .string(sentence)])
        return false
    }

    /// The apps that can open the target, except `app` itself: an app that passes a URL on must not get the same URL
    /// back.
    private func handlers(of target: OpenTarget, askedBy app: AppRuntime) -> [AppRuntime] {
        supervisor.mailboxes.handlers(of: target).map(\.app).filter { $0 !== app }
    }
}
