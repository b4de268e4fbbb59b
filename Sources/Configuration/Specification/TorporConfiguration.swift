// SPDX-License-Identifier: Apache-2.0

/// A configuration that was read and found good.
public struct TorporConfiguration: Sendable, Hashable {
    /// What `[supervisor]` says.
    public var supervisor: SupervisorSpecification
    /// All apps, sorted by name; instances are apps of their own.
    public var apps: [AppSpecification]
    /// The templates of scenes, sorted by name: apps with `scenes`, in which `%s` stands for a scene's name. None is in
    /// ``apps``.
    public var templates: [AppSpecification] = []
    /// All policies that are described, sorted by name.
    public var policies: [PolicySpecification]
    /// The texts that it was read from.
    public var sources: ConfigurationSources
    /// What is allowed but hardly meant, sorted by place.
    public var warnings: [Diagnostic]

    /// The files that were read, the first one first.
    public var files: [String] { sources.files.map(\.path) }
}

/// One thing that is wrong in a configuration, and where.
public struct Diagnostic: Error, Sendable, Hashable, CustomStringConvertible {
    /// Whether the configuration can be used all the same.
    public enum Severity: String, Sendable, Hashable {
        case error
        case warning
    }

    /// The file, as it was named.
    public var file: String
    /// From 1; 0 where it concerns the whole file.
    public var line: Int
    /// From 1, in characters; 0 where it concerns the whole file.
    public var column: Int
    /// The key, with its tables: `apps.web.restart`; empty where it concerns none.
    public var path: String
    /// A sentence that says what to do.
    public var message: String
    /// Whether the configuration can be used all the same.
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

    /// Whether it says that a user or a group is not to be found.
    public var isAboutMissingAccount: Bool {
        message.hasPrefix(MissingAccount.noUser) || message.hasPrefix(MissingAccount.noGroup)
    }

    var order: (String, Int, Int, String, String) { (file, line, column, path, message) }
}

/// Everything that is wrong in a configuration, sorted by place; never empty.
public struct DiagnosticList: Error, Sendable, Hashable, CustomStringConvertible {
    /// Errors and warnings.
    public var diagnostics: [Diagnostic]

    package init(diagnostics: [Diagnostic]) { self.diagnostics = diagnostics }

    /// One line for each.
    public var description: String {
        diagnostics.map(\.description).joined(separator: "\n")
    }
}
