// SPDX-License-Identifier: Apache-2.0

/// The files that a configuration now consists of, with their texts, but without parsed values.
public struct ConfigurationSurvey: Sendable {
    /// The files that a load would read now, in the same order. Empty if the first file cannot be read.
    public private(set) var files: [ConfigurationSources.File]
    /// The absolute paths of these files, and of the folders that `include` lists, because new files may appear in the
    /// folders.
    public private(set) var paths: Set<String>

    /// Reads the files again. May block on disks.
    ///
    /// - Parameters:
    ///   - environment: the variables with which the configuration was loaded. They determine the folder that contains
    ///     bundles.
    ///   - system: access to files, with the working directory of the configuration.
    public init(path: String, environment: [String: String], system: ConfigurationSystem = .live) {
        let seen = Seen()
        var recording = system
        recording.read = { path in
            seen.paths.insert(path)
            return system.read(path)
        }
        recording.names = { path in
            seen.paths.insert(path)
            return system.names(path)
        }
        recording.bundle = { name, state in
            seen.paths.insert(state + InstalledManifest.end(of: name))
            return system.bundle(name, state)
        }
        let specification = SupervisorSpecification(environment: environment, userID: system.effectiveUserID)
        var reader = FileReader(system: recording, sink: DiagnosticSink(), supervisor: specification)
        reader.read(path)
        files = reader.files
        paths = seen.paths
    }

    private final class Seen {
        var paths: Set<String> = []
    }
}
