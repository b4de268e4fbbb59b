// SPDX-License-Identifier: Apache-2.0

/// Where an app's standard input comes from and where its output goes; a part of ``AppSettings``.
public struct AppOutput: Sendable, Hashable {
    /// Where standard output goes (`log`).
    public var log: LogTarget = .file
    /// Where standard error goes (`stderr`).
    public var standardError: StandardError = .log
    /// Where standard input comes from (`stdin`).
    public var standardInput: StandardInput = .null
    /// Bytes after which the log file is rotated; `nil` for never.
    public var logMaxSize: UInt64? = 16 << 20
    /// How many rotated log files are kept besides the current one.
    public var logMaxFiles = 5
    /// The age after which a rotated log file is removed; `nil` for never.
    public var logMaxAge: Duration?

    /// The defaults.
    public init() {}
}

/// The values of `log`: where standard output goes.
public enum LogTarget: String, Sendable, Hashable, CaseIterable {
    /// A file in the log directory, which is rotated.
    case file
    /// systemd's journal.
    case journal
    /// The supervisor's own standard output.
    case inherit
    /// Nowhere.
    case null
}

/// The values of `stderr`: where standard error goes.
public enum StandardError: Sendable, Hashable {
    /// To the same place as standard output.
    case log
    /// A separate file, by its path relative to the log directory.
    case file(String)
}

/// The values of `stdin`: where standard input comes from.
public enum StandardInput: Sendable, Hashable {
    /// `/dev/null`.
    case null
    /// A file, by its absolute path.
    case file(String)
}
