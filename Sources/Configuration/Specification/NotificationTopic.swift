// SPDX-License-Identifier: Apache-2.0

/// An entry of `notifications`: a change of the machine or its session that an app is notified of, when it runs or
/// wakes.
public enum NotificationTopic: String, Sendable, Hashable, CaseIterable {
    /// The clock was set, the day or the time zone changed: `significantTimeChange`.
    case clock
    /// A file of `settings_files` changed: `settingsDidChange`.
    case settings
    /// A file of `identity_files` changed: `identityDidChange`.
    case identity
    /// Files of the session's user become unreadable while it is locked: `protectedDataWillBecomeUnavailable` and
    /// `protectedDataDidBecomeAvailable`.
    case protectedData = "protected-data"
    /// The machine's language, or its format of numbers and dates.
    case locale
    /// Whether the machine runs on battery.
    case power
    /// The charge of its batteries.
    case battery
    /// Whether it saves power.
    case lowPower = "low-power"
    /// The displays.
    case screens
    /// Keyboards, pointing devices and other peripherals.
    case accessories

    /// The default of every app that has a delegate, or a signal for the message.
    public static let usual: [NotificationTopic] = [.clock, .settings, .identity]
}

extension NotificationTopic: Written {}
