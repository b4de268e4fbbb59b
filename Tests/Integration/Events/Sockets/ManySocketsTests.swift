// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import TestAddresses
import Testing
import TorporAPI

@Suite("Many sockets") struct ManySocketsTests {
    /// `crowd.py PORT APPS EACH`: so many connections to each app at once; what became of them, as a line of numbers:
    /// answered, answered wrongly, refused, lost.
    private static let crowd = #"""
        import errno, resource, select, socket, sys, time
        port, apps, each = map(int, sys.argv[1:])
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        poll = select.epoll()
        waiting, bad = {}, {"wrong": 0, "refused": 0, "lost": 0}
        answered = 0
        for n in range(each):
            for app in range(1, apps + 1):
                s = socket.socket()
                s.setblocking(False)
                if s.connect_ex(("127.77.0.%d" % app, port)) not in (0, errno.EINPROGRESS):
                    bad["refused"] += 1
                    continue
                waiting[s.fileno()] = [s, "%d-%d" % (app, n), b""]
                poll.register(s.fileno(), select.EPOLLOUT)
        end = time.monotonic() + 90
        while waiting and time.monotonic() < end:
            for fd, events in poll.poll(1):
                entry = waiting[fd]
                s, text, got = entry
                if events & select.EPOLLOUT:
                    if s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                        bad["refused"] += 1
                        del waiting[fd]
                        s.close()
                        continue
                    s.send(text.encode())
                    poll.modify(fd, select.EPOLLIN)
                    continue
                try:
                    piece = s.recv(200)
                except OSError:
                    piece = b""
                entry[2] += piece
                if piece:
                    continue
                words = entry[2].decode().split(" ")
                if len(words) < 3:
                    bad["lost"] += 1
                elif words[2] == text:
                    answered += 1
                else:
                    bad["wrong"] += 1
                del waiting[fd]
                s.close()
        print(answered, bad["wrong"], bad["refused"], bad["lost"] + len(waiting), end="")
        """#

    @Test("of ten thousand connections to a hundred sleeping apps none is refused, lost, or answered twice")
    func crowd() throws {
        let (apps, each) = (100, 100)
        let port = try TestAddress.port()
        let toml = """
            [apps.web]
            \(SocketServer.exec)
            instances = \(apps)
            launch = "on-demand"
            launch_deadline = "none"
            event_time = "none"
            restart = "never"
            log = "null"
            sockets = [{ stream = "127.77.0.%i:\(port)" }]
            """
        let files = SocketServer.files.merging(["crowd.py": Self.crowd]) { $1 }
        try withDaemon(toml, files: files) { daemon in
            let names = (1...apps).map { "web@\($0)" }
            // One half is suspended, a quarter of these is evicted, the other was never started.
            let half = Array(names.prefix(apps / 2))
            #expect(try daemon.verbs(.start, half) { $0.timeoutMilliseconds = 60_000 }.allSatisfy(\.ok))
            for name in half { try daemon.eventually("\(name) listens") { !daemon.records(name).isEmpty } }
            #expect(try daemon.verbs(.suspend, half).allSatisfy(\.ok))
            for name in half.prefix(apps / 8) { try daemon.evict(name) }
            let crowd = [
                "/usr/bin/python3", "-S", daemon.directory + "/crowd.py", "\(port)", "\(apps)", "\(each)",
            ]
            let pid = try Spawn.start(crowd, environment: [:], output: daemon.directory + "/crowd.out")
            var status: Int32 = 0
            try daemon.eventually("the crowd has its answers", within: .seconds(100)) {
                waitpid(pid, &status, WNOHANG) == pid
            }
            let result = try String(contentsOfFile: daemon.directory + "/crowd.out", encoding: .utf8)
            #expect(result == "\(apps * each) 0 0 0", "answered, wrong, refused, lost")
            let answers = names.flatMap { daemon.records($0).filter { $0.hasPrefix("answered") } }
            #expect(answers.count == apps * each)
            #expect(Set(answers).count == answers.count)
            let wakes = try daemon.events().filter { $0.kind == "wake" && $0.text.contains("woken by") }
            #expect(Set(wakes.compactMap(\.app)) == Set(names))
            #expect(wakes.count == apps, "one wake each")
        }
    }
}
