// SPDX-License-Identifier: Apache-2.0

/// Properties of block devices.
public enum BlockDevice {
    /// Whether a block device, or the device that stores a file, is a spinning disk (about a hundred reads a second);
    /// nil if the kernel does not report it.
    ///
    /// - Parameter root: a prefix for paths below `/sys`; empty except in tests.
    public static func isRotational(_ path: String, root: String = "") -> Bool? {
        for folder in folders(of: path, root: root) {
            // A partition has no queue directory of its own, so use that of its disk, which is one directory up.
            for file in [folder + "/queue/rotational", folder + "/../queue/rotational"] {
                if let text = try? File.readString(file) { return text.hasPrefix("1") }
            }
        }
        return nil
    }

    private static func folders(of path: String, root: String) -> [String] {
        if path.hasPrefix("/dev/") {
            // Resolve symlinks: /dev/mapper/swap, for example, points to /dev/dm-1.
            let real = (try? File.realPath(path)) ?? path
            return [root + "/sys/class/block/" + (real.split(separator: "/").last ?? "")].map(followed)
        }
        guard let device = (try? File.status(path))?.device else { return [] }
        return [followed(root + "/sys/dev/block/\(major(device)):\(minor(device))")]
    }

    private static func followed(_ path: String) -> String { (try? File.realPath(path)) ?? path }

    // gnu_dev_major(3) is a macro, which Swift cannot import.
    private static func major(_ device: UInt64) -> UInt64 { device >> 8 & 0xfff | device >> 32 & 0xffff_f000 }
    private static func minor(_ device: UInt64) -> UInt64 { device & 0xff | device >> 12 & 0xffff_ff00 }
}
