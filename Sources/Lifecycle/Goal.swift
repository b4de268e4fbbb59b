// SPDX-License-Identifier: Apache-2.0

/// The state that was last requested of an app.
public enum Goal: String, Sendable, Hashable, CaseIterable {
    case notRunning = "not-running"
    case inactive
    case active
    case background
    case suspended
}
