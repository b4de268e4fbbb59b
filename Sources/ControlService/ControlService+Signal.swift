// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import Lifecycle
import Linux
import Processes
import Supervisor
import TorporAPI
import Varlink
import VarlinkServer

/// Signals that clients and others send to apps.
extension ControlService {
    func send(_ name: String, to apps: [AppRuntime], _ token: RequestToken?, _ reply: Reply) {
        // As for kill(1), signal 0 sends nothing, and tells whether there is a process to send it to.
        if name == "0" {
            let down = apps.filter { app in (try? app.run.tree?.signal(0, toAll: false)) == nil }
            guard !down.isEmpty else { return reply.send() }
            return reply.fail(down.map { "\($0.name) is not running" }.joined(separator: "; "))
        }
        guard let signal = Signal.number(named: name) else {
            return reply.fail("there is no signal \(name): write a name such as SIGUSR1, or a number")
        }
        var resumed: [AppRuntime] = []
        let problems = apps.compactMap { send(signal, to: $0, token, &resumed) }
        guard problems.isEmpty else { return reply.fail(problems.joined(separator: "; ")) }
        let sleeping = apps.filter { app in waits(signal, for: app) && !resumed.contains { $0 === app } }
        var texts: [String] = []
        func say(_ apps: [AppRuntime], _ one: String, _ several: String) {
            guard !apps.isEmpty else { return }
            texts.append("\(apps.map(\.name).joined(separator: ", ")) \(apps.count == 1 ? one : several)")
        }
        let name = Signal.name(signal)
        say(resumed, "was suspended and is resumed for \(name)", "were suspended and are resumed for \(name)")
        say(sleeping, "is suspended and gets \(name) when resumed", "are suspended and get \(name) when resumed")
        if texts.isEmpty { reply.send() } else { reply.send(["message": .string(texts.joined(separator: "; "))]) }
    }

    /// Whether the kernel keeps the signal pending until the app is resumed: the app is suspended, and the signal is
    /// neither SIGKILL nor SIGCONT.
    private func waits(_ signal: Int32, for app: AppRuntime) -> Bool {
        coordinator.machine(app.id).state == .suspended && signal != Signal.kill && signal != Signal.continue
    }

    /// The signals that ask programs to end, whether or not a program handles them.
    private static let endingSignals = [Signal.terminate, Signal.interrupt, Signal.quit, Signal.abort]

    /// Whether a suspended app must be resumed for the signal, which would end it otherwise when the next visitor wakes
    /// it: a signal that asks programs to end, or one that ends this program since it has no handler for it.
    private func mustBeHandledNow(_ signal: Int32, by app: AppRuntime) -> Bool {
        let machine = coordinator.machine(app.id)
        guard machine.state == .suspended || machine.transition == .suspending else { return false }
        if Self.endingSignals.contains(signal) { return true }
        let name = Signal.name(signal)
        let harmless = [
            "SIGCHLD", "SIGCONT", "SIGURG", "SIGWINCH", "SIGSTOP", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGKILL",
        ]
        guard !harmless.contains(name), let tree = app.run.tree else { return false }
        return (try? ProcFS.leavesToDefault(signal, tree.addressee.pid)) ?? false
    }

