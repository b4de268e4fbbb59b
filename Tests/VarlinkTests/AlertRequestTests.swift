// SPDX-License-Identifier: Apache-2.0

import Testing
import TorporAPI
import Varlink

@Suite("What an app asks of its alerts") struct AlertRequestTests {
    static let whole: ScheduleAlertRequest = {
        var alert = ScheduleAlertRequest(title: "t")
        (alert.id, alert.body, alert.at, alert.timeZone) = ("i", "b", "2030-01-01T00:00", "local")
        (alert.after, alert.calendar, alert.sound, alert.badge) = (1, "daily", "bell", 0)
        (alert.urgency, alert.url, alert.payload, alert.wake) = ("critical", "notes:1", ["a": 1], true)
        alert.actions = [AlertAction(id: "a", label: "A")]
        alert.token = .random()
        return alert
    }()

    @Test("survives the wire, and is in the interface's text") func requests() throws {
        let requests: [AppRequest] = [
            .scheduleAlert(Self.whole), .scheduleAlert(ScheduleAlertRequest(title: "t")), .cancelAlert(ids: nil),
            .cancelAlert(ids: []),
            .cancelAlert(ids: ["a", "b"]), .alerts, .setBadge(count: 7),
        ]
        for request in requests {
            #expect(AppInterface.description.contains("method \(request.call.member)("))
            #expect(try AppRequest(call: VarlinkCall(json: request.call.json)) == request)
        }
    }

    @Test("and what it is told of them, too") func infos() throws {
        var info = AlertInfo(number: 7, app: "a", id: "i", state: "open", title: "t")
        #expect(try AlertInfo(json: info.json) == info)
        (info.body, info.urgency, info.at, info.calendar) = ("b", "low", 5, "daily")
        info.openedAt = 4
        (info.heldUntil, info.url, info.actions) = (6, "notes:1", [AlertAction(id: "a", label: "A")])
        #expect(try AlertInfo(json: JSON.parse(info.json.description)) == info)
    }

    @Test(
        "An answer names one alert, by its number or its id",
        arguments: [[:], ["number": 1, "id": "x"], ["app": "a"]] as [JSON]
    )
    func answers(parameters: JSON) {
        let call = VarlinkCall(method: "\(ManagerInterface.name).AnswerAlert", parameters: parameters)
        #expect(throws: FieldError.self) { try ManagerRequest(call: call) }
    }
}
