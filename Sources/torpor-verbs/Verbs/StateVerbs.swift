// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CommandLinePages
import EverydayVerbs
import Linux
import StateDocuments
import TorporAPI
import Varlink

/// Verbs that export and import the saved states of apps, for users who move an app to another machine.
struct StateVerbs: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "state",
        abstract: "Exports and imports the state that an app saved, with its mail.",
        discussion: """
            The state is the one that the app's next launch gets back after an eviction or a crash. ‘torpor app state’ \
            is for the app's own scripts, ‘torpor move’ moves an app that one of several machines owns. Each scene inside \
            an app has a state of its own, and no mail: name it as APP@SCENE.
            """,
        subcommands: [StateExport.self, StateImport.self]
    )
    .examples(
        "torpor state export orders >orders.state",
        "torpor state import orders <orders.state",
        "torpor state export orders | ssh other torpor state import orders"
    )
}

struct StateExport: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Writes the app's saved state and its mail to a file, or to standard output."
    )
    .examples("torpor state export orders >orders.state", "torpor state export orders -o orders.state --no-mail")

    @OptionGroup var app: AppArgument
    @Option(name: .shortAndLong, help: ArgumentHelp("Write it to this file.", valueName: "file"), completion: .file())
    var output: String?
    @Flag(name: .customLong("no-mail"), help: "Leave out the messages that wait for the app.") var noMail = false
    @Flag(name: .customLong("no-state"), help: "Leave out the state.") var noState = false
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if noMail, noState { throw ValidationError("nothing is left to export: leave out --no-mail or --no-state") }
        if options.json, output == nil { throw ValidationError("--json describes the export: name a file with -o") }
    }

    package func run() throws {
        let manager = try Manager(options)
        let scenes = ScenesInside(of: app.app, manager)
        let isScene = scenes.names.contains(app.app)
        if isScene, noState {
            throw Failure(status: .usage, message: "\(app.app) is a scene inside an app, and has no mail of its own")
        }
        let withMail = !noMail && !isScene
        let document = try StateDocument.read(app.app, manager, withState: !noState, withMail: withMail)
        if !noState { scenes.warn(of: app.app) }
        let bytes = try Failure.of { () throws(DocumentFault) in try document.encoded() }
        let isFile = try ExportedDocument.write(bytes, to: output, orRefuse: "the state is no text")
        if isFile, options.json { Output.document(document.summary) }
    }
}

struct StateImport: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import",
        abstract: "Reads what ‘torpor state export’ wrote, for the next launch of an app that does not run.",
        discussion: """
            The imported state replaces the app's own; if the export says that there is no state, the app's own is \
            removed.
            """
    )
    .examples(
        "torpor state import orders <orders.state",
        "torpor state import orders orders.state",
        "torpor state import orders --raw orders.state"
    )

    @OptionGroup var app: AppArgument
    @Argument(help: "The file, or - for standard input.", completion: .file())
    var file: String = "-"
    @Flag(help: "The file is the state itself, such as one that was set aside, and no export.") var raw = false
    @OptionGroup var options: GlobalOptions

    package func run() throws {
        let bytes: [UInt8]
        do throws(Errno) {
            let limit = StateDocument.mostBytes
            bytes = try file == "-" ? File.read(descriptor: 0, limit: limit) : File.read(file, limit: limit)
        } catch {
            throw Failure(status: .failed, message: "\(file == "-" ? "standard input" : file) cannot be read: \(error)")
        }
        let document = try Failure.of { () throws(DocumentFault) in
            raw ? try StateDocument(app: app.app, state: bytes) : try StateDocument(bytes)
        }
        guard document.app == app.app else {
            throw Failure(
                status: .usage,
                message: "that is the state of \(document.app), not of \(app.app): name that app"
            )
        }
        let manager = try Manager(options)
        try document.give(to: manager)
        if options.json { Output.document(document.summary) }
    }
}
