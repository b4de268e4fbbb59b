// SPDX-License-Identifier: Apache-2.0

import Configuration
import HTTPServing
import Linux
import TorporAPI
import Varlink
import Web

/// Answers requests that need torpord, on a thread of the pool.
struct Answers: Sendable {
    let hub: Hub

    /// The query parameters of a request.
    struct Query: Sendable {
        var lines: Int64?
        var since: Int64?
        var until: Int64?
        var after: Int64?
        var limit: Int64?
        var app: String?
        var grep: String?
        var cursor: String?
        var kinds: Set<String>?
        /// Which variant of an app's icon is requested, such as a size or `dark`; nil for the default.
        var variant: String?
        /// The value of the `Accept` header.
        var accepted: String?

        init(_ head: HTTPHead) throws(FieldError) {
            func number(_ name: String) throws(FieldError) -> Int64? {
                guard let text = head.query(name) else { return nil }
                guard let number = Int64(text) else {
                    throw FieldError(field: name, problem: "must be a whole number, as in \(name)=100")
                }
                return number
            }
            lines = try number("lines").map { min(max($0, 0), 5000) }
            since = try number("since")
            until = try number("until")
            after = try number("after")
            limit = try number("limit").map { min(max($0, 0), 10_000) }
            accepted = head.header("Accept")
            app = head.query("app")
            grep = head.query("grep").flatMap { $0.isEmpty ? nil : $0 }
            cursor = head.query("cursor")
            variant = head.query("variant")
            kinds = head.query("kinds").map { Set($0.split(separator: ",").map(String.init)) }
        }
    }

    /// Returns the response to a read-only request.
    func answer(_ route: WebRoute, _ query: Query, _ link: Link) -> HTTPResponse {
        do throws(VarlinkClientError) {
            switch route {
            case .apps: return HTTPResponse(status: 200, json: try link.call(.list))
            case .app(let name): return HTTPResponse(status: 200, json: try link.call(.status(app: name)))
            case .logs(let name):
                var request = LogsRequest(app: name)
                request.isOneReply = true
                request.lines = query.lines ?? 200
                request.cursor = query.cursor
                request.grep = query.grep
                return HTTPResponse(status: 200, json: try link.call(.logs(request)))
            case .snapshot(let name): return try snapshot(name, link)
            case .icon(let name): return try icon(name, query.variant, link)
            case .settings(let name): return HTTPResponse(status: 200, json: try link.call(.settings(app: name)))
            case .unhandled(let name):
                var request = UnhandledRequest()
                request.apps = [name]
                return HTTPResponse(status: 200, json: try link.call(.unhandled(request)))
            case .transfers(let name):
                var request = TransfersRequest()
                request.apps = name.isEmpty ? [] : [name]
                return HTTPResponse(status: 200, json: try link.call(.transfers(request)))
            case .alerts(let name):
                let request = AlertsRequest(apps: name.isEmpty ? [] : [name])
                return HTTPResponse(status: 200, json: try link.call(.alerts(request)))
            case .permissions(let name):
                return HTTPResponse(status: 200, json: try link.call(.permissions(apps: [name])))
            case .events: return HTTPResponse(status: 200, json: try events(query, link))
            case .reports: return HTTPResponse(status: 200, json: try link.call(.reports(app: query.app)))
            case .memory: return HTTPResponse(status: 200, json: try link.call(.memory))
            case .timers:
                return HTTPResponse(status: 200, json: try link.call(.timers(apps: query.app.map { [$0] } ?? [])))
            case .graph: return HTTPResponse(status: 200, json: try link.call(.graph))
            case .describe: return HTTPResponse(status: 200, json: try link.call(.describe))
            case .doctor: return HTTPResponse(status: 200, json: try link.call(.doctor))
            default: return HTTPResponse(404, "there is nothing here")
            }
        } catch {
            return HTTPResponse(error)
        }
    }

    /// Returns an app's last snapshot. Its type is the one that torpord has detected; the browser must not guess
    /// another.
    private func snapshot(_ name: String, _ link: Link) throws(VarlinkClientError) -> HTTPResponse {
        let whole = try SnapshotPart.whole { offset throws(VarlinkClientError) in
            let reply = try link.call(.snapshot(app: name, offset: offset))
            return (try? SnapshotPart(json: reply)) ?? SnapshotPart(nil)
        }
        guard let kind = whole.snapshot?.kind else { return HTTPResponse(404, "there is no snapshot of \(name)") }
        return HTTPResponse(status: 200, headers: [("Content-Type", kind.mediaType)], body: .bytes(whole.data))
    }

