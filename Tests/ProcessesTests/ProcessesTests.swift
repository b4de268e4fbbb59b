// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
import Processes
import Testing

@Suite(.serialized) struct ProcessTreeTests {
    @Test("one process is stopped, stays silent, and goes on")
    func single() throws {
        let app = try TestApp("while True:\n say('tick')\n time.sleep(0.002)")
        #expect(try app.line() == "tick")
        #expect(app.tree.members() == [app.pid])
        #expect(try app.stop() == .stopped)
        #expect(app.states() == "T")
        #expect(app.tree.isStopped() && app.tree.isStopped(thoroughly: false))
        #expect(try app.isSilent(for: .milliseconds(50)))
        #expect(try app.stop() == .stopped, "again is no harm")
        try app.tree.continue()
        #expect(try app.line() == "tick")
        #expect(!app.tree.isStopped() && !app.tree.isStopped(thoroughly: false))
    }

    @Test("every thread is stopped")
    func threads() throws {
        let app = try TestApp(
            """
            def spin():
             while True: time.sleep(0.001)
            for _ in range(8): threading.Thread(target=spin, daemon=True).start()
            say('ready')
            while True: pass
            """
        )
        #expect(try app.line() == "ready")
        #expect(try app.stop() == .stopped)
        #expect(app.states() == String(repeating: "T", count: 9))
    }

    static let escapes = """
        def child(label, leave, double=False):
         r, w = os.pipe()
         if os.fork() == 0:
          if leave: os.setsid()
          if double and os.fork() != 0: os._exit(0)
          os.write(w, b'%d' % os.getpid())
          os.close(w)
          while True: time.sleep(0.001)
         os.close(w)
         say(label, os.read(r, 20).decode())
         os.close(r)
         if double: os.wait()
        child('plain', False)
        child('setsid', True)
        child('double', False, True)
        child('daemon', True, True)
        say('ready')
        while True: time.sleep(0.001)
        """

