// SPDX-License-Identifier: Apache-2.0

/// The state that was last asked for.
public enum Goal: String, Sendable, Hashable, CaseIterable {
    case notRunning = "not-running"
    case inactive
    case active
    case background
    case suspended
}
