// SPDX-License-Identifier: Apache-2.0

import AppConnection
import ArgumentParser
import CommandLinePages
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
            and returns when the URL is on the disk.
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
    var target: String
    @Option(
        help: ArgumentHelp("Open it with this app.", valueName: "app"),
        completion: .custom { words, _, _ in Completion.apps(words) }
    )
    var app: String?
    @Option(help: ArgumentHelp("The media type of the file, in place of the one that its name has.", valueName: "type"))
    var type: String?
    @Flag(help: "Show the apps that open it, best match first, and open nothing.")
    var which = false
    @OptionGroup var wait: WaitOptions
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if let app, !AppArgument.isName(app) {
            throw ValidationError("“\(app)” can be many apps, and --app takes one: write its name")
        }
        if which, app != nil { throw ValidationError("--which and --app: choose one") }
    }

    package func run() throws {
        var request = OpenRequest(try found())
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
        guard !handlers.isEmpty else { throw Failure(status: .failed, message: "no app opens \(target)") }
        Output.page(handlers.map { "\(Terminal.harmless($0.app)) (by its \($0.by))\n" }.joined())
    }

    /// Takes the argument as a file if one of that name exists, else as a URL.
    private func found() throws -> OpenRequest.Target {
        // Desktops pass files to programs as file:// URLs.
        let isFileURL = target.utf8.starts(with: "file://".utf8)
        let target = isFileURL ? OpenedURL.path(self.target) ?? "" : self.target
        if self.target.isEmpty {
            throw Failure(status: .usage, message: "there is nothing to open: write a URL or the name of a file")
        }
        if target.isEmpty {
            throw Failure(status: .usage, message: "\(self.target) is not the URL of a file on this machine")
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

/// The media types of files by name, from the system's MIME databases.
struct MediaTypes {
    /// shared-mime-info's lines `WEIGHT:TYPE:PATTERN`: the most specific pattern wins. The user's own file comes first.
    private static var globs: [String] {
        let own = ThisProcess.environment("HOME").map { $0 + "/.local/share" }
        let home = ThisProcess.environment("XDG_DATA_HOME") ?? own
        let shared = ThisProcess.environment("XDG_DATA_DIRS") ?? "/usr/local/share:/usr/share"
        return ([home].compactMap { $0 } + shared.split(separator: ":").map(String.init)).map { $0 + "/mime/globs2" }
    }
    /// mime.types(5) as media-types installs it: `TYPE EXTENSION…`.
    private static let types = "/etc/mime.types"

    /// The media type for that file name; nil if unknown.
    func type(of path: String) -> String? {
        let name = path.split(separator: "/").last.map { String($0).lowercased() } ?? ""
        for file in Self.globs {
            if let type = Self.inGlobs(file, name) { return type }
        }
        return Self.inTypes(name)
    }

    private static func lines(of file: String) -> [Substring] {
        guard let bytes = try? File.read(file, limit: 8 << 20) else { return [] }
        return String(wire: bytes).split(separator: "\n")
    }

    private static func inGlobs(_ file: String, _ name: String) -> String? {
        var best: (type: String, weight: Int, length: Int)?
        for line in lines(of: file) where !line.hasPrefix("#") {
            let parts = line.split(separator: ":", maxSplits: 3)
            guard parts.count >= 3, let weight = Int(parts[0]) else { continue }
            let pattern = parts[2].lowercased()
            let fits =
                pattern.hasPrefix("*.") && !pattern.dropFirst().contains { "*?[".contains($0) }
                ? name.hasSuffix(pattern.dropFirst()) : pattern == name
            guard fits else { continue }
            if let best, (best.weight, best.length) >= (weight, pattern.utf8.count) { continue }
            best = (String(parts[1]), weight, pattern.utf8.count)
        }
        return best?.type
    }

    private static func inTypes(_ name: String) -> String? {
        guard let dot = name.lastIndex(of: ".") else { return nil }
        let ending = name[name.index(after: dot)...]
        for line in lines(of: types) where !line.hasPrefix("#") {
            let words = line.split(whereSeparator: \.isWhitespace)
            if words.dropFirst().contains(ending) { return String(words[0]) }
        }
        return nil
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
