import ArgumentParser

/// What whoever writes policies needs; `torpor policies` says how those in use are doing.
struct Policy: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "policy",
        abstract: "Makes policies, and finds out what they would do.",
        subcommands: [
            PolicyNew.self, PolicyCheck.self, PolicySimulate.self, PolicyReload.self, PolicyOrder.self,
        ]
    )
    .examples("torpor policy new quiet-nights", "torpor policy check ./libQuietNightsPolicy.so", "torpor policy order")
}
