// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CommandLinePages
import Configuration
import DesktopEntries
import EverydayVerbs
import Linux
import TorporAPI
import Varlink

struct Desktop: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "desktop",
        abstract: "Puts apps into the menus of a desktop.",
        subcommands: [DesktopSync.self]
    )
    .examples("torpor desktop sync", "torpor desktop sync --dry-run")
}

struct DesktopSync: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sync",
        abstract: "Writes a desktop entry for each app that has a title, and removes those of apps that are gone.",
        discussion: """
            An entry, io.torpor.APP.desktop, starts its app from the desktop's menu and opens the app's url_schemes \
            and opens. Entries that this command did not make, or made for another supervisor, are never touched. By \
            default they are for this user; for root, for all users of the machine. Run it again when the \
            configuration has changed.
            """
    )
    .examples(
        "torpor desktop sync",
        "torpor desktop sync --dry-run",
        "torpor desktop sync --all --folder ./applications",
        "torpor desktop sync --config ./torpor.toml --dry-run"
    )

    @Flag(help: "Write entries for this user, into $XDG_DATA_HOME/applications.")
    var user = false
    @Flag(help: "Write entries for all users, into /usr/local/share/applications.")
    var system = false
    @Option(help: ArgumentHelp("Write entries into this folder.", valueName: "folder"), completion: .directory)
    var folder: String?
    @Flag(help: "Include apps without a title and oneshots.")
    var all = false
    @Flag(name: .customLong("dry-run"), help: "Show what would change, and change nothing.")
    var isTrial = false
    @Option(
        help: ArgumentHelp("Take the apps from this configuration instead of a running supervisor.", valueName: "file"),
        completion: .file(extensions: ["toml"])
    )
    var config: String?
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if [user, system, folder != nil].count(where: \.self) > 1 {
            throw ValidationError("--user, --system and --folder: choose one")
        }
    }

    package func run() throws {
        let (apps, socket) = try config.map(configured) ?? supervised()
        let path = try place()
        let chosen = apps.filter { all || $0.isForPeople }
        let entries = DesktopEntries(of: chosen, Self.command(socket), socket: socket)
        let changes: DesktopFolder.Changes
        do throws(DesktopFolder.Failure) {
            changes = try DesktopFolder(path).sync(entries, isTrial: isTrial)
        } catch {
            throw Failure(status: .failed, message: "\(error)")
        }
        for remark in entries.remarks { Complaint.say(remark, .warning) }
        for one in changes.refused {
            Complaint.say(
                "\(path)/\(one.file) \(one.reason): it is left as it is, and \(one.app) has no entry",
                .warning
            )
        }
        let hasChanged = !changes.written.isEmpty || !changes.removed.isEmpty
        if !isTrial, hasChanged { Self.updateDatabase(path) }
        if options.json { Output.document(json(changes, path)) } else { show(changes, path, isEmpty: chosen.isEmpty) }
        guard changes.refused.isEmpty else { throw Failure(status: .failed, message: nil) }
    }

    // MARK: Which apps

    private func supervised() throws -> ([DesktopApp], socket: String) {
        let reply = try Manager(options).call(.desktopApps)
        let apps = try Manager.read { () throws(FieldError) in
            try Fields(reply).list("apps") { json throws(FieldError) in try DesktopApp(json: json) }
        }
        return (apps, Self.absolute(options.socket ?? Manager.defaultSocket))
    }

    private func configured(_ file: String) throws -> ([DesktopApp], socket: String) {
        switch ConfigurationLoader.load(path: file, environment: ThisProcess.variables) {
        case .failure(let list):
            for diagnostic in list.diagnostics { Complaint.say(diagnostic.description, .remark) }
            throw Failure(status: .usage, message: "the configuration has errors: correct them")
        case .success(let configuration):
            let socket = options.socket ?? configuration.supervisor.runtimeDirectory + "/io.torpor"
            return (configuration.apps.map(DesktopApp.init), Self.absolute(socket))
        }
    }

    /// The absolute path. Symlinks in it are not resolved.
    private static func absolute(_ path: String) -> String {
        path.hasPrefix("/") ? path : ThisProcess.directory + "/" + path
    }

    // MARK: Where

    private func place() throws(Failure) -> String {
        if let folder { return Self.absolute(folder) }
        if system || !user && Users.isRoot { return "/usr/local/share/applications" }
        if let data = ThisProcess.environment("XDG_DATA_HOME"), data.hasPrefix("/") { return data + "/applications" }
        guard let home = ThisProcess.environment("HOME"), home.hasPrefix("/") else {
            throw Failure(status: .usage, message: "neither XDG_DATA_HOME nor HOME is set: name a folder with --folder")
        }
        return home + "/.local/share/applications"
    }

    /// The command by which desktop entries run this program. It names the socket unless that is the socket of the
    /// user's own supervisor, which `torpor` finds by itself.
    private static func command(_ socket: String) -> DesktopEntry.Command {
        var command = DesktopEntry.Command()
        let onPath = ["/usr/bin/torpor", "/usr/local/bin/torpor"]
        // GLib does not decode %% in a program's path, so it would not find such a program.
        if let own = OwnProgram.path, !onPath.contains(own), !own.contains("%") { command.program = own }
        let isOwn = !Users.isRoot && socket.utf8.elementsEqual(ControlSocket.own.utf8)
        command.socket = isOwn ? nil : socket
        return command
    }

    // MARK: Afterwards

    /// The program that updates the list in which desktops look up the app for a URL or a file.
    private static let indexer = "update-desktop-database"

    private static func updateDatabase(_ path: String) {
        guard let program = (try? AppSide.program(indexer)) else {
            let package = "install desktop-file-utils if the apps are not offered for their URLs and files"
            return Complaint.say("there is no \(indexer) on the PATH: \(package)", .warning)
        }
        let child = try? ChildProcess(
            program,
            arguments: [indexer, "-q", path],
            environment: ThisProcess.environment,
            descriptors: [(0, 0), (2, 1), (2, 2)].map { (there: $1, here: $0) }
        )
        let status = child?.reap(within: .seconds(60))
        if status.flatMap(WaitStatus.exitCode) != 0 {
            Complaint.say("\(indexer) failed: desktops may not offer the apps for their URLs and files", .warning)
        }
    }

    private func show(_ changes: DesktopFolder.Changes, _ path: String, isEmpty: Bool) {
        var text = ""
        func add(_ files: [String], _ done: String, _ trial: String) {
            for file in files { text += "\(isTrial ? trial : done) \(Terminal.harmless(file))\n" }
        }
        add(changes.written, "wrote", "would write")
        add(changes.removed, "removed", "would remove")
        let same = changes.unchanged.count
        if same > 0 { text += "\(same) \(same == 1 ? "entry is" : "entries are") up to date\n" }
        if isEmpty { text += "no app has a title: --all writes entries for the others too\n" }
        Output.page(text + "in \(Terminal.harmless(path))\n")
    }

    private func json(_ changes: DesktopFolder.Changes, _ path: String) -> JSON {
        [
            "folder": .string(path), "dry_run": .bool(isTrial), "written": .strings(changes.written),
            "unchanged": .strings(changes.unchanged), "removed": .strings(changes.removed),
            "refused": .array(
                changes.refused.map {
                    ["app": .string($0.app), "file": .string($0.file), "reason": .string($0.reason)]
                }
            ),
        ]
    }
}