    @Test("children, setsid grandchildren and daemons that forked twice all belong, parents first")
    func escapees() throws {
        let app = try TestApp(Self.escapes)
        var expected: Set<Int32> = [app.pid]
        while true {
            let words = try app.line().split(separator: " ")
            if words[0] == "ready" { break }
            expected.insert(try #require(Int32(words[1])))
        }
        #expect(expected.count == 5)
        let members = app.tree.members()
        #expect(Set(members) == expected)
        let place = Dictionary(uniqueKeysWithValues: members.enumerated().map { ($1, $0) })
        for pid in members {
            if let above = place[try ProcFS.stat(pid).parent] { #expect(above < place[pid]!) }
            #expect(app.tree.contains(pid))
        }
        #expect(!app.tree.contains(ThisProcess.pid) && !app.tree.contains(1))
        #expect(try app.stop() == .stopped)
        #expect(app.states() == "TTTTT")
        #expect(app.tree.usage().processes == 5 && app.tree.usage().memoryBytes > 1 << 20)
        #expect(ProcessTree.samples(of: [app.tree]).map(\.isStopped) == [true])
        try app.tree.continue()
        #expect(ProcessTree.samples(of: [app.tree]).map(\.isStopped) == [false])
        #expect(try app.kill() == .gone)
        #expect(ProcessTree.samples(of: [app.tree]).map(\.isStopped) == [nil])
        #expect(app.tree.isEmpty)
        for pid in expected { #expect((try? ProcFS.stat(pid).hasEnded) ?? true, "\(pid) lives") }
    }

    @Test("another app's daemon is nobody else's")
    func strangers() throws {
        let one = try TestApp(Self.escapes)
        let two = try TestApp(Self.escapes)
        while try one.line() != "ready" {}
        while try two.line() != "ready" {}
        #expect(one.tree.members().count == 5 && two.tree.members().count == 5)
        #expect(Set(one.tree.members()).isDisjoint(with: two.tree.members()))
        #expect(!one.tree.contains(two.pid))
        #expect(try one.kill() == .gone)
        #expect(two.tree.members().count == 5)
        #expect(ProcessTree.usage(of: [one.tree, two.tree]).map(\.processes) == [0, 5])
    }

    @Test("what was seen to belong still does when its parent is gone and its environment says nothing")
    func remembered() throws {
        let app = try TestApp(
            """
            if os.fork() == 0:
             os.setsid()
             if os.fork() != 0:
              time.sleep(1000)
             say('ready', os.getppid())
             while True: time.sleep(0.01)
            while True: time.sleep(0.01)
            """,
            tagged: false
        )
        let middle = try #require(Int32(try app.line().split(separator: " ")[1]))
        #expect(app.tree.members().count == 3)
        try Signal.send(Signal.kill, to: middle)
        _ = try repeated {
            app.tree.members().count
        } until: {
            $0 == 2
        }
        #expect(try app.kill() == .gone)
    }

    @Test("a shell with job control is stopped before its jobs, and a job that it had stopped stays so")
    func jobControl() throws {
        let app = try TestApp(
            """
            sleeper = os.fork()
            if sleeper == 0:
             while True: time.sleep(0.001)
            worker = os.fork()
            if worker == 0:
             while True: time.sleep(0.001)
            os.kill(sleeper, signal.SIGSTOP)
            os.waitpid(sleeper, os.WUNTRACED)
            def child(*a):
             try:
              p, s = os.waitpid(-1, os.WUNTRACED | os.WCONTINUED | os.WNOHANG)
              if p: say('noticed', p, s)
             except ChildProcessError: pass
            signal.signal(signal.SIGCHLD, child)
            say('ready', sleeper, worker)
            while True: time.sleep(0.001)
            """
        )
        let words = try app.line().split(separator: " ")
        let sleeper = try #require(Int32(words[1]))
        let worker = try #require(Int32(words[2]))
        #expect(try app.stop() == .stopped)
        #expect(app.states() == "TTT")
        try app.tree.continue()
        _ = try repeated {
            try ProcFS.stat(worker).state
        } until: {
            $0 != "T"
        }
        #expect(try ProcFS.stat(sleeper).state == "T", "it was stopped by its shell")
        #expect(try ProcFS.stat(app.pid).state != "T")
    }

    @Test("a tree that another supervisor has stopped is continued whole")
    func recovered() throws {
        let app = try TestApp(
            "os.fork()\nsay('ready')\nwhile True: time.sleep(0.001)"
        )
        for _ in 0..<2 { #expect(try app.line() == "ready") }
        #expect(try app.stop() == .stopped)
        let successor = ProcessTree(
            tag: app.tag,
            main: app.tree.main,
            pidfd: try Pidfd.open(app.pid),
            adopter: ThisProcess.pid
        )
        #expect(successor.isStopped())
        #expect(successor.stopPass() == .stopped)
        try successor.continue()
        _ = try repeated {
            app.states()
        } until: {
            !$0.contains("T") && $0.count == 2
        }
    }

    @Test("an app that forks all the time is caught, stopped and ended whole")
    func forking() throws {
        let app = try TestApp(
            """
            say('ready')
            while True:
             pid = os.fork()
             if pid == 0:
              if os.fork() == 0:
               time.sleep(0.01)
               os._exit(0)
              os._exit(0)
             os.waitpid(pid, 0)
             time.sleep(0.0005)
            """
        )
        #expect(try app.line() == "ready")
        for _ in 0..<5 {
            #expect(try app.stop() == .stopped)
            #expect(app.states().allSatisfy { $0 == "T" })
            let before = Set(app.tree.members())
            usleep(5000)
            #expect(Set(app.tree.members()) == before, "no new process while stopped")
            try app.tree.continue()
            usleep(3000)
        }
        #expect(try app.kill() == .gone)
    }

    @Test("a zombie counts neither as running nor as left")
    func zombies() throws {
        let app = try TestApp(
            """
            child = os.fork()
            if child == 0: os._exit(0)
            os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
            say('ready', child)
            while True: time.sleep(0.01)
            """
        )
        let zombie = try #require(Int32(try app.line().split(separator: " ")[1]))
        #expect(try ProcFS.stat(zombie).state == "Z")
        #expect(app.tree.members() == [app.pid])
        #expect(try app.stop() == .stopped)
        #expect(try app.kill() == .gone)
        #expect(app.tree.isEmpty && app.tree.mainHasEnded)
        #expect(app.tree.stopPass() == .gone)
        #expect(throws: Errno.noSuchProcess) { try app.tree.signal(Signal.terminate, toAll: true) }
    }

    @Test(
        "a stopped process that is dying was not continued",
        .enabled(if: Users.isRoot, "only root may make a PID namespace")
    )
    func dying() throws {
        // The first process of a PID namespace keeps dying until the others in the namespace have been reaped. One of
        // them is a child of a stopped process, which does not reap it.
        let app = try TestApp(
            """
            import ctypes
            if ctypes.CDLL(None).unshare(0x20000000) != 0: sys.exit('there is no namespace')
            def child():
             pid = os.fork()
             while pid == 0: time.sleep(0.01)
             return pid
            first, second = child(), child()
            say(first)
            while True:
             time.sleep(0.001)
             try: os.waitpid(-1, os.WNOHANG)
             except ChildProcessError: pass
            """
        )
        let first = try #require(Int32(try app.line()))
        #expect(try app.stop() == .stopped)
        #expect(app.states() == "TTT")
        try Signal.send(Signal.kill, to: first)
        let stat = try repeated {
            try ProcFS.stat(first)
        } until: {
            $0.isExiting
        }
        #expect(!stat.hasEnded)
        #expect(app.tree.isStopped() && app.tree.isStopped(thoroughly: false))
        #expect(app.tree.stopPass() == .again, "it is not stopped either")
        try app.tree.continue()
        _ = try repeated {
            app.tree.members()
        } until: {
            $0 == [app.pid]
        }
        #expect(!app.tree.isStopped() && !app.tree.isStopped(thoroughly: false))
        #expect(try app.kill() == .gone)
    }

    @Test("where no descriptor is to be had an app is neither taken for gone nor for stopped")
    func shortage() throws {
        let app = try TestApp("if os.fork() == 0: os.setsid()\nsay('up')\nwhile True: time.sleep(0.01)")
        #expect(try app.line() == "up")
        #expect(try app.line() == "up")
        try #require(app.tree.members().count == 2)
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        func short<Result>(_ body: () throws -> Result) rethrows -> Result {
            var none = limit
            none.rlim_cur = 0
            setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &none)
            defer { setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) }
            return try body()
        }
        let (isEmpty, stopped, killed) = short { (app.tree.isEmpty, app.tree.stopPass(), app.tree.killPass()) }
        #expect(!isEmpty && stopped == .again && killed == .again)
        #expect(app.tree.members().count == 2, "what was known before is known after it")
        #expect(try app.stop() == .stopped)
        try short { try app.tree.continue() }
        #expect(!app.tree.isStopped())
        #expect(try app.kill() == .gone)
    }

    @Test("where no descriptor is to be had a container is not taken for ended", .enabled(if: Users.isRoot))
    func containerInShortage() throws {
        let app = try TestApp(
            """
            import ctypes
            if os.fork() == 0:
             open('/proc/self/comm', 'w').write('conmon')
             if os.fork() == 0:
              if ctypes.CDLL(None).unshare(0x20000): raise SystemExit('no mount namespace')
              say(os.getpid())
             while True: time.sleep(0.01)
            while True: time.sleep(0.01)
            """
        )
        app.tree.isContainer = true
        let said = try app.line()
        let first = try #require(Int32(said), "\(said)")
        #expect(app.tree.addressee.pid == first)
        #expect(try app.tree.openFirstInContainer() != nil)
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        var none = limit
        none.rlim_cur = 0
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &none)
        let outcome = Result { () throws(Errno) in try app.tree.openFirstInContainer() }
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        #expect(throws: Errno.tooManyOpenFiles) { _ = try outcome.get() }
        #expect(app.tree.addressee.pid == first)
        #expect(try app.kill() == .gone)
    }

    @Test("a process whose first thread has ended is stopped by its other threads")
    func leaderGone() throws {
        let app = try TestApp(
            """
            import ctypes
            def spin():
             time.sleep(0.05)
             say('ready')
             while True: time.sleep(0.001)
            threading.Thread(target=spin).start()
            ctypes.CDLL(None).syscall(60, 0)
            """
        )
        #expect(try app.line() == "ready")
        _ = try repeated {
            try ProcFS.stat(app.pid).state
        } until: {
            $0 == "Z"
        }
        #expect(app.tree.members() == [app.pid])
        #expect(try app.stop() == .stopped)
        #expect(app.states().contains("T") && !app.states().contains("S"))
        try app.tree.continue()
        #expect(try app.kill() == .gone)
    }

    @Test("a signal reaches the main process or all, and SIGTERM waits while stopped")
    func signals() throws {
        let app = try TestApp(
            """
            signal.signal(signal.SIGUSR1, lambda *a: say('usr1', os.getpid()))
            signal.signal(signal.SIGTERM, lambda *a: say('term', os.getpid()))
            os.fork()
            say('ready')
            while True: time.sleep(0.001)
            """
        )
        for _ in 0..<2 { #expect(try app.line() == "ready") }
        #expect(try app.tree.signal(Signal.user1, toAll: false) == 1)
        #expect(try app.line() == "usr1 \(app.pid)")
        #expect(try app.stop() == .stopped)
        #expect(try app.tree.signal(Signal.terminate, toAll: true) == 2)
        #expect(try app.isSilent(for: .milliseconds(20)))
        try app.tree.continue()
        let said = try Set([app.line(), app.line()])
        #expect(said == Set(app.tree.members().map { "term \($0)" }))
    }

    @Test("another process of the app may become the main one, a stranger may not")
    func mainPid() throws {
        let app = try TestApp("say(os.fork())\nwhile True: time.sleep(0.01)")
        let child = try #require([try app.line(), try app.line()].compactMap { Int32($0) }.first { $0 != 0 })
        #expect(throws: Errno.notPermitted) { try app.tree.changeMain(to: ThisProcess.pid) }
        #expect(throws: Errno.self) { try app.tree.changeMain(to: Int32.max) }
        try app.tree.changeMain(to: child)
        #expect(app.tree.main.pid == child && app.tree.leader.pid == app.pid)
        #expect(app.tree.members().count == 2)
        try app.tree.signal(Signal.kill, toAll: false)
        _ = try repeated {
            app.tree.mainHasEnded
        } until: {
            $0
        }
        #expect(app.tree.members() == [app.pid])
    }

    @Test("a number with another start time is not signalled")
    func identity() throws {
        let own = try Identity(of: ThisProcess.pid)
        _ = try own.open()
        #expect(throws: Errno.noSuchProcess) { try Identity(pid: own.pid, startTime: own.startTime + 1).open() }
        #expect(throws: Errno.self) { try Identity(pid: .max, startTime: 1).open() }
    }
}

@Suite(.serialized) struct CgroupTests {
    /// A tree of cgroups, or nil with the reason printed: an ordinary user mostly has none.
    func tree() -> CgroupTree? {
        do throws(CgroupsUnavailable) {
            return try CgroupTree(instance: UUID().uuidString)
        } catch {
            print("skipped: \(error)")
            return nil
        }
    }

    @Test("without cgroup v2 the reason is a sentence")
    func unavailable() throws {
        #expect {
            _ = try CgroupTree(instance: "x", mount: nil)
        } throws: { "\($0)".contains("cgroup v2 is not mounted") }
        #expect {
            _ = try CgroupTree(instance: "x", mount: "/nonexistent")
        } throws: { "\($0)".hasPrefix("no cgroup for apps: /nonexistent") }
    }

