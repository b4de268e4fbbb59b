// SPDX-License-Identifier: Apache-2.0

import Linux

/// The Unix sockets at which programs listen, and the connections that were accepted from them.
///
/// The kernel does not report when data moved on a Unix connection, nor keeps a closed one. So use is known only as far
/// as it shows when the sockets are read: while a connection is open, and when the connections of an address are not
/// the same as at the reading before.
struct UnixClients {
    private struct Listener {
        /// The other end of each accepted connection, by the connection's inode number.
        var peers: [UInt32: UInt32] = [:]
        /// The last reading that showed use (CLOCK_MONOTONIC); nil if there was none.
        var lastUse: Duration?
    }

    private var addresses: [UInt32: UnixSocket.Address] = [:]
    private var listeners: [UnixSocket.Address: Listener] = [:]

    /// The inode numbers of the listening sockets.
    var sockets: some Collection<UInt32> { addresses.keys }

    func listens(_ socket: UInt32) -> Bool { addresses[socket] != nil }

    /// Replaces the sockets by those that were read at the time `now`.
    mutating func take(_ sockets: [UnixSocket], _ now: Duration) {
        addresses.removeAll(keepingCapacity: true)
        var next: [UnixSocket.Address: Listener] = [:]
        for one in sockets where one.listens {
            addresses[one.inode] = one.address
            next[one.address] = Listener(lastUse: one.hasWaiting ? now : listeners[one.address]?.lastUse)
        }
        for one in sockets where !one.listens && next[one.address] != nil {
            next[one.address]?.peers[one.inode] = one.peer
        }
        for (address, listener) in next {
            let before = listeners[address]?.peers ?? [:]
            if before.keys != listener.peers.keys { next[address]?.lastUse = now }
        }
        listeners = next
    }

    /// The open connections of clients at the listening sockets among `sockets`, which are all sockets of one app, and
    /// when these were last used. Connections between the app's own processes do not count as open.
    func count(_ sockets: [UInt32]) -> (open: Int, lastUse: Duration?) {
        var open = 0
        var lastUse: Duration?
        // Once for all listening sockets: an app may have as many as it may have descriptors.
        let own = Set(sockets)
        for address in Set(own.compactMap { addresses[$0] }) {
            guard let listener = listeners[address] else { continue }
            if let time = listener.lastUse { lastUse = max(lastUse ?? time, time) }
            guard listener.peers.contains(where: { $0.value != 0 }) else { continue }
            open += listener.peers.count(where: { $0.value != 0 && !own.contains($0.value) })
        }
        return (open, lastUse)
    }
}
