// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
import EventLoop
import Lifecycle
import Linux
import Processes

/// What an app's sockets show just before the app is suspended.
package struct SocketFindings {
    /// Whether the app has a socket at which new clients reach it. True if its sockets cannot be read.
    package var listens = true
    /// Whether the app has the background mode `voip` and a connection on which data wakes it. True if its sockets
    /// cannot be read.
    package var isConnected = true
    /// When data last moved on one of the app's TCP connections, or a client's connection was closed, as far as this
    /// machine knows (CLOCK_MONOTONIC, to about 10 ms); nil if no such time is known.
    package var lastTraffic: Duration?
}

/// Reads an app's sockets once, in time slices.
final class SocketInspection: EventRoom {
    private let app: AppRuntime
    private unowned let owner: ConnectionWatch
    var wakes: Wakes { owner.wakes }
    private let completion: (SocketFindings) -> Void
    private var findings = SocketFindings()
    private var finder: SocketFinder?
    private var listeners: Set<UInt32> = []
    private var closed: TCPConnectionReading?
    private var isOver = false

    /// The maximum time for which one slice blocks the event loop.
    private static let slice = Duration.milliseconds(1)

    init(_ app: AppRuntime, _ owner: ConnectionWatch, _ completion: @escaping (SocketFindings) -> Void) {
        self.app = app
        self.owner = owner
        self.completion = completion
    }

    func begin(_ tree: ProcessTree) {
        let finder = SocketFinder(tree, loop) { [weak self] in self?.found($0) }
        self.finder = finder
        finder.find()
    }

    /// Ends the search without a result.
    func cancel() {
        isOver = true
        finder?.cancel()
        finder = nil
        closed = nil
    }

    private func found(_ finder: SocketFinder) {
        guard !isOver else { return }
        self.finder = nil
        guard finder.obstacle != nil else { return read(finder.takeCopies()) }
        guard !finder.numbers.isEmpty else { return finish() }
        owner.poll.ask(finder.numbers, at: [], in: finder.namespaces) { [weak self] queues in
            guard let self, !isOver else { return }
            let wish = ConnectionWish(app.specification)
            findings.listens = queues.isEmpty || queues.values.contains { wish.isPort($0) }
            findings.isConnected = queues.isEmpty || queues.values.contains { wish.isHeardConnection($0) }
            for queue in queues.values where !queue.listens { note(queue.traffic) }
            listeners = Set(queues.filter(\.value.listens).keys)
            readClosed()
        }
    }

    private func read(_ copies: [SocketCopy]) {
        let wish = ConnectionWish(app.specification)
        findings.listens = copies.contains { wish.isPort($0.facts) }
        findings.isConnected = copies.contains { wish.isHeardConnection($0.facts) }
        for copy in copies {
            if copy.facts.listens {
                listeners.insert(copy.inode)
            } else if copy.facts.isConnected {
                note(copy.traffic)
            }
            copy.descriptor.close()
        }
        readClosed()
    }

    private func note(_ traffic: SocketTraffic) {
        guard let quiet = traffic.quiet else { return }
        note(Clock.monotonic() - quiet)
    }

    private func note(_ time: Duration?) {
        guard let time else { return }
        findings.lastTraffic = max(findings.lastTraffic ?? time, time)
    }

    /// Finds out when connections to the app's listening sockets were last closed.
    private func readClosed() {
        guard !listeners.isEmpty else { return finish() }
        closed = try? TCPConnectionReading()
        goOn()
    }

    private func goOn() {
        guard !isOver else { return }
        guard let closed else { return finish() }
        let isWhole = (try? closed.read(until: Clock.monotonic() + Self.slice)) ?? true
        guard isWhole else { return loop.later { [weak self] in self?.goOn() } }
        for listener in closed.listeners where listeners.contains(listener.inode) { note(listener.lastClosed) }
        finish()
    }

    private func finish() {
        guard !isOver else { return }
        isOver = true
        closed = nil
        owner.inspections[app.id] = nil
        completion(findings)
    }
}

extension ConnectionWatch {
    /// Reads the app's sockets once. `completion` is called when that is done, possibly during this call. It is not
    /// called if the function is called again for the app before that, or if the app is removed.
    package func inspect(_ app: AppRuntime, _ completion: @escaping (SocketFindings) -> Void) {
        inspections.removeValue(forKey: app.id)?.cancel()
        guard let tree = app.run.tree else { return completion(SocketFindings()) }
        let inspection = SocketInspection(app, self, completion)
        inspections[app.id] = inspection
        inspection.begin(tree)
    }
}
