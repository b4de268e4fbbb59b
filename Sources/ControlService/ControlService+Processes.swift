// SPDX-License-Identifier: Apache-2.0

import Linux
import TorporAPI

/// The processes in the status of an app.
extension ControlService {
    /// The maximum number of processes in a status, and the maximum length of their command lines in bytes: an app's
    /// own processes determine both.
    static let mostProcesses = 500
    private static let longestCommand = 4_096
    /// The maximum length of all command lines in a status, in bytes. As JSON, they may become six times as long.
    private static let longestCommands = 512 << 10

    static func processInfos(_ pids: [Int32]) -> [ProcessInfo] {
        let limit = min(longestCommand, longestCommands / max(1, pids.count))
        return pids.compactMap { processInfo($0, limit) }
    }

    private static func processInfo(_ pid: Int32, _ limit: Int) -> ProcessInfo? {
        guard let stat = try? ProcFS.stat(pid) else { return nil }
        var words = (try? ProcFS.cmdline(pid, limit: limit)) ?? []
        // Of the arguments of torpor-container and conmon, show only the container's name.
        if words.count == 7, words[0] == "torpor-container" { words = ["torpor-container", words[2]] }
        if stat.comm == "conmon", let name = words.firstIndex(of: "-n"), name + 1 < words.count {
            words = ["conmon", words[name + 1]]
        }
        return ProcessInfo(
            pid: pid,
            parent: stat.parent,
            state: String(stat.state),
            command: words.isEmpty ? stat.comm : words.joined(separator: " "),
            threads: Int64(stat.threads)
        )
    }
}