    /// Returns an app's icon. Its headers forbid scripts, which an SVG could contain, even if the icon is opened by
    /// itself.
    private func icon(_ name: String, _ variant: String?, _ link: Link) throws(VarlinkClientError) -> HTTPResponse {
        let reply = try link.call(.icon(app: name, variant: variant))
        let icon = (try? AppIcon(json: reply)) ?? AppIcon(trouble: nil)
        guard let type = icon.mediaType else {
            return HTTPResponse(404, "there is no icon of \(name)" + (icon.trouble.map { ": \($0)" } ?? ""))
        }
        let headers = [
            ("Content-Type", type), ("Cache-Control", "private, max-age=60"),
            ("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; sandbox"),
        ]
        return HTTPResponse(status: 200, headers: headers, body: .bytes(icon.data))
    }

    /// Reads events from torpord. `kinds` of the query filters them.
    func events(_ query: Query, _ link: Link) throws(VarlinkClientError) -> JSON {
        var request = EventsRequest()
        request.app = query.app
        request.since = query.since
        request.until = query.until
        request.after = query.after
        request.limit = query.limit ?? 500
        var events: [JSON] = []
        func take(_ reply: JSON) { events += reply["events"]?.arrayValue ?? [] }
        let last = try link.call(.events(request)) { take($0) }
        take(last)
        if let kinds = query.kinds { events.removeAll { !kinds.contains($0["kind"]?.stringValue ?? "") } }
        return [
            "events": .array(events), "sequence": last["sequence"] ?? .null, "incomplete": last["incomplete"] ?? .null,
        ]
    }

    /// How long a page waits at most for the end of a verb, a command for an app. The page sees each step through its
    /// event stream anyway.
    static let patience = Duration.seconds(20)

    /// The members that the body of a request for a verb may have.
    private static let members = ["force", "background", "for_ms", "reason", "end", "wait"]

    /// Parses the body of a POST that runs a verb on an app.
    static func request(_ verb: Verb, _ name: String, _ body: JSON) throws(FieldError) -> VerbRequest {
        let members = Self.members.joined(separator: ", ")
        guard var object = body.objectValue else {
            throw FieldError(field: "the body", problem: "must be an object, which may have \(members)")
        }
        if let unknown = object.members.first(where: { !Self.members.contains($0.name) }) {
            throw FieldError(field: unknown.name, problem: "is not known here: the body may have \(members)")
        }
        object["apps"] = .strings([name])
        var request = try VerbRequest(verb: verb, parameters: .object(object))
        request.token = .random()
        request.timeoutMilliseconds = patience.microseconds / 1000
        return request
    }

    /// Parses the body of a POST that changes settings, unhandled messages, transfers, alerts or permissions.
    static func change(_ route: WebRoute, _ body: JSON) throws(FieldError) -> ManagerRequest {
        switch route {
        case .settings(let name): return .setSettings(try settings(name, body))
        case .unhandled:
            let fields = try only(["replay", "drop"], body)
            if let id = try fields.optionalInt("replay") { return .replayUnhandled(ReplayRequest(id: id)) }
            return .dropUnhandled(DropRequest(ids: try numbers("drop", fields)))
        case .alerts(let name):
            let fields = try only(["answer", "action", "dismiss"], body)
            if let number = try fields.optionalInt("answer") {
                let action = try fields.optionalString("action") ?? "default"
                return .answerAlert(AnswerAlertRequest(number: number, app: name, action: action))
            }
            return .cancelAlerts(AlertsRequest(apps: [name], numbers: try numbers("dismiss", fields)))
        case .permissions(let name):
            let fields = try only(["name", "answer"], body)
            let word = try fields.string("answer")
            guard let answer = PermissionVerdict(rawValue: word) else {
                throw FieldError(field: "answer", problem: "must be allow, deny or reset")
            }
            return .answerPermissions(
                AnswerPermissionsRequest(app: name, names: [try fields.string("name")], answer: answer)
            )
        default:
            return .cancelTransfers(CancelTransfersRequest(ids: try numbers("cancel", try only(["cancel"], body))))
        }
    }

