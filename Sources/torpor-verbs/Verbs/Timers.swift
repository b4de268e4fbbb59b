// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CommandLinePages
import EverydayVerbs
import Linux
import TorporAPI
import Varlink

struct TimersVerb: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "timers",
        abstract: "Shows when timers wake apps next, and when they did last.",
        discussion: """
            The next timer is shown first. Times are those of the local zone. If an app was stopped or force-quit, or \
            has failed, NEXT says so: its timers launch it only after ‘torpor start’.
            """
    )
    .examples(
        "torpor timers",
        "torpor timers web"
    )

    @OptionGroup package var apps: AnyAppsArgument
    @OptionGroup var times: TimeOptions
    @OptionGroup var options: GlobalOptions

    package func run() throws {
        let reply = try Manager(options).call(.timers(apps: apps.apps))
        guard !options.json else { return Output.document(reply["timers"] ?? []) }
        let timers = try Manager.read { () throws(FieldError) in
            try Fields(reply).list("timers") { json throws(FieldError) in try TimerStatus(json: json) }
        }
        guard !timers.isEmpty else {
            Output.write("no timers\n")
            return
        }
        var table = Table(
            ["NEXT", "LEFT", "LAST", "PASSED", "APP", "TIMER", "WHEN"],
            rightAligned: [1, 3],
            whole: [0, 2]
        )
        let now = Times.now
        for timer in timers { table.append(Self.row(timer, now: now)) }
        Output.page(table.text)
    }

    private static func row(_ timer: TimerStatus, now: Int64) -> [Table.Cell] {
        func time(_ moment: Int64?) -> String { moment.map { Times.brief($0) } ?? "-" }
        func between(_ first: Int64, _ second: Int64) -> String {
            Times.duration(seconds: Double(max(0, second - first)) / 1e6)
        }
        return [
            .init(timer.blocked ?? time(timer.next), timer.blocked == nil ? nil : .yellow),
            .init(timer.blocked == nil ? timer.next.map { $0 <= now ? "due" : between(now, $0) } ?? "-" : "-"),
            .init(time(timer.last), .dim),
            .init(timer.last.map { between($0, now) } ?? "-", .dim),
            .init(timer.app),
            .init(timer.name),
            .init(timer.when),
        ]
    }
}
