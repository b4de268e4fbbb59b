// SPDX-License-Identifier: Apache-2.0

public import Lifecycle

/// The values of `wake` of an event source such as a timer, a socket, a path or a device: how its events wake the
/// app.
public enum WakeManner: String, Sendable, Hashable, CaseIterable {
    /// The app is resumed, or launched into the background.
    case background
    /// The app is brought to the foreground.
    case foreground
    /// The app is not woken: it gets the event when it next runs.
    case none

    /// The instruction to wake the app; `nil` for `none`.
    ///
    /// - Parameter time: the background time that the event grants; `nil` for the app's `event_time`.
    public func wake(for time: Duration? = nil) -> Wake? {
        switch self {
        case .background: Wake(time: time)
        case .foreground: Wake(foreground: true, time: time)
        case .none: nil
        }
    }
}

extension WakeManner: Written {}
