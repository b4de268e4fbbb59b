// SPDX-License-Identifier: Apache-2.0

import Testing
import TorporAPI

@testable import TorporApp

@Suite(.ownProcess) struct AlertCallTests {
    @Test("the app learns what it may do, and has people asked; without a supervisor nothing is withheld")
    func permissions() async throws {
        let supervisor = try FakeSupervisor()
        let delegate = Recorder([
            "didFinishLaunching": { app in
                let states = try await app.permissions().map { "\($0.name) \($0.state)" }
                #expect(states == ["gpu deny"])
                let reply = try await app.requestPermission("camera")
                #expect(reply.state == "ask" && reply.isAskedNow && reply.nextAt == 7 && reply.message == nil)
                await #expect(throws: AppError.self) { try await app.requestPermission("netwrk") }
                try await app.setNeedsRefresh(["inbox", "to do"])
                var activity = SetActivityRequest(type: "org.example.note")
                activity.payload = ["line": 12]
                try await app.setActivity(activity)
                try await app.endActivity()
            }
        ])
        try await running(delegate, under: supervisor) {
            supervisor.tell("didFinishLaunching")
            try await supervisor.waitForAnswers(1)
        }
        #expect(supervisor.calls.contains(.requestPermission(name: "netwrk")))
        var activity = SetActivityRequest(type: "org.example.note")
        activity.payload = ["line": 12]
        #expect(supervisor.calls.contains(.setActivity(activity)) && supervisor.calls.contains(.endActivity))
        #expect(supervisor.calls.contains(.setNeedsRefresh(names: ["inbox", "to do"])))
    }

    @Test("alerts are scheduled, listed and cancelled, and the badge is set") func calls() async throws {
        let supervisor = try FakeSupervisor()
        let delegate = Recorder([
            "didFinishLaunching": { app in
                var tea = ScheduleAlertRequest(title: "Tea")
                (tea.id, tea.after, tea.wake) = ("tea", 240_000, true)
                tea.actions = [AlertAction(id: "later", label: "Later")]
                let id = try await app.scheduleAlert(tea).id
                let other = try await app.scheduleAlert(ScheduleAlertRequest(title: "Now")).id
                #expect([id, other] == ["tea", "alert-1"])
                await #expect(throws: AppError.self) { try await app.scheduleAlert(ScheduleAlertRequest(title: "")) }
                let states = try await app.alerts().map(\.state)
                #expect(states == ["open"])
                try await app.cancelAlerts([])
                try await app.cancelAlerts(["tea"])
                try await app.cancelAllAlerts()
                try await app.setBadge(3)
            }
        ])
        try await running(delegate, under: supervisor) {
            supervisor.tell("didFinishLaunching")
            try await supervisor.waitForAnswers(1)
        }
        let requests = supervisor.calls.compactMap { if case .scheduleAlert(let request) = $0 { request } else { nil } }
        #expect(requests.map(\.title) == ["Tea", "Now", ""])
        #expect(requests[0].after == 240_000 && requests[0].wake && requests[0].actions.map(\.label) == ["Later"])
        #expect(Set(requests.map(\.token)).count == 3 && requests.allSatisfy { $0.token != nil })
        let cancelled = supervisor.calls.compactMap { if case .cancelAlert(let ids) = $0 { ids ?? ["*"] } else { nil } }
        #expect(cancelled == [["tea"], ["*"]])
        #expect(supervisor.calls.contains(.setBadge(count: 3)))
    }
}
