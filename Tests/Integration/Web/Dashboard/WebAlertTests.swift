// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

@Suite("The dashboard and alerts") struct WebAlertTests {
    @Test("shows them, answers one as a click does and dismisses others, only of the app that the path names")
    func alerts() throws {
        try withDaemon(Apps.sleeper("web") + "\nlaunch = \"on-demand\"\n" + Apps.sleeper("other")) { daemon in
            let web = try WebFixture(daemon)
            defer { web.end() }
            for id in ["one", "two"] {
                var alert = ScheduleAlertRequest(title: "<b>\(id)</b>")
                (alert.id, alert.actions) = (id, [AlertAction(id: "later", label: "Later")])
                _ = try daemon.call(.scheduleAlert(ScheduleAppAlertRequest(app: "web", alert: alert)))
            }
            _ = try daemon.call(.setBadge(app: "web", count: 7))
            func open(_ path: String) throws -> [AlertInfo] {
                let answer = try web.ask("/api/v1/" + path)
                #expect(answer.status == 200)
                let infos = try (answer.json["alerts"]?.arrayValue ?? []).map { try AlertInfo(json: $0) }
                return infos.filter { $0.state == "open" }
            }
            try daemon.eventually("both came") { try open("alerts").count == 2 }
            let (one, two) = (try open("apps/web/alerts")[0], try open("alerts")[1])
            #expect(one.title == "<b>one</b>" && one.actions.map(\.id) == ["later"])
            #expect(try open("apps/other/alerts").isEmpty)
            for (path, body, status) in [
                ("web", "{\"answer\":1}", 409), ("other", "{\"answer\":\(one.number)}", 409),
                ("other", "{\"dismiss\":[\(one.number)]}", 409), ("web", "{\"dismiss\":[]}", 400),
                ("web", "{\"x\":1}", 400),
                ("web", "{\"answer\":\(one.number),\"action\":\"no\"}", 409), ("no", "{\"answer\":1}", 404),
            ] as [(String, String, Int)] {
                #expect(try web.post("/api/v1/apps/\(path)/alerts", body).status == status, "\(path) \(body)")
            }
            #expect(try open("alerts").count == 2)
            #expect(try web.post("/api/v1/apps/web/alerts", "{\"dismiss\":[\(two.number)]}").status == 200)
            #expect(try daemon.summary("web").state == "not-running")
            let answered = "{\"answer\":\(one.number),\"action\":\"later\"}"
            #expect(try web.post("/api/v1/apps/web/alerts", answered).status == 200)
            try daemon.waitFor("web", "active")
            #expect(try open("alerts").isEmpty)
            #expect(try web.ask("/alerts.js").status == 200)
            let list = try web.ask("/api/v1/apps").json["apps"]?.arrayValue ?? []
            #expect(list.first { $0["name"] == "web" }?["badge"] == 7)
        }
    }
}
