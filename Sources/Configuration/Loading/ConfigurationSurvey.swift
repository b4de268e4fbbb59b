// SPDX-License-Identifier: Apache-2.0

/// The files of a configuration as they are now, without what they mean.
public struct ConfigurationSurvey: Sendable {
    /// The files that a load would read, in the same order; empty if the first one cannot be read.
    public private(set) var files: [ConfigurationSources.File]
    /// The absolute paths of these files and of the folders that `include` lists, in which a file may appear.
    public private(set) var paths: Set<String>

    /// Reads the files again. May block on disks.
    ///
    /// - Parameter system: access to files, with the working directory of the configuration.
    public init(path: String, system: ConfigurationSystem = .live) {
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
        let specification = SupervisorSpecification(environment: [:], userID: system.effectiveUserID)
        var reader = FileReader(system: recording, sink: DiagnosticSink(), supervisor: specification)
        reader.read(path)
        files = reader.files
        paths = seen.paths
    }

    private final class Seen {
        var paths: Set<String> = []
    }
}
