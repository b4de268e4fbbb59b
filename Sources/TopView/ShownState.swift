// SPDX-License-Identifier: Apache-2.0

public import TorporAPI

/// The state of an app, as it is shown.
public enum ShownState: Int, CaseIterable, Hashable, Sendable, Comparable {
    case active
    case inactive
    case background
    case suspended
    case notRunning
    /// Not running, and nobody tries any more.
    case failed

    /// That of a state's name; nil for one that a later version has.
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

    /// That of an app.
    public init(_ app: AppSummary) {
        self = app.failed ? .failed : ShownState(app.state) ?? .notRunning
    }

    /// Its name for people.
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

    /// Its colour.
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

    /// In order of use.
    public static func < (one: ShownState, other: ShownState) -> Bool { one.rawValue < other.rawValue }
}
