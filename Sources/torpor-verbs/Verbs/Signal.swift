// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import EverydayVerbs

struct SendSignal: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "signal",
        abstract: "Sends a signal to the main process of apps.",
        discussion: """
            A suspended app gets it when it is resumed. A signal that asks it to end (TERM, INT, QUIT, ABRT), or that \
            ends it since it has no handler, resumes it at once. 0 sends nothing: the exit status says whether all of \
            the apps run.
            """
    )
    .examples(
        "torpor signal HUP web",
        "torpor signal USR2 db 'web@*'"
    )

    @Argument(
        help: ArgumentHelp("The signal's name or number: SIGUSR1, USR1, 10.", valueName: "sig"),
        completion: .list(
            ["HUP", "INT", "QUIT", "USR1", "USR2", "TERM", "ABRT", "WINCH"].flatMap { [$0, "SIG" + $0] }
        )
    )
    var signal: String
    @OptionGroup var apps: AppsArgument
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        guard PlainSignal.isSignal(signal) else {
            if let last = apps.apps.last, PlainSignal.isSignal(last) {
                let names = ([signal] + apps.apps.dropLast()).joined(separator: " ")
                throw ValidationError("the signal comes first: torpor signal \(last) \(names)")
            }
            throw ValidationError("there is no signal “\(signal)”: name it as in SIGUSR1, USR1 or 10")
        }
    }

    package func run() throws {
        try PlainSignal(signal: signal, apps: apps.apps, options: PlainOptions(options)).run()
    }
}
