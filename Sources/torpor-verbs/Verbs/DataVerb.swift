// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CommandLinePages
import EverydayVerbs
import Linux
import TorporAPI
import Varlink

struct DataVerb: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "data",
        abstract: "Shows how much space the data folders of apps take, or empties them.",
        discussion: """
            Apps with data_folders have four: documents and library are kept, even when the app leaves the \
            configuration; caches is emptied when the disk is nearly full, tmp before each launch. --purge removes \
            all data of an app that is not running, so that its next launch is its first; with --only, it empties one \
            folder. It cannot be undone.
            """
    )
    .examples(
        "torpor data",
        "torpor data web",
        "torpor data web --purge --only caches"
    )

    @OptionGroup package var apps: AnyAppsArgument
    @Flag(help: "Remove the data of the apps, which must not be running.")
    var purge = false
    @Option(
        help: ArgumentHelp(
            "Empty only this folder: documents, library, caches or tmp.",
            valueName: "folder"
        ),
        completion: .list(PurgeDataRequest.names)
    )
    var only: [String] = []
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if purge, apps.apps.isEmpty { throw ValidationError("--purge needs the names of the apps") }
        if purge, let several = apps.apps.first(where: { !AppWord.isName($0) }) {
            throw ValidationError("“\(several)” can be many apps, and --purge cannot be undone: write their names")
        }
        if !only.isEmpty, !purge { throw ValidationError("--only goes with --purge") }
        if let wrong = only.first(where: { !PurgeDataRequest.names.contains($0) }) {
            throw ValidationError(
                "there is no data folder \(wrong): choose one of \(PurgeDataRequest.names.joined(separator: ", "))"
            )
        }
    }

    package func run() throws {
        let manager = try Manager(options)
        if purge { return try purge(manager) }
        let reply = try manager.call(.data(apps: apps.apps))
        guard !options.json else { return Output.document(reply["data"] ?? []) }
        let all = try Manager.read { () throws(FieldError) in
            try Fields(reply).list("data") { json throws(FieldError) in try DataFoldersInfo(json: json) }
        }
        guard !all.isEmpty else { return Output.write("no app has data folders\n") }
        var table = Table(
            ["APP", "DOCUMENTS", "LIBRARY", "CACHES", "TMP", "VERSION", "FOLDER"],
            rightAligned: [1, 2, 3, 4],
            whole: [0]
        )
        for info in all {
            let mark = info.isWhole ? "" : "+"
            table.append([
                .init(info.app, info.isConfigured ? nil : .yellow),
                .init(Times.memory(bytes: info.documents) + mark), .init(Times.memory(bytes: info.library) + mark),
                .init(Times.memory(bytes: info.caches) + mark), .init(Times.memory(bytes: info.temporary) + mark),
                .init(info.version ?? "-"),
                .init(info.isConfigured ? info.path : info.path + " (not in the configuration)"),
            ])
        }
        Output.page(table.text)
        guard all.contains(where: { !$0.isWhole }) else { return }
        Output.write("+: at least this much; the rest was not counted (too many files, links, or other file systems)\n")
    }

    private func purge(_ manager: Manager) throws {
        var replies: [JSON] = []
        var left: String?
        for app in apps.apps {
            let reply = try manager.call(.purgeData(PurgeDataRequest(app: app, folders: only)))
            replies.append(reply)
            let count = reply["removed"]?.intValue ?? 0
            if !options.json { Output.write("\(app): \(count) \(count == 1 ? "file" : "files") removed\n") }
            if let message = reply["message"]?.stringValue { left = "\(app): \(message)" }
        }
        if options.json { Output.document(.array(replies)) }
        if let left { throw Failure(status: .failed, message: left) }
    }
}
