// SPDX-License-Identifier: Apache-2.0

/// The values of `notifications`: changes of the machine or its session. A running app is notified at once, a suspended
/// app when it is resumed.
public enum NotificationTopic: String, Sendable, Hashable, CaseIterable {
    /// The clock was set, or the day or the time zone changed. The message is `significantTimeChange`.
    case clock
    /// A file of `settings_files` changed. The message is `settingsDidChange`.
    case settings
    /// A file of `identity_files` changed. The message is `identityDidChange`.
    case identity
    /// The user's encrypted files became unreadable because the session was locked, or readable again. The messages
    /// are `protectedDataWillBecomeUnavailable` and `protectedDataDidBecomeAvailable`.
    case protectedData = "protected-data"
    /// The machine's language, or its format of numbers and dates, changed.
    case locale
    /// The power source changed from mains to battery, or back.
    case power
    /// The charge of the machine's batteries changed.
    case battery
    /// Power saving began or ended.
    case lowPower = "low-power"
    /// A display was connected or removed.
    case screens
    /// The machine was rotated.
    case orientation
    /// An object came close to the front of the machine, or moved away (proximity sensor).
    case proximity
    /// A keyboard, pointing device or other peripheral was connected or removed.
    case accessories

    /// The default of `notifications`.
    public static let usual: [NotificationTopic] = [.clock, .settings, .identity]
}

extension NotificationTopic: Written {}
