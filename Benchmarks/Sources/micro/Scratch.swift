// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The folder of this run, on a tmpfs; it goes with the process that made it.
enum Scratch {
    private static let folder = "/dev/shm/torpor-micro-\(getpid())"

    /// A path in it.
    static func path(_ name: String) -> String {
        try? FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        return folder + "/" + name
    }

    /// Removes it, and what runs that were killed have left.
    static func remove() {
        let manager = FileManager.default
        for name in (try? manager.contentsOfDirectory(atPath: "/dev/shm")) ?? [] where name.hasPrefix("torpor-micro-") {
            guard let pid = Int32(name.dropFirst("torpor-micro-".count)), pid == getpid() || kill(pid, 0) != 0
            else { continue }
            try? manager.removeItem(atPath: "/dev/shm/" + name)
        }
    }
}
