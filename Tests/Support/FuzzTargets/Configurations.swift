// SPDX-License-Identifier: Apache-2.0

import Configuration
import Linux

/// torpor.toml, and further files behind bytes 1, which TOML does not allow: conf.d/1.toml and so on.
enum Configurations: FuzzedParser {
    static let nanosecondsPerByte = 20_000

    static func run(_ bytes: [UInt8]) throws(Finding) {
        let machine = Machine.system(bytes.split(separator: 1, omittingEmptySubsequences: false).map { Array($0) })
        func load() -> Result<TorporConfiguration, DiagnosticList> {
            ConfigurationLoader.load(path: Machine.path, environment: [:], system: machine)
        }
        switch load() {
        case .failure(let list):
            try expect(!list.diagnostics.isEmpty, "it is refused without a reason")
            for diagnostic in list.diagnostics { try look(diagnostic) }
        case .success(let configuration):
            for diagnostic in configuration.warnings { try look(diagnostic) }
            guard case .success(let again) = load() else { throw Finding("it is refused the second time") }
            try expect(again == configuration, "it is another one the second time")
            let diff = ConfigurationDiff(configuration, again)
            try expect(diff.isEmpty, "it differs from itself")
            guard let kept = ConfigurationSources(decoding: configuration.sources.encoded()) else {
                throw Finding("its texts cannot be read again")
            }
            try expect(kept == configuration.sources, "its texts are others when they are written and read again")
            let later = ConfigurationLoader.load(sources: kept, environment: [:], userID: Machine.user)
            guard case .success(let next) = later else { throw Finding("the next torpord refuses it") }
            try expect(ConfigurationDiff(configuration, next).isEmpty, "the next torpord has another configuration")
        }
    }

    private static func look(_ diagnostic: Diagnostic) throws(Finding) {
        try expect(!diagnostic.message.isEmpty, "a diagnostic says nothing")
        try expect(diagnostic.line >= 0 && diagnostic.column >= 0, "a diagnostic is nowhere")
        _ = diagnostic.description
    }
}

/// A machine whose files are an input, and which has every user.
enum Machine {
    static let path = "/etc/torpor/torpor.toml"
    static let user: UInt32 = 0

    static func system(_ files: [[UInt8]]) -> ConfigurationSystem {
        var paths: [String: [UInt8]] = [path: files.first ?? []]
        for (number, file) in files.dropFirst().prefix(16).enumerated() {
            paths["/etc/torpor/conf.d/\(number + 1).toml"] = file
        }
        let names = paths.keys.filter { $0.hasPrefix("/etc/torpor/conf.d/") }.map { String($0.dropFirst(19)) }.sorted()
        let texts = paths
        var system = ConfigurationSystem.live
        system.read = { path in texts[path].map { .success($0) } ?? .failure(.missing) }
        system.names = { folder in
            switch folder {
            case "/etc/torpor/conf.d": names
            case "/etc/torpor": ["conf.d", "torpor.toml"]
            default: nil
            }
        }
        system.userID = { _ in user }
        system.groupID = { _ in Users.effectiveGID }
        system.effectiveUserID = user
        system.effectiveGroupID = Users.effectiveGID
        system.workingDirectory = "/"
        return system
    }
}
