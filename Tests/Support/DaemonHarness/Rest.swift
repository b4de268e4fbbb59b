// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
package import Testing

extension Daemon {
    /// Expects that the keeper and torpord come to rest: that both sleep through two seconds.
    package func expectRest(at location: SourceLocation = #_sourceLocation) throws {
        try Rest.expect(of: [Rest.Sleeper("keeper", pid), Rest.Sleeper("torpord", try torpord())], at: location)
    }
}

/// Looks whether processes sleep, beside a control that truly does.
package enum Rest {
    /// A process that should sleep.
    package struct Sleeper {
        let name: String
        let pid: Int32
        let switches: (Int32) -> Int64?

        /// - Parameter switches: how often it has given up the processor so far; by default its first thread.
        package init(_ name: String, _ pid: Int32, _ switches: @escaping (Int32) -> Int64? = Truth.voluntarySwitches) {
            self.name = name
            self.pid = pid
            self.switches = switches
        }

        func count() throws -> Int64 {
            guard let count = switches(pid) else { throw Trouble("\(name) (process \(pid)) is gone") }
            return count
        }
    }

    /// What comes every two seconds or more often wakes a process in each window; what is done once, however late a
    /// busy machine lets it, in one of them.
    private static let window = Duration.seconds(2)
    private static let maximumTries = 10
    private static let maximumDisturbances = 30

    /// Waits for a window in which none of them wakes; records an issue if there is none.
    ///
    /// A window in which the control woke too, or in which memory was short, does not count as a try.
    package static func expect(of sleepers: [Sleeper], at location: SourceLocation = #_sourceLocation) throws {
        let pid = try Spawn.start(["/bin/sleep", "1000"], environment: [:], output: "/dev/null")
        defer {
            kill(pid, SIGKILL)
            waitpid(pid, nil, 0)
        }
        let all = sleepers + [Sleeper("control", pid)]
        var (tries, disturbances) = (0, 0)
        var windows: [String] = []
        var stalledBefore = Pressure(on: .memory)?.someTotal
        while tries < maximumTries, disturbances < maximumDisturbances {
            let stalled = Pressure(on: .memory)?.someTotal
            let before = try all.map { try $0.count() }
            let end = Clock.monotonic() + window
            while Clock.monotonic() < end { ThisProcess.sleep(end - Clock.monotonic()) }
            let wakes = zip(try all.map { try $0.count() }, before).map { $0 - $1 }
            if wakes.dropLast().allSatisfy({ $0 == 0 }) { return }
            // The kernel tells torpord of memory that work waits for up to two seconds later: in the next window.
            let isDisturbed = wakes.last != 0 || Pressure(on: .memory)?.someTotal != stalledBefore || isMemoryShort
            stalledBefore = stalled
            if isDisturbed { disturbances += 1 } else { tries += 1 }
            windows.append(
                zip(all, wakes).map { "\($0.name) \($1)" }.joined(separator: ", ") + (isDisturbed ? " (disturbed)" : "")
            )
        }
        Issue.record(
            "no window of \(window) without a wake; wakes in each:\n\(windows.joined(separator: "\n"))",
            sourceLocation: location
        )
    }

    /// Where little is left torpord looks again and again how much it is.
    private static var isMemoryShort: Bool { MachineMemory().map { $0.available <= $0.total / 3 } ?? false }
}
