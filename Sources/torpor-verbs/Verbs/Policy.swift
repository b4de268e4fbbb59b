// SPDX-License-Identifier: Apache-2.0

import ArgumentParser

/// The policies in use, and tools for policy authors.
struct Policy: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "policy",
        abstract: "Shows the policies in use; makes and checks policies.",
        subcommands: [
            PolicyList.self, PolicyNew.self, PolicyCheck.self, PolicySimulate.self, PolicyReload.self, PolicyOrder.self,
        ]
    )
    .examples("torpor policy list", "torpor policy new quiet-nights", "torpor policy check ./libQuietNightsPolicy.so")
}
