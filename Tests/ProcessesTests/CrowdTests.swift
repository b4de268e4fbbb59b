// SPDX-License-Identifier: Apache-2.0

import Foundation
import Lifecycle
import Linux
import Testing

@testable import Processes

/// Apps with more processes than torpord handles in one turn of its loop. Here that are three.
@Suite("Very many processes", .serialized) struct CrowdTests {
    /// Runs `body` with an app of seven processes in a cgroup of its own; an ordinary user mostly has no cgroups.
    private func withCrowd(_ body: (TestApp) throws -> Void) throws {
        let cgroups: CgroupTree
        do throws(CgroupsUnavailable) {
            cgroups = try CgroupTree(instance: UUID().uuidString)
        } catch {
            print("skipped: \(error)")
            return
        }
        defer { cgroups.removeAll() }
        let (path, _, _) = try cgroups.create("web")
        let app = try TestApp(
            """
            while '/web' not in open('/proc/self/cgroup').read(): time.sleep(0.001)
            for i in range(6):
             if os.fork() == 0:
              while True: signal.pause()
            say('ready')
            while True: signal.pause()
            """,
            cgroup: path
        )
        #expect(try app.line() == "ready")
        app.tree.mostAtOnce = 3
        try body(app)
        #expect(try app.kill() == .gone)
        #expect(app.tree.isEmpty)
        _ = try repeated {
            try? cgroups.remove(path)
        } until: {
            $0 != nil
        }
    }

