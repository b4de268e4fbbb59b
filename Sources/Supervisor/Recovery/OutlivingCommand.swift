// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EventLoop
import Lifecycle
import Linux
import Processes

/// A command of `before_start` or `after_stop`, which continues if torpord is replaced. torpor-keeper launches it under
/// a number in the place of an incarnation, by which the next torpord finds the command, or how it has ended.
struct OutlivingCommand: Hashable {
    /// Which commands of the app it belongs to; the raw value is the key of the configuration.
    enum Kind: String {
        case beforeStart = "before_start"
        case afterStop = "after_stop"
    }

    let kind: Kind
    /// The position of the command in its key.
    let index: Int
    /// The last bits of the app's incarnation.
    private let incarnation: UInt32

    private static let flag: UInt32 = 1 << 31
    private static let afterStop: UInt32 = 1 << 30
    private static let indexShift: UInt32 = 22
    private static let mostCommands = 1 << 8
    private static let incarnationMask: UInt32 = 1 << indexShift - 1

    /// Nil if the number has no room for the index.
    init?(_ kind: Kind, index: Int, of incarnation: UInt32) {
        guard index < Self.mostCommands else { return nil }
        (self.kind, self.index, self.incarnation) = (kind, index, incarnation & Self.incarnationMask)
    }

    /// Nil if the number is an incarnation, or belongs to a companion.
    init?(number: UInt32) {
        guard number & Self.flag != 0 else { return nil }
        kind = number & Self.afterStop != 0 ? .afterStop : .beforeStart
        index = Int(number >> Self.indexShift) & (Self.mostCommands - 1)
        incarnation = number & Self.incarnationMask
    }

    var number: UInt32 {
        Self.flag | (kind == .afterStop ? Self.afterStop : 0) | UInt32(index) << Self.indexShift | incarnation
    }

    /// What is left of the deadline of a command that runs. The kernel knows when the command was started, but counts
    /// the machine's sleep in `age`; `runAge`, the time since the launch of the app, does not.
    static func rest(of deadline: Duration, age: Duration, runAge: Duration?) -> Duration {
        max(.zero, deadline - min(age, runAge ?? age))
    }

    /// Whether the app is where commands of this kind run, in the same incarnation.
    func belongs(to machine: AppMachine) -> Bool {
        guard machine.isAlive, machine.incarnation & Self.incarnationMask == incarnation else { return false }
        switch kind {
        case .beforeStart: return machine.transition == .launching && !machine.hasProcess
        case .afterStop: return machine.transition == .terminating
        }
    }
}

/// A command that an earlier torpord has launched, until this torpord has come to where it waits for the command.
struct FoundCommand {
    let command: OutlivingCommand
    /// Nil if the command has ended.
    var process: Launched?
    /// How the command has ended; nil while it runs.
    var result: Result<ExitStatus, LaunchError>?
}

extension Takeover {
    /// Takes over the command that runs for the app, if it is one for which the app still waits. Other commands stay
    /// among the orphans, which are ended.
    func findCommand(of app: AppRuntime, _ left: inout [AppTag: OrphanedProcess]) {
        guard let processes = commandsLeft[app.name] else { return }
        for process in processes {
            guard let command = OutlivingCommand(number: process.incarnation),
                command.belongs(to: coordinator.machine(app.id)),
                command.index >= app.run.foundCommand?.command.index ?? 0
            else { continue }
            left[AppTag(app: app.name, incarnation: process.incarnation)] = nil
            app.run.foundCommand = FoundCommand(command: command, process: process.launched)
            log.info("\(app.name): its \(command.kind.rawValue) command, process \(process.pid), continues")
        }
    }

    /// Kills helper commands, which end with their torpord. Those that are still needed are run again. Spares commands
    /// that outlive their torpord, with all processes that they have started.
    func endHelpers(_ helpers: [(tag: AppTag, process: Identity)]) {
        for helper in helpers where !isCompanion(helper.process.pid) && commandsLeft[helper.tag.app] == nil {
            guard let pidfd = try? helper.process.open() else { continue }
            try? Pidfd.sendSignal(pidfd.raw, Signal.kill)
            appsWithEndedHelpers.insert(helper.tag.app)
        }
    }

    /// Reports that the commands of an app were cut off, since torpor-keeper was lost, and are run again.
    func reportCutOff(_ kind: OutlivingCommand.Kind, of app: AppRuntime) {
        guard appsWithEndedHelpers.contains(app.name) else { return }
        let text = "\(kind.rawValue) was cut off, since its torpor-keeper is gone"
        note(app, .hookFailed, text: text + ", and is run again from its first command")
    }
}

