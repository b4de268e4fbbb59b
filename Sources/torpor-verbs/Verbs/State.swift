// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import EverydayVerbs

/// Gives scripts access to the app's state archive.
struct StateVerb: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "state",
        abstract: "Saves, restores or discards the app's state, for an app's scripts.",
        discussion: """
            An app gets its saved state back at the launch after it was evicted, it crashed or the machine was \
            rebooted; not after it was stopped. These verbs are for the app's own processes.
            """,
        subcommands: [StateSave.self, StateRestore.self, StateDiscard.self]
    )
    .examples(
        "torpor app state save notes.db",
        "torpor app state restore notes.db",
        "torpor app state discard"
    )
}

struct StateSave: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "save",
        abstract: "Saves a file as the app's state; returns when it is durable."
    )
    .examples(
        "torpor app state save notes.db",
        "date | torpor app state save -",
        "torpor app state save notes.db --scene alice"
    )

    @Argument(help: "The file, or - for standard input.", completion: .file())
    var file: String
    @OptionGroup var scene: SceneOption
    @OptionGroup var output: OutputOptions

    package func run() throws { try SavedState.save(file, scene: scene.scene, json: output.json) }
}

struct StateRestore: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "restore",
        abstract: "Writes the saved state to a file; exits with 3 if there is none to restore at this launch."
    )
    .examples("torpor app state restore notes.db", "torpor app state restore >notes.db")

    @Argument(help: "The file, or - for standard output.", completion: .file())
    var file: String = "-"
    @OptionGroup var output: OutputOptions

    func validate() throws {
        if output.json, file == "-" { throw ValidationError("--json says where the state was written: name a file") }
    }

    package func run() throws { try SavedState.restore(file, json: output.json) }
}

struct StateDiscard: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "discard",
        abstract: "Discards the saved state."
    )
    .examples("torpor app state discard", "torpor app state discard --scene alice")

    @OptionGroup var scene: SceneOption
    @OptionGroup var output: OutputOptions

    package func run() throws { try SavedState.discard(scene: scene.scene, json: output.json) }
}
