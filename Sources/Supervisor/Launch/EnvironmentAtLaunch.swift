// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
import Linux

/// The files of `environment_file` with which an app was launched, to find out whether they have changed since.
package struct EnvironmentAtLaunch: Sendable {
    private let files: [EnvironmentFileReference]
    private let rights: FileRights?
    /// A hash of the variables, which only this process can compute: they may be secret.
    private let hash: Int

    init(_ files: [EnvironmentFileReference], rights: FileRights?, _ variables: [String: String]) {
        self.files = files
        self.rights = rights
        hash = variables.hashValue
    }

    /// Reads the files again, with the same rights as at the launch. May block on a disk. False if they cannot be read:
    /// they may be about to be replaced.
    private var hasChanged: Bool {
        guard let variables = try? Self.read(files, rights) else { return false }
        return variables.hashValue != hash
    }

    static func read(
        _ files: [EnvironmentFileReference],
        _ rights: FileRights?
    ) throws(EnvironmentFileError) -> [String: String] {
        try EnvironmentFile.load(files) { ConfigurationSystem.read($0, for: rights) }
    }

    /// The names of the apps whose files have changed. May block on disks.
    package static func changed(_ launched: [String: EnvironmentAtLaunch]) -> Set<String> {
        Set(launched.filter(\.value.hasChanged).keys)
    }
}

extension AppRuntime {
    /// The environment files with which the running incarnation was launched; nil if it has none, or if an earlier
    /// torpord launched it.
    package var environmentAtLaunch: EnvironmentAtLaunch? {
        get { run.slots[EnvironmentSlot.self] }
        set { run.slots[EnvironmentSlot.self] = newValue }
    }
}

private enum EnvironmentSlot: Slot { typealias Value = EnvironmentAtLaunch }
