// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// A call of `io.torpor.App` with its parameters decoded.
public enum AppRequest: Hashable, Sendable {
    case attach(AttachRequest)
    case answer(AppAnswer)
    case beginTask(name: String)
    case endTask(token: Int64)
    case claimTasks(tokens: [Int64])
    case backgroundTime
    /// Store the app's state. `data` contains the state as Base64, or `file` names a file with the state in the app's
    /// state directory. `scene` is nil for the app itself.
    case saveState(data: String?, file: String?, scene: String?)
    case discardState(scene: String?)
    /// Store a snapshot. `data` contains the snapshot as Base64, or `file` names a file with the snapshot in the app's
    /// state directory. `scene` is nil for the app itself.
    case saveSnapshot(data: String?, file: String?, scene: String?)
    case discardSnapshot(scene: String?)
    case state
    /// Send a message to another app.
    case post(PostRequest)
    /// Ask torpord to open a URL in another app.
    case openURL(String, token: RequestToken?)
    /// Ask whether an app opens URLs of a scheme.
    case canOpen(scheme: String)
    /// Dequeue messages. For apps without a delegate, to which torpord does not deliver messages.
    case take(TakeRequest)
    /// Subscribe to a topic.
    case subscribe(SubscribeRequest)
    /// Ask for the app's settings and their values.
    case settings
    /// Change settings that the app may change itself; `app` in the request is ignored.
    case setSettings(SetSettingsRequest)
    /// Download or upload a file.
    case startTransfer(StartTransferRequest)
    /// List the app's transfers in a session; nil for all sessions. `after`: only those with a higher id.
    case transfers(session: String?, after: Int64? = nil)
    /// Cancel a transfer, or forget a transfer that has ended.
    case cancelTransfer(id: Int64)
    /// Answer a server's request for a login.
    case answerLogin(AnswerLoginRequest)
    /// Schedule an alert for users.
    case scheduleAlert(ScheduleAlertRequest)
    /// Cancel alerts with these ids; nil for all.
    case cancelAlert(ids: [String]?)
    /// List the app's alerts and its badge (the number at its menu entry).
    case alerts
    /// Set the app's badge: the number at its menu entry.
    case setBadge(count: Int64)
    /// Return the state of the permissions that the app declares.
    case permissions
    /// Ask users for a permission.
    case requestPermission(name: String)
    /// Name what the app must refresh when it comes to the foreground.
    case setNeedsRefresh(names: [String])
    /// Say what a user is doing in the app now.
    case setActivity(SetActivityRequest)
    /// End the app's current activity.
    case endActivity

    /// Decodes a call; nil if the interface has no such method.
    ///
    /// Throws if a parameter is missing or has the wrong type: reply InvalidParameter with its name.
    public init?(call: VarlinkCall) throws(FieldError) {
        guard call.interface == AppInterface.name else { return nil }
        let fields = try Fields(call.parameters)
        switch call.member {
        case "Attach": self = .attach(try AttachRequest(fields: fields))
        case "Answer": self = .answer(try AppAnswer(fields: fields))
        case "BeginTask": self = .beginTask(name: try fields.string("name"))
        case "EndTask": self = .endTask(token: try fields.int("token"))
        case "ClaimTasks": self = .claimTasks(tokens: try AttachRequest.tokens(fields, "tokens"))
        case "BackgroundTime": self = .backgroundTime
        case "SaveState":
            self = .saveState(
                data: try fields.optionalString("data"),
                file: try fields.optionalString("file"),
                scene: try fields.optionalString("scene")
            )
        case "DiscardState": self = .discardState(scene: try fields.optionalString("scene"))
        case "SaveSnapshot":
            self = .saveSnapshot(
                data: try fields.optionalString("data"),
                file: try fields.optionalString("file"),
                scene: try fields.optionalString("scene")
            )
        case "DiscardSnapshot": self = .discardSnapshot(scene: try fields.optionalString("scene"))
        case "State": self = .state
        case "Post": self = .post(try PostRequest(fields: fields))
        case "OpenURL": self = .openURL(try fields.string("url"), token: try fields.optionalToken("token"))
        case "CanOpen": self = .canOpen(scheme: try fields.string("scheme"))
        case "Take": self = .take(try TakeRequest(fields: fields))
        case "Settings": self = .settings
        case "SetSettings": self = .setSettings(try SetSettingsRequest(fields: fields, app: ""))
        case "Subscribe": self = .subscribe(try SubscribeRequest(fields: fields))
        case "StartTransfer": self = .startTransfer(try StartTransferRequest(fields: fields))
        case "Transfers":
            self = .transfers(session: try fields.optionalString("session"), after: try fields.optionalInt("after"))
        case "CancelTransfer": self = .cancelTransfer(id: try fields.int("id"))
        case "AnswerLogin": self = .answerLogin(try AnswerLoginRequest(fields: fields))
        case "ScheduleAlert": self = .scheduleAlert(try ScheduleAlertRequest(fields: fields))
        case "CancelAlert": self = .cancelAlert(ids: try fields["ids"] == nil ? nil : fields.strings("ids"))
        case "Alerts": self = .alerts
        case "SetBadge": self = .setBadge(count: try fields.int("count"))
        case "Permissions": self = .permissions
        case "RequestPermission": self = .requestPermission(name: try fields.string("name"))
        case "SetNeedsRefresh": self = .setNeedsRefresh(names: try fields.strings("names"))
        case "SetActivity": self = .setActivity(try SetActivityRequest(fields: fields))
        case "EndActivity": self = .endActivity
        default: return nil
        }
    }

