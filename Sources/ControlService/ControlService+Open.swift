// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EventSources
import Lifecycle
import Linux
import Mailbox
import Supervisor
import TorporAPI
import Varlink
import VarlinkServer

/// Requests to open URLs and files.
extension ControlService {
    /// Chooses an app for the URL or file of the request, brings the app to the foreground and replies when it has
    /// opened the URL.
    func open(_ request: OpenRequest, for peer: Peer, _ reply: Reply) throws(Selection.Unknown) {
        let target = OpenTarget(request.target)
        if let problem = request.problem(with: target) { return reply.fail(problem) }
        let app: AppRuntime
        if let name = request.app {
            app = try selection.one(name)
        } else {
            let fitting = supervisor.mailboxes.handlers(of: target).map(\.app)
            // A repeated request must use the same app as before, even if another app was used since.
            let before = fitting.first { $0.tokens.standing(of: request.token) != .unknown }
            guard let chosen = before ?? fitting.first else {
                return reply.fail(
                    ManagerInterface.ErrorName.noHandler,
                    [
                        "url": .string(target.url),
                        "message": .string(supervisor.mailboxes.sentence(ofNoHandlerFor: target)),
                    ]
                )
            }
            app = chosen
        }
        var verb = VerbRequest(verb: .foreground, apps: [app.name])
        verb.wait = request.wait
        verb.timeoutMilliseconds = request.timeoutMilliseconds
        verb.token = request.token
        carryOut(verb, [app], opening: .target(target), for: peer, reply)
    }

    /// Replies with the apps that can open the URL or file of the request.
    func handlers(of request: OpenRequest, _ reply: Reply) {
        let target = OpenTarget(request.target)
        if let problem = request.problem(with: target) { return reply.fail(problem) }
        let handlers = supervisor.mailboxes.handlers(of: target)
        reply.send(["handlers": .array(handlers.map { HandlerInfo(app: $0.app.name, by: $0.fit.word).json })])
    }

    /// If the call's app did not handle the URL and torpord passed the URL on to another app, makes the call wait for
    /// that other app. Returns false if the URL was not passed on.
    func followURL(_ waiter: PendingCall, _ index: Int) -> Bool {
        let item = waiter.items[index]
        guard let url = item.url, let passed = apps[item.app].passedOn, passed.id == url else { return false }
        let machine = coordinator.machine(passed.app)
        let name = apps[item.app].name
        apps[passed.app].lastEnding = nil
        waiter.follow(
            index,
            to: passed.app,
            url: passed.newID,
            incarnation: machine.incarnation,
            generation: machine.goalGeneration,
            from: name
        )
        guard case .heldBack(let reason, _) = passed.outcome else { return true }
        let words = "is not woken (\(reason)), and opens it when it comes to the foreground; \(name) does not handle it"
        waiter.answer(index, result(apps[passed.app], ok: false, words, "held-back"))
        return true
    }

    /// The result of a call that opens a URL: `result`, or an error if the app did not open the URL. Nil until the app
    /// has answered.
    func judgeURL(_ item: PendingCall.Item, _ app: AppRuntime, _ result: VerbResult) -> VerbResult? {
        guard let url = item.url, result.ok else { return result }
        let waits = supervisor.mailboxes.waiting(for: app).contains { $0.id == url }
        // An app that never answers URLs only gets a signal that a URL is queued, so do not wait for its answer.
        if waits {
            let answers =
                item.isActivity ? coordinator.machine(app.id).hasDelegate : supervisor.mailboxes.answersURLs(app)
            return answers ? nil : result
        }
        if let owner = supervisor.mailboxes.unhandled.app(of: url) {
            return self.result(
                app,
                ok: false,
                "is in the foreground, and does not open the URL: ‘torpor unhandled \(owner.name)’ keeps it",
                "unhandled"
            )
        }
        let answer = [app.failedActivity, app.lastAnswered].compactMap(\.self).first { $0.id == url }
        guard let failure = answer?.failure else { return result }
        let why = failure.isEmpty ? "" : ": \(failure)"
        let what = item.isActivity ? "continue the activity" : "open the URL"
        return self.result(app, ok: false, "is in the foreground, and could not \(what)\(why)", "failed")
    }

    /// Queues the URL, file or activity of a request for the app. Returns the number of the queued message. Throws if
    /// the app cannot open or continue it.
    func open(
        _ target: Opening,
        for peer: Peer,
        _ token: RequestToken?,
        _ app: AppRuntime
    ) throws(RequestError) -> Int64 {
        let (sender, key) = (Self.name(of: peer), token?.text)
        do throws(URLRefusal) {
            switch target {
            case .target(let target): return try supervisor.mailboxes.open(target, from: sender, key: key, app)
            case .activity(let activity, let source):
                return try supervisor.mailboxes.continueActivity(activity, of: source, from: sender, key: key, app)
            }
        } catch {
            throw RequestError(error.description)
        }
    }
}

extension OpenTarget {
    fileprivate init(_ target: OpenRequest.Target) {
        switch target {
        case .url(let url): self = .url(url)
        case .file(let path, let type): self = .file(path, type: type)
        }
    }
}

extension OpenRequest {
    fileprivate func problem(with target: OpenTarget) -> FieldError? {
        let field =
            switch target {
            case .url: "url"
            case .file: "file"
            }
        return target.problem.map { FieldError(field: field, problem: $0) }
    }
}
