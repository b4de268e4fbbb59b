// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// A call of `io.torpor.Manager` with its parameters decoded.
public enum ManagerRequest: Hashable, Sendable {
    case list
    /// List some of the apps: names, globs or `tag:NAME`.
    case listOf([String])
    case status(app: String)
    /// A verb: a method that takes apps and replies a result for each.
    case verb(VerbRequest)
    /// Apply the configuration on disk.
    case apply(ApplyRequest)
    /// Send a signal to an app. `signal` is its name or number, as the user wrote it.
    case signal(app: String, signal: String, token: RequestToken? = nil)
    /// Send an app a message, now or when it wakes.
    case post(PostRequest)
    /// Ask an app to open a URL or a file.
    case open(OpenRequest)
    /// Bring a scene of a template to the foreground; create the scene if it does not exist.
    case openScene(OpenSceneRequest)
    /// List the scenes of a template; nil for all templates.
    case scenes(template: String?)
    /// List the apps that open a URL or a file.
    case handlers(OpenRequest)
    /// List the messages queued for an app.
    case mailbox(MailboxRequest)
    /// List the messages that no app handled.
    case unhandled(UnhandledRequest)
    /// Send a message again that no app handled.
    case replayUnhandled(ReplayRequest)
    /// Discard messages that no app handled.
    case dropUnhandled(DropRequest)
    /// List the transfers of apps.
    case transfers(TransfersRequest)
    /// Cancel transfers.
    case cancelTransfers(CancelTransfersRequest)
    /// Schedule an alert of an app.
    case scheduleAlert(ScheduleAppAlertRequest)
    /// List the alerts of apps.
    case alerts(AlertsRequest)
    /// Cancel or dismiss alerts.
    case cancelAlerts(AlertsRequest)
    /// Answer an open alert.
    case answerAlert(AnswerAlertRequest)
    /// Set an app's badge: the number at its menu entry.
    case setBadge(app: String, count: Int64)
    /// List the data folders of these apps; no entry means all apps that have any.
    case data(apps: [String])
    /// Remove the content of data folders.
    case purgeData(PurgeDataRequest)
    /// List the permissions that apps ask for; no entry means all apps.
    case permissions(apps: [String])
    /// Answer an app that asks for permissions.
    case answerPermissions(AnswerPermissionsRequest)
    /// Show the protected data of all apps that have any.
    case protection
    /// Lock protected data.
    case lockData
    /// Unlock protected data. The caller must already have given the keys of the data to the kernel.
    case unlockData
    /// List the settings of an app.
    case settings(app: String)
    /// Change settings of an app.
    case setSettings(SetSettingsRequest)
    /// List the current activities of all apps; with `app`, return only that app's activity, with its payload.
    case activities(app: String?)
    /// Ask an app to continue an activity.
    case continueActivity(ContinueActivityRequest)
    case logs(LogsRequest)
    case events(EventsRequest)
    case reports(app: String?)
    /// Return a part of the state that an app saved, starting at the byte `offset`.
    case exportState(app: String, offset: Int64)
    /// Save a state for an app's next launch.
    case importState(ImportStateRequest)
    /// List the apps that several machines can own, and report when an owner changes or an app saves its state.
    case owners
    /// Return a part of an app's snapshot, starting at the byte `offset`.
    case snapshot(app: String, offset: Int64)
    /// Return the icon of an app, or a variant of the icon, such as `dark`.
    case icon(app: String, variant: String? = nil)
    /// Return what a desktop's menus show about all apps.
    case desktopApps
    case doctor
    /// List the policies, in the order in which torpord asks them.
    case policies
    /// Reload a policy's library.
    case reloadPolicy(name: String)
    /// Return the order in which the policies would evict apps if memory were short now.
    case evictionOrder
    /// Return how much memory each app has, and what torpord would do if memory were short now.
    case memory
    /// Return when timers fire next; no entry means the timers of all apps.
    case timers(apps: [String])
    /// Record what policies are asked and what they advise, until the recording ends.
    case recordPolicies(RecordRequest)
    /// Return the dependencies of apps.
    case graph
    /// Return the metrics of torpord.
    case metrics
    /// Return the version and process of the torpord that answers.
    case describe
    /// Replace the running torpord in place.
    case upgrade