    @Test("in a cgroup everything is found, stopped, frozen and ended, whatever it does to escape")
    func cgroup() throws {
        guard let cgroups = tree() else { return }
        defer { cgroups.removeAll() }
        let (path, _, _) = try cgroups.create("web@1")
        // The escape is complete: the program waits until it is in its cgroup, then clears its environment.
        let app = try TestApp(
            """
            while 'web@1' not in open('/proc/self/cgroup').read(): time.sleep(0.001)
            if os.fork() == 0:
             os.setsid()
             if os.fork() != 0: os._exit(0)
             os.execve('/bin/sh', ['sh', '-c', 'echo escaped; exec sleep 1000'], {})
            os.wait()
            while True: time.sleep(0.001)
            """,
            cgroup: path,
            tagged: false
        )
        #expect(try app.line() == "escaped")
        // The one in between ends when it has forked, and is waited for then.
        _ = try repeated {
            app.tree.members().count
        } until: {
            $0 == 2
        }
        #expect(cgroups.populated(except: []) == [cgroups.path(of: "web@1")])
        #expect(cgroups.populated(except: [cgroups.path(of: "web@1")]) == [])
        #expect(try app.stop() == .stopped)
        #expect(app.states() == "TT")
        #expect(ProcessTree.samples(of: [app.tree]).map(\.isStopped) == [true])
        try app.tree.continue()
        #expect(ProcessTree.samples(of: [app.tree]).map(\.isStopped) == [false])
        try app.tree.freeze()
        _ = try repeated {
            app.tree.isFrozen
        } until: {
            $0
        }
        #expect(!app.states().contains("T"), "the freezer does not show there")
        #expect(throws: Errno.self) { try cgroups.remove(path) }
        #expect(app.tree.usage().processorTime > .zero)
        #expect(try app.kill() == .gone)
        #expect(try !File.readString(path + "/cgroup.freeze").contains("1"), "thawed for the next launch")
        _ = try repeated {
            try? cgroups.remove(path)
        } until: {
            $0 != nil
        }
        #expect(!File.exists(path))
    }

    @Test("an app's name cannot be taken for a control file or another place")
    func names() {
        guard let cgroups = tree() else { return }
        defer { cgroups.removeAll() }
        #expect(cgroups.path(of: "web") == cgroups.base + "/web")
        #expect(cgroups.path(of: "cgroup.procs") == cgroups.base + "/_cgroup.procs")
        #expect(cgroups.path(of: "..") == cgroups.base + "/_..")
        #expect(cgroups.path(of: "a/b") == cgroups.base + "/a_b")
    }
}
