// SPDX-License-Identifier: Apache-2.0

import Configuration
import EventLoop
import Lifecycle
import Linux
import Processes

/// The sockets of one app during one of its sleeps.
///
/// They are copied from its processes, and the copies are in the loop: whatever comes wakes the app at once. Copies are
/// closed when it runs or ends: they would keep its ports. Where copying is forbidden, or there are too many, the kernel's
/// diagnostics are asked now and then (``SocketPoll``).
final class SleepingSockets {
    let app: AppRuntime
    let tree: ProcessTree
    let wish: ConnectionWish
    /// What it was not woken by yet, since events were held back.
    private(set) var heldBack: (event: WakeEvent, isIncoming: Bool)?
    /// Why its sockets cannot be copied.
    private(set) var obstacle: Errno?

    private unowned let owner: ConnectionWatch
    private var loop: EventLoop { owner.supervisor.loop }
    private var rest: ArraySlice<Int32>
    private var reading: SocketCopyReading?
    private var copies: [SocketCopy] = []
    private var seen: Set<UInt32> = []
    private var watched: [Watched] = []
    private var numbers: Set<UInt32> = []
    private var numberReading: SocketReading?
    private var timer: TimerSource?
    private var isOver = false

    private struct Watched {
        let copy: SocketCopy
        let source: IOSource
    }

    /// How long the loop is kept at it in one go.
    private static let slice = Duration.milliseconds(1)
    /// So old may a question be where `event_time` says nothing.
    private static let longestAnswer = Duration.seconds(30)
    /// Copies take descriptors of torpord.
    private static let mostCopies = 1_024

    init(_ app: AppRuntime, _ tree: ProcessTree, _ wish: ConnectionWish, _ owner: ConnectionWatch) {
        self.app = app
        self.tree = tree
        self.wish = wish
        self.owner = owner
        rest = tree.quickMembers()[...]
    }

    /// Nothing of it is kept any more.
    func close() {
        isOver = true
        timer?.cancel()
        timer = nil
        reading = nil
        numberReading = nil
        for one in watched {
            one.source.cancel()
            one.copy.descriptor.close()
        }
        watched = []
        for copy in copies { copy.descriptor.close() }
        copies = []
        owner.poll.remove(app.id)
    }

    /// What of it listens, where the app is no more; nothing else is kept.
    func takePorts() -> [SocketCopy] {
        let given = owner.supervisor.sockets.numbers(of: app)
        let taken = (watched.map(\.copy) + copies).filter { wish.isPort($0.facts) && !given.contains($0.inode) }
        let numbers = Set(taken.map(\.inode))
        for one in watched where numbers.contains(one.copy.inode) { one.source.cancel() }
        watched.removeAll { numbers.contains($0.copy.inode) }
        copies.removeAll { numbers.contains($0.inode) }
        close()
        return taken
    }

    // MARK: Copies

