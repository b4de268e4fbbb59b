// SPDX-License-Identifier: Apache-2.0

/// One of `notifications`: what of the machine and its session an app is told, when it runs or when it wakes.
public enum NotificationTopic: String, Sendable, Hashable, CaseIterable {
    /// The clock was set, it is another day, or the time zone is another one: `significantTimeChange`.
    case clock
    /// One of `settings_files`: `settingsDidChange`.
    case settings
    /// One of `identity_files`: `identityDidChange`.
    case identity
    /// Files of the session's user become unreadable while it is locked: `protectedDataWillBecomeUnavailable` and
    /// `protectedDataDidBecomeAvailable`.
    case protectedData = "protected-data"
    /// The language or the format of numbers and dates of the machine.
    case locale
    /// Whether the machine runs on its batteries.
    case power
    /// The charge of its batteries.
    case battery
    /// Whether it saves power.
    case lowPower = "low-power"
    /// What it shows pictures on.
    case screens
    /// Keyboards, pointing devices and what else is plugged in.
    case accessories

    /// What every app hears that has a delegate, or a signal for the message.
    public static let usual: [NotificationTopic] = [.clock, .settings, .identity]
}

extension NotificationTopic: Written {}
