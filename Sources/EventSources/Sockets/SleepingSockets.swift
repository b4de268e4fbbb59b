// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EventLoop
import Lifecycle
import Linux
import Processes

/// The sockets of one app during one suspension.
///
/// torpord copies the sockets from the app's processes and watches the copies in the event loop, so that data wakes
/// the app at once. When the app runs or ends, torpord closes the copies, because they would keep the app's ports in
/// use. If copying is forbidden or there are too many sockets, torpord instead polls the kernel's socket diagnostics
/// (``SocketPoll``).
final class SleepingSockets: EventRoom {
    let app: AppRuntime
    let tree: ProcessTree
    let wish: ConnectionWish
    /// The last event, if it could not wake the app and must be retried; nil otherwise.
    private var heldBack: WakeEvent?

    /// Whether a connection is to wake the app, and neither the app nor torpord for it listens. False until the app's
    /// sockets are read, and if they cannot be read.
    private(set) var listensNowhere = false
    /// Whether data on the app's own connections is to wake it, and it has no connection. False until the app's sockets
    /// are read, and if they cannot be read.
    private(set) var isUnconnected = false
    /// The places in ``ConnectionWish/lost`` where the app itself listens, so that connections there wake it. Empty
    /// until the app's sockets are read.
    private(set) var ownPlaces: Set<UInt64> = []

    private unowned let owner: ConnectionWatch
    var wakes: Wakes { owner.wakes }
    private var finder: SocketFinder?
    private var watched: [Watched] = []
    private var timer: TimerSource?
    private var isOver = false

    private struct Watched {
        let copy: SocketCopy
        let source: IOSource
    }

    init(_ app: AppRuntime, _ tree: ProcessTree, _ wish: ConnectionWish, _ owner: ConnectionWatch) {
        self.app = app
        self.tree = tree
        self.wish = wish
        self.owner = owner
    }

    /// Stops watching or polling, and closes all copies.
    func close() {
        isOver = true
        timer?.cancel()
        timer = nil
        finder?.cancel()
        finder = nil
        unwatch()
        owner.poll.remove(app.id)
    }

    private func unwatch() {
        for one in watched {
            one.source.cancel()
            one.copy.descriptor.close()
        }
        watched = []
    }

    /// Called when the app has ended: returns its listening sockets, and closes all other copies. Listening sockets
    /// in a container's own network are closed too, because no client can reach them once that network is gone.
    func takePorts() -> [SocketCopy] {
        let given = sockets.numbers(of: app)
        let copies = watched.map(\.copy) + (finder?.takeCopies() ?? [])
        let taken = copies.filter { wish.isPort($0.facts) && !$0.facts.isElsewhere && !given.contains($0.inode) }
        let numbers = Set(taken.map(\.inode))
        for one in watched where numbers.contains(one.copy.inode) { one.source.cancel() }
        watched.removeAll { numbers.contains($0.copy.inode) }
        close()
        return taken
    }

    // MARK: Copies

    /// Searches for the app's sockets in time slices. Then watches or polls them.
    func find() {
        guard !isOver else { return }
        let finder = owner.newFinder(tree, loop, nil) { [weak self] finder in
            self?.finder = nil
            if let obstacle = finder.obstacle {
                self?.poll(finder, obstacle)
            } else {
                self?.watch(finder.takeCopies())
            }
        }
        self.finder = finder
        finder.find()
    }

    private func places(_ own: Set<UInt64>) -> ListeningPlaces {
        ListeningPlaces(own: own, given: sockets.places(of: app))
    }

    private func lookForWakers(_ own: some Sequence<some WatchableSocket>) {
        listensNowhere =
            wish.incoming != .none && app.specification.sockets.isEmpty && !own.contains { wish.isPort($0) }
        isUnconnected = wish.outgoing && !own.contains { wish.isHeardConnection($0) }
        ownPlaces = Set(own.lazy.filter { self.wish.isLost($0) }.map(\.place))
    }

