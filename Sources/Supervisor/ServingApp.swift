// SPDX-License-Identifier: Apache-2.0

import EventLoop
import Lifecycle
import Linux
import Processes

/// An app in the background that a connection woke. When its time is nearly over, it gets as much again if something moves on
/// a connection that came in, or it works while one is open: to be stopped in the middle of an answer would be no answer.
final class ServingApp {
    private let app: AppRuntime
    private let tree: ProcessTree
    private unowned let supervisor: Supervisor
    private var timer: TimerSource?
    /// The end of its time for which the timer is armed.
    private var end: Duration?
    private var rest: ArraySlice<Int32> = []
    private var reading: SocketCopyReading?
    private var seen: Set<UInt32> = []
    private var copies: [SocketCopy] = []
    private var lookedAt: Duration
    private var processorTime: Duration?

    private static let slice = Duration.milliseconds(1)
    /// Copies take descriptors of torpord: of an app that has more, these tell.
    private static let mostCopies = 1_024
    /// It is not looked at more often.
    private static let pause = Duration.milliseconds(50)
    /// So long before the end it is looked at.
    private static let margin = Duration.milliseconds(250)
    /// An app that does nothing uses less than this part of a processor.
    private static let share = 100

    init(_ app: AppRuntime, _ tree: ProcessTree, _ supervisor: Supervisor) {
        self.app = app
        self.tree = tree
        self.supervisor = supervisor
        lookedAt = supervisor.loop.now
        processorTime = tree.processorTime()
    }

    /// Whether this is still about what the app is doing.
    var goesOn: Bool {
        let machine = supervisor.coordinator.machine(app.id)
        guard app.tree === tree else { return false }
        if machine.goal == .suspended { return machine.transition == .resuming }
        return machine.goal == .background
    }

    /// The state of the app may have changed.
    func look() {
        let machine = supervisor.coordinator.machine(app.id)
        let grant = machine.deadlines.first { $0.kind == .backgroundTime }?.at
        guard machine.state == .background, machine.transition == nil, let grant, grant != end else { return }
        end = grant
        if timer == nil { timer = try? supervisor.loop.timer { [weak self] in self?.timeIsNearlyOver() } }
        timer?.arm(at: max(supervisor.loop.now + Self.pause, grant - Self.margin))
    }

    private func timeIsNearlyOver() {
        rest = tree.quickMembers()[...]
        seen = []
        find()
    }

    private func find() {
        guard goesOn else { return drop() }
        let deadline = supervisor.loop.now + Self.slice
        while true {
            if reading == nil {
                guard let pid = rest.first else { break }
                let room = Self.mostCopies - copies.count
                reading = try? SocketCopyReading(pid, pidfd: Identity(of: pid).open(), seen: seen, most: room)
            }
            if let reading {
                guard (try? reading.read(until: deadline)) ?? true else {
                    return supervisor.loop.later { [weak self] in self?.find() }
                }
                copies += reading.copies
                seen = reading.seen
            }
            reading = nil
            rest = rest.dropFirst()
        }
        let isBusy = isBusy()
        drop()
        lookedAt = supervisor.loop.now
        processorTime = tree.processorTime()
        // Its time in the background begins anew.
        if isBusy { try? supervisor.request(.wake(Wake()), of: app.id) }
    }

    private func drop() {
        reading = nil
        for copy in copies { copy.descriptor.close() }
        copies = []
    }

    private func isBusy() -> Bool {
        let places = Set(copies.filter(\.facts.listens).map(\.facts.place))
        let open = copies.filter { $0.facts.isConnected && $0.facts.place != 0 && places.contains($0.facts.place) }
        guard !open.isEmpty else { return false }
        let span = supervisor.loop.now - lookedAt
        if let before = processorTime, let now = tree.processorTime(), (now - before) * Self.share > span {
            return true
        }
        return open.contains { copy in
            let traffic = copy.traffic
            return traffic.unread > 0 || traffic.unsent > 0 || traffic.quiet.map { $0 < span } ?? false
        }
    }
}