    /// Finds the sockets, a slice at a time.
    func find() {
        guard !isOver else { return }
        let end = loop.now + Self.slice
        do throws(Errno) {
            while true {
                if reading == nil {
                    guard let pid = rest.first else { return watch() }
                    reading = try begin(pid)
                }
                if let reading {
                    guard try reading.read(until: end) else { break }
                    take(reading)
                }
                reading = nil
                rest = rest.dropFirst()
            }
        } catch {
            return pollInstead(error)
        }
        loop.later { [weak self] in self?.find() }
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

    private func take(_ reading: SocketCopyReading) {
        copies += reading.copies
        seen = reading.seen
    }

    private func watch() {
        let places = Set(copies.filter(\.facts.listens).map(\.facts.place))
        let given = owner.supervisor.sockets.numbers(of: app)
        let wanted = copies.compactMap { copy in
            given.contains(copy.inode) ? nil : wish.wake(for: copy.facts, listeningAt: places).map { (copy, $0) }
        }
        copies = []
        var waiting: [UInt32: (copy: SocketCopy, wake: Wake, events: IOEvents)] = [:]
        for (copy, wake) in wanted {
            let ready = Descriptor.readiness(copy.descriptor.raw)
            var events: IOEvents = [.readable, .peerClosed, .edgeTriggered]
            // It was stopped while it wrote more than there was room for: it goes on when there is.
            if copy.facts.kind != .datagram, copy.facts.isConnected, !ready.contains(.writable) {
                events.insert(.writable)
            }
            let hasNews = !ready.isDisjoint(with: .news)
            if hasNews {
                waiting[copy.inode] = (copy, wake, ready)
            } else if owesAnswer(copy, places) {
                waiting[copy.inode] = (copy, wake, .readable)
            }
            // What was there before is reported once more.
            var isKnown = hasNews
            let source = try? loop.watch(copy.descriptor.raw, events) { [weak self] events in
                defer { isKnown = false }
                if !isKnown { self?.happened(copy.facts, events, wake) }
            }
            guard let source else { return pollInstead(.tooManyOpenFiles) }
            watched.append(Watched(copy: copy, source: source))
        }
        judge(waiting.mapValues { one in { [weak self] in self?.happened(one.copy.facts, one.events, one.wake) } })
    }

    /// Whether it was stopped in the middle of an answer: what a client asked was read, and nothing was written since. That
    /// of long ago may be no question at all.
    private func owesAnswer(_ copy: SocketCopy, _ places: Set<UInt64>) -> Bool {
        guard wish.incoming != .none, wish.isOfClient(copy.facts, places) else { return false }
        let time = app.specification.rules.eventTime ?? Self.longestAnswer
        return copy.traffic.unanswered.map { $0 < time } ?? false
    }

    private func happened(_ facts: SocketFacts, _ events: IOEvents, _ wake: Wake) {
        tell(facts.name, facts.text(events), wake, isIncoming: wish.incoming != .none)
    }

    /// What waits already wakes it now, or later where it left it before.
    private func judge(_ waiting: [UInt32: () -> Void]) {
        let delays = owner.leftBehind(by: app.id, Array(waiting.keys))
        guard let (socket, delay) = delays.min(by: { $0.value < $1.value }), let wake = waiting[socket] else { return }
        guard delay > .zero else { return wake() }
        timer = try? loop.timer(wake)
        timer?.arm(after: delay)
    }

    private func tell(_ name: String, _ text: String, _ wake: Wake, isIncoming: Bool) {
        guard !isOver else { return }
        let event = WakeEvent(.connection, name, text, wake: wake, at: loop.now)
        send(event, isIncoming: isIncoming)
    }

    private func send(_ event: WakeEvent, isIncoming: Bool) {
        heldBack = nil
        // It may close this.
        let outcome = owner.wake(app, event, isIncoming: isIncoming)
        if case .heldBack = outcome, !isOver { heldBack = (event, isIncoming) }
    }

    /// It may be woken again.
    func retry() {
        if let heldBack { send(heldBack.event, isIncoming: heldBack.isIncoming) }
    }

    // MARK: Without copies

    private func pollInstead(_ error: Errno) {
        for one in watched {
            one.source.cancel()
            one.copy.descriptor.close()
        }
        watched = []
        copies = []
        reading = nil
        obstacle = error
        rest = tree.quickMembers()[...]
        owner.cannotCopy(app, error)
        findNumbers()
    }

    private func findNumbers() {
        guard !isOver else { return }
        if numberReading == nil {
            guard let pid = rest.popFirst() else {
                return owner.poll.add(app.id, numbers) { [weak self] in self?.polled($0, after: $1) }
            }
            numberReading = try? SocketReading(pid)
        }
        if let reading = numberReading, reading.read(until: loop.now + Self.slice) {
            numbers.formUnion(reading.sockets)
            numberReading = nil
        }
        loop.later { [weak self] in self?.findNumbers() }
    }

    private func polled(_ queues: [UInt32: SocketQueue], after before: [UInt32: SocketQueue]?) {
        let places = Set(queues.values.filter(\.listens).map(\.place))
        let given = owner.supervisor.sockets.numbers(of: app)
        var waiting: [UInt32: () -> Void] = [:]
        for (socket, queue) in queues where !given.contains(socket) {
            guard let wake = wish.wake(for: queue, listeningAt: places) else { continue }
            let old = before?[socket]
            guard queue.unread > old?.unread ?? 0 || queue.isClosing && !(old?.isClosing ?? false) else { continue }
            let isIncoming = wish.incoming != .none
            waiting[socket] = { [weak self] in
                self?.tell("port \(queue.place)", queue.text, wake, isIncoming: isIncoming)
            }
        }
        if before == nil { judge(waiting) } else { waiting.values.first?() }
    }
}

extension IOEvents {
    /// Something came, or will come no more.
    fileprivate static let news: IOEvents = [.readable, .peerClosed, .hangup, .error]
}
