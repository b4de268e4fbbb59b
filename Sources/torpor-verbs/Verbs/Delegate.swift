// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Configuration
import EverydayVerbs

struct DelegateVerb: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "delegate",
        abstract: "Answers the app's lifecycle messages for a script, or for a program that cannot.",
        discussion: """
            With --on, /bin/sh runs a command for a message. The message is answered when the command ends: done for \
            exit status 0, failed for any other. The command has TORPOR_MESSAGE, TORPOR_MESSAGE_ID, \
            TORPOR_MESSAGE_DEADLINE_MS, and the parameters of the message (TORPOR_MESSAGE_URL, _PATH, _GAP_S, _REASON \
            …). For a scene inside the app, TORPOR_SCENE is its name; for sceneWillConnect, TORPOR_SESSION is its \
            session in JSON and TORPOR_SCENE_CGROUP its cgroup (scenes.cgroups). On descriptor 3 the command can \
            write “pending 20s TEXT”, “failed TEXT”, “unhandled”, “decline url|restoration|snapshot” or “fetch \
            new-data|no-data|failed”. All other messages are answered at once: URLs and posted messages with \
            unhandled, so that another app may get them, the others with done.

            A program can follow after --. It is started when the launch messages before didFinishLaunching are \
            answered; when it ends, the delegate ends. The app has ready = "delegate" and, for example:
              exec = ["torpor", "app", "delegate", "--on", "didEnterBackground=./save", "--", "./server"]

            Without --on and without a program, each message is written to standard output, a line each: number, \
            name, and parameters as JSON; and is answered at once. With --answers, lines on standard input answer it: \
            “done”, “unhandled” or “failed TEXT”, and before one of these “pending DURATION TEXT”, “decline WHAT” and \
            “fetch WHAT”.
            """
    )
    .examples(
        "torpor app delegate --on didEnterBackground=./save.sh",
        "torpor app delegate --on 'didReceiveNotification=cat >>news' -- ./server"
    )

    @Option(
        help: ArgumentHelp(
            "Run this command for the message; * is for messages that have none.",
            valueName: "message=command"
        ),
        completion: .list(DelegateHook.messages.map { $0 + "=" })
    )
    var on: [String] = []
    @Flag(help: "Read the answers from standard input.")
    var answers = false
    @Flag(help: "Write each message as a JSON object on a line.")
    package var json = false
    @Argument(parsing: .postTerminator, help: ArgumentHelp("A program to run, after --.", valueName: "command"))
    var words: [String] = []

    func validate() throws {
        for entry in on {
            guard let hook = DelegateHook(entry) else {
                throw ValidationError(
                    "“\(entry)” is not MESSAGE=COMMAND: write, for example, didEnterBackground=./save"
                )
            }
            guard hook.isKnown else {
                let names = DelegateHook.messages
                let hint = Nearest.name(to: hook.message, among: names).map { "did you mean \($0)?" }
                throw ValidationError(
                    "there is no message “\(hook.message)”: \(hint ?? names.joined(separator: ", "))"
                )
            }
        }
        guard !answers || (on.isEmpty && words.isEmpty) else {
            throw ValidationError("--answers is for messages on standard output: leave out --on and the program")
        }
    }

    package func run() throws {
        try DelegateRun.run(on.compactMap { DelegateHook($0) }, words, json: json, readsAnswers: answers)
    }
}