    @Test("Apps that are looked at together are found as each alone is, also below their cgroups and in other places")
    func together() throws {
        let places: [CgroupTree]
        do throws(CgroupsUnavailable) {
            places = [try CgroupTree(instance: UUID().uuidString), try CgroupTree(instance: UUID().uuidString)]
        } catch {
            print("skipped: \(error)")
            return
        }
        defer { for place in places { place.removeAll() } }
        let program = "say('ready')\nwhile True: signal.pause()"
        let paths = try (0..<6).map { try places[$0 / 5].create("app\($0)").path }
        let apps = try paths.map { try TestApp(program, cgroup: $0) }
        try Cgroup.create(paths[0] + "/below")
        let guest = try TestApp(program, cgroup: paths[0] + "/below")
        for app in apps + [guest] { #expect(try app.line() == "ready") }
        let together = ProcessTree.usage(of: apps.map(\.tree))
        #expect(together.map(\.processes) == [2, 1, 1, 1, 1, 1])
        for (app, usage) in zip(apps, together) {
            let alone = app.tree.usage()
            #expect(usage.memoryBytes > 0 && usage.processes == alone.processes)
            #expect(usage.processorTime > .zero && usage.processorTime <= alone.processorTime)
        }
        for app in [guest] + apps { #expect(try app.kill() == .gone) }
        for path in paths {
            _ = try repeated {
                try? Cgroup.removeTree(path)
            } until: {
                $0 != nil
            }
        }
    }

    @Test("A bounded number of them is read, the main process among them, and all are counted")
    func bounded() throws {
        try withCrowd { app in
            let (pids, leftOut) = app.tree.members(atMost: 3)
            #expect(pids.count == 3 && pids.contains(app.pid) && leftOut == 4)
            #expect(app.tree.members(atMost: 7).leftOut == 0)
            #expect(app.tree.isCrowd(app.tree.pidsOfCgroup()))
            let look = app.tree.look()
            #expect(look.members.count == 3 && look.usage.processes == 7)
            // The four that were not read count like the three that were.
            let all = Usage(summing: app.tree.list())
            #expect(look.usage.memoryBytes > all.memoryBytes / 3, "\(look.usage) of \(all)")
            #expect(app.tree.pinned().count == 3)
        }
    }

    @Test("A stop that begins with an older list stops those too that are not in it")
    func olderList() throws {
        try withCrowd { app in
            let (members, pids) = app.tree.quickListing()
            #expect(members.count == 7 && pids?.count == 7)
            let result = try repeated {
                app.tree.stopPass(read: [app.pid])
            } until: {
                $0 != .again
            }
            #expect(result == .stopped)
            #expect(app.states() == "TTTTTTT")
            let stopped = app.tree.quickListing()
            #expect(stopped.members.count == 7 && stopped.ofCgroup == nil, "those that were stopped, unread")
            try app.tree.continue()
        }
    }

    @Test("A signal to all with an older list, which has only a main process that was reaped, reaches the others")
    func olderListForSignal() throws {
        try withCrowd { app in
            let pids = try #require(app.tree.pidsOfCgroup())
            var status: Int32 = 0
            try app.tree.signal(Signal.kill, toAll: false)
            #expect(waitpid(app.pid, &status, 0) == app.pid)
            #expect(try app.tree.signal(Signal.terminate, toAll: true, read: [app.pid]) == 6)
            _ = try repeated {
                app.tree.isEmpty
            } until: {
                $0
            }
            for pid in pids where pid != app.pid { #expect(waitpid(pid, &status, 0) == pid) }
        }
    }

    @Test("A profile reaches all of them, a portion with each call")
    func profile() throws {
        try withCrowd { app in
            let inherited = max(0, try ProcFS.oomScoreAdjust(ThisProcess.pid))
            func scores() throws -> [Int32] { try app.tree.members().map(ProcFS.oomScoreAdjust) }
            var expected = max(300, inherited)
            for state in [AppState.background, .active] {
                var calls = 0
                while app.tree.apply(StateProfile(of: state)).isUnfinished {
                    calls += 1
                    try #require(calls < 100)
                    #expect(try calls > 1 || inherited >= 300 || scores().count { $0 == expected } == 3)
                }
                #expect(try scores() == Array(repeating: expected, count: 7))
                expected = inherited
            }
        }
    }

    @Test("A signal reaches those that belong to the app, in portions")
    func signal() throws {
        try withCrowd { app in
            let crowd = try #require(app.tree.pidsOfCgroup())
            try #require(crowd.count == 7)
            #expect(app.tree.signal([Signal.terminate, Signal.continue], pids: crowd[..<3] + [ThisProcess.pid]) == 3)
            #expect(app.tree.signal([Signal.terminate], pids: crowd[3...]) == 4)
            // They are gone without SIGKILL.
            _ = try repeated {
                app.tree.isEmpty
            } until: {
                $0
            }
            var status: Int32 = 0
            for pid in crowd where pid != app.pid { #expect(waitpid(pid, &status, 0) == pid) }
        }
    }
}

/// A member of an app as /proc describes it.
private func member(_ pid: Int, below parent: Int, startTime: Int) throws -> ProcessStat {
    let line =
        "\(pid) (a) S \(parent) 43 44 0 -1 4194560 1 2 3 4 100 200 300 400 20 0 1 0 \(startTime) 1000 77 "
        + "18446744073709551615"
    return try #require(Array(line.utf8).withUnsafeBytes { ProcessStat(parsing: $0) })
}

@Suite("Parents before children") struct ProcessOrderTests {
    @Test("a chain of very many processes takes no quadratic time", .timeLimit(.minutes(1)))
    func chain() throws {
        let count = 50_000
        let chain = try (2...count).map { try member($0, below: $0 - 1, startTime: count - $0) }
        #expect(ProcessTree.ordered(chain.shuffled()).map(\.pid) == chain.map(\.pid))
    }

    @Test("siblings come by their start, and a circle by a pid that was reused is no trap")
    func tree() throws {
        let members = try [
            member(10, below: 1, startTime: 5), member(14, below: 12, startTime: 1),
            member(11, below: 10, startTime: 9), member(12, below: 10, startTime: 7),
            member(13, below: 11, startTime: 2),
        ]
        for _ in 0..<20 { #expect(ProcessTree.ordered(members.shuffled()).map(\.pid) == [10, 12, 11, 14, 13]) }
        let circle = try [
            member(5, below: 7, startTime: 1), member(6, below: 5, startTime: 2), member(7, below: 6, startTime: 3),
            member(8, below: 7, startTime: 4),
        ]
        for _ in 0..<20 {
            #expect(Set(ProcessTree.ordered(circle.shuffled()).map(\.pid)) == [5, 6, 7, 8])
        }
    }
}
