// SPDX-License-Identifier: Apache-2.0

import Engine
package import Linux
package import Processes

/// Finds which sockets an app's processes have open, in steps of limited duration.
package final class SocketSearch {
    /// The inode numbers of the sockets found so far, of all socket types.
    package private(set) var sockets: Set<UInt32> = []
    /// Whether the search has read every process so far. False if a process could not be read, or if there were too
    /// many descriptors.
    package private(set) var isWhole = true
    /// The TCP sockets of other network namespaces that some of the processes are in; nil if all are in torpord's
    /// namespace.
    package private(set) var elsewhere: [ForeignConnections]?
    /// How long the search has taken so far.
    package private(set) var cost: Duration = .zero

    private var rest: ArraySlice<Identity>
    private var reading: SocketReading?
    private var count = 0
    private var namespaces: Set<UInt64> = []

    /// The maximum number of descriptors to read, which takes half a second. No normal program has more.
    private static let mostDescriptors = 100_000
    private static let namespace = try? ProcFS.networkNamespace(ThisProcess.pid)

    package init(_ members: [Identity], isWhole: Bool = true) { (rest, self.isWhole) = (members[...], isWhole) }

    /// Continues the search until the deadline (CLOCK_MONOTONIC). Returns whether the search is complete.
    package func read(until deadline: Duration?) -> Bool {
        let start = Clock.monotonic()
        defer { cost += Clock.monotonic() - start }
        while isWhole {
            if let reading {
                guard reading.read(until: deadline) else { return false }
                sockets.formUnion(reading.sockets)
                count += reading.count
                if count > Self.mostDescriptors { isWhole = false }
                self.reading = nil
            }
            guard let member = rest.popFirst() else { return true }
            begin(member)
            if let deadline, Clock.monotonic() >= deadline { return false }
        }
        return true
    }

    private func begin(_ member: Identity) {
        do throws(Errno) {
            let namespace = try ProcFS.networkNamespace(member.pid)
            if let own = Self.namespace, namespace != own, namespaces.insert(namespace).inserted {
                elsewhere = (elsewhere ?? []) + [try ForeignConnections(of: member.pid)]
            }
            reading = try SocketReading(member.pid)
        } catch {
            if !error.isGone { isWhole = false }
        }
    }
}
