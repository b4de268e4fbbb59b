// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import Linux
import Testing

@testable import EventSources

@Suite("Whom sockets belong to") struct SocketAccountsTests {
    private func socket(owner: String? = nil, group: String? = nil) -> SocketSpecification {
        var socket = SocketSpecification(.stream, .path("/s"))
        socket.owner = owner
        socket.group = group
        return socket
    }

    @Test("A name or a number will do, the group of the owner is the socket's unless another is named")
    func found() {
        var accounts = SocketAccounts()
        let sockets = [socket(owner: "root", group: "4321"), socket(owner: "54321"), socket(owner: "root")]
        #expect(accounts.missing(sockets[0]) == "there is no user root, or it cannot be looked up now")
        accounts.lookUp(sockets)
        #expect(sockets.allSatisfy { accounts.missing($0) == nil })
        #expect(accounts.node(sockets[0]).uid == 0 && accounts.node(sockets[0]).gid == 4_321)
        #expect(accounts.node(sockets[1]).uid == 54_321 && accounts.node(sockets[1]).gid == nil)
        #expect(accounts.node(sockets[2]).gid == 0)
        #expect(accounts.node(socket()).uid == nil && accounts.node(socket()).gid == nil)
    }

    @Test(
        "Nobody is taken for another: what the kernel understands as nobody in particular is no user and no group",
        arguments: ["4294967295", "4294967296", "-1", "", "no-such-user-of-torpor"]
    )
    func nobody(_ name: String) {
        var accounts = SocketAccounts()
        let (owned, grouped) = (socket(owner: name), socket(owner: "root", group: name))
        accounts.lookUp([owned, grouped])
        #expect(accounts.missing(owned) == "there is no user \(name), or it cannot be looked up now")
        #expect(accounts.missing(grouped) == "there is no group \(name), or it cannot be looked up now")
    }

    @Test("Another look adds what it found, and takes nothing back") func added() {
        var accounts = SocketAccounts()
        accounts.lookUp([socket(owner: "root")])
        let found = SocketAccounts().lookingUp([socket(group: "77"), socket(owner: "no-such-user-of-torpor")])
        accounts.add(found)
        #expect(accounts.missing(socket(owner: "root", group: "77")) == nil)
        #expect(accounts.missing(socket(owner: "no-such-user-of-torpor")) != nil)
    }
}
