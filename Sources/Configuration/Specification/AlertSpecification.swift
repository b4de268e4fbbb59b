// SPDX-License-Identifier: Apache-2.0

/// `[supervisor.alerts]`: where alerts of apps are shown, and when.
public struct AlertSpecification: Sendable, Hashable {
    /// `desktop`.
    public enum Desktop: String, Sendable, Hashable, CaseIterable {
        /// On the screen of the session, if it has a notification server.
        case auto
        case none
    }

    /// Whether they are shown on a desktop.
    public var desktop = Desktop.auto
    /// Programs and their arguments, run for each alert that is shown.
    public var commands: [[String]] = []
    /// When only critical ones are shown.
    public var quiet: [DailyWindow] = []
    /// How late an alert may be shown that was missed; nil for any time.
    public var missedAfter: Duration? = .seconds(86_400)

    /// The defaults.
    public init() {}
}
