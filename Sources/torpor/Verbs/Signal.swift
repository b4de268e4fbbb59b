// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Linux
import TorporAPI
import Varlink

struct SendSignal: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "signal",
        abstract: "Sends a signal to the main process of an app."
    )
    .examples(
        "torpor signal HUP web"
    )

    @Argument(
        help: ArgumentHelp("Its name or number: SIGUSR1, USR1, 10.", valueName: "sig"),
        completion: .list(["SIGHUP", "SIGINT", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGTERM", "SIGABRT", "SIGWINCH"])
    )
    var signal: String
    @OptionGroup var app: AppArgument
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        guard Linux.Signal.number(named: signal) != nil else {
            if Linux.Signal.number(named: app.app) != nil {
                throw ValidationError("the signal comes first: torpor signal \(app.app) \(signal)")
            }
            throw ValidationError("there is no signal “\(signal)”: name it as in SIGUSR1, USR1 or 10")
        }
    }

    func run() throws {
        let token = RequestToken.random()
        try Manager(options).call(.signal(app: app.app, signal: signal, token: token))
        if options.json { Output.document(["app": .string(app.app), "ok": true]) }
    }
}
