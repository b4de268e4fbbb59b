// SPDX-License-Identifier: Apache-2.0

import AppConnection
import ArgumentParser
import CommandLinePages
import EverydayVerbs
import Linux
import TorporAPI
import Varlink

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
    var stopBefore = TimeLimitOrNone(.seconds(2))
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
        let name = name ?? words[0].split(separator: "/").last.map(String.init) ?? words[0]
        guard let socket = AppSide.environment.socket else {
            guard !output.json else {
                return end(name, AppSide.exitStatus(try AppSide.start(words, descriptors: descriptors).reap()))
            }
            let path = try AppSide.program(words[0])
            let error = ThisProcess.execute(path, arguments: words, environment: ThisProcess.environment)
            throw Failure(status: .notExecutable, message: "\(words[0]) could not be run: \(error)")
        }
        let run = try TaskRun(
            name: name,
            words: words,
            descriptors: descriptors,
            stopBefore: stopBefore.duration,
            socket: socket
        )
        end(name, try run.run())
    }

    /// The descriptors that the command gets. With `--json`, only the document goes to standard output.
    private var descriptors: [(there: Int32, here: Int32)] { [(0, 0), (1, output.json ? 2 : 1), (2, 2)] }

    private func end(_ name: String, _ status: Int32) {
        if output.json { Output.document(["name": .string(name), "exit_status": .int(Int64(status))]) }
        ThisProcess.exit(status)
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

    package func run() throws {
        try TaskNotice.say("X_TORPOR_TASK_BEGIN", name)
        if output.json { Output.document(["name": .string(name), "ok": true]) }
    }
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

    package func run() throws {
        try requireTask()
        try TaskNotice.say("X_TORPOR_TASK_END", name)
        if output.json { Output.document(["name": .string(name), "ok": true]) }
    }

    // Ask first whether the task exists, because sd_notify messages get no reply that could say so.
    private func requireTask() throws(Failure) {
        guard AppSide.environment.notifySocket != nil, AppSide.environment.socket != nil else { return }
        let tasks = try AppSide.call(.state)["tasks"]?.arrayValue ?? []
        let names = tasks.compactMap { $0["name"]?.stringValue }
        guard !names.contains(name) else { return }
        let hint = names.isEmpty ? "it has none" : "it has \(names.joined(separator: ", "))"
        throw Failure(status: .failed, message: "the app has no background task \(name): \(hint)")
    }
}

/// Begins or ends a named task by sd_notify. Such a task ends only on request, unlike a task that belongs to a
/// connection.
enum TaskNotice {
    static func say(_ field: String, _ name: String) throws {
        guard !name.isEmpty, !name.utf8.contains(where: { $0 < 0x20 }) else {
            throw Failure(status: .usage, message: "a task's name must be one line of text")
        }
        guard let socket = AppSide.environment.notifySocket else {
            throw Failure(
                status: .noSupervisor,
                message: "NOTIFY_SOCKET is not set: this verb is for the processes of an app that torpord started"
            )
        }
        do throws(Errno) {
            try NotifySpeech.say("\(field)=\(name)", to: socket)
            guard try NotifySpeech.settle(socket, timeout: .seconds(10)) else {
                throw Errno(rawValue: 110)
            }
        } catch {
            throw Failure(status: .noSupervisor, message: "no supervisor listens at \(socket): \(error)")
        }
    }
}

struct TaskList: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "list", abstract: "Shows the app's background tasks.")
        .examples("torpor app task list")

    @OptionGroup var output: OutputOptions

    package func run() throws {
        let reply = try AppSide.call(.state)
        if output.json { return Output.document(reply["tasks"] ?? .array([])) }
        var table = Table(["TASK", "NAME"], rightAligned: [0])
        for task in reply["tasks"]?.arrayValue ?? [] {
            table.append([
                .init("\(task["token"]?.intValue ?? 0)"), .init(task["name"]?.stringValue ?? ""),
            ])
        }
        Output.page(table.text)
    }
}

struct TaskTime: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "time",
        abstract: "Shows how long the app may still run for its background tasks.",
        discussion: "In seconds; unlimited while the time does not count, as in the foreground."
    )
    .examples("torpor app task time")

    @OptionGroup var output: OutputOptions

    package func run() throws {
        let reply = try AppSide.call(.backgroundTime)
        if output.json { return Output.document(reply) }
        guard let left = reply["remaining_ms"]?.intValue else {
            Output.write("unlimited\n")
            return
        }
        Output.write("\(left / 1000).\(left % 1000 / 100)\n")
    }
}