extension Launcher {
    /// The command of an earlier torpord with which to continue; nil if the first of `count` commands must be run.
    func takeFoundCommand(of app: AppRuntime, _ kind: OutlivingCommand.Kind, among count: Int) -> FoundCommand? {
        guard let found = app.run.foundCommand else { return nil }
        guard found.command.kind == kind, found.command.index < count else {
            // The configuration no longer has the command.
            endFoundCommand(of: app)
            return nil
        }
        app.run.foundCommand = nil
        return found
    }

    /// Kills a command of an earlier torpord, because its app no longer waits for it.
    func endFoundCommand(of app: AppRuntime) {
        guard let found = app.run.foundCommand else { return }
        app.run.foundCommand = nil
        guard let process = found.process, found.result == nil else { return }
        try? Pidfd.sendSignal(process.pidfd.raw, Signal.kill)
    }

    /// Waits for a command that an earlier torpord has launched, and continues with those after it.
    func resume(_ app: AppRuntime, _ run: HookRun, _ found: FoundCommand) {
        run.begun = found.command.index + 1
        run.remaining = run.remaining.dropFirst(found.command.index)
        guard let hook = run.remaining.popFirst() else { return finishHooks(app, run, nil) }
        run.program = hook.command.first ?? ""
        if let result = found.result { return ended(app, run, result) }
        guard let process = found.process else { return nextHook(app, run) }
        run.current = process.pidfd
        run.taken = process.pid
        helpers[process.pid] = { [weak self] status in
            self?.endRemains(of: process)
            self?.ended(app, run, .success(status))
        }
        guard let deadline = hook.deadline else { return }
        run.timer = deadlineTimer(app, run, deadline)
        // What is left of its time, as the kernel knows when it was started.
        run.timer?.arm(
            after: OutlivingCommand.rest(
                of: deadline,
                age: Clock.boot() - Clock.duration(ticks: process.startTime),
                runAge: app.run.launchedAt.map { now - $0 }
            )
        )
    }

    /// Handles the exit of a command that was taken over and never executed its program. Returns whether the record is
    /// of such a command.
    func hasFailedToStart(_ record: ExitRecord) -> Bool {
        guard let failure = record.launchFailure, OutlivingCommand(number: record.incarnation) != nil,
            let id = coordinator.id(of: record.app), let run = apps[id].hooks, run.taken == record.pid
        else { return false }
        ended(apps[id], run, .failure(LaunchError(failure.description)))
        return true
    }

    /// Handles the exit of a command that an earlier torpord has launched, and that nothing waits for yet. Returns
    /// whether the record is one of a command.
    func foundEnded(_ record: ExitRecord) -> Bool {
        guard let command = OutlivingCommand(number: record.incarnation) else { return false }
        guard keepExit(of: record), let id = coordinator.id(of: record.app) else { return true }
        let app = apps[id]
        guard command.belongs(to: coordinator.machine(id)),
            command.index >= app.run.foundCommand?.command.index ?? 0
        else { return true }
        let result: Result<ExitStatus, LaunchError> =
            if let failure = record.launchFailure {
                .failure(LaunchError(failure.description))
            } else {
                .success(record.status ?? .exited(255))
            }
        app.run.foundCommand = FoundCommand(command: command, process: nil, result: result)
        return true
    }

    /// Lets torpor-keeper forget how a helper has ended, but not yet how a command has ended that outlives torpord: the
    /// next torpord must know that it was run. Returns whether the exit is kept.
    @discardableResult func keepExit(of record: ExitRecord) -> Bool {
        guard let command = OutlivingCommand(number: record.incarnation), let id = coordinator.id(of: record.app),
            command.belongs(to: coordinator.machine(id))
        else {
            supervisor.keeper.forget(record)
            return false
        }
        apps[id].keptExits.append(record)
        return true
    }

    /// Called when the app's process is recorded: lets torpor-keeper forget the commands of `before_start`.
    func forgetCommands(of app: AppRuntime) {
        app.run.foundCommand = nil
        app.keptExits.removeAll { record in
            guard OutlivingCommand(number: record.incarnation) != nil else { return false }
            supervisor.keeper.forget(record)
            return true
        }
    }
}

extension Incarnation {
    /// A command of an earlier torpord, for which this torpord will wait.
    var foundCommand: FoundCommand? {
        get { slots[FoundCommandSlot.self] }
        set { slots[FoundCommandSlot.self] = newValue }
    }
}

private enum FoundCommandSlot: Slot { typealias Value = FoundCommand }