    /// Returns the fields of a body. Throws if the body has members that are not in `names`.
    private static func only(_ names: [String], _ body: JSON) throws(FieldError) -> Fields {
        let list = names.joined(separator: " and ")
        guard let object = body.objectValue else {
            throw FieldError(field: "the body", problem: "must be an object, which may have \(list)")
        }
        if let unknown = object.members.first(where: { member in !names.contains { $0 == member.name } }) {
            throw FieldError(field: unknown.name, problem: "is not known here: the body may have \(list)")
        }
        return Fields(object)
    }

    /// Reads a list of numbers, which must not be empty.
    private static func numbers(_ name: String, _ fields: Fields) throws(FieldError) -> [Int64] {
        let numbers = try fields.list(name) { json throws(FieldError) in
            guard let number = json.intValue else { throw FieldError(field: name, problem: "must have whole numbers") }
            return number
        }
        guard !numbers.isEmpty else { throw FieldError(field: name, problem: "must have a number") }
        return numbers
    }

    /// Parses the body of a POST that sets and unsets settings.
    private static func settings(_ name: String, _ body: JSON) throws(FieldError) -> SetSettingsRequest {
        let fields = try only(["values", "unset"], body)
        var request = SetSettingsRequest(app: name)
        request.unset = try fields.strings("unset")
        for member in body["values"]?.objectValue?.members ?? [] {
            guard let text = SetSettingsRequest.text(member.value) else {
                throw FieldError(field: "values", problem: "must have strings, numbers, true and false only")
            }
            request.values.append(SetSettingsRequest.Value(member.name, text))
        }
        return request
    }

    /// Makes a change, and returns the response.
    func change(_ request: ManagerRequest, _ link: Link) -> HTTPResponse {
        hub.refresh(underWay: 1)
        defer { hub.refresh(underWay: -1) }
        do throws(VarlinkClientError) {
            return HTTPResponse(status: 200, json: try link.call(request))
        } catch {
            return HTTPResponse(error)
        }
    }

    /// Runs a verb, and returns the response.
    func act(_ request: VerbRequest, _ link: Link) -> HTTPResponse {
        hub.refresh(underWay: 1)
        defer { hub.refresh(underWay: -1) }
        do throws(VarlinkClientError) {
            let reply = try link.call(.verb(request), within: Self.patience + .seconds(5))
            let results = reply["results"]?.arrayValue ?? []
            let failed = results.first { $0["ok"]?.boolValue == false }
            var object: JSONObject = ["results": .array(results)]
            if let failed { object["error"] = .string(failed["message"]?.stringValue ?? "it failed") }
            return HTTPResponse(status: failed == nil ? 200 : 409, json: .object(object))
        } catch {
            return HTTPResponse(error)
        }
    }
}

extension HTTPResponse {
    /// A response with an error message.
    init(_ status: UInt32, _ sentence: String, headers: [(name: String, value: String)] = []) {
        self.init(status: status, json: ["error": .string(sentence)], headers: headers)
    }

    /// The response to an error of torpord, or if torpord cannot be reached.
    init(_ error: VarlinkClientError) {
        guard case .service(let name, let parameters) = error else {
            self.init(503, "torpord does not answer: \(error)", headers: [("Retry-After", "2")])
            return
        }
        switch name {
        case ManagerInterface.ErrorName.notPermitted: self.init(403, "\(error)")
        case ManagerInterface.ErrorName.unknownApp:
            let nearest = parameters["nearest"]?.stringValue.map { ": did you mean \($0)?" } ?? ""
            self.init(404, "there is no app \(parameters["name"]?.stringValue ?? "")\(nearest)")
        case ManagerInterface.ErrorName.failed, ManagerInterface.ErrorName.inJournal: self.init(409, "\(error)")
        case VarlinkErrorName.invalidParameter:
            let parameter = parameters["parameter"]?.stringValue ?? "a parameter"
            self.init(400, parameters["message"]?.stringValue ?? "torpord does not take \(parameter)")
        default: self.init(502, "\(error)")
        }
    }
}
