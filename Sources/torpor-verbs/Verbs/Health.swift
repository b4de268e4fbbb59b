// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CommandLinePages
import EverydayVerbs
import Linux
import TorporAPI
import Varlink

struct Health: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "health",
        abstract: "Checks whether all is well, for probes; exits with 1 if not.",
        discussion: """
            All is well if the supervisor answers and has finished its start, the configuration on disk was valid \
            when last read, every app that should be up is up and passes its health check, every socket is bound, every policy is in use, and \
            events and the output of apps can be written, and torpord did not have to begin a new torpor.db in the last week \
            (or the old one was removed since). An app is not well if it has failed, if it waits to be \
            launched, or if it has restart = "always" and was evicted with nothing left to launch it. With APP, all \
            is well if each of these apps is up, ready and healthy. A suspended app counts as up, since it is resumed when it \
            is needed, and so does a oneshot that has done its work, or does it now.

            Each problem is a sentence on standard error. Exit status: 0 all is well; 1 something is not; 4 there \
            is no such app; 5 no supervisor answers in time.
            """
    )
    .examples(
        "torpor health",
        "torpor health web db --timeout 2s"
    )
    @Argument(
        help: ArgumentHelp("Names, globs or tag:NAME.", valueName: "app"),
        completion: .custom { words, _, _ in Completion.appsAndTags(words) }
    )
    package var apps: [String] = []

    @Option(
        help: ArgumentHelp(
            "The state that each APP must be in: \(states.joined(separator: ", ")).",
            valueName: "state"
        ),
        completion: .list(states)
    )
    var state: String?

    @Option(help: ArgumentHelp("The longest time to wait for an answer, such as 10s; 5s if none is named."))
    var timeout: TimeLimit?
    @OptionGroup var options: GlobalOptions

    private static let states = ["inactive", "active", "background", "suspended"]

    func validate() throws {
        guard let state else { return }
        guard Self.states.contains(state) else {
            throw ValidationError("there is no state “\(state)”, only \(Self.states.joined(separator: ", "))")
        }
        guard !apps.isEmpty else { throw ValidationError("--state is about apps: name them") }
    }

    package func run() throws {
        var health = PlainHealth(apps: apps, options: PlainOptions(options))
        health.state = state
        health.set(timeout: timeout?.milliseconds)
        try health.run()
    }
}
