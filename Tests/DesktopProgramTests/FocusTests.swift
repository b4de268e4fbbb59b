// SPDX-License-Identifier: Apache-2.0

import DesktopProtocol
import Linux
import Testing
import Varlink

/// torpor-desktop with a window manager that a test controls.
@Suite struct FocusTests {
    private func path(_ bench: Bench, _ number: Int = 7) -> String {
        bench.session + "/sway-ipc.\(Users.effectiveUID).\(number).sock"
    }

    private func hear(following manager: Helper, _ bench: Bench) throws {
        try bench.hear(.following(problem: nil, manager: manager.pid))
    }

    @Test func `the process with the focus is reported`() throws {
        let bench = try Bench(hasBus: false)
        let manager = try Helper(bench, "manager", path(bench))
        try manager.run("windows[:] = [100, 200]; focus = 200")
        try bench.say(.follow(.sway))
        try hear(following: manager, bench)
        try bench.hear(.focused(pid: 200))
        try manager.run("focused(100)")
        try bench.hear(.focused(pid: 100))
        // It changes nothing.
        try manager.run("event(3, {'change': 'title', 'container': {'pid': 200}})")
        try manager.run("focused(100)")
        // An empty workspace.
        try manager.run("focus = None; windows[:] = []; event(0, {'change': 'focus'})")
        try bench.hear(.focused(pid: nil))
        let focused = bench.reports.filter { if case .focused = $0 { true } else { false } }
        #expect(focused == [.focused(pid: 200), .focused(pid: 100), .focused(pid: nil)])
        // The next torpord.
        try manager.run("windows[:] = [100]; focused(100)")
        try bench.hear(.focused(pid: 100))
        _ = try bench.greet()
        try bench.say(.follow(.sway))
        try hear(following: manager, bench)
        try bench.hear(.focused(pid: 100))
        try bench.say(.follow(nil))
        _ = try bench.greet()
        try bench.eventually("nothing is followed") { (try? manager.run("ret = len(clients)"))?.intValue == 0 }
    }

    @Test func `a window manager may come late, go and return`() throws {
        let bench = try Bench(hasBus: false)
        try bench.say(.follow(.sway))
        try bench.hear { report in if case .following(.some, _) = report { () } else { nil } }
        let manager = try Helper(bench, "manager")
        try manager.run("windows[:] = [100]; focus = 100; start('\(path(bench))')")
        try hear(following: manager, bench)
        try bench.hear(.focused(pid: 100))
        try manager.run("stop()")
        try bench.hear { report in if case .following(.some, _) = report { () } else { nil } }
        try manager.run("start('\(path(bench, 8))')")
        try hear(following: manager, bench)
        try bench.hear(.focused(pid: 100))
        // What nobody can tell is not told: the app stays where it is.
        #expect(!bench.reports.contains(.focused(pid: nil)))
    }

    @Test func `one that does not answer, or is another's, is passed over`() throws {
        let bench = try Bench(hasBus: false)
        let silent = try Helper(bench, "manager", path(bench, 9))
        try silent.run("answers = False")
        let manager = try Helper(bench, "manager", path(bench, 7))
        try manager.run("windows[:] = [100]; focus = 100")
        // The newest.
        let silentPath = path(bench, 9)
        try File.markChanged(silentPath)
        if Users.isRoot {
            let foreign = try Helper(bench, "manager", path(bench, 10))
            try foreign.run("windows[:] = [666]; focus = 666")
            try File.setOwner(path(bench, 10), uid: 65534, gid: nil)
        }
        // A file that is no socket, and a name that is another user's.
        try File.write(path(bench, 11), "")
        try bench.say(.follow(.sway))
        try bench.hear(.focused(pid: 100))
        #expect(!bench.reports.contains(.focused(pid: 666)))
    }

    @Test func `one that speaks otherwise is left alone`() throws {
        let bench = try Bench(hasBus: false)
        let manager = try Helper(bench, "manager", path(bench))
        try manager.run("send = lambda client, kind, value: client.sendall(b'HTTP/1.1 400 Bad Request')")
        try bench.say(.follow(.sway))
        let problem = try bench.hear { report in
            if case .following(.some(let problem), _) = report { problem } else { nil }
        }
        #expect(problem.hasSuffix("does not speak the i3 protocol"), "\(problem)")
        _ = try bench.greet()
    }

    @Test func `the environment names the socket`() throws {
        let bench = try Bench(hasBus: false, starts: false)
        let manager = try Helper(bench, "manager", bench.directory + "/own")
        try manager.run("windows[:] = [100]; focus = 100")
        try bench.start(["SWAYSOCK=\(bench.directory)/own"])
        try bench.say(.follow(.sway))
        try bench.hear(.focused(pid: 100))
    }

    @Test func `the window of some processes gets the focus, and the focus that follows is reported`() throws {
        let bench = try Bench(hasBus: false)
        let manager = try Helper(bench, "manager", path(bench))
        try manager.run("windows[:] = [100, 200, 300]; focus = 200")
        // Nothing is followed.
        try bench.say(.raise(pids: [100]))
        try bench.say(.follow(.sway))
        try bench.hear(.focused(pid: 200))
        // One with the focus keeps it, and processes without a window get none.
        try bench.say(.raise(pids: [200]))
        try bench.say(.raise(pids: [999]))
        _ = try bench.greet()
        try bench.say(.raise(pids: [7, 100]))
        try bench.hear(.focused(pid: 100))
        // Of several windows that which had it last.
        try manager.run("order[:] = [100, 300, 200]")
        try bench.say(.raise(pids: [200, 300]))
        try bench.hear(.focused(pid: 300))
        #expect(try manager.run("ret = commands") == ["[con_id=110] focus", "[con_id=310] focus"])
        try manager.run("stop()")
        try bench.hear { report in if case .following(.some, _) = report { () } else { nil } }
        try bench.say(.raise(pids: [100]))
        _ = try bench.greet()
    }
}
