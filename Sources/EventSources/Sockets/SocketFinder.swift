// SPDX-License-Identifier: Apache-2.0

import Engine
import EventLoop
import Linux
import Processes

/// Finds the sockets of an app's processes, in time slices so that the event loop is not blocked, and copies them. If
/// copying is forbidden or there are too many sockets, the result contains only their inode numbers.
final class SocketFinder {
    private(set) var copies: [SocketCopy] = []
    /// The inode numbers of the sockets, if the sockets were not copied; otherwise empty.
    private(set) var numbers: Set<UInt32> = []
    /// The network namespaces of the processes, other than torpord's, if the sockets were not copied.
    private(set) var namespaces: [ForeignNamespace] = []
    /// Whether the sockets of some process could neither be copied nor be listed, so that the app may have more.
    private(set) var isIncomplete = false
    /// Why the sockets were not copied; nil if copying has not failed.
    private(set) var obstacle: Errno?

    private let tree: ProcessTree
    private let loop: EventLoop
    private let completion: (SocketFinder) -> Void
    /// Opens the list of a process's sockets. Tests replace it.
    var list = { (pid: Int32) throws(Errno) -> SocketReading in try SocketReading(pid) }
    private var rest: ArraySlice<Int32>
    /// Processes that only reserve ports for the app, such as podman's conmon. Of their sockets, only listening
    /// network sockets count.
    private let reserving: Set<Int32>
    private var reading: SocketCopyReading?
    private var numberReading: SocketReading?
    private var seen: Set<UInt32> = []
    private var isOver = false
    private var knownNamespaces: Set<UInt64> = []

    /// The maximum number of network namespaces to poll. A container has one.
    private static let mostNamespaces = 8
    private static let ownNamespace = try? ProcFS.networkNamespace(ThisProcess.pid)
    /// The maximum time for which one slice blocks the event loop.
    private static let slice = Duration.milliseconds(1)
    /// The maximum number of copies, because each uses a file descriptor of torpord.
    private static let mostCopies = 1_024

    /// - Parameters:
    ///   - obstacle: why no copies should be made; nil if they should be made.
    ///   - completion: called when the search is complete, during the first call of `find` or later.
    init(
        _ tree: ProcessTree,
        _ loop: EventLoop,
        obstacle: Errno? = nil,
        _ completion: @escaping (SocketFinder) -> Void
    ) {
        self.tree = tree
        self.loop = loop
        self.obstacle = obstacle
        self.completion = completion
        let reserving = tree.portReservers()
        self.reserving = Set(reserving)
        rest = (tree.quickMembers() + reserving)[...]
    }

    /// Stops the search and drops its results.
    func cancel() {
        isOver = true
        reading = nil
        numberReading = nil
        _ = takeCopies()
    }

    /// Returns the copies made so far. The caller owns them from now on.
    func takeCopies() -> [SocketCopy] {
        defer { copies = [] }
        return copies
    }

    /// Searches for one time slice, and schedules the next one.
    func find() {
        guard !isOver else { return }
        let end = loop.now + Self.slice
        if obstacle == nil {
            do throws(Errno) {
                guard try findCopies(until: end) else { return goOn() }
                isOver = true
                return completion(self)
            } catch {
                obstacle = error
                copies = []
                reading = nil
                rest = tree.quickMembers()[...]
            }
        }
        guard findNumbers(until: end) else { return goOn() }
        isOver = true
        completion(self)
    }

    private func goOn() { loop.later { [weak self] in self?.find() } }

    /// Copies sockets until the time `end`. Returns whether all sockets were copied.
    private func findCopies(until end: Duration) throws(Errno) -> Bool {
        while true {
            if reading == nil {
                guard let pid = rest.first else { return true }
                reading = try begin(pid)
            }
            if let reading {
                guard try reading.read(until: end) else { return false }
                let only = reserving.contains(rest.first ?? 0)
                copies += only ? reading.copies.filter { $0.facts.isNetworkPort } : reading.copies
                seen = reading.seen
            }
            reading = nil
            rest = rest.dropFirst()
        }
    }

    private func begin(_ pid: Int32) throws(Errno) -> SocketCopyReading? {
        do throws(Errno) {
            let pidfd = try Identity(of: pid).open()
            return try SocketCopyReading(pid, pidfd: pidfd, seen: seen, most: Self.mostCopies - copies.count)
        } catch {
            if error.isGone { return nil }
            throw error
        }
    }

    private func findNumbers(until end: Duration) -> Bool {
        while true {
            if numberReading == nil {
                guard let pid = rest.popFirst() else { return true }
                do throws(Errno) {
                    numberReading = try list(pid)
                } catch {
                    if !error.isGone { isIncomplete = true }
                }
                noteNamespace(of: pid)
            }
            guard let reading = numberReading else { continue }
            guard reading.read(until: end) else { return false }
            numbers.formUnion(reading.sockets)
            numberReading = nil
        }
    }

    private func noteNamespace(of pid: Int32) {
        guard namespaces.count < Self.mostNamespaces, let own = Self.ownNamespace,
            let namespace = try? ProcFS.networkNamespace(pid), namespace != own,
            knownNamespaces.insert(namespace).inserted, let pidfd = try? Identity(of: pid).open()
        else { return }
        namespaces.append(ForeignNamespace(of: pidfd))
    }
}

extension SocketFacts {
    fileprivate var isNetworkPort: Bool { listens && family == .internet }
}
