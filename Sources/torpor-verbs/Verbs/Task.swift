// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import EverydayVerbs

/// Lets scripts use background tasks.
struct TaskVerb: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "task",
        abstract: "Runs, begins, ends or shows background tasks, for an app's scripts.",
        discussion: """
            An app with a background task is not suspended when it goes to the background, until the time is used up \
            (task_time). These verbs are for the app's own processes.
            """,
        subcommands: [TaskRunVerb.self, TaskBegin.self, TaskEnd.self, TaskList.self, TaskTime.self]
    )
    .examples(
        "torpor app task run --name upload -- rsync -a photos backup:",
        "torpor app task begin index && make-index; torpor app task end index"
    )
}

struct TaskRunVerb: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run",
        abstract: "Runs a command as a background task.",
        discussion: """
            The task lasts as long as the command; the exit status of the command is the result. Shortly before the \
            time is used up, the command gets SIGTERM, since a task that does not end in time ends the whole app. As \
            in a shell, 127 means that there is no such command, and 126 that it cannot be run.

            Without a supervisor (no TORPOR_APP_SOCKET) the command just runs. With --json, its output goes to \
            standard error, and the document has its exit status.
            """
    )
    .examples(
        "torpor app task run -- rsync -a photos backup:",
        "torpor app task run --name upload --stop-before 10s -- ./upload.sh"
    )

    @Option(help: "The task's name; the command's name if none is named.")
    package var name: String?
    @Option(
        name: .customLong("stop-before"),
        help: ArgumentHelp("Send SIGTERM to the command this long before its time is used up; none: never.")
    )
    var stopBefore = TimeLimitOrNone(ScriptTasks.stopBefore)
    @Argument(parsing: .postTerminator, help: ArgumentHelp("The command, after --.", valueName: "command"))
    var words: [String] = []
    @OptionGroup var output: OutputOptions

    func validate() throws {
        guard !words.isEmpty else {
            throw ValidationError(
                "there is no command to run: write it after --, as in ‘torpor app task run -- rsync …’"
            )
        }
    }

    package func run() throws {
        try ScriptTasks.run(words, name: name, stopBefore: stopBefore.duration, json: output.json)
    }
}

struct TaskBegin: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "begin",
        abstract: "Begins a background task that ‘torpor app task end’ ends.",
        discussion:
            "It belongs to the app, not to this command; if one command is the whole task, use ‘torpor app task run’."
    )
    .examples("torpor app task begin index && make-index; torpor app task end index")

    @Argument(help: "The task's name.")
    package var name: String
    @OptionGroup var output: OutputOptions

    package func run() throws { try ScriptTasks.begin(name, json: output.json) }
}

struct TaskEnd: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "end",
        abstract: "Ends a background task that ‘torpor app task begin’ began."
    )
    .examples("torpor app task end index")

    @Argument(help: "The task's name.")
    package var name: String
    @OptionGroup var output: OutputOptions

    package func run() throws { try ScriptTasks.end(name, json: output.json) }
}

struct TaskList: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "list", abstract: "Shows the app's background tasks.")
        .examples("torpor app task list")

    @OptionGroup var output: OutputOptions

    package func run() throws { try ScriptTasks.list(json: output.json) }
}

struct TaskTime: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "time",
        abstract: "Shows how long the app may still run for its background tasks.",
        discussion: "In seconds; unlimited while the time does not count, as in the foreground."
    )
    .examples("torpor app task time")

    @OptionGroup var output: OutputOptions

    package func run() throws { try ScriptTasks.time(json: output.json) }
}
