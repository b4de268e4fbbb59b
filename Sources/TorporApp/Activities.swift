// SPDX-License-Identifier: Apache-2.0

public import TorporAPI
public import Varlink

/// What a user was doing in another app, or in this app on another machine.
public struct ContinuedActivity: Hashable, Sendable {
    let parameters: JSON

    /// The kind of the activity, such as `org.example.note`.
    public var type: String { parameters["type"]?.stringValue ?? "" }
    /// What users see; empty for nothing.
    public var title: String { parameters["title"]?.stringValue ?? "" }
    /// The data that the other app gave with the activity: an object, or null.
    public var payload: JSON { parameters["payload"] ?? .null }
    /// A URL that stands for the activity.
    public var url: String? { parameters["url"]?.stringValue }
    /// The app whose activity it is; nil for an activity of another machine.
    public var source: String? { parameters["source"]?.stringValue }
}

extension TorporApp {
    /// Sets the activity: what a user is doing in the app, which must be in the foreground. Another app, or the app on
    /// another machine, can continue the activity. The activity ends when the next one is set, when ``endActivity()``
    /// is called, when the app ends, or five minutes after the app has left the foreground. Does nothing without a
    /// supervisor.
    public func setActivity(_ activity: SetActivityRequest) async throws(AppError) {
        guard isSupervised else { return }
        _ = try await call(.setActivity(activity))
    }

    /// Sets the activity, what a user is doing in the app, with a title for the list of activities and no further data.
    ///
    /// - Parameter needsState: whether the activity can only be continued with the state that the app has saved.
    public func setActivity(_ type: String, title: String, needsState: Bool = false) async throws(AppError) {
        var activity = SetActivityRequest(type: type)
        (activity.title, activity.needsState) = (title, needsState)
        try await setActivity(activity)
    }

    /// Ends the activity that ``setActivity(_:)`` has set. Does nothing without a supervisor.
    public func endActivity() async throws(AppError) {
        guard isSupervised else { return }
        _ = try await call(.endActivity)
    }
}
