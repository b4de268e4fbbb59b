// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Makes the machine small during its lifetime, with a balloon and a swap in zram (density/bound.c).
final class DensityMachine {
    private let child: Child
    private let output: String
    /// The swap's device.
    private(set) var device = ""

    init(_ bench: Bench, _ plan: DensityPlan, seconds: Int) throws {
        output = bench.disk + "/bound-says"
        let swapFile = plan.swapFile > 0 ? [bench.disk + "/swap", "\(plan.swapFile)"] : []
        child = try Child(
            [bench.program("bound"), "\(plan.memory)", "\(plan.swap)", "lzo-rle", "\(seconds)"] + swapFile,
            hasInput: true,
            output: output,
            errors: output + "-errors"
        )
        // The harness must not wait for memory itself.
        mlockall(MCL_CURRENT | MCL_FUTURE)
        do {
            _ = try waitUntil(120, step: 0.05) { !words("ready").isEmpty || !child.isRunning }
            guard let word = words("ready").first?.split(separator: " ").first else {
                throw Trouble(brokenOff ?? "the balloon did not come to its size")
            }
            device = String(word)
        } catch {
            end()
            throw error
        }
    }

    /// Gives all memory back.
    func end() {
        munlockall()
        child.end(grace: 60)
        // If the child was killed, its guardian gives the memory back a moment later.
        let limit = now() + 30
        while !device.isEmpty, access(device, F_OK) == 0, now() < limit { Glibc.usleep(20_000) }
        if !device.isEmpty, access(device, F_OK) == 0 {
            say("the swap \(device) could not be removed: swapoff \(device), and see swapon --show")
        }
    }

    private var stallsSeen = 0

    /// Throws if the machine has stalled since the last call.
    func checkStall() throws {
        try check()
        let stalls = words("stalled").count
        defer { stallsSeen = stalls }
        if stalls > stallsSeen { throw Trouble("the machine stood still: all tasks waited for memory for most of 8 s") }
    }

    /// Throws if the balloon had to give up.
    func check() throws {
        if let brokenOff { throw Trouble("the measurement was broken off: \(brokenOff)") }
        if !child.isRunning { throw Trouble("the balloon is gone") }
    }

    /// The most MiB that the balloon gave back to the rest of the machine since the last call.
    func givenSince() -> Double {
        let all = words("given").compactMap { Double($0) }
        defer { givenSeen = all.count }
        // The last value before the call still holds until it changes.
        return (all.dropFirst(max(0, givenSeen - 1)).max() ?? 0) / 1_048_576
    }

    private var givenSeen = 0

    /// Waits up to 30 s until the balloon has its full size again.
    func waitUntilWhole() throws {
        _ = try waitUntil(30, step: 0.2) { (words("given").last.flatMap { Double($0) } ?? 0) < 128 * 1_048_576 }
        _ = givenSince()
    }

    private var brokenOff: String? { words("broken-off").first }

    /// The rest of each line that begins with a word.
    private func words(_ first: String) -> [String] {
        (Processes.read(output) ?? "").split(separator: "\n").filter { $0.hasPrefix(first + " ") }
            .map { String($0.dropFirst(first.count + 1)) }
    }

    // MARK: What the kernel says

    /// Statistics of the whole machine at one time.
    struct Look {
        /// When they were taken.
        let at = now()
        /// MiB.
        var available = 0.0
        var swapped = 0.0
        /// CPU time of all processes since boot, in seconds.
        var busy = 0.0
        /// Processes killed by the kernel's OOM killer since boot.
        var kernelKills = 0.0
        /// Pages swapped in and out since boot.
        var swappedIn = 0.0
        var swappedOut = 0.0
    }

    static func look() -> Look {
        var look = Look()
        let memory = numbers("/proc/meminfo")
        look.available = (memory["MemAvailable:"] ?? 0) / 1024
        look.swapped = ((memory["SwapTotal:"] ?? 0) - (memory["SwapFree:"] ?? 0)) / 1024
        let events = numbers("/proc/vmstat")
        look.kernelKills = events["oom_kill"] ?? 0
        (look.swappedIn, look.swappedOut) = (events["pswpin"] ?? 0, events["pswpout"] ?? 0)
        let line = (Processes.read("/proc/stat") ?? "").split(separator: "\n").first ?? ""
        let times = line.split(separator: " ").dropFirst().compactMap { Double($0) }
        // user, nice, system; then idle and iowait, which are skipped; then interrupts.
        if times.count > 6 {
            look.busy = (times[0...2] + times[5...6]).reduce(0, +) / Double(sysconf(Int32(_SC_CLK_TCK)))
        }
        return look
    }

    private static func numbers(_ path: String) -> [Substring: Double] {
        let text = Processes.read(path) ?? ""
        var numbers: [Substring: Double] = [:]
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ")
            if words.count > 1 { numbers[words[0]] = Double(words[1]) }
        }
        return numbers
    }
}