    /// The request as a Varlink call. Only the call Attach has several replies.
    public var call: VarlinkCall {
        let (member, parameters): (String, JSON) =
            switch self {
            case .attach(let request): ("Attach", request.parameters)
            case .answer(let answer): ("Answer", answer.parameters)
            case .beginTask(let name): ("BeginTask", ["name": .string(name)])
            case .endTask(let token): ("EndTask", ["token": .int(token)])
            case .claimTasks(let tokens): ("ClaimTasks", ["tokens": .array(tokens.map { .int($0) })])
            case .backgroundTime: ("BackgroundTime", .emptyObject)
            case .saveState(let data, let file, let scene):
                ("SaveState", Self.parameters(scene, ["data": .optional(data), "file": .optional(file)]))
            case .discardState(let scene): ("DiscardState", Self.parameters(scene))
            case .saveSnapshot(let data, let file, let scene):
                ("SaveSnapshot", Self.parameters(scene, ["data": .optional(data), "file": .optional(file)]))
            case .discardSnapshot(let scene): ("DiscardSnapshot", Self.parameters(scene))
            case .state: ("State", .emptyObject)
            case .post(let request): ("Post", request.parameters)
            case .openURL(let url, let token):
                ("OpenURL", ["url": .string(url), "token": .optional(token?.text)])
            case .canOpen(let scheme): ("CanOpen", ["scheme": .string(scheme)])
            case .take(let request): ("Take", request.parameters)
            case .subscribe(let request): ("Subscribe", request.parameters)
            case .settings: ("Settings", .emptyObject)
            case .setSettings(let request): ("SetSettings", request.parameters)
            case .startTransfer(let request): ("StartTransfer", request.parameters)
            case .transfers(let session, let after):
                ("Transfers", ["session": .optional(session), "after": .optional(after)])
            case .cancelTransfer(let id): ("CancelTransfer", ["id": .int(id)])
            case .answerLogin(let request): ("AnswerLogin", request.parameters)
            case .scheduleAlert(let request): ("ScheduleAlert", .object(request.members))
            case .cancelAlert(let ids):
                ("CancelAlert", ids.map { names -> JSON in ["ids": .strings(names)] } ?? .emptyObject)
            case .alerts: ("Alerts", .emptyObject)
            case .setBadge(let count): ("SetBadge", ["count": .int(count)])
            case .permissions: ("Permissions", .emptyObject)
            case .requestPermission(let name): ("RequestPermission", ["name": .string(name)])
            case .setNeedsRefresh(let names): ("SetNeedsRefresh", ["names": .strings(names)])
            case .setActivity(let request): ("SetActivity", request.parameters)
            case .endActivity: ("EndActivity", .emptyObject)
            }
        return VarlinkCall(
            method: "\(AppInterface.name).\(member)",
            parameters: parameters,
            more: member == "Attach"
        )
    }
}

extension AppRequest {
    /// Adds the parameter `scene` only if there is a scene, because older supervisors do not know scenes inside apps
    /// and refuse the parameter.
    private static func parameters(_ scene: String?, _ others: JSONObject = [:]) -> JSON {
        var object = others
        if let scene { object["scene"] = .string(scene) }
        return .object(object)
    }
}

/// The parameters of Attach.
public struct AttachRequest: Hashable, Sendable {
    /// The run of the app (incarnation) to which the delegate was attached before; nil the first time.
    public var incarnation: Int64?
    /// The number of the last message that the delegate received in that incarnation.
    public var after: Int64?
    /// The tokens of the background tasks that the delegate has begun and has not ended.
    public var tasks: [Int64] = []

    /// A delegate that was never attached.
    public init() {}

    init(fields: Fields) throws(FieldError) {
        incarnation = try fields.optionalInt("incarnation")
        after = try fields.optionalInt("after")
        tasks = try Self.tokens(fields, "tasks")
    }

    static func tokens(_ fields: Fields, _ name: String) throws(FieldError) -> [Int64] {
        try fields.list(name) { json throws(FieldError) in
            guard let token = json.intValue else { throw FieldError(field: name, problem: "must have integers") }
            return token
        }
    }

    var parameters: JSON {
        [
            "incarnation": .optional(incarnation), "after": .optional(after),
            "tasks": .array(tasks.map { .int($0) }),
        ]
    }
}
