// SPDX-License-Identifier: Apache-2.0

public import Lifecycle

/// `wake` of an event source such as a timer, a socket, a path or a device: how its events wake the app.
public enum WakeManner: String, Sendable, Hashable, CaseIterable {
    /// It is resumed or launched in the background.
    case background
    /// It is brought to the foreground.
    case foreground
    /// It is not woken: it gets the event when it runs.
    case none

    /// The order to wake; `nil` for `none`.
    ///
    /// - Parameter time: background time that the event grants; `nil` for the app's `event_time`.
    public func wake(for time: Duration? = nil) -> Wake? {
        switch self {
        case .background: Wake(time: time)
        case .foreground: Wake(foreground: true, time: time)
        case .none: nil
        }
    }
}

extension WakeManner: Written {}
