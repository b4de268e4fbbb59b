// SPDX-License-Identifier: Apache-2.0

import Configuration
import Importing

/// What all importers must do.
enum Imports {
    /// The folder that the source is in.
    static let folder = "/srv/app"

    /// Reads a source, and further files behind bytes 1, by these names; what comes of it must be a configuration.
    static func run(_ bytes: [UInt8], as kind: SourceKind, named names: [String]) throws(Finding) {
        let parts = bytes.split(separator: 1, omittingEmptySubsequences: false).map { Array($0) }
        var files: [String: [UInt8]] = [:]
        for (name, part) in zip(names, parts) { files["\(folder)/\(name)"] = part }
        guard let name = names.first else { return }
        try run(files, from: "\(folder)/\(name)", as: kind)
    }

    /// Reads a source, a file of these or ``folder``; what comes of it must be a configuration.
    static func run(_ files: [String: [UInt8]], from source: String, as kind: SourceKind) throws(Finding) {
        guard var found = try? Importer.read(source, as: kind, in: tree(files)) else { return }
        var system = Machine.system([])
        system.workingDirectory = folder
        found.validate(at: Machine.path, system: system)
        let text = found.toml
        try expect(found.toml == text, "it is written in another way the second time")
        guard found.translatedCount > 0 else { return }
        let read = ConfigurationLoader.load(
            path: Machine.path,
            environment: [:],
            system: Machine.system([Array(text.utf8)])
        )
        switch read {
        case .failure(let list): throw Finding("what was made of it is refused: \(list.diagnostics)\n\(text)")
        case .success(let configuration):
            try expect(!configuration.apps.isEmpty, "no app is left of \(found.translatedCount)")
        }
    }

    private static func tree(_ files: [String: [UInt8]]) -> SourceTree {
        // Found once: a real folder does not look through all others either.
        var folders: [String: Set<String>] = [:]
        for path in files.keys {
            var folder = ""
            for part in path.split(separator: "/") {
                folders[folder, default: []].insert(String(part))
                folder += "/" + part
            }
        }
        let sorted = folders.mapValues { $0.sorted() }
        return SourceTree(
            read: { files[$0] },
            names: { sorted[$0] },
            variables: ["HOME": "/root", "PORT": "5000", "NAME": "value"],
            processors: 4,
            environmentName: "production"
        )
    }
}
