// SPDX-License-Identifier: Apache-2.0

import CMicrohttpd

/// The open connections of a server. If there are too many, each new connection closes the connection that has waited
/// longest for its client. So partial requests, slow readers and idle connections cannot lock other clients out. Used
/// only on the server's thread.
final class ConnectionTable {
    /// An open connection.
    final class Entry {
        fileprivate let connection: OpaquePointer
        private unowned let table: ConnectionTable
        /// A counter's value when the connection began to wait for its client; nil while the client waits for the
        /// server.
        fileprivate var waitsSince: UInt64?
        /// Whether the connection is being closed, so that its requests are no longer handled.
        fileprivate(set) var isCut = false

        fileprivate init(_ connection: OpaquePointer, _ table: ConnectionTable) {
            self.connection = connection
            self.table = table
        }

        /// The entry of a connection. Must be called on the server's thread.
        static func of(_ connection: OpaquePointer) -> Entry? {
            torpor_http_context(connection).map { Unmanaged<Entry>.fromOpaque($0).takeUnretainedValue() }
        }

        /// Called when the server waits for the client, which must send a request or read a response.
        func waitForClient() {
            table.clock += 1
            waitsSince = table.clock
        }

        /// Called when the client waits for the server. From now on, the connection is not closed to make room for
        /// another.
        func keep() { waitsSince = nil }
    }

    private var entries: [ObjectIdentifier: Entry] = [:]
    private var clock: UInt64 = 0
    private var cut = 0
    private let most: Int

    /// - Parameter most: how many connections may stay open. The server accepts a few more.
    init(most: Int) { self.most = most }

    /// Adds a connection, which waits for its client's request. May close an older one.
    func open(_ connection: OpaquePointer) -> Entry {
        let entry = Entry(connection, self)
        entries[ObjectIdentifier(entry)] = entry
        entry.waitForClient()
        trim(keeping: entry)
        return entry
    }

    /// If there are too many connections, closes the connection that has waited longest for its client. Also called
    /// after a response, since perhaps no connection was waiting for its client when the last one was added.
    func trim(keeping newest: Entry? = nil) {
        guard entries.count - cut > most else { return }
        let waiting = entries.values.lazy.filter { $0 !== newest && !$0.isCut && $0.waitsSince != nil }
        guard let oldest = waiting.min(by: { $0.waitsSince ?? 0 < $1.waitsSince ?? 0 }) else { return }
        oldest.isCut = true
        cut += 1
        torpor_http_cut(oldest.connection)
    }

    /// Removes a connection that was closed.
    func close(_ entry: Entry) {
        entries[ObjectIdentifier(entry)] = nil
        if entry.isCut { cut -= 1 }
    }
}
