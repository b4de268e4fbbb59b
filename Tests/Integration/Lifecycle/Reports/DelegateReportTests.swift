// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

@Suite("A termination report of a delegate") struct DelegateReportTests {
    private static func kinds(_ report: Report) -> [String] { report.timeline.map { "\($0.kind) \($0.name ?? "")" } }

    @Test("Names the message in flight, and has what it was told and answered before, from the launch on")
    func background() throws {
        let toml = Delegates.head + "background_deadline = \"600ms\"\n"
        try withDaemon(toml, files: Delegates.files("didEnterBackground=hold")) { daemon throws in
            try daemon.done(.start, "web")
            #expect(try daemon.verb(.background, "web").error == "background-deadline")
            let report = try StuckTests.report(daemon)
            let text = try #require(report.text)
            #expect(text.hasPrefix("did not answer didEnterBackground within its background_deadline of 600ms, and "))
            #expect(report.due == "didEnterBackground" && !report.answered && report.deadlineMilliseconds == 600)
            let launch = try #require(report.launch)
            let times = [launch.planned, launch.executed, launch.contact, launch.message, launch.ready].compactMap {
                $0
            }
            #expect(times.count == 5 && times == times.sorted(), "\(times)")
            let kinds = Self.kinds(report)
            var rest = kinds[...]
            for kind in [
                "launch exec", "launch contact", "message willFinishLaunching", "answer willFinishLaunching",
                "message didFinishLaunching", "answer didFinishLaunching", "launch ready", "message didBecomeActive",
                "answer didBecomeActive", "state active", "message willResignActive", "answer willResignActive",
                "message didEnterBackground", "missed background", "signal SIGTERM", "exit ",
            ] {
                let index = rest.firstIndex(of: kind)
                #expect(index != nil, "\(kind) is not in \(rest) of \(kinds)")
                if let index { rest = rest[(index + 1)...] }
            }
            #expect(!kinds.contains("answer didEnterBackground"))
        }
    }

    @Test("Tells a program that never attached from one that did not answer its launch")
    func launch() throws {
        let other = "[apps.mute]\nexec = [\"/bin/sleep\", \"1000\"]\nlaunch = \"on-demand\"\nready = \"delegate\"\n"
        let toml =
            Delegates.head + "launch_deadline = \"4s\"\n" + other
            + "restart = \"never\"\nlaunch_deadline = \"300ms\"\n"
        try withDaemon(toml, files: Delegates.files("didFinishLaunching=hold")) { daemon throws in
            #expect(try daemon.verb(.start, "mute").error == "launch-deadline")
            let mute = try #require(try daemon.reports("mute").first)
            #expect(
                mute.text?.hasPrefix("did not attach to TORPOR_APP_SOCKET within its launch_deadline of 300ms") ?? false
            )
            #expect(mute.due == "ready" && mute.launch?.contact == nil)
            #expect(try daemon.verb(.start, "web").error == "launch-deadline")
            let report = try StuckTests.report(daemon)
            #expect(report.text?.hasPrefix("did not answer didFinishLaunching within its launch_deadline") ?? false)
            #expect(report.due == "didFinishLaunching" && report.launch?.ready == nil && report.launch?.message != nil)
        }
    }

    @Test("Names the tasks that were not ended, and their time")
    func tasks() throws {
        let toml = Delegates.head + "task_time = \"700ms\"\nexpiry_warning = \"200ms\"\n"
        try withDaemon(toml, files: Delegates.files()) { daemon throws in
            try daemon.done(.start, "web")
            try daemon.ask("d.begin('upload')")
            try daemon.done(.background, "web")
            let report = try StuckTests.report(daemon)
            #expect(report.reason == "task-expired" && report.tasks == ["upload"])
            #expect(report.text?.hasPrefix("did not end its task upload within its task_time of 700ms, and ") ?? false)
            #expect(report.deadline == "task" && report.due == "tasks")
            let kinds = Self.kinds(report)
            #expect(kinds.contains("task-begin 1") && kinds.contains("message taskExpiring"), "\(kinds)")
            #expect(!report.threads.isEmpty)
        }
    }
}
