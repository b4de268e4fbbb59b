// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CommandLinePages
import EverydayVerbs
import Linux
import StateDocuments
import TorporAPI
import Varlink
import WireText

/// Verbs about activities, which are what users are doing in apps: lists them, and continues them in another app or on
/// another machine.
struct ActivityVerb: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "activity",
        abstract: "Shows what users are doing in apps, and continues it elsewhere.",
        discussion: """
            An app in the foreground says what a user is doing in it (SetActivity). Apps that name the type in their \
            key activities can continue it, also on another machine that gets the activity by a pipe.
            """,
        subcommands: [ActivityList.self, ActivityContinue.self, ActivityExport.self]
    )
    .examples(
        "torpor activity list",
        "torpor activity continue org.example.note",
        "torpor activity export notes | ssh other torpor activity continue -"
    )
}

struct ActivityList: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "Lists what users are doing in apps, the latest first. Also: torpor activities."
    )
    .examples("torpor activity list", "torpor activity list --json")
    @OptionGroup var options: GlobalOptions

    package func run() throws {
        let reply = try Manager(options).call(.activities(app: nil))
        guard !options.json else { return Output.document(reply["activities"] ?? []) }
        let items = try Self.items(reply)
        var table = Table(["APP", "TYPE", "TITLE", "SINCE"], whole: [1])
        for item in items {
            let title = item.title.isEmpty ? "-" : item.title
            table.append([.init(item.app), .init(item.type), .init(title), .init(Times.brief(item.since))])
        }
        Output.page(items.isEmpty ? "no activities\n" : table.text)
    }

    static func items(_ reply: JSON) throws(Failure) -> [ActivityInfo] {
        try Manager.read { () throws(FieldError) in
            try Fields(reply).list("activities") { json throws(FieldError) in try ActivityInfo(json: json) }
        }
    }
}

struct ActivityContinue: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "continue",
        abstract: "Has an app continue what a user is doing in another. Also: torpor continue.",
        discussion: """
            Brings the app to the foreground, and succeeds when it has continued the activity: the app that names the \
            type in activities and was used last. With - it reads what ‘torpor activity export’ wrote; if that has the \
            app's state, the app must not run, and is launched with it.
            """
    )
    .examples(
        "torpor activity continue org.example.note",
        "torpor activity continue org.example.note --to editor",
        "ssh other torpor activity export notes | torpor activity continue -"
    )
    @Argument(
        help: ArgumentHelp("The type of the activity, or - for a document on standard input.", valueName: "type")
    )
    var type: String
    @Option(
        help: ArgumentHelp("The app that continues it.", valueName: "app"),
        completion: .custom { words, _, _ in Completion.apps(words) }
    )
    var to: String?
    @Option(
        help: ArgumentHelp("The app whose activity it is; else the latest one of the type.", valueName: "app"),
        completion: .custom { words, _, _ in Completion.apps(words) }
    )
    var from: String?
    @OptionGroup var wait: WaitOptions
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if type == "-", from != nil {
            throw ValidationError("the document says whose activity it is: leave out --from")
        }
        for (name, app) in [("to", to), ("from", from)] {
            if let app, !AppWord.isName(app) {
                throw ValidationError("“\(app)” can be many apps, and --\(name) takes one: write its name")
            }
        }
    }

    package func run() throws {
        guard type == "-" else {
            var request = ContinueActivityRequest(type: type)
            (request.to, request.from) = (to, from)
            return try VerbRunner.run(request, options, wait: wait)
        }
        let bytes: [UInt8]
        do throws(Errno) {
            bytes = try File.read(descriptor: 0, limit: ActivityDocument.mostBytes)
        } catch {
            throw Failure(
                status: .failed,
                message: error == .fileTooLarge
                    ? "standard input has more than \(ActivityDocument.mostBytes >> 20) MiB: no exported activity has"
                    : "standard input cannot be read: \(error)"
            )
        }
        let document = try Failure.of { () throws(DocumentFault) in try ActivityDocument(bytes) }
        var request = ContinueActivityRequest(type: document.activity.type)
        (request.to, request.from, request.given) = (to, document.app, document.activity)
        request.given?.needsState = document.state != nil
        // First ask whether the request would be accepted, without changing anything: if it is refused, the app's state
        // on this machine must not be replaced.
        var question = request
        question.asksOnly = true
        let manager = try Manager(options)
        let reply = try manager.call(.continueActivity(question))
        if let state = document.state { try state.give(to: manager) }
        // Name the app explicitly, because the imported state belongs to this app. Without the name, another app that
        // continues such activities could be chosen if it is used in between.
        request.to = reply["app"]?.stringValue ?? request.to
        try VerbRunner.run(request, options, wait: wait)
    }
}

