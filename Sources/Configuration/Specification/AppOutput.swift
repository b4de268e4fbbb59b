// SPDX-License-Identifier: Apache-2.0

/// Where an app's standard input comes from and its output goes: a part of ``AppSettings``.
public struct AppOutput: Sendable, Hashable {
    /// Where standard output goes.
    public var log: LogTarget = .file
    /// Where standard error goes.
    public var standardError: StandardError = .log
    /// Where standard input comes from.
    public var standardInput: StandardInput = .null
    /// Bytes after which the log file is rotated; `nil` for never.
    public var logMaxSize: UInt64? = 16 << 20
    /// How many rotated files are kept beside the current one.
    public var logMaxFiles = 5
    /// Age after which a rotated file is removed; `nil` for never.
    public var logMaxAge: Duration?

    /// The defaults.
    public init() {}
}

/// `log`.
public enum LogTarget: String, Sendable, Hashable, CaseIterable {
    /// A file under the log directory, rotated.
    case file
    /// The system's journal.
    case journal
    /// The supervisor's own standard output.
    case inherit
    /// Nowhere.
    case null
}

/// `stderr`.
public enum StandardError: Sendable, Hashable {
    /// Where standard output goes.
    case log
    /// A file of its own; relative to the log directory.
    case file(String)
}

/// `stdin`.
public enum StandardInput: Sendable, Hashable {
    /// `/dev/null`.
    case null
    /// A file; absolute.
    case file(String)
}
