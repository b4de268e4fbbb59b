// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux

/// A folder with the programs in it, as an installation has them, where a newer keeper can be put in place.
final class Installation {
    let folder: String
    var torpord: String { folder + "/torpord" }
    private var versions: [String] = []
    private var current = 0

    init() throws {
        folder = try Daemon.makeFolder()
        // The same program twice, as two files: which one runs can be told apart. All is written now, long before it is
        // run: a child of another test that holds a file open for writing would keep it from being run.
        try Spawn.lock.withLock {
            for name in ["torpord", "torpor-keeper"] {
                try copyProgram(Built.path(name), to: folder + "/" + name)
            }
            for version in ["keeper.a", "keeper.b"] {
                try copyProgram(Built.path("torpor-keeper"), to: folder + "/" + version)
                versions.append(folder + "/" + version)
            }
        }
    }

    deinit { try? FileManager.default.removeItem(atPath: folder) }

    /// Puts another keeper in place of the installed one, as a package manager does.
    func replaceKeeper() throws {
        current = (current + 1) % versions.count
        let draft = folder + "/torpor-keeper.new"
        try FileManager.default.linkItem(atPath: versions[current], toPath: draft)
        try File.rename(draft, folder + "/torpor-keeper")
    }

    /// Whether a process runs the keeper that is installed now.
    func isInstalledKeeper(_ pid: Int32) -> Bool {
        guard let running = try? File.status("/proc/\(pid)/exe"),
            let installed = try? File.status(folder + "/torpor-keeper")
        else { return false }
        return (running.device, running.inode) == (installed.device, installed.inode)
    }
}
