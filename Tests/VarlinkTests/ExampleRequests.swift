// SPDX-License-Identifier: Apache-2.0

import Foundation
import TorporAPI
import Varlink

extension InterfaceTests {
    /// A request or more for each method of the manager's interface, with and without the optional parameters.
    static var requests: [ManagerRequest] {
        var requests: [ManagerRequest] = [
            .list, .listOf(["a", "tag:b"]), .status(app: "a"), .signal(app: "a", signal: "USR1"), .reports(app: nil),
            .reports(app: "a"),
            .doctor, .policies, .reloadPolicy(name: "mobile"), .evictionOrder, .memory, .graph, .metrics,
            .timers(apps: ["web"]),
            .describe,
            .upgrade,
        ]
        for verb in Verb.allCases {
            var request = VerbRequest(verb: verb, apps: ["a", "tag:b"])
            request.timeoutMilliseconds = 5
            request.wait = false
            if verb == .wait { request.state = "active" } else { request.token = .random() }
            requests.append(.verb(request))
            guard verb == .stop else { continue }
            (request.keepState, request.untilBoot) = (true, true)
            requests.append(.verb(request))
        }
        var apply = ApplyRequest()
        requests.append(.apply(apply))
        apply.restart = true
        apply.force = true
        apply.diff = true
        apply.apps = ["web", "tag:x"]
        apply.wait = false
        apply.timeoutMilliseconds = 7
        requests.append(.apply(apply))
        var logs = LogsRequest(app: "a")
        logs.follow = true
        logs.lines = 3
        requests.append(.logs(logs))
        logs.cursor = "1:2:3:4"
        requests.append(.logs(logs))
        requests.append(.signal(app: "a", signal: "USR1", token: .random()))
        var events = EventsRequest()
        requests.append(.events(events))
        events.after = 7
        events.until = 8
        events.limit = 9
        requests.append(.events(events))
        var record = RecordRequest()
        requests.append(.recordPolicies(record))
        record.everyMilliseconds = 250
        record.forMilliseconds = 600_000
        requests.append(.recordPolicies(record))
        requests += [.activities(app: nil), .activities(app: "notes")]
        var going = ContinueActivityRequest(type: "org.example.note")
        requests.append(.continueActivity(going))
        (going.from, going.to, going.wait, going.timeoutMilliseconds, going.token) = ("a", "b", false, 9, .random())
        var given = SetActivityRequest(type: "org.example.note")
        (given.title, given.payload, given.url, given.needsState) = ("t", ["a": 1], "u:", true)
        (going.given, going.asksOnly) = (given, true)
        requests.append(.continueActivity(going))
        var post = PostRequest(app: "a", topic: "t")
        requests.append(.post(post))
        post.payload = ["a": [1, "b"]]
        (post.coalesce, post.key, post.urgent, post.sender, post.remote) = ("net", "k", false, "somebody", true)
        post.token = .random()
        requests.append(.post(post))
        var mailbox = MailboxRequest(app: "a")
        requests.append(.mailbox(mailbox))
        mailbox.take = true
        mailbox.drop = [1, 2]
        mailbox.after = 3
        requests.append(.mailbox(mailbox))
        var open = OpenRequest(.url("notes:1"))
        requests.append(.open(open))
        (open.app, open.wait, open.timeoutMilliseconds, open.token) = ("a", false, 7, .random())
        requests.append(.open(open))
        requests.append(.open(OpenRequest(.file("/a b", type: nil))))
        requests.append(.handlers(OpenRequest(.file("/a", type: "text/plain"))))
        requests += [.scenes(template: nil), .scenes(template: "code")]
        var scene = OpenSceneRequest(template: "code", name: "alice")
        requests.append(.openScene(scene))
        (scene.session, scene.background, scene.wait) = (["n": 7], true, false)
        (scene.timeoutMilliseconds, scene.token) = (7, .random())
        requests.append(.openScene(scene))
        scene = OpenSceneRequest(template: "code", name: "alice")
        scene.remote = true
        requests.append(.openScene(scene))
        requests.append(.settings(app: "a"))
        var settings = SetSettingsRequest(app: "a")
        requests.append(.setSettings(settings))
        settings.values = [.init("port", "8001"), .init("name", "")]
        settings.unset = ["theme"]
        requests.append(.setSettings(settings))
        var unhandled = UnhandledRequest()
        requests.append(.unhandled(unhandled))
        (unhandled.apps, unhandled.ids, unhandled.payload) = (["a", "tag:x"], [1, 2], true)
        requests.append(.unhandled(unhandled))
        requests.append(.replayUnhandled(ReplayRequest(id: 7)))
        requests.append(.replayUnhandled(ReplayRequest(id: 7, app: "a")))
        requests.append(.dropUnhandled(DropRequest(apps: ["a"])))
        requests.append(.dropUnhandled(DropRequest(ids: [1, 2])))
        var transfers = TransfersRequest()
        requests.append(.transfers(transfers))
        (transfers.apps, transfers.session) = (["a"], "s")
        requests.append(.transfers(transfers))
        requests.append(.cancelTransfers(CancelTransfersRequest(apps: ["a", "tag:x"])))
        requests.append(.cancelTransfers(CancelTransfersRequest(ids: [1, 2])))
        requests.append(.scheduleAlert(ScheduleAppAlertRequest(app: "a", alert: AlertRequestTests.whole)))
        requests.append(.scheduleAlert(ScheduleAppAlertRequest(app: "a", alert: ScheduleAlertRequest(title: "t"))))
        requests.append(.alerts(AlertsRequest()))
        requests.append(.alerts(AlertsRequest(apps: ["a", "tag:x"])))
        requests.append(.cancelAlerts(AlertsRequest(apps: ["a"], ids: ["x"], numbers: [1, 2])))
        requests.append(.cancelAlerts(AlertsRequest(apps: ["a"], ids: [], numbers: [])))
        requests.append(.cancelAlerts(AlertsRequest(apps: ["a"])))
        requests.append(.answerAlert(AnswerAlertRequest(number: 7, action: "later")))
        requests.append(.answerAlert(AnswerAlertRequest(app: "a", id: "x")))
        requests.append(.setBadge(app: "a", count: 7))
        requests += [.permissions(apps: []), .permissions(apps: ["a", "tag:x"])]
        for answer in [PermissionVerdict.allow, .deny, .reset] {
            let names = answer == .reset ? [] : ["network", "files:/a b:ro"]
            requests.append(.answerPermissions(AnswerPermissionsRequest(app: "a", names: names, answer: answer)))
        }
        requests.append(.data(apps: []))
        requests.append(.data(apps: ["a"]))
        requests.append(.purgeData(PurgeDataRequest(app: "a", folders: ["caches"])))
        requests += [.protection, .lockData, .unlockData]
        requests.append(.exportState(app: "a", offset: 7))
        requests.append(.owners)
        requests.append(.importState(ImportStateRequest(app: "a", offset: 1, bytes: 3, data: [1, 2])))
        let digest = String(repeating: "0a", count: 32)
        requests.append(.importState(ImportStateRequest(app: "a", offset: 0, bytes: 1, data: [1], digest: digest)))
        requests.append(.snapshot(app: "a", offset: 7))
        requests += [.icon(app: "a"), .icon(app: "a", variant: "dark"), .desktopApps]
        return requests
    }
}
