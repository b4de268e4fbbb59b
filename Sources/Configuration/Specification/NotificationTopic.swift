// SPDX-License-Identifier: Apache-2.0

/// An entry of `notifications`: a change of the machine or its session. An app is notified of it if it runs,
/// otherwise when it wakes.
public enum NotificationTopic: String, Sendable, Hashable, CaseIterable {
    /// The clock was set, the day or the time zone changed: `significantTimeChange`.
    case clock
    /// A file of `settings_files` changed: `settingsDidChange`.
    case settings
    /// A file of `identity_files` changed: `identityDidChange`.
    case identity
    /// Files of the session's user become unreadable while the session is locked:
    /// `protectedDataWillBecomeUnavailable` and `protectedDataDidBecomeAvailable`.
    case protectedData = "protected-data"
    /// The machine's language, or its format of numbers and dates, changed.
    case locale
    /// The machine changed from mains to battery, or back.
    case power
    /// The charge of the machine's batteries changed.
    case battery
    /// The machine began or ended saving power.
    case lowPower = "low-power"
    /// The displays changed.
    case screens
    /// The machine was turned.
    case orientation
    /// Something came near the machine's front, or left it.
    case proximity
    /// Keyboards, pointing devices or other peripherals changed.
    case accessories

    /// The default for every app that has a delegate, or a signal for the message.
    public static let usual: [NotificationTopic] = [.clock, .settings, .identity]
}

extension NotificationTopic: Written {}
