// SPDX-License-Identifier: Apache-2.0

/// `[supervisor.alerts]`: where alerts of apps are shown, and when.
public struct AlertSpecification: Sendable, Hashable {
    /// The values of `desktop`: whether alerts are shown on the screen.
    public enum Desktop: String, Sendable, Hashable, CaseIterable {
        /// On the screen of the user's session, if the session has a notification server.
        case auto
        case none
    }

    /// Whether alerts are shown on the screen of the user's session.
    public var desktop = Desktop.auto
    /// Commands (a program and its arguments) that are run for each alert that is shown.
    public var commands: [[String]] = []
    /// The times of day when only critical alerts are shown.
    public var quiet: [DailyWindow] = []
    /// How late a missed alert may still be shown; nil for no limit.
    public var missedAfter: Duration? = .seconds(86_400)

    /// Creates a specification with default values.
    public init() {}
}
