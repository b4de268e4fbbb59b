// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EventLoop
import Lifecycle
import Linux
import Processes

/// The sockets of one app during one of its sleeps.
///
/// They are copied from its processes, and the copies are in the loop: whatever comes wakes the app at once. Copies are
/// closed when it runs or ends: they would keep its ports. Where copying is forbidden, or there are too many, the kernel's
/// diagnostics are asked now and then (``SocketPoll``).
final class SleepingSockets: EventRoom {
    let app: AppRuntime
    let tree: ProcessTree
    let wish: ConnectionWish
    /// What it was not woken by yet, since events were held back.
    private var heldBack: WakeEvent?

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

    /// Nothing of it is kept any more.
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

    /// What of it listens, where the app is no more; nothing else is kept.
    func takePorts() -> [SocketCopy] {
        let given = sockets.numbers(of: app)
        let copies = watched.map(\.copy) + (finder?.takeCopies() ?? [])
        let taken = copies.filter { wish.isPort($0.facts) && !given.contains($0.inode) }
        let numbers = Set(taken.map(\.inode))
        for one in watched where numbers.contains(one.copy.inode) { one.source.cancel() }
        watched.removeAll { numbers.contains($0.copy.inode) }
        close()
        return taken
    }

    // MARK: Copies

    /// Finds the sockets, a slice at a time.
    func find() {
        guard !isOver else { return }
        let finder = SocketFinder(tree, loop) { [weak self] finder in
            self?.finder = nil
            if let obstacle = finder.obstacle {
                self?.poll(finder.numbers, obstacle)
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

    private func watch(_ copies: [SocketCopy]) {
        let places = places(Set(copies.filter(\.facts.listens).map(\.facts.place)))
        let given = sockets.numbers(of: app)
        let wanted = copies.compactMap { copy in
            given.contains(copy.inode) ? nil : wish.wake(for: copy.facts, places).map { (copy, $0) }
        }
        var waiting: [UInt32: (copy: SocketCopy, wake: Wake, events: IOEvents)] = [:]
        for (copy, wake) in wanted {
            let ready = Descriptor.readiness(copy.descriptor.raw)
            var events: IOEvents = [.readable, .peerClosed, .edgeTriggered]
            // It was stopped while it wrote more than there was room for: it goes on when there is.
            if copy.facts.kind != .datagram, copy.facts.isConnected, !ready.contains(.writable) {
                events.insert(.writable)
            }
            let hasNews = !ready.isDisjoint(with: .news)
            if hasNews, isHeard(copy, ready) {
                waiting[copy.inode] = (copy, wake, ready)
            } else if owesAnswer(copy, places) {
                waiting[copy.inode] = (copy, wake, .readable)
            }
            // What was there before is reported once more.
            var isKnown = hasNews
            let source = try? loop.watch(copy.descriptor.raw, events) { [weak self] events in
                defer { isKnown = false }
                guard let self, !isKnown, isHeard(copy, events) else { return }
                happened(copy.facts, events, wake)
            }
            guard let source else { return pollInstead() }
            watched.append(Watched(copy: copy, source: source))
        }
        judge(waiting.mapValues { one in { [weak self] in self?.happened(one.copy.facts, one.events, one.wake) } })
    }

    /// Whether it was stopped in the middle of an answer.
    private func owesAnswer(_ copy: SocketCopy, _ places: ListeningPlaces) -> Bool {
        wish.manner(ofClient: copy.facts, places) != .none && copy.traffic.owesAnswer(app.specification)
    }

    /// Whether what happened is more than the end of a connection that nobody is woken for.
    private func isHeard(_ copy: SocketCopy, _ events: IOEvents) -> Bool {
        wish.hearsEnds || events.isDisjoint(with: .ends) || copy.traffic.unread > 0
    }

    private func happened(_ facts: SocketFacts, _ events: IOEvents, _ wake: Wake) {
        tell(facts.name, facts.text(events), wake)
    }

    /// What waits already wakes it now, or later where it left it before.
    private func judge(_ waiting: [UInt32: () -> Void]) {
        let delays = owner.leftBehind(by: app.id, Array(waiting.keys))
        guard let (socket, delay) = delays.min(by: { $0.value < $1.value }), let wake = waiting[socket] else { return }
        guard delay > .zero else { return wake() }
        timer = try? loop.timer(wake)
        timer?.arm(after: delay)
    }

    private func tell(_ name: String, _ text: String, _ wake: Wake) {
        guard !isOver else { return }
        send(WakeEvent(.connection, name, text, wake: wake, at: loop.now))
    }

    private func send(_ event: WakeEvent) {
        heldBack = nil
        // It has no mail, which alone may be refused. It may close this.
        let outcome = try? wakes.happened(event, for: app)
        if case .heldBack = outcome, !isOver { heldBack = event }
    }

    /// It may be woken again.
    func retry() {
        if let heldBack { send(heldBack) }
    }

    // MARK: Without copies

    private func pollInstead() {
        unwatch()
        let finder = SocketFinder(tree, loop, obstacle: .tooManyOpenFiles) { [weak self] finder in
            self?.finder = nil
            self?.poll(finder.numbers, .tooManyOpenFiles)
        }
        self.finder = finder
        finder.find()
    }

    private func poll(_ numbers: Set<UInt32>, _ obstacle: Errno) {
        // Where not even their numbers can be had, the ports tell.
        let ports = numbers.isEmpty ? Set(sockets.places(of: app).keys) : []
        owner.poll.add(app.id, numbers, at: ports) { [weak self] queues, before in
            guard let self else { return }
            if before == nil, !isWorthPolling(queues) { return owner.poll.remove(app.id) }
            owner.cannotCopy(app, obstacle)
            polled(queues, after: before)
        }
    }

    /// Whether anything can come on these sockets: new connections to sockets that torpord bound are seen there.
    private func isWorthPolling(_ queues: [UInt32: SocketQueue]) -> Bool {
        guard wish.incoming == .none, !wish.outgoing else { return true }
        let places = places([])
        return queues.values.contains { wish.manner(ofClient: $0, places) != .none }
    }

    private func polled(_ queues: [UInt32: SocketQueue], after before: [UInt32: SocketQueue]?) {
        let places = places(Set(queues.values.filter(\.listens).map(\.place)))
        let given = sockets.numbers(of: app)
        var waiting: [UInt32: () -> Void] = [:]
        for (socket, queue) in queues where !given.contains(socket) {
            guard let wake = wish.wake(for: queue, places) else { continue }
            let isAsked =
                before == nil && wish.manner(ofClient: queue, places) != .none
                && queue.traffic.owesAnswer(app.specification)
            guard isAsked || isNews(queue, after: before?[socket]) else { continue }
            waiting[socket] = { [weak self] in self?.tell("port \(queue.place)", queue.text, wake) }
        }
        if before == nil { judge(waiting) } else { waiting.values.first?() }
    }

    /// Whether something came, there is room again, or it is at its end.
    private func isNews(_ queue: SocketQueue, after old: SocketQueue?) -> Bool {
        if queue.unread > old?.unread ?? 0 { return true }
        if let old, old.isFull, !queue.isFull { return true }
        return wish.hearsEnds && queue.isClosing && !(old?.isClosing ?? false)
    }
}

extension IOEvents {
    /// Something came, or will come no more.
    fileprivate static let news: IOEvents = [.readable, .peerClosed, .hangup, .error]
    /// Nothing will come any more.
    fileprivate static let ends: IOEvents = [.peerClosed, .hangup, .error]
}
