// SPDX-License-Identifier: Apache-2.0

import AppConnection
import ArgumentParser
import CommandLinePages
import DesktopEntries
import EverydayVerbs
import Linux
import Mailbox
import SystemPackage
import TorporAPI
import Varlink
import WireText

struct Open: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "open",
        abstract: "Opens a URL or a file with the app that fits best.",
        discussion: """
            Apps declare what they open: url_hosts, url_schemes, and opens for files. torpord brings the app that \
            fits best to the foreground and sends it the URL; of several, the one used last. The command succeeds \
            when the app has opened it. If the app does not handle it, the next one that fits gets it. When a process \
            of an app calls this, it opens URLs in that app's name (may_open), unless --socket names the supervisor, \
            and returns when the URL is on the disk. With --app and nothing to open, it brings that app to the \
            foreground.
            """
    )
    .examples(
        "torpor open notes:today",
        "torpor open https://notes.example.org/today",
        "torpor open letter.md",
        "torpor open notes:today --app notes",
        "torpor open --which notes:today"
    )

    @Argument(
        help: ArgumentHelp("A URL, or the path of a file.", valueName: "url|file"),
        completion: .file()
    )
    var target: String?
    @Option(
        help: ArgumentHelp("Open it with this app.", valueName: "app"),
        completion: .custom { words, _, _ in Completion.apps(words) }
    )
    var app: String?
    @Option(help: ArgumentHelp("The media type of the file, instead of that of its name.", valueName: "type"))
    var type: String?
    @Flag(help: "Show the apps that open it, best match first, and open nothing.")
    var which = false
    @OptionGroup var wait: WaitOptions
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if let app, !AppWord.isName(app) {
            throw ValidationError("“\(app)” can be many apps, and --app takes one: write its name")
        }
        if which, app != nil { throw ValidationError("--which and --app: choose one") }
        if target == nil, app == nil {
            throw ValidationError("there is nothing to open: write a URL or the name of a file")
        }
    }

    package func run() throws {
        guard let target else {
            let request = VerbRequest(verb: .foreground, apps: [app].compactMap(\.self))
            try VerbRunner.run(request, options, wait: wait)
            return
        }
        var request = OpenRequest(try found(target))
        if which { return try show(request) }
        if options.socket == nil, app == nil, AppSide.environment.socket != nil, case .url(let url) = request.target {
            return try openForApp(url)
        }
        request.app = app
        try VerbRunner.run(request, options, wait: wait)
    }

    private func openForApp(_ url: String) throws {
        let reply = try AppSide.call(.openURL(url, token: .random()))
        if options.json { return Output.document(reply) }
        let fields = try Manager.read { () throws(FieldError) in try Fields(reply) }
        let name = try Manager.read { () throws(FieldError) in try fields.string("app") }
        let words =
            switch reply["outcome"]?.stringValue {
            case "told": "gets it now"
            case "woken": "is brought to the foreground for it"
            case "held-back": "opens it when it runs: it \(reply["message"]?.stringValue ?? "is not woken now")"
            default: "opens it when it comes to the foreground"
            }
        Output.page(Terminal.harmless("\(name) \(words)") + "\n")
    }

    private func show(_ request: OpenRequest) throws {
        let reply = try Manager(options).call(.handlers(request))
        guard !options.json else { return Output.document(reply["handlers"] ?? []) }
        let handlers = try Manager.read { () throws(FieldError) in
            try Fields(reply).list("handlers") { json throws(FieldError) in try HandlerInfo(json: json) }
        }
        guard !handlers.isEmpty else { throw Failure(status: .failed, message: "no app opens \(target ?? "it")") }
        Output.page(handlers.map { "\(Terminal.harmless($0.app)) (by its \($0.by))\n" }.joined())
    }

    /// Interprets an argument: as a file if a file of that name exists, otherwise as a URL.
    private func found(_ given: String) throws -> OpenRequest.Target {
        // Desktops pass files to programs as file:// URLs.
        let isFileURL = given.utf8.starts(with: "file://".utf8)
        let target = isFileURL ? OpenedURL.path(given) ?? "" : given
        if given.isEmpty {
            throw Failure(status: .usage, message: "there is nothing to open: write a URL or the name of a file")
        }
        if target.isEmpty {
            throw Failure(status: .usage, message: "\(given) is not the URL of a file on this machine")
        }
        let isURL = target.utf8.prefix { $0 != UInt8(ascii: "/") }.contains(UInt8(ascii: ":"))
        let path: String
        do {
            path = try File.realPath(target)
        } catch {
            if isURL, type == nil { return .url(target) }
            throw Failure(status: .failed, message: "cannot open \(target): \(error)")
        }
        let kind = (try? File.status(path))?.kind
        if let kind, kind != .regular {
            let what = kind == .directory ? "it is a directory, and apps open files" : "it is not a regular file"
            throw Failure(status: .failed, message: "cannot open \(target): \(what)")
        }
        return .file(path, type: type ?? MediaTypes().type(of: path))
    }
}

struct CanOpen: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "can-open",
        abstract: "Checks whether another app opens URLs of a scheme.",
        discussion: "The scheme must be in may_open of this app. Exit status 1: no app opens its URLs."
    )
    .examples("torpor app can-open notes")
    @Argument(help: ArgumentHelp("The scheme, without a colon.", valueName: "scheme"))
    var scheme: String
    @OptionGroup var output: OutputOptions

    package func run() throws {
        let reply = try AppSide.call(.canOpen(scheme: scheme))
        let can = try Manager.read { () throws(FieldError) in try Fields(reply).bool("can") }
        if output.json { Output.document(["can": .bool(can)]) }
        guard can else {
            throw Failure(status: .failed, message: output.json ? nil : "no app opens \(scheme): URLs")
        }
    }
}
