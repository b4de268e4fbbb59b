// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux

/// Who lives, as /proc has it: processes of torpor-test-app by the environment that they were started with.
///
/// What is known of a process by pid and start time is not read again, so that a look costs milliseconds.
package final class Census {
    package struct Member: Hashable {
        package let pid: Int32
        package let incarnation: UInt64
        package let isStopped: Bool

        package init(pid: Int32, incarnation: UInt64, isStopped: Bool) {
            self.pid = pid
            self.incarnation = incarnation
            self.isStopped = isStopped
        }
    }

    /// What a look found.
    package struct Look {
        /// The living processes of each app.
        package var apps: [String: [Member]] = [:]
        /// The torpords, and what is above them.
        package var torpords: [(pid: Int32, parent: Int32)] = []
        package var keepers: [(pid: Int32, parent: Int32)] = []

        package func members(_ app: String) -> [Member] { apps[app] ?? [] }

        package func lives(_ app: String, _ incarnation: UInt64) -> Bool {
            members(app).contains { $0.incarnation == incarnation }
        }
    }

    private struct Identity: Hashable {
        let pid: Int32
        let startTime: UInt64
    }

    private enum Known {
        case app(String, UInt64)
        case ours
        case stranger
    }

    private let folder: String
    private var known: [Identity: Known] = [:]

    package init(folder: String) { self.folder = folder }

    package func look() -> Look {
        var look = Look()
        var still: [Identity: Known] = [:]
        for pid in (try? ProcFS.allPids()) ?? [] {
            guard let stat = try? ProcFS.stat(pid), !stat.hasEnded else { continue }
            let isProgram = stat.comm == "torpord" || stat.comm == "torpor-keeper"
            guard isProgram || stat.comm == "torpor-test-app" else { continue }
            let identity = Identity(pid: pid, startTime: stat.startTime)
            guard let what = known[identity] ?? find(pid, isProgram: isProgram) else { continue }
            // A child of the keeper before its exec is not yet what it will be.
            if !isProgram { still[identity] = what }
            switch what {
            case .app(let app, let incarnation):
                let letters = Truth.states(pid)
                guard !letters.isEmpty else { continue }
                let isStopped = letters.allSatisfy { $0 == "T" || $0 == "t" }
                look.apps[app, default: []].append(Member(pid: pid, incarnation: incarnation, isStopped: isStopped))
            case .ours:
                if stat.comm == "torpord" {
                    if !Self.isCheck(pid) { look.torpords.append((pid, stat.parent)) }
                } else {
                    look.keepers.append((pid, stat.parent))
                }
            case .stranger: break
            }
        }
        known = still
        return look
    }

    /// Whether it is the new torpord that only looks whether it could take over; or one in the midst of its exec, of
    /// which that cannot be told yet.
    package static func isCheck(_ pid: Int32) -> Bool {
        guard let words = try? ProcFS.cmdline(pid), !words.isEmpty else { return true }
        return words.contains("--check-upgrade")
    }

    private func find(_ pid: Int32, isProgram: Bool) -> Known? {
        guard let bytes = try? File.read("/proc/\(pid)/environ"), !bytes.isEmpty else { return nil }
        var app: String?
        var incarnation: UInt64?
        var isOurs = false
        for entry in bytes.split(separator: 0) {
            if entry.starts(with: "TPTEST=".utf8) {
                isOurs = entry.dropFirst(7).elementsEqual(folder.utf8)
            } else if entry.starts(with: "TORPOR_APP=".utf8) {
                app = String(decoding: entry.dropFirst(11), as: UTF8.self)
            } else if entry.starts(with: "TORPOR_INCARNATION=".utf8) {
                incarnation = UInt64(String(decoding: entry.dropFirst(19), as: UTF8.self))
            }
        }
        guard isOurs else { return .stranger }
        if isProgram { return .ours }
        guard let app, let incarnation else { return nil }
        return .app(app, incarnation)
    }
}
