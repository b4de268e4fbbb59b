// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CommandLinePages
import Configuration
import EverydayVerbs
import Importing
import Linux
import Varlink

struct Init: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "init",
        abstract: "Writes a first torpor.toml.",
        discussion: """
            Translates what it finds in the directory: a Procfile, a supervisord configuration, a compose file, a PM2 \
            ecosystem file, service directories, package.json, manage.py, app.py or main.py; else writes an example \
            that works at once. On a terminal it asks. Lists the sources that it did not use.
            """
    )
    .examples("torpor init", "torpor init --yes ~/shop")

    @Argument(help: "The directory; the current one if none is named.", completion: .directory)
    var directory: String?
    @Flag(name: .shortAndLong, help: "Ask nothing: use what is found.")
    var yes = false
    @Flag(help: "Overwrite an existing torpor.toml.")
    var force = false
    @Flag(help: "One JSON document on standard output.")
    package var json = false

    package func run() throws {
        let folder = ImportFiles.absolute(directory ?? ".")
        guard (try? File.status(folder).kind) == .directory else {
            throw Failure(status: .usage, message: "\(folder) is not a directory: make it first, or name another one")
        }
        let file = (folder == "/" ? "" : folder) + "/torpor.toml"
        if !force, ImportFiles.isTaken(file) {
            throw Failure(status: .usage, message: "\(file) exists: edit it, or overwrite it with --force")
        }
        _ = try ImportFiles.target(file)
        let asks = !yes && !json && ThisProcess.isTerminal(0) && ThisProcess.isTerminal(1)
        let sources = Self.sources(in: folder)
        let made = try imported(sources, file, asks: asks) ?? first(folder, file, asks: asks)
        let others = sources.filter { $0.name != made.origin }.map { ($0.name, Self.remark(on: $0, file)) }
        try ImportFiles.write(made.toml, to: file, made.readers)
        guard !json else {
            return Output.document([
                "file": .string(file), "from": .optional(made.origin), "toml": .string(made.toml),
                "seen": .array(others.map { ["file": .string($0.0), "message": .string($0.1)] }),
            ])
        }
        Output.page(WrittenFile.text(file, origin: made.origin) + "\n")
        for (_, remark) in others { Output.page("Not taken: \(Terminal.harmless(remark))\n") }
    }

    /// A configuration file of another supervisor that was found in the folder.
    private struct Source {
        var path: String
        var name: String
        /// The kind of the file, such as the other supervisor's name; nil if the file is a program.
        var title: String?
    }

    private static func sources(in folder: String) -> [Source] {
        let tree = ImportFiles.live
        func source(_ path: String, _ title: String?) -> Source {
            Source(path: path, name: String(path.dropFirst(folder == "/" ? 1 : folder.count + 1)), title: title)
        }
        var sources = Importer.files(in: folder, tree).map { source($0.path, $0.kind.title) }
        for name in ["sv", "s6", "s6-rc.d", "services", "etc/s6-overlay/s6-rc.d"] {
            let path = folder + "/" + name
            if let kind = Importer.kind(ofFolder: path, tree), kind == .s6 || kind == .runit {
                sources.append(source(path, kind.title))
            }
        }
        return sources + Importer.programs(in: folder, tree).map { source($0, nil) }
    }

    private static func read(
        _ source: Source,
        _ file: String,
        _ readers: SourceReaders = SourceReaders()
    ) throws(ImportError) -> ImportedConfiguration {
        var result = try Importer.read(source.path, in: readers.tree)
        result.validate(at: file, environment: ThisProcess.variables)
        return result
    }

    private static func apps(_ result: ImportedConfiguration) -> String {
        result.translatedCount == 1 ? "1 app" : "\(result.translatedCount) apps"
    }

    /// A sentence that says why a source was not imported, and how the user can import it.
    private static func remark(on source: Source, _ file: String) -> String {
        let verb = "‘torpor import \(ShellWord.quoted(source.path))’"
        do throws(ImportError) {
            let result = try read(source, file)
            let title = source.title.map { ", \($0)" } ?? ""
            guard result.translatedCount > 0 else {
                return "\(source.name)\(title), of which nothing can be translated: \(verb) says why"
            }
            return "\(source.name)\(title) with \(apps(result)): \(verb) translates it"
        } catch {
            return error.description
        }
    }

    /// A new configuration, the source from which it was made, and the files that were read for it.
    private typealias Made = (toml: String, origin: String?, readers: SourceReaders)

    /// Imports a configuration of another supervisor in the folder; nil if there is none or the user declines.
    private func imported(_ sources: [Source], _ file: String, asks: Bool) -> Made? {
        for source in sources {
            let readers = SourceReaders()
            guard let result = try? Self.read(source, file, readers), result.translatedCount > 0 else { continue }
            let question = "\(source.name) is \(source.title ?? "a program"), with \(Self.apps(result)). Take it?"
            if asks, !Self.agrees(question, usual: true) { continue }
            return (result.toml, source.name, readers)
        }
        return nil
    }

    /// Makes a configuration with a first app: one detected in the folder, one that the user enters, or the example.
    private func first(_ folder: String, _ file: String, asks: Bool) throws -> Made {
        let readers = SourceReaders()
        let found = FirstApp.found(in: folder, readers.tree)
        var app = found.first ?? .example
        if asks {
            if let other = found.first(where: { app in
                app.origin.map { Self.agrees("\($0) is there: run ‘\(Terminal.harmless(app.command))’?", usual: true) }
                    ?? false
            }) {
                app = other
            } else {
                app = .example
            }
            app.name = FirstApp.validName(Self.answer("Name of the app", usual: app.name))
            while true {
                let command = Self.answer("Its command", usual: app.command)
                if let words = FirstApp.words(command) {
                    app.exec = command == app.command ? app.exec : words
                    break
                }
                Complaint.say("the command is empty or has an unclosed quote", .remark)
            }
            let port = Self.answer("Port that it listens on, or none", usual: app.port.map { "\($0)" } ?? "none")
            app.port = UInt16(port).flatMap { $0 > 0 ? $0 : nil }
            app.sleeps = Self.agrees("Suspend it in memory while it is idle?", usual: false)
        }
        return (app.toml, app.origin, readers)
    }

    /// Asks the user a question. Returns the answer; `usual` if the line is empty or the input has ended.
    private static func answer(_ question: String, usual: String) -> String {
        Output.write("\(question) [\(Terminal.harmless(usual))]: ")
        let line = (readLine() ?? "").split(separator: " ").joined(separator: " ")
        return line.isEmpty ? usual : line
    }

    private static func agrees(_ question: String, usual: Bool) -> Bool {
        Output.write("\(question) [\(usual ? "Y/n" : "y/N")] ")
        switch (readLine() ?? "").lowercased().first {
        case "y": return true
        case "n": return false
        default: return usual
        }
    }
}
