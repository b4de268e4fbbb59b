// SPDX-License-Identifier: Apache-2.0

package import Configuration
public import EventLoop
public import Lifecycle
import Linux
package import Varlink

/// A part of torpord that owns its state. Its sources are in a folder of their own. All rooms share the engine, by
/// which they reach apps and the lifecycle core, and the recorder, by which they record events.
///
/// The protocol is public, and so are its most frequent accesses, because the compiler specializes generic code for
/// other modules of the package only if it is public. As calls through the protocol, these accesses were 4 % of a
/// suspend.
public protocol Room: AnyObject {
    /// The engine that all rooms share.
    var engine: Engine { get }
    /// The recorder that all rooms share.
    var recorder: Recorder { get }
}

extension Room {
    /// The event loop, on which all of torpord runs.
    @inlinable public var loop: EventLoop { engine.loop }
    /// The time by the clock of the event loop.
    @inlinable public var now: Duration { engine.loop.now }
    package var log: DaemonLog { recorder.log }
    package var counters: Counters {
        _read { yield recorder.counters }
        _modify { yield &recorder.counters }
    }
    /// The lifecycle core, which decides and has the lifecycle state of every app.
    @inlinable public var coordinator: Coordinator { engine.coordinator }
    /// All apps.
    @inlinable public var apps: AppTable { engine.apps }

    /// Whether the first launches have begun.
    package var isStarted: Bool { engine.isStarted }
    /// Whether torpord is shutting down, so that nothing new may begin.
    package var isEnding: Bool { engine.isEnding }

    /// A copy of the app's lifecycle machine.
    @inlinable
    public func machine(_ app: AppRuntime) -> AppMachine { engine.coordinator.machine(app.id) }

    /// Whether the app has a delegate (the library in the app that answers messages), or will have one once it is
    /// launched.
    package func mayHaveDelegate(_ app: AppRuntime) -> Bool {
        coordinator[app.id].hasDelegate || coordinator[app.id].rules.readiness == .delegate
    }

    /// Whether the message can reach the app, through its delegate (now or after its launch) or as a signal.
    package func hears(_ app: AppRuntime, _ message: Message) -> Bool {
        mayHaveDelegate(app) || app.specification.signals[message] != nil
    }

    /// Passes an event to the lifecycle core, after all earlier events.
    package func deliver(_ event: AppEvent, to app: AppID) { engine.deliver(event, to: app) }

    /// Passes a request of a user, an event or a policy to the lifecycle core.
    package func request(_ request: Request, of app: AppID) throws(RequestError) {
        try engine.request(request, of: app)
    }

    /// Records and carries out decisions of the lifecycle core, after all earlier decisions.
    package func perform(_ outputs: [AppAction]) { engine.perform(outputs) }

    /// Runs `work` like an event: events and decisions that it causes wait until it has returned.
    package func uninterrupted(_ work: @escaping () -> Void) { engine.uninterrupted(work) }

    /// Records an app's whole state. Call this after a change that the lifecycle core did not decide: changes that the
    /// core decides are recorded without this call.
    package func record(_ app: AppRuntime) { engine.performer?.record(app) }

    /// Records an event of an app; see ``Recorder/note(_:_:from:to:text:reason:level:fields:)``.
    package func note(
        _ app: AppRuntime?,
        _ kind: EventKind,
        from: String? = nil,
        to: String? = nil,
        text: String,
        reason: String? = nil,
        level: LogLevel? = nil,
        details: JSON = .emptyObject,
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
            details: details,
            fields: fields()
        )
    }

    /// Records an event that does not concern a single app.
    package func note(_ kind: EventKind, text: String, reason: String? = nil, level: LogLevel? = nil) {
        recorder.note(nil, kind, text: text, reason: reason, level: level)
    }

    /// Adds a moment, such as a message or an answer, to the timeline of the app's incarnation.
    package func trace(_ app: AppRuntime, _ moment: Moment) { recorder.trace(app, moment) }
}
