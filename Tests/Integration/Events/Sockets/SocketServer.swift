// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

/// Programs that are given sockets, and their clients.
enum SocketServer {
    /// Answers each connection and datagram with its own pid, the name of the socket and what was sent; takes no more than
    /// it is sent. `tp.record("up")` when it listens.
    static let program = #"""
        import os, select, socket, sys, tp
        assert int(os.environ["LISTEN_PID"]) == os.getpid()
        names = os.environ["LISTEN_FDNAMES"].split(":")
        listeners = {}
        for index in range(int(os.environ["LISTEN_FDS"])):
            listeners[3 + index] = (socket.socket(fileno=3 + index), names[index])
        tp.record("up %d %s" % (os.getpid(), ":".join(names)))
        poll = select.poll()
        for fd in listeners:
            poll.register(fd, select.POLLIN)
        connections = {}
        while True:
            for fd, _ in poll.poll():
                if fd in connections:
                    peer, name = connections.pop(fd)
                    poll.unregister(fd)
                    text = peer.recv(100).decode()
                    if text:
                        tp.record("answered " + text)
                    try:
                        peer.send(("%d %s %s" % (os.getpid(), name, text)).encode())
                    except OSError:
                        pass
                    peer.close()
                    continue
                listener, name = listeners[fd]
                if listener.type == socket.SOCK_DGRAM:
                    text, sender = listener.recvfrom(100)
                    answer = "%d %s %s" % (os.getpid(), name, text.decode())
                    listener.sendto(answer.encode(), sender)
                else:
                    peer, _ = listener.accept()
                    connections[peer.fileno()] = (peer, name)
                    poll.register(peer.fileno(), select.POLLIN)
        """#

    /// `client.py KIND ADDRESS TEXT`: prints the answer.
    static let client = #"""
        import os, socket, sys
        kind, address, text = sys.argv[1:]
        types = {"stream": socket.SOCK_STREAM, "datagram": socket.SOCK_DGRAM, "seqpacket": socket.SOCK_SEQPACKET}
        if address.startswith("/"):
            family, where = socket.AF_UNIX, address
        elif address.startswith("@"):
            family, where = socket.AF_UNIX, "\0" + address[1:]
        elif address.startswith("vsock:"):
            _, cid, port = address.split(":")
            family, where = socket.AF_VSOCK, (int(cid or 1), int(port))
        else:
            host, _, port = address.rpartition(":")
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            where = (host.strip("[]") or "127.0.0.1", int(port))
        s = socket.socket(family, types[kind])
        s.settimeout(60)
        if kind == "datagram" and family == socket.AF_UNIX:
            s.bind("\0client-%d" % os.getpid())
        s.connect(where)
        s.send(text.encode())
        print(s.recv(200).decode(), end="")
        """#

    static let files = ["server.py": program, "client.py": client]
    static let exec = Scripts.python + "\"@D/server.py\"]"
}

/// One answer of ``SocketServer``.
struct SocketAnswer: Hashable {
    var pid: Int32
    var name: String
    var text: String
}

extension Daemon {
    /// Connects, sends, and waits for the answer.
    func ask(_ kind: String, _ address: String, _ text: String = "hello") throws -> SocketAnswer {
        let program = ["/usr/bin/python3", "-S", directory + "/client.py", kind, address, text]
        let (code, output) = try Spawn.run(program, environment: ["TPCLIENT": directory])
        let words = output.split(separator: " ")
        guard code == 0, words.count == 3, let pid = Int32(words[0]) else {
            let events = (try? self.events().suffix(20).map { "\($0.app ?? "-") \($0.text)" }) ?? []
            throw Trouble("no answer at \(kind) \(address): \(output)\n\(events.joined(separator: "\n"))")
        }
        return SocketAnswer(pid: pid, name: String(words[1]), text: String(words[2]))
    }

    /// A connection that somebody has made, and that may wait to be accepted.
    func connection(_ port: UInt16, sending text: String) throws -> Descriptor {
        let socket = try Sockets.connectTCP(address: "127.0.0.1", port: port)
        guard try Descriptor.wait(socket.raw, writable: true, timeout: .seconds(60)) else {
            throw Trouble("no connection")
        }
        if let error = Sockets.pendingError(socket.raw) { throw Trouble("refused: \(error)") }
        _ = try Descriptor.write(socket.raw, Array(text.utf8))
        return socket
    }

    /// What comes back over a connection.
    func answer(_ socket: Descriptor, within time: Duration = Daemon.bound) throws -> SocketAnswer? {
        guard try Descriptor.wait(socket.raw, timeout: time) else { return nil }
        let bytes = try Descriptor.read(socket.raw, maximum: 200) ?? []
        let words = String(decoding: bytes, as: UTF8.self).split(separator: " ")
        guard words.count == 3, let pid = Int32(words[0]) else { return nil }
        return SocketAnswer(pid: pid, name: String(words[1]), text: String(words[2]))
    }

    /// Ends its process as somebody from outside does it: while suspended that counts as an eviction.
    func evict(_ app: String) throws {
        try waitFor(app, "suspended")
        let process = try #require(try summary(app).pid)
        kill(process, SIGKILL)
        try waitFor(app, "not-running")
    }
}
