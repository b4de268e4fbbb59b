// SPDX-License-Identifier: Apache-2.0

import Engine
import Mailbox
import Store
import Supervisor
import TorporAPI
import Varlink
import VarlinkServer

/// Requests about messages posted to apps, and about messages that no app handled.
extension ControlService {
    func post(_ request: PostRequest, for peer: Peer, _ reply: Reply) throws(Selection.Unknown) {
        let app = try selection.one(request.app)
        if request.owned, refuseUnowned(app, reply) { return }
        let named: String?
        do throws(FieldError) {
            named = try supervisor.inForce.accounts.authority.sender(request.sender, postedBy: peer)
        } catch {
            return reply.fail(error)
        }
        let sender = named ?? Self.name(of: peer)
        supervisor.mailboxes.post(request, from: sender, to: app) { [weak self, weak app] outcome in
            guard let self else { return }
            tell(
                outcome.map { result in
                    var result = result
                    result.message = result.message ?? app.flatMap { self.supervisor.deafness(of: $0) }
                    return result
                },
                of: request,
                reply
            )
        }
    }

    private func tell(_ outcome: Result<PostResult, PostRefusal>, of request: PostRequest, _ reply: Reply) {
        switch outcome {
        case .success(let result): reply.send(result.json)
        case .failure(let refusal): refuse(refusal, request.topic, request.app, reply)
        }
    }

    private func refuse(_ refusal: PostRefusal, _ topic: String, _ app: String, _ reply: Reply) {
        switch refusal {
        case .notSubscribed(let sentence):
            reply.fail(
                ManagerInterface.ErrorName.notSubscribed,
                ["app": .string(app), "topic": .string(topic), "message": .string(sentence)]
            )
        case .full(let sentence):
            reply.fail(ManagerInterface.ErrorName.mailboxFull, ["app": .string(app), "message": .string(sentence)])
        case .invalid(let error): reply.fail(error)
        case .failed(let sentence): reply.fail(sentence)
        }
    }

    func unhandled(_ request: UnhandledRequest, _ reply: Reply) throws(Selection.Unknown) {
        let chosen = request.apps.isEmpty ? nil : try selection.resolve(request.apps)
        var query = UnhandledQuery()
        query.hasPayload = request.payload
        query.topicsWithPayload = [OpenedURL.topic]
        query.ids = request.ids.isEmpty ? nil : request.ids
        if let chosen, chosen.count == 1 { query.app = chosen[0].name }
        let names = chosen.map { Set($0.map(\.name)) }
        supervisor.persistence.whenLoaded { [self] in
            supervisor.mailboxes.unhandled.list(query) { result in
                switch result {
                case .success(let rows):
                    let rows = rows.filter { names?.contains($0.mail.app) ?? true }
                    let all = rows.map {
                        UnhandledInfo($0, withPayload: request.payload || $0.mail.topic == OpenedURL.topic).json
                    }
                    reply.send(BoundedReply.list("unhandled", all))
                case .failure(let problem): reply.fail("unhandled messages cannot be read: \(problem)")
                }
            }
        }
    }

    func replay(_ request: ReplayRequest, by person: String, _ reply: Reply) throws(Selection.Unknown) {
        let to = try request.app.map { name throws(Selection.Unknown) in try selection.one(name) }
        supervisor.persistence.whenLoaded { [self] in
            guard let from = supervisor.mailboxes.unhandled.app(of: request.id) else {
                return reply.fail(Self.isNotThere(request.id))
            }
            let app = to ?? from
            supervisor.mailboxes.replay(request.id, of: from, to: app, by: person) { [weak self] outcome in
                switch outcome {
                case .success(let result):
                    var json = result.json.objectValue ?? [:]
                    json["app"] = .string(app.name)
                    reply.send(.object(json))
                case .failure(.gone): reply.fail(Self.isNotThere(request.id))
                case .failure(.refused(let refusal, let topic)): self?.refuse(refusal, topic, app.name, reply)
                }
            }
        }
    }

    func drop(_ request: DropRequest, by person: String, _ reply: Reply) throws(Selection.Unknown) {
        let chosen = try selection.resolve(request.apps)
        supervisor.persistence.whenLoaded { [self] in
            let list = supervisor.mailboxes.unhandled
            if let missing = request.ids.first(where: { list.app(of: $0) == nil }) {
                return reply.fail(Self.isNotThere(missing))
            }
            let ids = Set(request.ids).sorted() + chosen.flatMap { list.ids(of: $0) }
            for id in ids {
                if let app = list.app(of: id) { list.drop(id, of: app) }
            }
            for app in chosen {
                note(app, .posted, text: "its unhandled messages were dropped", reason: person)
            }
            supervisor.store.sync { problem in
                if let problem { return reply.fail("it is dropped, but that cannot be stored (\(problem))") }
                reply.send(["ids": .array(ids.map { .int($0) })])
            }
        }
    }

    private static func isNotThere(_ id: Int64) -> String {
        "there is no unhandled message \(id): ‘torpor unhandled’ lists them"
    }
}

extension UnhandledInfo {
    fileprivate init(_ item: StoredUnhandled, withPayload: Bool) {
        let mail = item.mail
        self.init(
            id: mail.id,
            app: mail.app,
            topic: mail.topic,
            name: mail.message,
            sender: mail.sender,
            since: item.at,
            why: item.why
        )
        key = mail.key
        // A payload that is not valid JSON is shown as text.
        payload = withPayload ? (try? JSON.parse(mail.payload)) ?? .string(mail.payload) : nil
        count = mail.count
        firstAt = mail.firstAt
        lastAt = mail.lastAt
        attempts = mail.standing.attempts
        incarnation = item.run
        asked = mail.standing.chain.flatMap { try? JSON.parse($0) }.flatMap { MailChain($0) }?.asked ?? []
    }
}
