// SPDX-License-Identifier: Apache-2.0

import AppConnection
import CommandLinePages
import Linux
import TorporAPI
import Varlink

/// What scripts do with background tasks of the app that they belong to.
package enum ScriptTasks {
    /// How long before the end of its time a command is asked to terminate, unless the command line says it.
    package static let stopBefore = Duration.seconds(2)

    /// Runs a command as a background task, and exits with its exit status.
    ///
    /// - Parameters:
    ///   - name: the task's name; nil for the command's name.
    ///   - stopBefore: how long before the end of its time the command is asked to terminate; nil for never.
    package static func run(_ words: [String], name: String?, stopBefore: Duration?, json: Bool) throws {
        let name = name ?? words[0].split(separator: "/").last.map(String.init) ?? words[0]
        // With `json`, only the document goes to standard output.
        let descriptors: [(there: Int32, here: Int32)] = [(0, 0), (1, json ? 2 : 1), (2, 2)]
        guard let socket = AppSide.environment.socket else {
            guard !json else {
                let status = try AppSide.start(words, descriptors: descriptors).reap()
                return exit(name, AppSide.exitStatus(status), json)
            }
            let path = try AppSide.program(words[0])
            let error = ThisProcess.execute(path, arguments: words, environment: ThisProcess.environment)
            throw Failure(status: .notExecutable, message: "\(words[0]) could not be run: \(error)")
        }
        let run = try TaskRun(
            name: name,
            words: words,
            descriptors: descriptors,
            stopBefore: stopBefore,
            socket: socket
        )
        exit(name, try run.run(), json)
    }

    private static func exit(_ name: String, _ status: Int32, _ json: Bool) {
        if json { Output.document(["name": .string(name), "exit_status": .int(Int64(status))]) }
        ThisProcess.exit(status)
    }

    // MARK: Tasks that belong to no command

    package static func begin(_ name: String, json: Bool) throws {
        try say("X_TORPOR_TASK_BEGIN", name)
        if json { Output.document(["name": .string(name), "ok": true]) }
    }

    package static func end(_ name: String, json: Bool) throws {
        try require(name)
        try say("X_TORPOR_TASK_END", name)
        if json { Output.document(["name": .string(name), "ok": true]) }
    }

    // Ask first whether the task exists, because sd_notify messages get no reply that could say so.
    private static func require(_ name: String) throws(Failure) {
        guard AppSide.environment.notifySocket != nil, AppSide.environment.socket != nil else { return }
        let tasks = try AppSide.call(.state)["tasks"]?.arrayValue ?? []
        let names = tasks.compactMap { $0["name"]?.stringValue }
        guard !names.contains(name) else { return }
        let hint = names.isEmpty ? "it has none" : "it has \(names.joined(separator: ", "))"
        throw Failure(status: .failed, message: "the app has no background task \(name): \(hint)")
    }

    /// Begins or ends a named task by sd_notify. Such a task ends only on request, unlike a task that belongs to a
    /// connection.
    private static func say(_ field: String, _ name: String) throws {
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

    // MARK: Showing

    package static func list(json: Bool) throws {
        let reply = try AppSide.call(.state)
        if json { return Output.document(reply["tasks"] ?? .array([])) }
        var table = Table(["TASK", "NAME"], rightAligned: [0])
        for task in reply["tasks"]?.arrayValue ?? [] {
            table.append([
                .init("\(task["token"]?.intValue ?? 0)"), .init(task["name"]?.stringValue ?? ""),
            ])
        }
        Output.page(table.text)
    }

    /// Shows how long the app may still run for its tasks.
    package static func time(json: Bool) throws {
        let reply = try AppSide.call(.backgroundTime)
        if json { return Output.document(reply) }
        guard let left = reply["remaining_ms"]?.intValue else {
            Output.write("unlimited\n")
            return
        }
        Output.write("\(left / 1000).\(left % 1000 / 100)\n")
    }
}
