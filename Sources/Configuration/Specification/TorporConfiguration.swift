// SPDX-License-Identifier: Apache-2.0

/// A configuration without errors.
public struct TorporConfiguration: Sendable, Hashable {
    /// The table `[supervisor]`.
    public var supervisor: SupervisorSpecification
    /// All apps, sorted by name. Each instance is an app.
    public var apps: [AppSpecification]
    /// All templates of scenes, sorted by name. In their values, `%s` stands for a scene's name. ``apps`` does not
    /// contain templates.
    public var templates: [AppSpecification] = []
    /// All policies that the configuration defines, sorted by name.
    public var policies: [PolicySpecification]
    /// The texts of the files from which the configuration was read.
    public var sources: ConfigurationSources
    /// Warnings about valid values that are probably a mistake, sorted by place.
    public var warnings: [Diagnostic]

    /// The paths of the configuration files that were read, without the manifests of bundles. The first file includes
    /// the others.
    public var files: [String] { sources.files.map(\.path).filter { !InstalledManifest.isPath($0) } }
}

/// An error or a warning about a place in a configuration.
public struct Diagnostic: Error, Sendable, Hashable, CustomStringConvertible {
    /// Whether the diagnostic is an error, so that the configuration cannot be used, or a warning.
    public enum Severity: String, Sendable, Hashable {
        case error
        case warning
    }

    /// The path of the configuration file, as the user or an `include` has written it.
    public var file: String
    /// The line, counted from 1; 0 if the diagnostic concerns the whole file.
    public var line: Int
    /// The column in characters, counted from 1; 0 if the diagnostic concerns the whole file.
    public var column: Int
    /// The key with the tables that contain it, such as `apps.web.restart`; empty if the diagnostic concerns no key.
    public var path: String
    /// A sentence that says what is wrong and what to write instead.
    public var message: String
    /// Whether the diagnostic is an error or a warning.
    public var severity: Severity

    /// The diagnostic as one line: `file:line:column: path: message`.
    public var description: String {
        var text = file
        if line > 0 { text += ":\(line):\(column)" }
        text += ": "
        if severity == .warning { text += "warning: " }
        if !path.isEmpty { text += path + ": " }
        return text + message
    }

    /// Whether the diagnostic is the warning that a user or a group does not exist.
    public var isAboutMissingAccount: Bool {
        message.hasPrefix(MissingAccount.noUser) || message.hasPrefix(MissingAccount.noGroup)
    }

    /// Whether the diagnostic is the warning that the program of an app, or the script that it runs, does not exist.
    public var isAboutMissingProgram: Bool {
        path.hasSuffix(".exec") && (message.hasPrefix(NeededFiles.noProgram) || message.hasPrefix(NeededFiles.noScript))
    }

    var order: (String, Int, Int, String, String) { (file, line, column, path, message) }
}

/// All errors and warnings about a configuration, sorted by place. The list is never empty.
public struct DiagnosticList: Error, Sendable, Hashable, CustomStringConvertible {
    /// The errors and warnings, sorted by place.
    public var diagnostics: [Diagnostic]

    package init(diagnostics: [Diagnostic]) { self.diagnostics = diagnostics }

    /// All diagnostics, one per line.
    public var description: String {
        diagnostics.map(\.description).joined(separator: "\n")
    }
}
