// SPDX-License-Identifier: Apache-2.0

import Engine
import EventLoop
import Lifecycle
import Processes
import VarlinkServer

/// Waits for delegates to connect to a new torpord.
extension AppSockets {
    /// How long the delegate of an app has to reconnect to a new torpord. The time while the app is suspended does not
    /// count. A delegate that still works on a message may not notice that torpord was replaced: it has until the
    /// message's own deadline, and this long after its answer.
    static let returnTime = Duration.seconds(5)

    /// Waits for the process that was the delegate under an earlier torpord to reconnect. Afterwards that process
    /// counts as gone.
    func expectReturn(of app: AppRuntime) {
        guard let channel = app.channel else { return }
        channel.returnTimer = try? loop.timer { [weak self, weak app] in
            guard let self, let app, let channel = app.channel else { return }
            // A suspended app cannot reconnect. The time to reconnect starts again when the app is resumed.
            if self.coordinator.machine(app.id).state == .suspended { return }
            let isWorking = channel.delegate == nil && self.mayBeWorking(app, channel)
            let isRunning = self.endTasksWithoutProcess(app, channel)
            if isWorking || isRunning { channel.returnTimer?.arm(after: Self.returnTime) }
            if isWorking { return }
            if !isRunning { channel.returnTimer = nil }
            guard channel.delegate == nil, self.coordinator[app.id].hasDelegate else { return }
            self.detach(app, since: "it has not connected to this torpord")
        }
        channel.returnTimer?.arm(after: Self.returnTime)
        // While it works on a message, it is not suspended; the deadline begins again, so it gets the full time.
        if channel.delegate == nil, let first = channel.queue.first, first.scene == nil, !first.isAwaited,
            isThere(app, channel)
        {
            deliver(.messageSent, to: app.id)
        }
    }

    /// Restarts the time to reconnect when the app runs again.
    func channelResumed(_ app: AppRuntime) {
        if app.channel?.returnTimer != nil { app.channel?.returnTimer?.arm(after: Self.returnTime) }
    }

    /// Restarts the time to reconnect when the app has answered the message that kept it from reconnecting.
    func answeredBeforeReturn(_ channel: AppChannel) {
        if channel.delegate == nil { channel.returnTimer?.arm(after: Self.returnTime) }
    }

    /// Ends the tasks that belonged to a connection to an earlier torpord and that nobody has claimed, unless their
    /// process runs and has not connected to this torpord: it may be at work, and notice the change only afterwards. The
    /// time for tasks ends those too. Returns whether there are any of these.
    private func endTasksWithoutProcess(_ app: AppRuntime, _ channel: AppChannel) -> Bool {
        var isRunning = false
        for (token, owner) in channel.owners where owner == .lost {
            if let process = channel.lostOwners[token], app.run.tree?.contains(process) ?? false,
                app.server?.isConnected(process: process) != true
            {
                isRunning = true
            } else {
                finish(task: token, app)
            }
        }
        return isRunning
    }

    /// Whether an earlier torpord's delegate may still work on a message whose deadline is not over.
    private func mayBeWorking(_ app: AppRuntime, _ channel: AppChannel) -> Bool {
        guard let first = channel.queue.first, isThere(app, channel) else { return false }
        let machine = coordinator.machine(app.id)
        if let scene = first.scene { return supervisor.innerScenes.machine(of: scene, app)?.deadline != nil }
        if first.isAwaited { return machine.awaitedMessage == first.message && edgeDeadline(of: app) != nil }
        return machine.isBusyWithMessage
    }

    /// Whether the process that was the delegate is there, as far as is known.
    private func isThere(_ app: AppRuntime, _ channel: AppChannel) -> Bool {
        guard let tree = app.run.tree else { return false }
        return channel.earlierDelegate.map { $0 == tree.main.pid || tree.contains($0) } ?? true
    }
}
