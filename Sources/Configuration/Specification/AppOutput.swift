// SPDX-License-Identifier: Apache-2.0

/// Where an app's standard input comes from, and where its output goes. A part of ``AppSettings``.
public struct AppOutput: Sendable, Hashable {
    /// Where the app's standard output goes (`log`).
    public var log: LogTarget = .file
    /// Where the app's standard error goes (`stderr`).
    public var standardError: StandardError = .log
    /// Where the app's standard input comes from (`stdin`).
    public var standardInput: StandardInput = .null
    /// The size in bytes at which the log file is rotated; `nil` for no rotation.
    public var logMaxSize: UInt64? = 16 << 20
    /// The maximum number of rotated log files, besides the current one.
    public var logMaxFiles = 5
    /// The maximum age of lines in log files; `nil` for no limit. The log file is rotated when its first line is older,
    /// and a rotated file is removed when its last line is older.
    public var logMaxAge: Duration?

    /// Creates a specification with default values.
    public init() {}
}

/// The values of `log`: where an app's standard output goes.
public enum LogTarget: String, Sendable, Hashable, CaseIterable {
    /// To a file in the log directory. The file is rotated.
    case file
    /// To systemd's journal.
    case journal
    /// To the supervisor's own standard output.
    case inherit
    /// To `/dev/null`.
    case null
}

/// The values of `stderr`: where an app's standard error goes.
public enum StandardError: Sendable, Hashable {
    /// To the destination of standard output.
    case log
    /// To a file of its own, given by its path relative to the log directory.
    case file(String)
}

/// The values of `stdin`: where an app's standard input comes from.
public enum StandardInput: Sendable, Hashable {
    /// From `/dev/null`, which is empty.
    case null
    /// From a file, given by its absolute path.
    case file(String)
}