struct ActivityExport: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Writes an app's activity as a document for another machine.",
        discussion: """
            With the app's saved state, the app on the other machine comes up where it was here. The document may \
            contain what the user sees in the app: the pipe, such as ssh, must provide encryption and trust.
            """
    )
    .examples(
        "torpor activity export notes | ssh other torpor activity continue -",
        "torpor activity export notes --with-state -o notes.activity"
    )
    @OptionGroup var app: AppArgument
    @Flag(name: .customLong("with-state"), help: "Include the state that the app has saved, at most 16 MiB.")
    var withState = false
    @Option(name: .shortAndLong, help: ArgumentHelp("Write it to this file.", valueName: "file"), completion: .file())
    var output: String?
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if options.json, output == nil { throw ValidationError("--json describes the export: name a file with -o") }
    }

    package func run() throws {
        let manager = try Manager(options)
        let reply = try manager.call(.activities(app: app.app))
        guard let info = try ActivityList.items(reply).first else {
            throw Failure(status: .failed, message: Terminal.harmless("\(app.app) has no activity"))
        }
        var activity = SetActivityRequest(type: info.type)
        (activity.title, activity.url, activity.payload) = (info.title, info.url, info.payload)
        let needs = withState || info.needsState
        let state = needs ? try StateDocument.read(app.app, manager, withMail: false) : nil
        if needs, state?.savedAt == nil {
            throw Failure(
                status: .failed,
                message: Terminal.harmless(
                    "\(app.app) has saved no state"
                        + (withState ? ": leave out --with-state" : ", which its activity needs")
                )
            )
        }
        let document = ActivityDocument(app: app.app, activity, state)
        let bytes = try Failure.of { () throws(DocumentFault) in try document.encoded() }
        let isFile = try ExportedDocument.write(bytes, to: output, orRefuse: "the document is for a pipe")
        if isFile, options.json { Output.document(document.summary) }
    }
}

/// Verbs by which an app's scripts report what a user is doing in the app.
struct AppActivity: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "activity",
        abstract: "Says what a user is doing in the app, so that it can be continued elsewhere.",
        subcommands: [AppActivitySet.self, AppActivityEnd.self]
    )
    .examples("torpor app activity set org.example.note --title 'Shopping'", "torpor app activity end")
}

struct AppActivitySet: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "set",
        abstract: "Sets the current activity of the app, which must be in the foreground.",
        discussion: "It ends with the next one, with the app, and five minutes after the app has left the foreground."
    )
    .examples(
        "torpor app activity set org.example.note --payload '{\"line\": 12}'",
        "torpor app activity set org.example.note --title Shopping --state"
    )
    @Argument(help: ArgumentHelp("The type, such as org.example.note.", valueName: "type"))
    var type: String
    @Option(help: ArgumentHelp("What people see in the list of activities.", valueName: "text"))
    var title: String?
    @Option(help: ArgumentHelp("The content: a JSON object, @FILE, or - for standard input.", valueName: "json"))
    var payload: String?
    @Option(help: ArgumentHelp("A URL that stands for the activity.", valueName: "url"))
    var url: String?
    @Flag(help: "The activity can only be continued with the app's saved state, which an export then includes.")
    var state = false
    @OptionGroup var output: OutputOptions

    package func run() throws {
        var request = SetActivityRequest(type: type)
        (request.title, request.url, request.needsState) = (title, url, state)
        request.payload = try PlainPost.read(payload)
        _ = try AppSide.call(.setActivity(request))
        if output.json { Output.document(["ok": true]) }
    }
}

struct AppActivityEnd: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "end",
        abstract: "Ends the current activity of the app."
    )
    .examples("torpor app activity end")
    @OptionGroup var output: OutputOptions

    package func run() throws {
        _ = try AppSide.call(.endActivity)
        if output.json { Output.document(["ok": true]) }
    }
}
