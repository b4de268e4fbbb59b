// SPDX-License-Identifier: Apache-2.0

/// A valid configuration.
public struct TorporConfiguration: Sendable, Hashable {
    /// The values of `[supervisor]`.
    public var supervisor: SupervisorSpecification
    /// All apps, sorted by name; instances are apps of their own.
    public var apps: [AppSpecification]
    /// The templates of scenes, sorted by name: apps with `scenes`, in which `%s` stands for a scene's name. ``apps``
    /// does not contain them.
    public var templates: [AppSpecification] = []
    /// All policies that the configuration defines, sorted by name.
    public var policies: [PolicySpecification]
    /// The texts of the files that the configuration was read from.
    public var sources: ConfigurationSources
    /// Warnings about values that are allowed but probably not intended, sorted by place.
    public var warnings: [Diagnostic]

    /// The paths of the files that were read, the first one first.
    public var files: [String] { sources.files.map(\.path).filter { !InstalledManifest.isPath($0) } }
}

/// One error or warning in a configuration, and its place.
public struct Diagnostic: Error, Sendable, Hashable, CustomStringConvertible {
    /// Whether the configuration can still be used.
    public enum Severity: String, Sendable, Hashable {
        case error
        case warning
    }

    /// The path of the configuration file, as the user or another file wrote it.
    public var file: String
    /// The line, from 1; 0 if the diagnostic concerns the whole file.
    public var line: Int
    /// The column in characters, from 1; 0 if the diagnostic concerns the whole file.
    public var column: Int
    /// The key, with the tables that contain it: `apps.web.restart`; empty if the diagnostic concerns no key.
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

    /// Whether the diagnostic says that a user or a group does not exist.
    public var isAboutMissingAccount: Bool {
        message.hasPrefix(MissingAccount.noUser) || message.hasPrefix(MissingAccount.noGroup)
    }

    var order: (String, Int, Int, String, String) { (file, line, column, path, message) }
}

/// All errors and warnings in a configuration, sorted by place; never empty.
public struct DiagnosticList: Error, Sendable, Hashable, CustomStringConvertible {
    /// The errors and warnings.
    public var diagnostics: [Diagnostic]

    package init(diagnostics: [Diagnostic]) { self.diagnostics = diagnostics }

    /// All diagnostics, one per line.
    public var description: String {
        diagnostics.map(\.description).joined(separator: "\n")
    }
}
