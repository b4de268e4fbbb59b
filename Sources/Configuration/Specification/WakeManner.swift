// SPDX-License-Identifier: Apache-2.0

public import Lifecycle

/// `wake` of something that events come from, such as a timer, a socket, a path or a device: how what happens there
/// wakes the app.
public enum WakeManner: String, Sendable, Hashable, CaseIterable {
    /// It is continued or launched in the background.
    case background
    /// It is brought to the foreground.
    case foreground
    /// It is not woken: it is told when it runs.
    case none

    /// The order for it; `nil` for not at all.
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