    private func watch(_ copies: [SocketCopy]) {
        lookForWakers(copies.map(\.facts))
        let places = places(Set(copies.filter(\.facts.listens).map(\.facts.place)))
        let given = sockets.numbers(of: app)
        let closed = wish.closesConnections ? shutDownIdle(copies, places) : []
        let wanted = copies.compactMap { copy in
            given.contains(copy.inode) || closed.contains(copy.inode)
                ? nil : wish.wake(for: copy.facts, places).map { (copy, $0) }
        }
        var waiting: [UInt32: (copy: SocketCopy, wake: Wake, events: IOEvents, pending: LeftBehind.Pending)] = [:]
        var listening: [UInt32: UInt64] = [:]
        for (copy, wake) in wanted {
            let ready = Descriptor.readiness(copy.descriptor.raw)
            var events: IOEvents = [.readable, .peerClosed, .edgeTriggered]
            // The send buffer is full, so the app may wait for room in it: wake the app when there is room.
            if copy.facts.kind != .datagram, copy.facts.isConnected, !ready.contains(.writable) {
                events.insert(.writable)
            }
            let hasNews = !ready.isDisjoint(with: .news)
            if hasNews, isHeard(copy, ready) {
                let pending = LeftBehind.Pending.data(received: copy.traffic.received)
                if copy.facts.listens, copy.facts.family == .internet, !copy.facts.isElsewhere {
                    listening[copy.inode] = copy.facts.place
                }
                waiting[copy.inode] = (copy, wake, ready, copy.facts.listens ? .connection(ids: nil) : pending)
            } else if owesAnswer(copy, places) {
                waiting[copy.inode] = (copy, wake, .readable, .answer)
            }
            // Whether epoll's first report can only be about data that was pending before. The code above has handled
            // that data.
            var isKnown = hasNews
            let source = try? loop.watch(copy.descriptor.raw, events) { [weak self] events in
                defer { isKnown = false }
                guard let self, !isKnown, isHeard(copy, events) else { return }
                happened(copy.facts, events, wake)
            }
            guard let source else { return pollInstead() }
            watched.append(Watched(copy: copy, source: source))
        }
        judge(
            waiting.mapValues { one in
                (one.pending, { [weak self] in self?.happened(one.copy.facts, one.events, one.wake) })
            },
            listening: listening
        )
    }

    /// Shuts down idle connections of clients, and all connections of clients whose data would not wake the app. A
    /// connection is not idle if it has unread data or its client waits for an answer. A shutdown affects the app's own
    /// socket too, so the app sees the end of the connection when it runs again. Connections between the app's own
    /// processes stay open. Returns the inode numbers of the sockets that were shut down.
    private func shutDownIdle(_ copies: [SocketCopy], _ places: ListeningPlaces) -> Set<UInt32> {
        let members = Set(tree.quickMembers())
        let ends = Set(copies.compactMap { $0.facts.isConnected ? $0.facts.end($0.facts.local) : nil })
        var closed: Set<UInt32> = []
        for copy in copies where wish.isOfClient(copy.facts, places) {
            let peer = try? Sockets.peer(copy.descriptor.raw)
            let isWithin = copy.facts.end(copy.facts.remote).map(ends.contains) ?? false
            if isWithin || peer.map({ members.contains($0.pid) }) ?? false { continue }
            let wakes = wish.manner(ofClient: copy.facts, places) != .none
            if wakes, copy.traffic.unread > 0 || copy.traffic.owesAnswer(app.specification) { continue }
            if (try? Sockets.shutDown(copy.descriptor.raw)) != nil { closed.insert(copy.inode) }
        }
        if !closed.isEmpty {
            log.debug("\(app.name): closed \(closed.count) connections of clients, since it is suspended")
        }
        return closed
    }

    /// Whether a client waits for an answer on this connection, because the app was suspended before it had sent the
    /// whole answer.
    private func owesAnswer(_ copy: SocketCopy, _ places: ListeningPlaces) -> Bool {
        wish.manner(ofClient: copy.facts, places) != .none && copy.traffic.owesAnswer(app.specification)
    }

    /// Whether the events should wake the app. The end of a connection, without unread data, wakes only some apps
    /// (``ConnectionWish/hearsEnds``).
    private func isHeard(_ copy: SocketCopy, _ events: IOEvents) -> Bool {
        wish.hearsEnds || events.isDisjoint(with: .ends) || copy.traffic.unread > 0
    }

    private func happened(_ facts: SocketFacts, _ events: IOEvents, _ wake: Wake) {
        tell(facts.name, facts.text(events), wake, isUntraced: facts.isUntraced)
    }

    /// Wakes the app for data that was pending when the app was suspended: at once, or later if the app left the data
    /// unread in earlier suspensions. `listening`: the places of the TCP sockets with pending connections; for these,
    /// the kernel can say which connections are pending.
    private func judge(
        _ waiting: [UInt32: (pending: LeftBehind.Pending, wake: () -> Void)],
        listening: [UInt32: UInt64]
    ) {
        let places = Set(listening.values)
        guard !places.isEmpty else { return judge(waiting) }
        owner.poll.unaccepted(at: places) { [weak self] found in
            guard let self, !isOver else { return }
            var waiting = waiting
            for (socket, place) in listening {
                waiting[socket]?.pending = .connection(ids: found.map { $0[place] ?? [] })
            }
            judge(waiting)
        }
    }

    private func judge(_ waiting: [UInt32: (pending: LeftBehind.Pending, wake: () -> Void)]) {
        let delays = owner.leftBehind(by: app.id, waiting.mapValues(\.pending))
        guard let (socket, delay) = delays.min(by: { $0.value < $1.value }), let wake = waiting[socket]?.wake
        else { return }
        guard delay > .zero else { return wake() }
        timer = try? loop.timer(wake)
        timer?.arm(after: delay)
    }

