// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

/// What the kernel says that processes have of the machine.
extension Daemon {
    /// `oom_score_adj` of the one process of an app.
    func score(of app: String) throws -> Int32 { try ProcFS.oomScoreAdjust(process(of: app)) }

    /// A file of an app's cgroup, where its controller is there.
    func cgroupFile(_ app: String, _ file: String) throws -> String? {
        guard let path = try status(app).cgroup, File.exists(path + "/" + file) else { return nil }
        return try File.readString(path + "/" + file).split(separator: "\n").first.map(String.init)
    }

    /// Ends torpord, and waits for the next one.
    func replaceTorpord() throws {
        let before = try torpord()
        kill(before, SIGKILL)
        try eventually("another torpord answers") {
            guard let now = try? torpord(), now != before else { return false }
            return (try? list()) != nil
        }
    }
}

/// What an app has that nobody gives anything.
enum Born {
    /// What this process has, and so its children, unless that protects them.
    static let score = max(0, (try? ProcFS.oomScoreAdjust(ThisProcess.pid)) ?? 0)
}
