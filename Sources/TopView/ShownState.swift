// SPDX-License-Identifier: Apache-2.0

public import TorporAPI

/// The state of an app, as it is shown.
public enum ShownState: Int, CaseIterable, Hashable, Sendable, Comparable {
    case active
    case inactive
    case background
    case suspended
    case notRunning
    /// The app does not run, and no restart follows.
    case failed

    /// The state of that name; nil for a name that only later versions have.
    public init?(_ name: String) {
        switch name {
        case "active": self = .active
        case "inactive": self = .inactive
        case "background": self = .background
        case "suspended": self = .suspended
        case "not-running": self = .notRunning
        default: return nil
        }
    }

    /// The state of an app; `failed` if the supervisor gave up restarting it.
    public init(_ app: AppSummary) {
        self = app.failed ? .failed : ShownState(app.state) ?? .notRunning
    }

    /// The name shown to people.
    public var name: String {
        switch self {
        case .active: "active"
        case .inactive: "inactive"
        case .background: "background"
        case .suspended: "suspended"
        case .notRunning: "not running"
        case .failed: "failed"
        }
    }

    /// The state's colour.
    public var ink: Color {
        switch self {
        case .active: .active
        case .inactive: .inactive
        case .background: .background
        case .suspended: .suspended
        case .notRunning: .gone
        case .failed: .failed
        }
    }

    /// Orders states from most to least active, `failed` last.
    public static func < (one: ShownState, other: ShownState) -> Bool { one.rawValue < other.rawValue }
}
