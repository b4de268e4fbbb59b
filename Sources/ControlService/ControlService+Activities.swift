// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import Mailbox
import Supervisor
import TorporAPI
import Varlink
import VarlinkServer

/// What an app should open or continue when a request brings it to the foreground.
enum Opening {
    case target(OpenTarget)
    /// An activity; `of` is the app on this machine to which the activity belongs, nil if it comes from elsewhere.
    case activity(Activity, of: AppRuntime?)

    var isActivity: Bool { if case .activity = self { true } else { false } }
}

/// Requests about what users are doing in apps.
extension ControlService {
    func activities(of name: String?, _ reply: Reply) throws(Selection.Unknown) {
        let room = supervisor.activities
        let infos =
            try name.map { name throws(Selection.Unknown) in try selection.one(name) }
            .map { app in [room.info(of: app)].compactMap(\.self) } ?? room.infos
        reply.send(BoundedReply.list("activities", infos.map(\.json)))
    }

    /// Brings the app that continues the activity to the foreground, and replies when that app has answered.
    func continueActivity(
        _ request: ContinueActivityRequest,
        for peer: Peer,
        _ reply: Reply
    ) throws(Selection.Unknown) {
        if let problem = Activity.problem(ofType: Array(request.type.utf8)) {
            return reply.fail(FieldError(field: "type", problem: problem))
        }
        var verb = VerbRequest(verb: .foreground, apps: [])
        verb.wait = request.wait
        verb.timeoutMilliseconds = request.timeoutMilliseconds
        verb.token = request.token
        // A repeated request is about the same app as before, even if the activity has ended since.
        if let app = apps.first(where: { $0.tokens.standing(of: request.token) != .unknown }) {
            verb.apps = [app.name]
            return carryOut(verb, [app], opening: .activity(Activity(type: request.type), of: nil), for: peer, reply)
        }
        let source: AppRuntime?
        let activity: Activity
        if let given = request.given {
            (source, activity) = (nil, Activity(given))
            if let problem = activity.problem {
                return reply.fail(FieldError(field: problem.field, problem: problem.text))
            }
        } else {
            let from = try request.from.map { name throws(Selection.Unknown) in try selection.one(name) }
            guard let found = supervisor.activities.find(request.type, from: from) else {
                return reply.fail(sentence(ofNo: request.type, from: from))
            }
            (source, activity) = (found.app, found.activity)
        }
        let app: AppRuntime
        switch try receiver(of: activity, source, request) {
        case .success(let found): app = found
        case .failure(let problem):
            return reply.fail(
                ManagerInterface.ErrorName.noHandler,
                ["url": .string(request.type), "message": .string(problem.text)]
            )
        }
        if let refusal = supervisor.mailboxes.refusal(ofActivitiesFor: app) {
            return reply.fail("\(app.name) \(refusal)")
        }
        if request.asksOnly { return reply.send(["app": .string(app.name)]) }
        verb.apps = [app.name]
        carryOut(verb, [app], opening: .activity(activity, of: source), for: peer, reply)
    }

    private struct NoReceiver: Error {
        let text: String
    }

    /// The app that continues the activity, or a text that says why no app can. Throws if the request names an
    /// unknown app.
    private func receiver(
        of activity: Activity,
        _ source: AppRuntime?,
        _ request: ContinueActivityRequest
    ) throws(Selection.Unknown) -> Result<AppRuntime, NoReceiver> {
        func none(_ text: String) -> Result<AppRuntime, NoReceiver> { .failure(NoReceiver(text: text)) }
        let type = activity.type
        let from = source?.name ?? request.from
        let fitting = supervisor.activities.receivers(of: type, except: source, named: from)
        var chosen = fitting.first
        if let name = request.to {
            let app = try selection.one(name)
            if app === source { return none("\(app.name) is the app whose activity it is: name another one") }
            guard fitting.contains(where: { $0 === app }) else {
                return none(
                    "\(app.name) does not continue \(type): write \"\(type)\" in activities of "
                        + "[apps.\(app.specification.template)]"
                )
            }
            chosen = app
        }
        if activity.needsState {
            let name = from ?? "its app"
            guard source == nil else {
                return none(
                    "\(type) can only be continued with the state of \(name): ‘torpor activity export \(name)’ takes it "
                        + "to another machine"
                )
            }
            chosen = fitting.first { $0.name == from && (request.to == nil || request.to == from) }
            if chosen == nil, let to = request.to, let own = fitting.first(where: { $0.name == from }) {
                let name = own.name
                return none("\(type) comes with the state of \(name), so only \(name) continues it here, not \(to)")
            }
            guard chosen != nil else {
                return none("\(type) comes with the state of \(name), and no app of that name continues it here")
            }
        }
        guard let chosen else { return none("no app continues \(type): write \"\(type)\" in activities of an app") }
        return .success(chosen)
    }

    private func sentence(ofNo type: String, from: AppRuntime?) -> String {
        if let from {
            let info = supervisor.activities.info(of: from)
            return info.map { "the activity of \(from.name) is \($0.type), not \(type)" }
                ?? "\(from.name) has no activity"
        }
        let hint = Nearest.hint(type, among: supervisor.activities.types)
        return "no app has the activity \(type)\(hint.isEmpty ? ": ‘torpor activity list’ shows what there is" : hint)"
    }
}
