// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CommandLinePages
import EverydayVerbs
import Linux
import TorporAPI
import Varlink

struct PermissionsVerb: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "permissions",
        abstract: "Shows what sandboxed apps ask for and why, or answers them.",
        discussion: """
            An app with sandbox = true may do only what it was allowed. The configuration has an answer for each \
            permission, which counts until a person gives one here. An app that runs is launched again when its \
            sandbox changes. An answer is kept until it is changed or --reset, even over reboots; if the app asks for \
            more later, it is asked again.
            """
    )
    .examples(
        "torpor permissions",
        "torpor permissions door allow camera",
        "torpor permissions door deny network",
        "torpor permissions door --reset"
    )

    @Argument(
        help: "The app whose permissions are shown or answered.",
        completion: .custom { words, _, _ in Completion.apps(words) }
    )
    var app: String?
    @Argument(
        help: "The answer, allow or deny, followed by names of permissions.",
        completion: .list(["allow", "deny"])
    )
    var words: [String] = []
    @Flag(help: "Forget the answers, so that those of the configuration count.")
    var reset = false
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if reset, app == nil { throw ValidationError("--reset needs the name of the app") }
        guard let word = words.first, !reset else { return }
        guard word == "allow" || word == "deny" else {
            throw ValidationError("“\(word)” is no answer: write allow or deny, then the names of permissions")
        }
        if words.count < 2 { throw ValidationError("\(word) needs the names of permissions") }
    }

    package func run() throws {
        let manager = try Manager(options)
        if let app, reset || !words.isEmpty { return try answer(app, manager) }
        let reply = try manager.call(.permissions(apps: app.map { [$0] } ?? []))
        guard !options.json else { return Output.document(reply["permissions"] ?? []) }
        let all = try Manager.read { () throws(FieldError) in
            try Fields(reply).list("permissions") { json throws(FieldError) in try PermissionInfo(json: json) }
        }
        guard !all.isEmpty else {
            return Output.write(app.map { "\($0) asks for no permissions\n" } ?? "no app asks for permissions\n")
        }
        var table = Table(["APP", "PERMISSION", "STATE", "BY", "PURPOSE"], whole: [0, 1])
        for info in all {
            let colour: Terminal.Colour? =
                switch info.state {
                case "allowed": .green
                case "denied": .red
                default: .yellow
                }
            let ports = info.ports.map { "\($0)" }.joined(separator: ",")
            table.append([
                .init(info.app), .init(info.name + (ports.isEmpty ? "" : " (\(ports))")),
                .init(info.state, colour),
                .init(info.by.map { $0 + (info.at.map { ", " + Times.timestamp($0) } ?? "") } ?? "-"),
                .init(info.purpose(in: Languages.wanted)),
            ])
        }
        Output.page(table.text)
    }

    private func answer(_ app: String, _ manager: Manager) throws {
        let verdict = reset ? PermissionVerdict.reset : PermissionVerdict(rawValue: words[0]) ?? .deny
        let names = reset ? words : Array(words.dropFirst())
        let request = AnswerPermissionsRequest(app: app, names: names, answer: verdict)
        let reply = try manager.call(.answerPermissions(request))
        guard !options.json else { return Output.document(reply) }
        if let message = reply["message"]?.stringValue { Output.write(message + "\n") }
    }
}
