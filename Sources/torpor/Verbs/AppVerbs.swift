// SPDX-License-Identifier: Apache-2.0

import ArgumentParser

/// What processes of an app call, over `TORPOR_APP_SOCKET`.
struct AppVerbs: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "app",
        abstract: "Verbs for the scripts and programs of an app: its lifecycle, tasks, state and topics.",
        discussion: """
            Only processes of an app that torpord started are answered. They need no right but that, and no --socket.
            """,
        subcommands: [
            DelegateVerb.self, TaskVerb.self, StateVerb.self, Subscribe.self, CanOpen.self, TransferVerb.self,
        ]
    )
    .examples(
        "torpor app delegate --on didEnterBackground=./save.sh -- ./server",
        "torpor app task run -- ./upload.sh",
        "torpor app state save notes.db"
    )
}
