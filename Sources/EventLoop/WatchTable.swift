// SPDX-License-Identifier: Apache-2.0

import Linux

/// The I/O watches of one priority: an epoll instance, and a table from tags to handlers. A tag consists of an index
/// and the generation of the entry there, so that a late event of a cancelled watch finds no handler.
final class WatchTable {
    let poller: Poller
    private var entries: [Entry] = []
    private var free: [UInt32] = []
    /// For each number of a descriptor, 1 + the index of the entry that watches it; 0 for none.
    private var watchers: [UInt32] = []
    /// Ready events that are not handled yet, from the index `next` on.
    private var waiting: [(tag: UInt64, events: IOEvents)] = []
    private var next = 0

    private struct Entry {
        var generation: UInt32
        var fd: Int32
        var events: IOEvents
        var handler: ((IOEvents) -> Void)?
    }

    init() throws(Errno) { poller = try Poller() }

    func add(_ fd: Int32, _ events: IOEvents, _ handler: @escaping (IOEvents) -> Void) throws(Errno) -> UInt64 {
        let index = free.last ?? UInt32(entries.count)
        let generation = free.isEmpty ? 0 : entries[Int(index)].generation
        let tag = UInt64(generation) << 32 | UInt64(index)
        try poller.add(fd, events, tag: tag)
        if free.isEmpty {
            entries.append(Entry(generation: 0, fd: fd, events: events, handler: handler))
        } else {
            free.removeLast()
            entries[Int(index)].fd = fd
            entries[Int(index)].events = events
            entries[Int(index)].handler = handler
        }
        let number = Int(fd)
        if number >= watchers.count {
            watchers.append(contentsOf: repeatElement(0, count: number + 1 - watchers.count))
        }
        watchers[number] = index + 1
        return tag
    }

    func setEvents(_ tag: UInt64, _ events: IOEvents) {
        guard let index = live(tag), entries[index].events != events, isWatcher(index) else { return }
        entries[index].events = events
        try? poller.modify(entries[index].fd, events, tag: tag)
    }

    func remove(_ tag: UInt64) {
        guard let index = live(tag) else { return }
        let fd = entries[index].fd
        // If the descriptor was closed before its watch was cancelled, another watch may have the same number now:
        // leave that watch alone.
        if isWatcher(index) {
            watchers[Int(fd)] = 0
            try? poller.remove(fd)
        }
        let handler = entries[index].handler
        entries[index] = Entry(generation: entries[index].generation &+ 1, fd: -1, events: [], handler: nil)
        free.append(UInt32(index))
        // Release the handler last, because releasing what it captures may cancel further watches.
        _ = handler
    }

    /// Handles all events that are ready; returns how many there were.
    @discardableResult
    func drain() -> Int {
        (try? poller.drain { handle($0, $1) }) ?? 0
    }

    /// Handles ready events until `limit` is over. The remaining events come first at the next call, before the kernel
    /// is asked again, so that every watch gets its turn even if many are always ready. If a remaining event is no
    /// longer ready at the next call, its handler is called nevertheless.
    func drain(atMost limit: Duration) {
        if waiting.isEmpty { _ = try? poller.drain { waiting.append(($0, $1)) } }
        let end = Clock.monotonic() + limit
        while next < waiting.count {
            let (tag, events) = waiting[next]
            next += 1
            handle(tag, events)
            if Clock.monotonic() >= end { break }
        }
        guard next >= waiting.count else { return }
        waiting.removeAll(keepingCapacity: true)
        next = 0
    }

    private func handle(_ tag: UInt64, _ events: IOEvents) {
        guard let index = live(tag), let handler = entries[index].handler else { return }
        handler(events)
    }

    /// Whether the entry still watches its descriptor. If not, the descriptor was closed, and another watch has its
    /// number.
    private func isWatcher(_ index: Int) -> Bool { watchers[Int(entries[index].fd)] == UInt32(index) + 1 }

    private func live(_ tag: UInt64) -> Int? {
        let index = Int(tag & 0xffff_ffff)
        guard index < entries.count, entries[index].generation == UInt32(tag >> 32), entries[index].handler != nil
        else { return nil }
        return index
    }
}
