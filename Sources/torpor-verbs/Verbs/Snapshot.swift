// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CommandLinePages
import EverydayVerbs
import Linux
import TorporAPI
import Varlink
import WireText

struct SnapshotVerb: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "snapshot",
        abstract: "Shows an app's last snapshot from the background: a picture or a text.",
        discussion: """
            A text is printed; a picture goes to a file or a pipe. With --save and without APP, a process of an app \
            saves the file as its app's snapshot while the app is in the background or enters it.
            """
    )
    .examples(
        "torpor snapshot kiosk -o kiosk.png",
        "torpor snapshot web",
        "torpor snapshot --save screen.png",
        "torpor snapshot --save screen.png --scene alice"
    )
    @Argument(
        help: ArgumentHelp("The app's name.", valueName: "app"),
        completion: .custom { words, _, _ in Completion.apps(words) }
    )
    var app: String?
    @Option(name: .shortAndLong, help: ArgumentHelp("Write it to this file.", valueName: "file"), completion: .file())
    var output: String?
    @Option(
        help: ArgumentHelp("Save this file as the calling app's snapshot; - is standard input.", valueName: "file"),
        completion: .file()
    )
    var save: String?
    @OptionGroup var scene: SceneOption
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if let app, !AppWord.isName(app) {
            throw ValidationError("“\(app)” can be many apps, and this verb takes one: write its name")
        }
        if save != nil, app != nil || output != nil {
            throw ValidationError("--save is for an app's own processes: leave out APP and --output")
        }
        if scene.scene != nil, save == nil {
            throw ValidationError("--scene is for --save, which saves the snapshot of that scene: add --save")
        }
        if save == nil, app == nil { throw ValidationError("Missing expected argument '<app>'") }
        if options.json, output != nil {
            throw ValidationError("--json describes the snapshot, --output writes it: choose one")
        }
    }

    package func run() throws {
        if let save { return try give(save) }
        guard let app else { return }
        let manager = try Manager(options)
        func part(_ offset: Int64) throws(Failure) -> SnapshotPart {
            let reply = try manager.call(.snapshot(app: app, offset: offset))
            return try Manager.read { () throws(FieldError) in try SnapshotPart(json: reply) }
        }
        let whole = options.json ? try part(0) : try SnapshotPart.whole(part)
        if options.json { Output.document(whole.snapshot?.json ?? .null) }
        guard let snapshot = whole.snapshot else {
            throw Failure(
                status: .failed,
                message: "\(app) has no snapshot: it saves none, or was not in the background yet"
            )
        }
        if !options.json { try show(snapshot, whole.data, app) }
    }

    private func show(_ snapshot: SnapshotInfo, _ data: [UInt8], _ app: String) throws(Failure) {
        if let output, output != "-" {
            do throws(Errno) {
                try UserFile.write(output, data)
            } catch {
                throw Failure(status: .failed, message: "\(output) cannot be written: \(error)")
            }
            return
        }
        let kind = snapshot.kind?.rawValue ?? "a picture"
        guard ThisProcess.isTerminal(1) else { return Output.write(data) }
        guard snapshot.kind == .text else {
            throw Failure(
                status: .failed,
                message: "the snapshot of \(app) is \(kind), \(Times.memory(bytes: snapshot.bytes)), which a "
                    + "terminal cannot show: save it with ‘torpor snapshot \(app) -o FILE’"
            )
        }
        let lines = String(wire: data).split(separator: "\n", omittingEmptySubsequences: false)
        let text = lines.map { Terminal.harmless(String($0)) }.joined(separator: "\n")
        Output.write(text.hasSuffix("\n") ? text : text + "\n")
    }

    private func give(_ file: String) throws(Failure) {
        let bytes = try AppSide.bytes(of: file)
        let reply = try AppSide.save(bytes, as: "snapshot") {
            .saveSnapshot(data: $0, file: $1, scene: scene.scene)
        }
        if options.json { Output.document(reply) }
    }
}