    /// Decodes a call; nil if the interface has no such method.
    ///
    /// Throws if a parameter is missing, unknown or of the wrong type: reply InvalidParameter with its name.
    public init?(call: VarlinkCall) throws(FieldError) {
        guard call.interface == ManagerInterface.name else { return nil }
        try ManagerInterface.requireKnown(call.parameters, of: call.member)
        if let verb = Verb(rawValue: call.member) {
            self = .verb(try VerbRequest(verb: verb, parameters: call.parameters))
            return
        }
        let fields = try Fields(call.parameters)
        switch call.member {
        case "List": self = fields["apps"] == nil ? .list : .listOf(try fields.strings("apps"))
        case "Apply": self = .apply(try ApplyRequest(fields: fields))
        case "Status": self = .status(app: try fields.string("app"))
        case "Signal":
            self = .signal(
                app: try fields.string("app"),
                signal: try fields.string("signal"),
                token: try fields.optionalToken("token")
            )
        case "Post": self = .post(try PostRequest(fields: fields))
        case "Open": self = .open(try OpenRequest(fields: fields))
        case "OpenScene": self = .openScene(try OpenSceneRequest(fields: fields))
        case "Scenes": self = .scenes(template: try fields.optionalString("template"))
        case "Handlers": self = .handlers(try OpenRequest(fields: fields))
        case "Mailbox": self = .mailbox(try MailboxRequest(fields: fields))
        case "Unhandled": self = .unhandled(try UnhandledRequest(fields: fields))
        case "ReplayUnhandled": self = .replayUnhandled(try ReplayRequest(fields: fields))
        case "DropUnhandled": self = .dropUnhandled(try DropRequest(fields: fields))
        case "Transfers": self = .transfers(try TransfersRequest(fields: fields))
        case "CancelTransfers": self = .cancelTransfers(try CancelTransfersRequest(fields: fields))
        case "ScheduleAlert": self = .scheduleAlert(try ScheduleAppAlertRequest(fields: fields))
        case "Alerts": self = .alerts(try AlertsRequest(fields: fields))
        case "CancelAlerts": self = .cancelAlerts(try AlertsRequest(fields: fields))
        case "AnswerAlert": self = .answerAlert(try AnswerAlertRequest(fields: fields))
        case "SetBadge": self = .setBadge(app: try fields.string("app"), count: try fields.int("count"))
        case "Data": self = .data(apps: fields["apps"] == nil ? [] : try fields.strings("apps"))
        case "PurgeData": self = .purgeData(try PurgeDataRequest(fields: fields))
        case "Permissions": self = .permissions(apps: fields["apps"] == nil ? [] : try fields.strings("apps"))
        case "AnswerPermissions": self = .answerPermissions(try AnswerPermissionsRequest(fields: fields))
        case "Protection": self = .protection
        case "LockData": self = .lockData
        case "UnlockData": self = .unlockData
        case "Settings": self = .settings(app: try fields.string("app"))
        case "SetSettings":
            self = .setSettings(try SetSettingsRequest(fields: fields, app: try fields.string("app")))
        case "Activities": self = .activities(app: try fields.optionalString("app"))
        case "ContinueActivity": self = .continueActivity(try ContinueActivityRequest(fields: fields))
        case "Logs": self = .logs(try LogsRequest(fields: fields))
        case "Events": self = .events(try EventsRequest(fields: fields))
        case "Reports": self = .reports(app: try fields.optionalString("app"))
        case "ExportState":
            let offset = try fields.optionalInt("offset") ?? 0
            if offset < 0 { throw FieldError(field: "offset", problem: "must not be negative") }
            self = .exportState(app: try fields.string("app"), offset: offset)
        case "ImportState": self = .importState(try ImportStateRequest(fields: fields))
        case "Owners": self = .owners
        case "Snapshot":
            let offset = try fields.optionalInt("offset") ?? 0
            if offset < 0 { throw FieldError(field: "offset", problem: "must not be negative") }
            self = .snapshot(app: try fields.string("app"), offset: offset)
        case "Icon":
            self = .icon(app: try fields.string("app"), variant: try fields.optionalString("variant"))
        case "DesktopApps": self = .desktopApps
        case "Doctor": self = .doctor
        case "Policies": self = .policies
        case "ReloadPolicy": self = .reloadPolicy(name: try fields.string("name"))
        case "EvictionOrder": self = .evictionOrder
        case "Memory": self = .memory
        case "Timers": self = .timers(apps: fields["apps"] == nil ? [] : try fields.strings("apps"))
        case "RecordPolicies": self = .recordPolicies(try RecordRequest(fields: fields))
        case "Graph": self = .graph
        case "Metrics": self = .metrics
        case "Describe": self = .describe
        case "Upgrade": self = .upgrade
        default: return nil
        }
    }

