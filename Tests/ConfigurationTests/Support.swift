// SPDX-License-Identifier: Apache-2.0

@testable import Configuration

/// A machine with the given files, of which the folder `/etc/torpor` is the working directory.
///
/// It knows the users root (0) and web (33) and the groups root (0), web (33) and video (44).
func machine(_ files: [String: String], userID: UInt32 = 0) -> ConfigurationSystem {
    let accounts: [String: UInt32] = ["root": 0, "web": 33]
    let groups: [String: UInt32] = ["root": 0, "web": 33, "video": 44]
    let working = "/etc/torpor"
    let paths = Dictionary(
        uniqueKeysWithValues: files.map { ($0.key.hasPrefix("/") ? $0.key : working + "/" + $0.key, $0.value) }
    )
    return ConfigurationSystem(
        read: { path in
            guard let text = paths[path] else { return .failure(.missing) }
            return .success(Array(text.utf8))
        },
        names: { folder in
            let names = paths.keys.filter { $0.hasPrefix(folder + "/") }.map { path in
                String(path.dropFirst(folder.count + 1).prefix { $0 != "/" })
            }
            return names.isEmpty ? nil : Set(names).sorted()
        },
        userID: { accounts[$0] ?? UInt32($0) },
        groupID: { groups[$0] ?? UInt32($0) },
        effectiveUserID: userID,
        effectiveGroupID: userID,
        workingDirectory: working
    )
}

/// What the files say, the first one being `torpor.toml`.
func load(
    _ files: [String: String],
    userID: UInt32 = 0,
    environment: [String: String] = [:]
) -> Result<TorporConfiguration, DiagnosticList> {
    ConfigurationLoader.load(
        path: "torpor.toml",
        environment: environment,
        system: machine(files, userID: userID)
    )
}

/// What a single file says.
func load(_ text: String, userID: UInt32 = 0) -> Result<TorporConfiguration, DiagnosticList> {
    load(["torpor.toml": text], userID: userID)
}

/// The diagnostics as lines; empty where there are none.
func complaints(_ result: Result<TorporConfiguration, DiagnosticList>) -> [String] {
    switch result {
    case .success(let configuration): configuration.warnings.map(\.description)
    case .failure(let list): list.diagnostics.map(\.description)
    }
}

/// The lines that an app's keys lead to; `exec` is there already, in line 2.
func complaints(app keys: String) -> [String] {
    complaints(load("[apps.web]\nexec = [\"/bin/web\"]\n" + keys))
}
