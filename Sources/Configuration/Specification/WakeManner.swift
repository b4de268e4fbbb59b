// SPDX-License-Identifier: Apache-2.0

public import Lifecycle

/// The values of `wake`: how an event, such as that of a timer, a socket, a path or a device, wakes the app.
public enum WakeManner: String, Sendable, Hashable, CaseIterable {
    /// The event resumes the app, or launches it into the background.
    case background
    /// The event brings the app to the foreground.
    case foreground
    /// The event does not wake the app. The app gets the event the next time that it runs.
    case none

    /// How to wake the app, as a value for the app's state machine; `nil` for `none`.
    ///
    /// - Parameter time: the background time that the app gets for the event; `nil` for the app's `event_time`.
    public func wake(for time: Duration? = nil) -> Wake? {
        switch self {
        case .background: Wake(time: time)
        case .foreground: Wake(foreground: true, time: time)
        case .none: nil
        }
    }
}

extension WakeManner: Written {}
