// SPDX-License-Identifier: Apache-2.0

import Foundation

/// This run's folder on a tmpfs; it is removed at the end of the process.
enum Scratch {
    private static let folder = "/dev/shm/torpor-micro-\(getpid())"

    /// A path in the folder.
    static func path(_ name: String) -> String {
        try? FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        return folder + "/" + name
    }

    /// Removes the folder, and those of earlier runs that were killed.
    static func remove() {
        let manager = FileManager.default
        for name in (try? manager.contentsOfDirectory(atPath: "/dev/shm")) ?? [] where name.hasPrefix("torpor-micro-") {
            guard let pid = Int32(name.dropFirst("torpor-micro-".count)), pid == getpid() || kill(pid, 0) != 0
            else { continue }
            try? manager.removeItem(atPath: "/dev/shm/" + name)
        }
    }
}