    /// Sends the signal to an app, at most once per request token. Returns an error text, or nil. If the app is resumed
    /// for the signal, appends it to `resumed`.
    private func send(
        _ signal: Int32,
        to app: AppRuntime,
        _ token: RequestToken?,
        _ resumed: inout [AppRuntime]
    ) -> String? {
        switch app.tokens.standing(of: token) {
        case .taken: return nil
        case .uncertain:
            return
                "torpord was replaced while it sent \(Signal.name(signal)) to \(app.name), which may or may not have "
                + "got it: send it again if it did not"
        case .unknown: break
        }
        guard let tree = app.run.tree else { return "\(app.name) is not running: start it first" }
        app.tokens.take(token, isUncertain: true)
        record(app)
        defer { record(app) }
        do throws(Errno) {
            _ = try tree.signal(signal, toAll: false)
            app.tokens.take(token)
            let isNow = mustBeHandledNow(signal, by: app)
            let waiting = waits(signal, for: app) ? ", which gets it when it is resumed" : ""
            let then = isNow ? ", and resumes it for that" : waiting
            note(
                app,
                .signalled,
                text: "sent \(Signal.name(signal)) to its main process, as asked\(then)",
                level: .info
            )
            if isNow {
                // The signal is pending already, so that the app handles it before anything else. If it does not end,
                // it is suspended again as after an event.
                do throws(RequestError) {
                    try supervisor.engine.request(.wake(Wake()), of: app.id)
                    resumed.append(app)
                } catch {
                    note(app, .refused, text: "is not resumed for \(Signal.name(signal)): it \(error)")
                }
            }
            return nil
        } catch {
            app.tokens.giveBack(token)
            return "could not send \(Signal.name(signal)) to \(app.name): \(error)"
        }
    }

    /// Looks whether the app's main process is stopped although torpord did not stop it. `seen` is whether it was
    /// stopped when it was read just now; nil if it was not read.
    func inspectStop(_ app: AppRuntime, _ seen: Bool? = nil) {
        let outline = coordinator[app.id].outline
        var isStopped = false
        if outline.state != .suspended, outline.transition == nil, let tree = app.run.tree {
            isStopped = seen ?? ((try? ProcFS.stat(tree.addressee.pid))?.state == "T")
        }
        if app.run.isStoppedByOthers != isStopped { app.run.isStoppedByOthers = isStopped }
        guard seen == nil, outline.state == .suspended, let tree = app.run.tree else { return }
        let pending = (try? ProcFS.pendingSignals(tree.addressee.pid)) ?? 0
        let ends = Self.endingSignals.first { pending >> UInt64($0 - 1) & 1 != 0 }
        app.run.pendingEnd = ends.map { PendingEnd(signal: $0, suspendedAt: app.times.since.4) }
    }

    /// Why the app does nothing although it is up, as words that follow its name: its own or another process's signal,
    /// such as `kill -STOP`, has stopped it, or one that ends it waits until it is resumed. Nil if neither was so when
    /// that was last looked at.
    func outsideStop(of app: AppRuntime) -> String? {
        if let end = app.run.pendingEnd, end.suspendedAt == app.times.since.4,
            coordinator[app.id].outline.state == .suspended
        {
            return "was sent \(Signal.name(end.signal)) while suspended, and gets it when the next event resumes it: "
                + "‘torpor stop \(app.name)’ ends it now"
        }
        guard app.run.isStoppedByOthers else { return nil }
        let machine = coordinator.machine(app.id)
        guard machine.state != .suspended, machine.transition == nil else { return nil }
        return "is stopped by its own or another process's signal: ‘torpor signal CONT \(app.name)’ continues it"
    }
}

/// A signal that asks the app to end, and that another process has sent to it while it is suspended.
private struct PendingEnd {
    let signal: Int32
    /// When the app was suspended (``StateTimes/since``): in another suspension, the signal no longer waits.
    let suspendedAt: Int64
}

extension Incarnation {
    /// The signal that waited for the suspended app when that was last looked at.
    fileprivate var pendingEnd: PendingEnd? {
        get { slots[PendingEndSlot.self] }
        set { slots[PendingEndSlot.self] = newValue }
    }

    /// Whether the main process was stopped, although torpord had not stopped it, when that was last looked at.
    fileprivate var isStoppedByOthers: Bool {
        get { slots[StoppedByOthersSlot.self] ?? false }
        set { slots[StoppedByOthersSlot.self] = newValue }
    }
}

private enum StoppedByOthersSlot: Slot { typealias Value = Bool }

private enum PendingEndSlot: Slot { typealias Value = PendingEnd }