    /// Encodes the call; it sets `more` if the method has several replies, such as verbs, logs and events.
    public var call: VarlinkCall {
        let (member, parameters, more): (String, JSON, Bool) =
            switch self {
            case .list: ("List", .emptyObject, false)
            case .listOf(let apps): ("List", ["apps": .strings(apps)], false)
            case .status(let app): ("Status", ["app": .string(app)], false)
            case .apply(let request): ("Apply", request.parameters, true)
            case .verb(let request): (request.verb.rawValue, request.parameters, true)
            case .signal(let app, let signal, let token):
                ("Signal", Self.signalParameters(app, signal, token), false)
            case .post(let request): ("Post", request.parameters, false)
            case .open(let request): ("Open", request.parameters, true)
            case .openScene(let request): ("OpenScene", request.parameters, true)
            case .scenes(let template):
                ("Scenes", template.map { ["template": .string($0)] } ?? .emptyObject, false)
            case .handlers(let request): ("Handlers", request.targetParameters, false)
            case .mailbox(let request): ("Mailbox", request.parameters, false)
            case .unhandled(let request): ("Unhandled", request.parameters, false)
            case .replayUnhandled(let request): ("ReplayUnhandled", request.parameters, false)
            case .dropUnhandled(let request): ("DropUnhandled", request.parameters, false)
            case .transfers(let request): ("Transfers", request.parameters, false)
            case .cancelTransfers(let request): ("CancelTransfers", request.parameters, false)
            case .scheduleAlert(let request): ("ScheduleAlert", request.parameters, false)
            case .alerts(let request): ("Alerts", request.parameters, false)
            case .cancelAlerts(let request): ("CancelAlerts", request.parameters, false)
            case .answerAlert(let request): ("AnswerAlert", request.parameters, false)
            case .setBadge(let app, let count):
                ("SetBadge", ["app": .string(app), "count": .int(count)], false)
            case .data(let apps): ("Data", apps.isEmpty ? .emptyObject : ["apps": .strings(apps)], false)
            case .purgeData(let request): ("PurgeData", request.parameters, false)
            case .permissions(let apps):
                ("Permissions", apps.isEmpty ? .emptyObject : ["apps": .strings(apps)], false)
            case .answerPermissions(let request): ("AnswerPermissions", request.parameters, false)
            case .protection: ("Protection", .emptyObject, false)
            case .lockData: ("LockData", .emptyObject, false)
            case .unlockData: ("UnlockData", .emptyObject, false)
            case .settings(let app): ("Settings", ["app": .string(app)], false)
            case .setSettings(let request): ("SetSettings", request.parameters, false)
            case .activities(let app): ("Activities", app.map { ["app": .string($0)] } ?? .emptyObject, false)
            case .continueActivity(let request): ("ContinueActivity", request.parameters, !request.asksOnly)
            case .logs(let request): ("Logs", request.parameters, !request.isOneReply)
            case .events(let request): ("Events", request.parameters, true)
            case .reports(let app): ("Reports", app.map { ["app": .string($0)] } ?? .emptyObject, false)
            case .exportState(let app, let offset):
                ("ExportState", ["app": .string(app), "offset": .int(offset)], false)
            case .importState(let request): ("ImportState", request.parameters, false)
            case .owners: ("Owners", .emptyObject, true)
            case .snapshot(let app, let offset):
                ("Snapshot", ["app": .string(app), "offset": .int(offset)], false)
            case .icon(let app, nil): ("Icon", ["app": .string(app)], false)
            case .icon(let app, let variant?):
                ("Icon", ["app": .string(app), "variant": .string(variant)], false)
            case .desktopApps: ("DesktopApps", .emptyObject, false)
            case .doctor: ("Doctor", .emptyObject, false)
            case .policies: ("Policies", .emptyObject, false)
            case .reloadPolicy(let name): ("ReloadPolicy", ["name": .string(name)], false)
            case .evictionOrder: ("EvictionOrder", .emptyObject, false)
            case .memory: ("Memory", .emptyObject, false)
            case .timers(let apps): ("Timers", apps.isEmpty ? .emptyObject : ["apps": .strings(apps)], false)
            case .recordPolicies(let request): ("RecordPolicies", request.parameters, true)
            case .graph: ("Graph", .emptyObject, false)
            case .metrics: ("Metrics", .emptyObject, false)
            case .describe: ("Describe", .emptyObject, false)
            case .upgrade: ("Upgrade", .emptyObject, false)
            }
        return VarlinkCall(method: "\(ManagerInterface.name).\(member)", parameters: parameters, more: more)
    }

    private static func signalParameters(_ app: String, _ signal: String, _ token: RequestToken?) -> JSON {
        var object: JSONObject = ["app": .string(app), "signal": .string(signal)]
        if let token { object["token"] = .string(token.text) }
        return .object(object)
    }
}

