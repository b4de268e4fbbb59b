// SPDX-License-Identifier: Apache-2.0

import ArgumentParser

/// Verbs for an app's own processes, which use `TORPOR_APP_SOCKET`.
struct AppVerbs: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "app",
        abstract: "Serves an app's scripts and programs: lifecycle, tasks, state, topics, transfers and alerts.",
        discussion: """
            These verbs work only in processes of an app that torpord started. They need no other permission, and no \
            --socket.
            """,
        subcommands: [
            DelegateVerb.self, TaskVerb.self, StateVerb.self, Subscribe.self, CanOpen.self, TransferVerb.self,
            AppNotify.self, AppAlertsVerb.self, AppBadge.self, AppPermissionsVerb.self, AppRequestPermission.self,
            AppActivity.self,
        ]
    )
    .examples(
        "torpor app delegate --on didEnterBackground=./save.sh -- ./server",
        "torpor app task run -- ./upload.sh",
        "torpor app state save notes.db"
    )
}
