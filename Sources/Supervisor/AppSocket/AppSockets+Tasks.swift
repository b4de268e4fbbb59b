// SPDX-License-Identifier: Apache-2.0

import Engine
import EventLoop
import Lifecycle
import Linux
import TorporAPI
import Varlink
import VarlinkServer

/// Background tasks, begun and ended on an app's socket or by sd_notify.
extension AppSockets {
    package func tasks(of app: AppRuntime) -> [AppTask] {
        coordinator.machine(app.id).tasks.map { AppTask(token: Int64($0.token), name: $0.name) }
    }

    /// How much longer the app may run in the background for its tasks, in milliseconds; nil if there is no limit
    /// now.
    package func remainingMilliseconds(_ app: AppRuntime) -> Int64? {
        coordinator.machine(app.id).taskTimeLeft(now: loop.now).map { $0.microseconds / 1000 }
    }

    func sendBackgroundTime(_ reply: Reply, _ app: AppRuntime) {
        let warning = coordinator.machine(app.id).rules.expiryWarning
        reply.send([
            "remaining_ms": .optional(remainingMilliseconds(app)),
            "expiry_warning_ms": .int(warning.microseconds / 1000),
        ])
    }

    func beginTask(_ name: String, _ reply: Reply, _ app: AppRuntime) {
        if let problem = TaskName.problem(name) { return reply.fail(FieldError(field: "name", problem: problem)) }
        do throws(RequestError) {
            let token = try begin(name, .connection(reply.connection), app)
            reply.send(["token": .int(Int64(token)), "remaining_ms": .optional(remainingMilliseconds(app))])
        } catch {
            refuse(reply, "\(app.name) \(error)")
        }
    }

    func endTask(_ token: Int64, _ reply: Reply, _ app: AppRuntime) {
        guard let number = UInt32(exactly: token), finish(task: number, app) else {
            return reply.fail(
                AppInterface.ErrorName.unknownTask,
                [
                    "token": .int(token),
                    "message": .string("\(app.name) has no task \(token): it was never begun, or has ended"),
                ]
            )
        }
        reply.send()
    }

    /// Begins a task by sd_notify. A second task with the same name is ignored.
    func beginTask(byNotify name: String, _ app: AppRuntime) {
        let machine = coordinator.machine(app.id)
        let isThere = machine.tasks.contains { $0.name == name && app.channel?.owners[$0.token] == .notify }
        guard !isThere else { return }
        do throws(RequestError) {
            _ = try begin(name, .notify, app)
        } catch {
            note(app, .unheard, text: "cannot begin the task \(name): it \(error)")
        }
    }

    func endTask(byNotify name: String, _ app: AppRuntime) {
        let task = coordinator.machine(app.id).tasks.first {
            $0.name == name && app.channel?.owners[$0.token] == .notify
        }
        guard let task else {
            return note(app, .unheard, text: "tried to end the task \(name), which it has not begun")
        }
        finish(task: task.token, app)
    }

    private func begin(
        _ name: String,
        _ owner: AppChannel.TaskOwner,
        _ app: AppRuntime
    ) throws(RequestError) -> UInt32 {
        let begun = try coordinator.beginTask(name, of: app.id, now: loop.now)
        channel(of: app).owners[begun.token] = owner
        app.run.toldToSave?.isHeld = true
        trace(app, .taskBegan(UInt8(clamping: begun.token)))
        note(app, .taskBegan, text: "began the task \(name)")
        engine.takeIn(begun.actions)
        return begun.token
    }

    /// Ends a task; false if there is no task with that number.
    @discardableResult
    package func finish(task token: UInt32, _ app: AppRuntime) -> Bool {
        let name = coordinator.machine(app.id).tasks.first { $0.token == token }?.name ?? ""
        app.channel?.owners[token] = nil
        app.channel?.lostOwners[token] = nil
        guard let actions = coordinator.endTask(token, of: app.id, now: loop.now) else { return false }
        trace(app, .taskEnded(UInt8(clamping: token)))
        note(app, .taskEnded, text: "ended the task \(name)")
        engine.takeIn(actions)
        return true
    }

    func claim(_ tokens: [Int64], _ connection: UInt64, _ app: AppRuntime) {
        guard let channel = app.channel else { return }
        for token in tokens.compactMap({ UInt32(exactly: $0) }) {
            // A task that was begun by sd_notify belongs to no connection, so no connection can claim it.
            guard let owner = channel.owners[token], owner != .notify else { continue }
            channel.owners[token] = .connection(connection)
            channel.lostOwners[token] = nil
        }
    }
}
