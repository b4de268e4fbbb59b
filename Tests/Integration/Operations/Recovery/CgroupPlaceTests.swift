// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

@Suite("Recovery: the place of the apps' cgroups") struct CgroupPlaceTests {
    private static let toml = """
        [apps.web]
        exec = ["\(Built.path("torpor-test-app"))"]
        suspend_with = "freezer"
        """

    /// What the recovery file says of the place; the layout is that of Sources/Recovery/RecoveryFile.swift.
    private func place(_ daemon: Daemon) throws -> [UInt8] {
        try File.open(daemon.runtime + "/recovery").withRaw { raw throws(Errno) in
            try File.read(raw, at: 96, maximum: 8)
        }
    }

    @Test("An app in another place is found there, and the next torpord knows when all are in one place again")
    func another() throws {
        try withKilledDaemon(Self.toml) { daemon throws in
            try daemon.waitFor("web", "active")
            let pid = try #require(try daemon.summary("web").pid)
            guard let mount = Cgroup.mount, let group = try ProcFS.cgroup(pid), group.contains("/torpor-apps-")
            else { return print("skipped: no cgroups") }
            let nowhere = [UInt8](repeating: 0, count: 8)
            let known = try place(daemon)
            #expect(known != nowhere)

            // As if an earlier torpord had used another place.
            let own = mount + group
            let base = try #require(File.parent(of: own))
            let other = try #require(File.parent(of: base)) + "/torpor-test-" + UUID().uuidString
            let elsewhere = other + "/" + (base.split(separator: "/").last.map(String.init) ?? "")
            defer { try? Cgroup.removeTree(other) }
            for path in [other, elsewhere, elsewhere + "/web"] { try Cgroup.create(path) }
            try Cgroup.add(elsewhere + "/web", pid: pid)
            try Cgroup.removeTree(own)
            try File.open(daemon.runtime + "/recovery", .readWrite).withRaw { raw throws(Errno) in
                try File.write(raw, at: 96, nowhere)
            }
            try daemon.replaceTorpord()
            #expect(try daemon.summary("web").pid == pid)
            #expect(try place(daemon) == nowhere)
            try daemon.done(.suspend, "web")
            #expect(Cgroup.isFrozen(elsewhere + "/web"))

            try daemon.done(.stop, "web")
            try daemon.done(.start, "web")
            try daemon.replaceTorpord()
            #expect(try place(daemon) == known)
            try daemon.done(.suspend, "web")
            #expect(Cgroup.isFrozen(own))
        }
    }
}