    private func tell(_ name: String, _ text: String, _ wake: Wake, isUntraced: Bool) {
        guard !isOver else { return }
        var event = WakeEvent(.connection, name, text, wake: wake, at: loop.now)
        event.isUntraced = isUntraced
        send(event)
    }

    private func send(_ event: WakeEvent) {
        heldBack = nil
        // `happened` throws only if an event's message does not fit into the mailbox, and this event has no message.
        // Note that the call may close this object.
        let outcome = try? wakes.happened(event, for: app)
        if case .heldBack = outcome, !isOver { heldBack = event }
    }

    /// Retries the last event, because the app may now be woken.
    func retry() {
        if let heldBack { send(heldBack) }
    }

    // MARK: Without copies

    private func pollInstead() {
        unwatch()
        let finder = owner.newFinder(tree, loop, .tooManyOpenFiles) { [weak self] finder in
            self?.finder = nil
            self?.poll(finder, .tooManyOpenFiles)
        }
        self.finder = finder
        finder.find()
    }

    private func poll(_ finder: SocketFinder, _ obstacle: Errno) {
        // If the inode numbers of the app's sockets are unknown, find the sockets by port.
        let ports = finder.numbers.isEmpty ? Set(sockets.places(of: app).keys) : []
        let isIncomplete = finder.isIncomplete
        owner.poll.add(app.id, finder.numbers, at: ports, in: finder.namespaces) { [weak self] queues, before in
            guard let self else { return }
            if before == nil, !isWorthPolling(queues) { return owner.poll.remove(app.id) }
            owner.cannotCopy(app, obstacle)
            if before == nil, !isIncomplete { lookForWakers(queues.values) }
            polled(queues, after: before)
        }
    }

    /// Whether any of these sockets can have events that wake the app. Sockets that torpord itself bound do not
    /// count: ``ListeningSockets`` watches them.
    private func isWorthPolling(_ queues: [UInt32: SocketQueue]) -> Bool {
        guard wish.incoming == .none, wish.lost.isEmpty, !wish.outgoing else { return true }
        let places = places([])
        return queues.values.contains { wish.manner(ofClient: $0, places) != .none }
    }

    private func polled(_ queues: [UInt32: SocketQueue], after before: [UInt32: SocketQueue]?) {
        let places = places(Set(queues.values.filter(\.listens).map(\.place)))
        let given = sockets.numbers(of: app)
        var waiting: [UInt32: (pending: LeftBehind.Pending, wake: () -> Void)] = [:]
        var listening: [UInt32: UInt64] = [:]
        for (socket, queue) in queues where !given.contains(socket) {
            guard let wake = wish.wake(for: queue, places) else { continue }
            let isAsked =
                before == nil && wish.manner(ofClient: queue, places) != .none
                && queue.traffic.owesAnswer(app.specification)
            guard isAsked || isNews(queue, after: before?[socket]) else { continue }
            if queue.listens, queue.family == .internet, !queue.isElsewhere { listening[socket] = queue.place }
            let pending: LeftBehind.Pending =
                queue.listens
                ? .connection(ids: nil)
                : queue.unread == 0 && isAsked ? .answer : .data(received: queue.traffic.received)
            waiting[socket] = (
                pending,
                { [weak self] in
                    self?.tell("port \(queue.place)", queue.text, wake, isUntraced: queue.isUntraced)
                }
            )
        }
        if before == nil { judge(waiting, listening: listening) } else { waiting.values.first?.wake() }
    }

    /// Whether the queue has changed since the last poll: data came, the send buffer has room again, or the connection
    /// ended.
    private func isNews(_ queue: SocketQueue, after old: SocketQueue?) -> Bool {
        if queue.unread > old?.unread ?? 0 { return true }
        if let old, old.isFull, !queue.isFull { return true }
        return wish.hearsEnds && queue.isClosing && !(old?.isClosing ?? false)
    }
}

extension IOEvents {
    /// The epoll events for new data, and for the end of a connection or of what its peer sends.
    fileprivate static let news: IOEvents = [.readable, .peerClosed, .hangup, .error]
    /// The epoll events for the end of a connection or of what its peer sends.
    fileprivate static let ends: IOEvents = [.peerClosed, .hangup, .error]
}

extension SocketFacts {
    /// One end (address and port) of a network connection, in a form that is the same for both sockets of a
    /// connection; nil for other sockets.
    fileprivate func end(_ address: String) -> String? {
        guard family == .internet, !address.isEmpty else { return nil }
        // A dual-stack socket shows its peer's IPv4 address as an IPv6 address with this prefix.
        let mapped = "[::ffff:"
        return address.hasPrefix(mapped) ? address.dropFirst(mapped.count).filter { $0 != "]" } : address
    }
}