/// The parameters of Logs.
public struct LogsRequest: Hashable, Sendable {
    /// The name of the app.
    public var app: String
    /// The maximum number of last lines to return; nil for the supervisor's default.
    public var lines: Int64?
    /// Whether to continue with later lines as they are written.
    public var follow = false
    /// Only lines written at or after this time, microseconds since 1970.
    public var since: Int64?
    /// Only lines that contain this text.
    public var grep: String?
    /// Continue after an earlier reply that had this cursor; `lines` and `since` are then ignored.
    public var cursor: String?
    /// Whether to return only what fits into one reply, for clients that poll. This is not a parameter of the call: the
    /// client makes the call without `more`.
    public var isOneReply = false

    /// Sets the app's name; the other fields keep their defaults.
    public init(app: String) { self.app = app }

    init(fields: Fields) throws(FieldError) {
        app = try fields.string("app")
        lines = try fields.optionalInt("lines")
        if let lines, lines < 0 { throw FieldError(field: "lines", problem: "must not be negative") }
        follow = try fields.optionalBool("follow") ?? false
        since = try fields.optionalInt("since")
        grep = try fields.optionalString("grep")
        cursor = try fields.optionalString("cursor")
    }

    var parameters: JSON {
        var object: JSONObject = ["app": .string(app)]
        if let lines { object["lines"] = .int(lines) }
        if follow { object["follow"] = true }
        if let since { object["since"] = .int(since) }
        if let grep { object["grep"] = .string(grep) }
        if let cursor { object["cursor"] = .string(cursor) }
        return .object(object)
    }
}

/// The parameters of Events.
public struct EventsRequest: Hashable, Sendable {
    /// Only events of this app.
    public var app: String?
    /// Whether to continue with later events as they happen.
    public var follow = false
    /// Only events at or after this time, microseconds since 1970.
    public var since: Int64?
    /// Only events before this time, microseconds since 1970.
    public var until: Int64?
    /// Only events with a greater sequence number than this.
    public var after: Int64?
    /// The maximum number of events, the newest ones; nil for the supervisor's default.
    public var limit: Int64?

    /// A request for events of all apps.
    public init() {}

    init(fields: Fields) throws(FieldError) {
        app = try fields.optionalString("app")
        follow = try fields.optionalBool("follow") ?? false
        since = try fields.optionalInt("since")
        until = try fields.optionalInt("until")
        after = try fields.optionalInt("after")
        limit = try fields.optionalInt("limit")
        if let limit, limit < 0 { throw FieldError(field: "limit", problem: "must not be negative") }
    }

    var parameters: JSON {
        var object: JSONObject = [:]
        if let app { object["app"] = .string(app) }
        if follow { object["follow"] = true }
        if let since { object["since"] = .int(since) }
        if let until { object["until"] = .int(until) }
        if let after { object["after"] = .int(after) }
        if let limit { object["limit"] = .int(limit) }
        return .object(object)
    }
}

/// The parameters of RecordPolicies.
public struct RecordRequest: Hashable, Sendable {
    /// The minimum of `everyMilliseconds`.
    public static let shortest: Int64 = 100

    /// The interval, in milliseconds, at which the recording gets a line with new measurements even if no event occurs;
    /// nil for the supervisor's default of one second.
    public var everyMilliseconds: Int64?
    /// How long to record, in milliseconds; if nil, until the caller disconnects.
    public var forMilliseconds: Int64?

    /// A recording that ends only when the caller disconnects.
    public init() {}

    init(fields: Fields) throws(FieldError) {
        everyMilliseconds = try fields.optionalInt("every_ms")
        if let everyMilliseconds, everyMilliseconds < Self.shortest {
            throw FieldError(field: "every_ms", problem: "must be at least \(Self.shortest)")
        }
        forMilliseconds = try fields.optionalInt("for_ms")
        if let forMilliseconds, forMilliseconds < 0 {
            throw FieldError(field: "for_ms", problem: "must not be negative")
        }
    }

    var parameters: JSON {
        var object: JSONObject = [:]
        if let everyMilliseconds { object["every_ms"] = .int(everyMilliseconds) }
        if let forMilliseconds { object["for_ms"] = .int(forMilliseconds) }
        return .object(object)
    }
}

extension Fields {
    /// Reads the token of a request; nil if absent.
    func optionalToken(_ name: String) throws(FieldError) -> RequestToken? {
        guard let text = try optionalString(name) else { return nil }
        guard let token = RequestToken(text: text) else {
            throw FieldError(field: name, problem: "must be 1 to 16 hexadecimal digits, and not zero")
        }
        return token
    }
}
