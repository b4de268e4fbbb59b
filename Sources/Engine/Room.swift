// SPDX-License-Identifier: Apache-2.0

package import Configuration
package import EventLoop
package import Lifecycle
import Linux

/// A part of the shell with a state of its own, in a folder of its own. What all rooms have in common is the engine, by
/// which they reach apps and the core, and the recorder, by which they tell what happened.
package protocol Room: AnyObject {
    var engine: Engine { get }
    var recorder: Recorder { get }
}

extension Room {
    @inlinable package var loop: EventLoop { engine.loop }
    @inlinable package var now: Duration { engine.loop.now }
    @inlinable package var log: DaemonLog { recorder.log }
    package var counters: Counters {
        _read { yield recorder.counters }
        _modify { yield &recorder.counters }
    }
    /// Where each app is, as the core has it.
    @inlinable package var coordinator: Coordinator { engine.coordinator }
    @inlinable package var apps: AppTable { engine.apps }

    /// The first launches are begun.
    package var isStarted: Bool { engine.isStarted }
    /// The supervisor ends: nothing may begin any more.
    package var isEnding: Bool { engine.isEnding }

    @inlinable
    package func machine(_ app: AppRuntime) -> AppMachine { engine.coordinator.machine(app.id) }

    /// Whether somebody hears the app's messages who answers them, now or when it is launched.
    package func mayHaveDelegate(_ app: AppRuntime) -> Bool {
        let machine = machine(app)
        return machine.hasDelegate || machine.rules.readiness == .delegate
    }

    /// Whether the app has a delegate, or will have one, or a signal for the message.
    package func hears(_ app: AppRuntime, _ message: Message) -> Bool {
        mayHaveDelegate(app) || app.specification.signals[message] != nil
    }

    /// Hands a fact to the core, after all that came before it.
    package func deliver(_ event: AppEvent, to app: AppID) { engine.deliver(event, to: app) }

    /// Asks the core for something on behalf of a person, an event or a policy.
    package func request(_ request: Request, of app: AppID) throws(RequestError) {
        try engine.request(request, of: app)
    }

    /// Carries out what the core decided, after all that it decided before.
    package func perform(_ outputs: [AppAction]) { engine.perform(outputs) }

    /// Does something as if it were a fact: whatever arises from it waits until it is done.
    package func uninterrupted(_ work: @escaping () -> Void) { engine.uninterrupted(work) }

    /// Writes all that is known of an app down, since what the shell knows of it has changed.
    package func record(_ app: AppRuntime) { engine.performer?.record(app) }

    /// Tells of something; ``Recorder/note(_:_:from:to:text:reason:level:fields:)``.
    package func note(
        _ app: AppRuntime?,
        _ kind: EventKind,
        from: String? = nil,
        to: String? = nil,
        text: String,
        reason: String? = nil,
        level: LogLevel? = nil,
        fields: @autoclosure () -> [(name: String, value: String)] = []
    ) {
        recorder.note(
            app,
            kind,
            from: from,
            to: to,
            text: text,
            reason: reason,
            level: level,
            fields: fields()
        )
    }

    /// Tells of something that concerns no app alone.
    package func note(_ kind: EventKind, text: String, reason: String? = nil, level: LogLevel? = nil) {
        recorder.note(nil, kind, text: text, reason: reason, level: level)
    }

    /// Notes a moment in the life of an app's incarnation.
    package func trace(_ app: AppRuntime, _ moment: Moment) { recorder.trace(app, moment) }
}
