// SPDX-License-Identifier: Apache-2.0

import CommandLinePages
import Linux
import TorporAPI
import Varlink

/// The verb `list` without the argument parser (see ``PlainArguments``).
package struct PlainList {
    package var apps: [String]
    /// Whether each scene has a line; if not, each template has one.
    package var showsScenes: Bool
    package var options: PlainOptions

    package init(apps: [String], showsScenes: Bool, options: PlainOptions) {
        self.apps = apps
        self.showsScenes = showsScenes
        self.options = options
    }

    init?(_ words: ArraySlice<String>) {
        guard let line = PlainWords(words) else { return nil }
        self.init(apps: line.operands, showsScenes: !line.operands.isEmpty, options: line.options)
    }

    package func run() throws {
        let reply = try Manager(options).call(.list(of: apps))
        guard !options.json else {
            return Output.document(reply["apps"] ?? [])
        }
        let (all, templates) = try Manager.read { () throws(FieldError) in
            let fields = try Fields(reply)
            return (
                try fields.list("apps") { json throws(FieldError) in try AppSummary(json: json) },
                // A supervisor of a version without scenes sends no templates.
                fields["templates"] == nil
                    ? [] : try fields.list("templates") { json throws(FieldError) in try SceneTemplateInfo(json: json) }
            )
        }
        let apps = showsScenes ? all : all.filter { $0.scene == nil }
        let inside =
            showsScenes && self.apps.isEmpty && all.contains { $0.scenesInside != nil } ? try scenesInside() : []
        let allHeads = ["NAME", "STATE", "PID", "UPTIME", "RESTARTS", "MEM", "CPU", "REASON"]
        func table(_ heads: [String], _ row: (AppSummary) -> [Table.Cell]) -> Table {
            var table = Table(heads, rightAligned: [2, 3, 4, 5, 6])
            let others =
                showsScenes
                ? inside.map { ($0.app, Self.row($0)) }
                : templates.map { template in
                    (template.name, Self.row(template, all.filter { $0.template == template.name }))
                }
            guard !others.isEmpty else {
                for app in apps { table.append(row(app)) }
                return table
            }
            let lines =
                apps.map { ($0.name, row($0)) }
                + others.map { name, line in (name, line + heads.dropFirst(line.count).map { _ in .init("") }) }
            for line in lines.sorted(by: { $0.0 < $1.0 }) { table.append(line.1) }
            return table
        }
        let hasBadges = apps.contains { $0.badge != nil }
        let heads = hasBadges ? allHeads + ["BADGE"] : allHeads
        func row(_ app: AppSummary) -> [Table.Cell] {
            Self.row(app) + (hasBadges ? [.init(app.badge.map { String($0) } ?? "")] : [])
        }
        var shown = table(heads, row)
        if apps.contains(where: { $0.title != nil }) {
            let titled = table(heads + ["TITLE"]) { row($0) + [.init($0.title(in: Languages.wanted) ?? "")] }
            // On a terminal, use the table with the extra column only if every line still fits.
            if titled.fits { shown = titled }
        }
        Output.page(shown.text)
    }

    /// The scenes that apps have in their own processes.
    private func scenesInside() throws -> [SceneInfo] {
        let reply = try Manager(options).call(.scenes(template: nil))
        let (templates, scenes) = try Manager.read { () throws(FieldError) in
            let fields = try Fields(reply)
            return (
                try fields.list("templates") { json throws(FieldError) in try SceneTemplateInfo(json: json) },
                try fields.list("scenes") { json throws(FieldError) in try SceneInfo(json: json) }
            )
        }
        let owners = Set(templates.filter { $0.inside }.map(\.name))
        return scenes.filter { owners.contains($0.template) }
    }

    private static func row(_ scene: SceneInfo) -> [Table.Cell] {
        [.init(scene.app), .init(scene.state, Terminal.colour(ofState: scene.state))]
            + Array(repeating: Table.Cell("-"), count: 5) + [.init("inside \(scene.template)")]
    }

    private static func row(_ app: AppSummary) -> [Table.Cell] {
        [
            .init(app.name),
            .init(app.transition ?? app.state, Terminal.colour(ofState: app.state, failed: app.failed)),
            .init(app.pid.map { String($0) } ?? "-"),
            .init(app.uptime.map { Times.duration(seconds: $0) } ?? "-"),
            .init(String(app.restarts)),
            .init(app.memoryBytes.map { Times.memory(bytes: $0) } ?? "-"),
            .init(app.cpuSeconds.map { Times.duration(seconds: $0) } ?? "-"),
            .init(reason(app), app.failed ? .red : nil),
        ]
    }

    /// The line for a template, with the state of its most active scene.
    private static func row(_ template: SceneTemplateInfo, _ scenes: [AppSummary]) -> [Table.Cell] {
        let states = ["active", "inactive", "background", "suspended"]
        let state = states.first { state in scenes.contains { $0.state == state } } ?? "not-running"
        func sum(_ value: (AppSummary) -> Double?) -> Double? {
            let values = scenes.compactMap(value)
            return values.isEmpty ? nil : values.reduce(0, +)
        }
        let failed = scenes.count(where: \.failed)
        let count = template.sessions == 1 ? "1 scene" : "\(template.sessions) scenes"
        let some = "\(count), \(template.live) live" + (failed == 0 ? "" : ", \(failed) failed")
        return [
            .init(template.name),
            .init(state, Terminal.colour(ofState: state, failed: failed > 0)),
            .init("-"),
            .init("-"),
            .init(String(scenes.reduce(0) { $0 + $1.restarts })),
            .init(sum { $0.memoryBytes.map(Double.init) }.map { Times.memory(bytes: Int64($0)) } ?? "-"),
            .init(sum(\.cpuSeconds).map { Times.duration(seconds: $0) } ?? "-"),
            .init(
                template.sessions == 0 ? "no scenes: ‘torpor scene open \(template.name)@NAME’ opens one" : some,
                failed > 0 ? .red : nil
            ),
        ]
    }

    private static func reason(_ app: AppSummary) -> String {
        if let reason = app.heldBack { return "waits: \(reason)" }
        if app.owner == "none" { return app.pid == nil ? "not owned" : "not owned, stands by" }
        if let problem = app.unhealthy { return "unhealthy: \(problem)" }
        if app.pid != nil, let scenes = app.scenesInside {
            return "\(scenes.sessions == 1 ? "1 scene" : "\(scenes.sessions) scenes"), \(scenes.live) connected"
        }
        var text = app.failed ? "failed" : ""
        // Show the last exit only until the app runs again; then it no longer matters.
        if app.pid == nil, let exit = app.exitSentence {
            text += (text.isEmpty ? "" : ": ") + exit
        }
        if let left = app.nextRestartMilliseconds {
            text += (text.isEmpty ? "" : ", ") + "restarts in " + Times.duration(milliseconds: left)
        }
        return text
    }
}
