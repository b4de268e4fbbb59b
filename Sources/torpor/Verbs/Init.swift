import ArgumentParser
import Configuration
import Importing
import Linux
import Varlink

struct Init: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "init",
        abstract: "Writes a first torpor.toml.",
        discussion: """
            It takes what it knows in the directory: a Procfile, a configuration of supervisord, a compose file, an \
            ecosystem file of PM2, service directories, package.json, manage.py, app.py or main.py; else an example that \
            works at once. On a terminal it asks.
            """
    )
    .examples("torpor init", "torpor init --yes ~/shop")

    @Argument(help: "The directory; this one if none is named.", completion: .directory)
    var directory: String?
    @Flag(name: .shortAndLong, help: "Ask nothing: take what is found.")
    var yes = false
    @Flag(help: "Write over a torpor.toml that is there.")
    var force = false
    @Flag(help: "One JSON document on standard output.")
    var json = false

    func run() throws {
        let folder = ImportFiles.absolute(directory ?? ".")
        guard (try? File.status(folder).kind) == .directory else {
            throw Failure(status: .usage, message: "\(folder) is no directory: make it first, or name another one")
        }
        let file = (folder == "/" ? "" : folder) + "/torpor.toml"
        if !force, ImportFiles.isTaken(file) {
            throw Failure(status: .usage, message: "\(file) exists: edit it, or write over it with --force")
        }
        let asks = !yes && !json && ThisProcess.isTerminal(0) && ThisProcess.isTerminal(1)
        let made = try imported(folder, file, asks: asks) ?? first(folder, file, asks: asks)
        try ImportFiles.write(made.toml, to: file)
        guard !json else {
            return Output.document(["file": .string(file), "from": .optional(made.origin), "toml": .string(made.toml)])
        }
        Output.write(WrittenFile.text(file, origin: made.origin) + "\n")
    }

    /// What another supervisor's configuration in the folder makes; nil where there is none, or nobody wants it.
    private func imported(_ folder: String, _ file: String, asks: Bool) -> (toml: String, origin: String?)? {
        let tree = ImportFiles.live
        var sources: [(path: String, title: String)] = Importer.files(in: folder, tree).map { ($0.path, $0.kind.title) }
        for name in ["sv", "s6", "s6-rc.d", "services", "etc/s6-overlay/s6-rc.d"] {
            let path = folder + "/" + name
            if let kind = Importer.kind(ofFolder: path, tree), kind == .s6 || kind == .runit {
                sources.append((path, kind.title))
            }
        }
        for (path, title) in sources {
            let name = path.dropFirst(folder.count + 1)
            guard var result = try? Importer.read(path, in: tree) else { continue }
            result.validate(at: file, environment: ThisProcess.variables)
            guard result.translatedCount > 0 else { continue }
            let apps = result.translatedCount == 1 ? "1 app" : "\(result.translatedCount) apps"
            if asks, !Self.agrees("\(name) is \(title), with \(apps). Take it?", usual: true) { continue }
            return (result.toml, String(name))
        }
        return nil
    }

    /// One app: found, asked for, or the example.
    private func first(_ folder: String, _ file: String, asks: Bool) throws -> (toml: String, origin: String?) {
        let found = FirstApp.found(in: folder, ImportFiles.live)
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
                ThisProcess.complain("a quote in it is not closed, or nothing is in it")
            }
            let port = Self.answer("Port that it listens at (none for none)", usual: app.port.map { "\($0)" } ?? "none")
            app.port = UInt16(port).flatMap { $0 > 0 ? $0 : nil }
            app.sleeps = Self.agrees("Shall it sleep in memory while nobody uses it?", usual: false)
        }
        return (app.toml, app.origin)
    }

    /// What is typed; the usual where it is nothing, or the input has ended.
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
