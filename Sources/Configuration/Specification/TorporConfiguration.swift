// SPDX-License-Identifier: Apache-2.0

/// A valid configuration.
public struct TorporConfiguration: Sendable, Hashable {
    /// What `[supervisor]` says.
    public var supervisor: SupervisorSpecification
    /// All apps, sorted by name; instances are apps of their own.
    public var apps: [AppSpecification]
    /// The templates of scenes, sorted by name: apps with `scenes`, in which `%s` is replaced by a scene's name.
    /// ``apps`` does not contain them.
    public var templates: [AppSpecification] = []
    /// All policies that are defined, sorted by name.
    public var policies: [PolicySpecification]
    /// The texts that it was read from.
    public var sources: ConfigurationSources
    /// What is allowed but probably not intended, sorted by place.
    public var warnings: [Diagnostic]

    /// The files that were read, the first one first.
    public var files: [String] { sources.files.map(\.path) }
}

/// One error or warning in a configuration, and its place.
public struct Diagnostic: Error, Sendable, Hashable, CustomStringConvertible {
    /// Whether the configuration can still be used.
    public enum Severity: String, Sendable, Hashable {
        case error
        case warning
    }

    /// The file, as it was named.
    public var file: String
    /// From 1; 0 if it concerns the whole file.
    public var line: Int
    /// From 1, in characters; 0 if it concerns the whole file.
    public var column: Int
    /// The key, with its tables: `apps.web.restart`; empty if it concerns no key.
    public var path: String
    /// A sentence that says what to do.
    public var message: String
    /// Whether the configuration can still be used.
    public var severity: Severity

    /// `file:line:column: path: message`.
    public var description: String {
        var text = file
        if line > 0 { text += ":\(line):\(column)" }
        text += ": "
        if severity == .warning { text += "warning: " }
        if !path.isEmpty { text += path + ": " }
        return text + message
    }

    /// Whether it says that a user or a group does not exist.
    public var isAboutMissingAccount: Bool {
        message.hasPrefix(MissingAccount.noUser) || message.hasPrefix(MissingAccount.noGroup)
    }

    var order: (String, Int, Int, String, String) { (file, line, column, path, message) }
}

/// All errors and warnings in a configuration, sorted by place; never empty.
public struct DiagnosticList: Error, Sendable, Hashable, CustomStringConvertible {
    /// Errors and warnings.
    public var diagnostics: [Diagnostic]

    package init(diagnostics: [Diagnostic]) { self.diagnostics = diagnostics }

    /// One line for each.
    public var description: String {
        diagnostics.map(\.description).joined(separator: "\n")
    }
}
