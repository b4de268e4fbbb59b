// SPDX-License-Identifier: Apache-2.0

import CMicrohttpd

/// The open connections of a server. When they are as many as it may have, each new one closes the one that has waited
/// longest for its client, so that half requests, readers that do not read and idle connections never keep others out.
/// Used on the server's one thread alone.
final class ConnectionTable {
    /// An open connection.
    final class Entry {
        fileprivate let connection: OpaquePointer
        private unowned let table: ConnectionTable
        /// When it began to wait for its client, in the order of such beginnings; nil: the client waits for the server.
        fileprivate var waitsSince: UInt64?
        /// Whether it is being closed: nothing that it asked for is done any more.
        fileprivate(set) var isCut = false

        fileprivate init(_ connection: OpaquePointer, _ table: ConnectionTable) {
            self.connection = connection
            self.table = table
        }

        /// That of a connection, in every call from the server's thread.
        static func of(_ connection: OpaquePointer) -> Entry? {
            torpor_http_context(connection).map { Unmanaged<Entry>.fromOpaque($0).takeUnretainedValue() }
        }

        /// From now on it is the client's turn: to send a request, or to read an answer.
        func waitForClient() {
            table.clock += 1
            waitsSince = table.clock
        }

        /// From now on the client waits for the server: the connection stays.
        func keep() { waitsSince = nil }
    }

    private var entries: [ObjectIdentifier: Entry] = [:]
    private var clock: UInt64 = 0
    private var cut = 0
    private let most: Int

    /// - Parameter most: connections that stay open at a time; the server accepts some more.
    init(most: Int) { self.most = most }

    /// Takes a new connection, which waits for its client's request; an older one may have to go.
    func open(_ connection: OpaquePointer) -> Entry {
        let entry = Entry(connection, self)
        entries[ObjectIdentifier(entry)] = entry
        entry.waitForClient()
        trim(keeping: entry)
        return entry
    }

    /// Closes the one that has waited longest, where there are too many: also to be asked when one has been answered, since
    /// all may have been busy when the last one came.
    func trim(keeping newest: Entry? = nil) {
        guard entries.count - cut > most else { return }
        let waiting = entries.values.lazy.filter { $0 !== newest && !$0.isCut && $0.waitsSince != nil }
        guard let oldest = waiting.min(by: { $0.waitsSince ?? 0 < $1.waitsSince ?? 0 }) else { return }
        oldest.isCut = true
        cut += 1
        torpor_http_cut(oldest.connection)
    }

    /// Removes a connection that is closed.
    func close(_ entry: Entry) {
        entries[ObjectIdentifier(entry)] = nil
        if entry.isCut { cut -= 1 }
    }
}
