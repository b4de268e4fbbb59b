// SPDX-License-Identifier: Apache-2.0

import Configuration
import EventLoop
import Lifecycle
import Linux

/// A part of the shell with a state of its own, in a folder of its own. What all rooms have in common is the engine, by
/// which they reach apps and the core, and the recorder, by which they tell what happened.
protocol Room: AnyObject {
    var engine: Engine { get }
    var recorder: Recorder { get }
}

/// A room that reaches other rooms too. The supervisor owns it and outlives it, so that nobody needs to count who looks at the
/// supervisor (`unowned(unsafe)`): a count is some 20 ns, and everything goes that way.
protocol ShellRoom: Room {
    var supervisor: Supervisor { get }
}

extension ShellRoom {
    var engine: Engine { supervisor.engine }
    var recorder: Recorder { supervisor.recorder }
}

extension Room {
    var loop: EventLoop { engine.loop }
    var now: Duration { engine.loop.now }
    var log: DaemonLog { recorder.log }
    var counters: Counters {
        _read { yield recorder.counters }
        _modify { yield &recorder.counters }
    }
    /// Where each app is, as the core has it.
    var coordinator: Coordinator {
        _read { yield engine.coordinator }
        _modify { yield &engine.coordinator }
    }
    var apps: AppTable {
        _read { yield engine.apps }
        _modify { yield &engine.apps }
    }

    /// The first launches are begun.
    var isStarted: Bool { engine.isStarted }
    /// The supervisor ends: nothing may begin any more.
    var isEnding: Bool { engine.isEnding }

    func machine(_ app: AppRuntime) -> AppMachine { engine.coordinator.machine(app.id) }

    /// Whether somebody hears the app's messages who answers them, now or when it is launched.
    func mayHaveDelegate(_ app: AppRuntime) -> Bool {
        let machine = machine(app)
        return machine.hasDelegate || machine.rules.readiness == .delegate
    }

    /// Whether the app has a delegate, or will have one, or a signal for the message.
    func hears(_ app: AppRuntime, _ message: Message) -> Bool {
        mayHaveDelegate(app) || app.specification.signals[message] != nil
    }

    /// Hands a fact to the core, after all that came before it.
    func deliver(_ event: AppEvent, to app: AppID) { engine.deliver(event, to: app) }

    /// Asks the core for something on behalf of a person, an event or a policy.
    func request(_ request: Request, of app: AppID) throws(RequestError) { try engine.request(request, of: app) }

    /// Carries out what the core decided, after all that it decided before.
    func perform(_ outputs: [AppAction]) { engine.perform(outputs) }

    /// Does something as if it were a fact: whatever arises from it waits until it is done.
    func uninterrupted(_ work: @escaping () -> Void) { engine.uninterrupted(work) }

    /// Writes all that is known of an app down, since what the shell knows of it has changed.
    func record(_ app: AppRuntime) { engine.performer?.record(app) }

    /// Tells of something; ``Recorder/note(_:_:from:to:text:reason:level:fields:)``.
    func note(
        _ app: AppRuntime?,
        _ happening: Happening,
        from: String? = nil,
        to: String? = nil,
        text: String,
        reason: String? = nil,
        level: LogLevel? = nil,
        fields: @autoclosure () -> [(name: String, value: String)] = []
    ) {
        recorder.note(
            app,
            happening,
            from: from,
            to: to,
            text: text,
            reason: reason,
            level: level,
            fields: fields()
        )
    }

    /// Tells of something that concerns no app alone.
    func note(_ happening: Happening, text: String, reason: String? = nil, level: LogLevel? = nil) {
        recorder.note(nil, happening, text: text, reason: reason, level: level)
    }

    /// Notes a moment in the life of an app's incarnation.
    func trace(_ app: AppRuntime, _ moment: Moment) { recorder.trace(app, moment) }
}
