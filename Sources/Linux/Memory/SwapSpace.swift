// SPDX-License-Identifier: Apache-2.0

/// The machine's swap areas, from `/proc/swaps`.
public struct SwapSpace: Hashable, Sendable {
    /// A swap device or swap file. Sizes are in bytes.
    public struct Area: Hashable, Sendable {
        /// The path of the device or file.
        public var path: String
        /// The area's capacity in bytes.
        public var size: UInt64
        /// The bytes in use.
        public var used: UInt64
        /// The priority: the kernel fills areas of higher priority first.
        public var priority: Int32
        /// The zram device, if the area is on one; nil otherwise.
        public var zram: ZramDevice?
    }

    /// All areas, in the kernel's order.
    public var areas: [Area] = []
    /// Whether the kernel compresses pages in memory before it writes them to swap (zswap).
    public var isCompressedBefore = false

    /// Reads the areas; none if they cannot be read, or the kernel has no swap.
    ///
    /// - Parameter root: a prefix for paths below `/proc` and `/sys`; empty except in tests.
    public init(root: String = "") {
        let text = (try? File.readString(root + "/proc/swaps")) ?? ""
        for line in text.split(separator: "\n").dropFirst() {
            // A line looks like this: /dev/zram0                              partition	262140		0		100
            let words = line.split(whereSeparator: { $0 == " " || $0 == "\t" })
            guard words.count == 5, let size = UInt64(words[2]), let used = UInt64(words[3]) else { continue }
            let path = unescaped(words[0])
            areas.append(
                Area(
                    path: path,
                    size: size.multipliedReportingOverflow(by: 1024).partialValue,
                    used: used.multipliedReportingOverflow(by: 1024).partialValue,
                    priority: Int32(words[4]) ?? 0,
                    zram: ZramDevice(path: path, root: root)
                )
            )
        }
        let zswap = (try? File.read(root + "/sys/module/zswap/parameters/enabled"))?.first
        isCompressedBefore = zswap == UInt8(ascii: "Y") || zswap == UInt8(ascii: "1")
    }

    /// The total capacity of all areas in bytes.
    public var size: UInt64 { areas.reduce(0) { $0 &+ $1.size } }
    /// The bytes in use in all areas together.
    public var used: UInt64 { areas.reduce(0) { $0 &+ $1.used } }
    /// The free bytes in all areas together.
    public var free: UInt64 { size > used ? size - used : 0 }
}

/// A block device that stores its data compressed in memory (zram).
///
/// https://docs.kernel.org/admin-guide/blockdev/zram.html
public struct ZramDevice: Hashable, Sendable {
    /// The compression algorithm, such as `zstd`; empty if unknown.
    public var algorithm: String
    /// The size of the stored data in bytes, before compression.
    public var original: UInt64
    /// The size of the stored data in bytes, after compression.
    public var compressed: UInt64
    /// All memory that the device uses, in bytes.
    public var memory: UInt64

    /// The device at a path; nil if it is not zram.
    ///
    /// - Parameter root: a prefix for paths below `/sys`; empty except in tests.
    public init?(path: String, root: String = "") {
        let name = path.split(separator: "/").last ?? ""
        guard path.hasPrefix("/dev/zram"), name.dropFirst(4).allSatisfy({ ("0"..."9").contains($0) }) else {
            return nil
        }
        let folder = root + "/sys/block/" + name
        // The file begins with the fields orig_data_size, compr_data_size and mem_used_total, in bytes.
        let counts = ((try? File.readString(folder + "/mm_stat")) ?? "")
            .split(whereSeparator: { $0 == " " || $0 == "\n" }).map { UInt64($0) ?? 0 }
        guard counts.count >= 3 else { return nil }
        (original, compressed, memory) = (counts[0], counts[1], counts[2])
        // The file lists all algorithms, with the one in use in brackets: lzo [lzo-rle] lz4 zstd
        let offered = ((try? File.readString(folder + "/comp_algorithm")) ?? "")
            .split(whereSeparator: { $0 == " " || $0 == "\n" })
        algorithm = offered.first { $0.hasPrefix("[") }.map { String($0.dropFirst().dropLast()) } ?? ""
    }
}
