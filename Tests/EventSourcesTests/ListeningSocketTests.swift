// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EventLoop
import Linux
import Testing

@testable import EventSources

@Suite("One socket that is bound for an app") struct ListeningSocketTests {
    private func socket(_ path: String, _ change: (inout SocketSpecification) -> Void = { _ in }) -> ListeningSocket {
        ListeningSocket(specification(path, change), app: "web")
    }

    private func specification(
        _ path: String,
        _ change: (inout SocketSpecification) -> Void = { _ in }
    ) -> SocketSpecification {
        var specification = SocketSpecification(.stream, .path(path))
        specification.name = "http"
        change(&specification)
        return specification
    }

    @Test("makes the folder of its path and the links to it, and leaves nothing of them when it is closed")
    func path() throws {
        let folder = try TestFolder()
        let socket = socket(folder("run/deep/s")) {
            $0.symlinks = [folder("links/one"), folder("two")]
            $0.mode = 0o640
            $0.directoryMode = 0o711
        }
        #expect(try socket.bind(SocketAccounts()) == [])
        #expect(try File.status(folder("run/deep/s")).mode & 0o777 == 0o640)
        #expect(try File.status(folder("run/deep")).mode & 0o777 == 0o711)
        for link in [folder("links/one"), folder("two")] { _ = try Sockets.connect(path: link) }
        socket.close()
        for gone in ["run/deep/s", "links/one", "two"] {
            #expect((try? File.status(folder(gone), followLinks: false)) == nil)
        }
    }

    @Test("leaves alone what somebody else put into the place of its path or of a link") func othersNodes() throws {
        let folder = try TestFolder()
        try File.write(folder("link"), "other")
        let socket = socket(folder("s")) { $0.symlinks = [folder("link")] }
        let warnings = try socket.bind(SocketAccounts())
        #expect(
            warnings == [
                "the link \(folder("link")) to its socket \(folder("s")) cannot be made: something else is there"
            ]
        )
        try File.remove(folder("s"))
        let other = try Sockets.listen(path: folder("s"), mode: 0o644)
        let changed = socket.change(to: specification(folder("s")) { $0.mode = 0o600 }, SocketAccounts())
        #expect(changed.count == 1 && changed[0].hasPrefix("owner and mode of \(folder("s")) cannot be changed"))
        #expect(try File.status(folder("s")).mode & 0o777 == 0o644)
        socket.close()
        _ = try Sockets.connect(path: folder("s"))
        #expect(try File.readString(folder("link")) == "other")
        _ = other
    }

    @Test("leaves its path and links where that is configured, and the next one takes them") func left() throws {
        let folder = try TestFolder()
        let first = socket(folder("s")) {
            $0.removeOnStop = false
            $0.symlinks = [folder("l")]
        }
        _ = try first.bind(SocketAccounts())
        first.close()
        #expect(throws: Errno.connectionRefused) { try Sockets.connect(path: folder("l")) }
        let next = socket(folder("s")) { $0.symlinks = [folder("l")] }
        #expect(try next.bind(SocketAccounts()) == [])
        _ = try Sockets.connect(path: folder("l"))
    }

    @Test("that was taken over from an earlier torpord removes its path too") func taken() throws {
        let folder = try TestFolder()
        let first = socket(folder("s"))
        _ = try first.bind(SocketAccounts())
        let next = socket(folder("s"))
        next.take(try #require(first.descriptor).duplicate())
        _ = try Sockets.connect(path: folder("s"))
        next.close()
        #expect(!File.exists(folder("s")))
    }

    @Test("has other links at once where the configuration has, and warns of what counts only when it is bound anew")
    func changes() throws {
        let folder = try TestFolder()
        let socket = socket(folder("s")) {
            $0.symlinks = [folder("a"), folder("b")]
            $0.receiveBuffer = 65_536
            $0.priority = 3
        }
        _ = try socket.bind(SocketAccounts())
        let next = specification(folder("s")) { $0.symlinks = [folder("b"), folder("c")] }
        let warnings = socket.change(to: next, SocketAccounts())
        #expect(
            warnings == ["its socket http (\(folder("s"))) keeps its receive_buffer until it is bound again"]
        )
        #expect(["a", "b", "c"].map { File.exists(folder($0)) } == [false, true, true])
        #expect(socket.change(to: next, SocketAccounts()) == [], "nothing is otherwise")
    }

    @Test("is known to the keeper by what cannot be changed of it, whatever bytes its name has")
    func heldName() {
        let path = "/run/\u{7}ä b\n/s"
        let names = [
            socket(path), socket(path + " "), socket(path.uppercased()),
            socket(path) { $0.plan = SocketPlan(.datagram, .path(path)) },
            socket(path) { $0.plan = SocketPlan(.stream, .abstract(path)) },
        ].map(\.heldName)
        #expect(Set(names).count == names.count)
        #expect(names.allSatisfy { $0.hasPrefix("socket/web/") && $0.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f } })
        #expect(
            socket(path) {
                $0.backlog = 1
                $0.name = "x"
                $0.mode = 0
            }.heldName == names[0]
        )
        #expect(ListeningSocket(specification(path), app: "web2").heldName != names[0])
    }

    @Test("says in a sentence why it cannot be bound") func sentences() throws {
        let folder = try TestFolder()
        try File.write(folder("file"), "x")
        let port = try TestPort()
        let other = try port.listen()
        let served = try Sockets.listen(path: folder("served"))
        let cases: [(SocketAddress, String)] = [
            (.path(folder("file")), "something that is not a socket is there: remove it"),
            (.path(folder("served")), "another program listens there"),
            (.ipv4(port.host, port.number), "the address is in use: ‘ss -lnp’ shows by which process"),
            (.ipv4("192.0.2.7", port.number), "this machine does not have that address, at least not yet"),
            (.ipv6("fe80::1", port.number, interface: "nowhere0"), "there is no such network interface"),
        ]
        for (address, sentence) in cases {
            let plan = SocketPlan(.stream, address)
            let failure = #expect(throws: BindFailure.self) { try Sockets.bound(plan, backlog: 1) }
            let said = try #require(failure).sentence(plan)
            #expect(said.hasPrefix(sentence), "\(address): \(said)")
        }
        #expect(try !Descriptor.wait(served.raw, timeout: .zero), "nobody has connected to find that out")
        _ = other
    }
}
