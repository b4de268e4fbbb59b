// SPDX-License-Identifier: Apache-2.0

import Foundation
public import Linux

/// A compressed device in memory that the machine swaps to while this lives. It goes with the process that made it,
/// however that ends: a shell of its own waits for that, and takes it away. One at a time on a machine: others wait.
public final class ZramSwap {
    /// The device, such as `/dev/zram3`.
    public let path: String
    private let guardian: Process
    private let input = Pipe()

    /// Makes one, `size` bytes.
    ///
    /// - Throws: ``Trouble``, with the reason why this machine has none: rights, no zram in its kernel, no swapon.
    public init(size: UInt64 = 128 << 20) throws {
        let output = Pipe()
        guardian = Process()
        guardian.executableURL = URL(fileURLWithPath: "/bin/sh")
        guardian.arguments = ["-c", Self.script, "zram", "\(size)", Self.lock]
        guardian.environment = ["PATH": "/usr/sbin:/sbin:/usr/bin:/bin"]
        guardian.standardInput = input
        guardian.standardOutput = output
        guardian.standardError = output
        try guardian.run()
        var said = ""
        while !said.hasSuffix("\n") {
            let part = output.fileHandleForReading.availableData
            if part.isEmpty { break }
            said += String(decoding: part, as: UTF8.self)
        }
        let last = said.split(separator: "\n").last.map(String.init) ?? ""
        path = last
        guard last.hasPrefix("/dev/zram") else {
            guardian.waitUntilExit()
            throw Trouble("no swap on zram here: \(last)")
        }
    }

    /// What the kernel says of it.
    public var area: SwapSpace.Area? { SwapSpace().areas.first { $0.path == path } }

    deinit {
        // The end of its input is what it waits for.
        try? input.fileHandleForWriting.close()
        guardian.waitUntilExit()
    }

    /// Why something cannot be had.
    public struct Trouble: Error, CustomStringConvertible {
        /// The sentence.
        public let description: String
        init(_ description: String) { self.description = description }
    }

    private static let lock = "/tmp/torpor-test-zram.lock"

    // The signals of a terminal are not for it: it has to clean up.
    private static let script = """
        trap '' INT TERM HUP QUIT
        exec 9> "$2" && flock -w 120 9 || exit 1
        number=$(cat /sys/class/zram-control/hot_add) || exit 1
        device=/dev/zram$number
        away() {
            while grep -q "^$device " /proc/swaps && ! swapoff $device; do sleep 1; done
            echo 1 > /sys/block/zram$number/reset
            echo $number > /sys/class/zram-control/hot_remove
        }
        tries=0
        while [ ! -b $device ] && [ $tries -lt 50 ]; do tries=$((tries + 1)); sleep 0.1; done
        if echo $1 > /sys/block/zram$number/disksize && mkswap $device > /dev/null && swapon -p 100 $device; then
            echo $device
            exec > /dev/null 2>&1
            read never
            away
        else
            away > /dev/null 2>&1
            echo "the device could not be made swap"
        fi
        """
}
