// SPDX-License-Identifier: Apache-2.0

public import EventLoop
public import Linux
import WireText

/// Watches places in the file system. The loop is woken only by events there.
///
/// Events are read and sorted on the loop. A walk follows the path of a place, finds what is there, and sets the
/// watches (``Walk``). Since it may wait for a disk or a server, it runs on a thread that exists only while there is
/// work. During a walk no events are read: the kernel queues them.
public final class PathWatcher {
    /// Called with reports about places at which something happened.
    public var onNews: (([PathNews]) -> Void)?
    /// Called when ``remembered`` has changed.
    public var onRemember: (() -> Void)?
    /// Whether no place is being inspected or waits for an inspection (a ``Walk``).
    public var isIdle: Bool { underWay.isEmpty && dirty.isEmpty }
    /// Whether every place was inspected (a ``Walk``) and is watched, so that no later change is missed.
    public var isComplete: Bool { entries.values.allSatisfy(\.isKnown) }

    fileprivate struct Entry {
        var place: Place
        var watches: Set<Int32> = []
        var found: [String: Found] = [:]
        /// Whether `found` is valid, because a ``Walk`` or an earlier watcher has inspected the place.
        var isKnown = false
        var trouble: String?
        /// The earliest time at which the place may be inspected (``Walk``) again.
        var restsUntil = Duration.zero
    }

    private let loop: EventLoop
    private let inotify: Inotify
    private var source: IOSource?
    private let answers = Monitor<[Walk.Outcome]>([])
    private let doorbell: EventCounter
    private var bell: IOSource?
    private var timer: TimerSource?

    private var entries: [String: Entry] = [:]
    private var watches: [Int32: [String: [Walk.Mark]]] = [:]
    private var memory: [String: [String: Found]]
    /// Places that need a walk.
    private var dirty: Set<String> = []
    /// Places for which a report was requested, whether or not anything has changed.
    private var asked: Set<String> = []
    /// Paths with events, by place.
    private var happened: [String: Set<String>] = [:]
    /// Places of which some events are unknown, because the kernel dropped events or too many paths had events. Such a
    /// place is reported even if the next walk finds no change.
    private var missed: Set<String> = []
    private var underWay: Set<String> = []
    private var walkedAt = Duration.zero

    /// The time for which frequent events are coalesced.
    private static let gathering = Duration.milliseconds(20)
    /// The maximum number of paths in one report.
    private static let mostPaths = 64
    /// After a place was inspected (``Walk``), it is not inspected again for this many times the duration of the
    /// inspection, so that many changes in a folder do not keep a processor busy.
    private static let mostHappened = 1024
    /// After a walk a place rests for this many times the walk's duration, so that filling a folder does not keep a
    /// processor busy.
    private static let rests = 4
    private static let longestRest = Duration.seconds(1)
    /// The delay before a retry if no thread could be created.
    private static let retry = Duration.milliseconds(100)

    /// Creates a watcher without places. Throws if out of descriptors or inotify instances
    /// (fs.inotify.max_user_instances).
    ///
    /// - Parameter remembered: ``remembered`` of an earlier watcher: changes since then are reported.
    public init(_ loop: EventLoop, remembered: [UInt8] = []) throws(Errno) {
        self.loop = loop
        inotify = try Inotify()
        doorbell = try EventCounter()
        memory = Self.parse(remembered)
        source = try loop.watch(inotify.descriptor.raw, .readable) { [weak self] _ in self?.read() }
        bell = try loop.watch(doorbell.raw, .readable) { [weak self] _ in self?.answered() }
        timer = try loop.timer { [weak self] in
            self?.timer?.disarm()
            self?.walk()
        }
    }

    /// Replaces the watched places. Each place has a key, which stays the same across calls.
    public func watch(_ places: [String: Place]) {
        for (key, entry) in entries where places[key] != entry.place {
            guard let place = places[key], place.path == entry.place.path, place.interest == entry.place.interest else {
                forget(key)
                continue
            }
            // With the rights of another user, an inspection may find something else, so inspect the place again.
            entries[key]?.place = place
            dirty.insert(key)
        }
        for (key, place) in places where entries[key] == nil {
            var entry = Entry(place: place)
            if let found = memory.removeValue(forKey: key) { (entry.found, entry.isKnown) = (found, true) }
            entries[key] = entry
            dirty.insert(key)
        }
        walk()
    }

    /// Requests a report about a place, whether or not anything has happened.
    public func look(_ key: String) {
        guard entries[key] != nil else { return }
        dirty.insert(key)
        asked.insert(key)
        walk()
    }

    /// Why a place cannot be watched, or only in part, as a sentence.
    public func trouble(of key: String) -> String? { entries[key]?.trouble }

    private func forget(_ key: String) {
        guard let entry = entries.removeValue(forKey: key) else { return }
        for watch in entry.watches { release(watch, by: key) }
        dirty.remove(key)
        asked.remove(key)
        missed.remove(key)
        happened[key] = nil
    }

    private func release(_ watch: Int32, by key: String) {
        watches[watch]?[key] = nil
        guard watches[watch]?.isEmpty ?? false else { return }
        watches[watch] = nil
        inotify.unwatch(watch)
    }

    // MARK: What the kernel says

    private func read() {
        for news in inotify.read() {
            if news.events.contains(.overflowed) {
                dirty.formUnion(entries.keys)
                missed.formUnion(entries.keys)
                continue
            }
            guard let marks = watches[news.watch] else { continue }
            if news.events.contains(.ignored) { watches[news.watch] = nil }
            for (key, list) in marks { for mark in list { handle(news, key, mark) } }
        }
        if !dirty.isEmpty { walk() }
    }

    private func handle(_ news: Inotify.News, _ key: String, _ mark: Walk.Mark) {
        guard let name = news.name else {
            // The file was removed or replaced. The next inspection of the place (``Walk``) finds out which.
            dirty.insert(key)
            guard let leaf = mark.leaf, !mark.events.isDisjoint(with: news.events) else { return }
            if entries[key]?.place.interest != .content { note(leaf, key) }
            return
        }
        if !mark.names.isDisjoint(with: news.events),
            mark.awaited.map({ $0 == name || NamePattern.fits(name, path: $0) }) ?? true
        {
            dirty.insert(key)
        }
        guard let leaf = mark.leaf, !mark.events.isDisjoint(with: news.events) else { return }
        dirty.insert(key)
        note(leaf + "/" + name, key)
    }

    private func note(_ path: String, _ key: String) {
        guard happened[key]?.count ?? 0 < Self.mostHappened else {
            missed.insert(key)
            return
        }
        happened[key, default: []].insert(path)
    }

    // MARK: Walks

    private func walk() {
        guard underWay.isEmpty else { return }
        guard !dirty.isEmpty else {
            // All places that had to be inspected were removed from the watcher: read events again, which is not done
            // during an inspection.
            source?.setEvents(.readable)
            return
        }
        let now = loop.now
        guard now - walkedAt >= Self.gathering else {
            source?.setEvents([])
            timer?.arm(at: walkedAt + Self.gathering)
            return
        }
        walkedAt = now
        let due = dirty.filter { entries[$0].map { $0.restsUntil <= now } ?? true }
        guard !due.isEmpty else {
            // Until the next inspection is due, read the events of the other places.
            source?.setEvents(.readable)
            timer?.arm(at: dirty.compactMap { entries[$0]?.restsUntil }.min() ?? now)
            return
        }
        underWay = due
        dirty.subtract(due)
        source?.setEvents([])
        let places = underWay.compactMap { key in entries[key].map { (key, $0.place) } }
        let raw = inotify.descriptor.raw
        do throws(Errno) {
            let (answers, doorbell) = (answers, doorbell)
            try WorkerThread.start(named: "paths") {
                let outcomes = places.map { Walk.run($0.0, $0.1, raw) }
                answers.withLock { $0 += outcomes }
                doorbell.signal()
            }
        } catch {
            // No thread could be created: retry later, since the loop must not wait for a disk.
            dirty.formUnion(underWay)
            underWay = []
            timer?.arm(at: now + Self.retry)
        }
    }

    private func answered() {
        doorbell.drain()
        let outcomes = answers.withLock { state in
            defer { state = [] }
            return state
        }
        if !outcomes.isEmpty || !underWay.isEmpty { take(outcomes) }
    }

    private func take(_ outcomes: [Walk.Outcome]) {
        underWay = []
        let news = outcomes.compactMap(take)
        source?.setEvents(.readable)
        if !news.isEmpty { onNews?(news) }
        // Store what was found only after the report: if torpord dies in between, the next torpord finds the change
        // again.
        onRemember?()
        walk()
    }

    private func take(_ outcome: Walk.Outcome) -> PathNews? {
        let key = outcome.key
        guard var entry = entries[key] else {
            // The place was removed from the watcher while it was inspected: remove the watches that no other place
            // needs.
            for watch in outcome.marks.keys where watches[watch] == nil { inotify.unwatch(watch) }
            return nil
        }
        let before = entry
        entry.watches = Set(outcome.marks.keys)
        entry.found = outcome.found
        entry.trouble = outcome.trouble
        entry.restsUntil = loop.now + min(Self.longestRest, outcome.took * Self.rests)
        entry.isKnown = true
        entries[key] = entry
        for (watch, marks) in outcome.marks { watches[watch, default: [:]][key] = marks }
        for watch in before.watches.subtracting(entry.watches) { release(watch, by: key) }
        var paths = happened.removeValue(forKey: key) ?? []
        let holds = entry.holds
        if before.isKnown {
            // Omit a directory if the events already name its entries.
            let inside = paths.map { $0[..<($0.lastIndex(of: "/") ?? $0.startIndex)] }
            paths.formUnion(entry.changes(since: before).subtracting(inside.map(String.init)))
        }
        if entry.place.interest == .existence { paths.formIntersection(entry.found.keys) }
        let wasMissed = missed.remove(key) != nil
        // If the place has a condition that lasts (it exists, or has entries) and the first inspection finds that it
        // holds, that counts as an event. Changes count only if they happen after the first inspection.
        let isNew = !paths.isEmpty || wasMissed || (!before.isKnown && holds != nil)
        let isAsked = asked.remove(key) != nil
        guard isNew || isAsked || entry.trouble != before.trouble else { return nil }
        let named = paths.isEmpty && !before.isKnown ? holds.map { [$0] } ?? [] : paths.sorted()
        return PathNews(
            key: key,
            paths: Array(named.prefix(Self.mostPaths)),
            isNew: isNew,
            holds: holds,
            trouble: entry.trouble == before.trouble ? nil : entry.trouble
        )
    }

    /// Whether the place is unknown, or its condition is known not to hold now.
    public func isOver(_ key: String) -> Bool { entries[key].map { $0.isKnown && $0.holds == nil } ?? true }

    // MARK: Over a restart

    /// What was found at all places, for the next watcher.
    public var remembered: [UInt8] { remembered(with: [:]) }

    /// What was found at all places, for the next watcher, and notes of the watcher's owner about places, by their
    /// keys. A note must not contain NUL.
    public func remembered(with notes: [String: String]) -> [UInt8] {
        var text: [UInt8] = []
        func add(_ fields: String...) { for field in fields { text += Array(field.utf8) + [0] } }
        // Watchers ignore entries without a key, earlier versions too.
        for (key, note) in notes { add("", key, note) }
        for (key, entry) in entries where entry.isKnown {
            add(key, "", "")
            for (path, found) in entry.found { add(key, path, found.text) }
        }
        return text
    }

    /// The notes in what an earlier watcher remembered.
    public static func notes(in remembered: [UInt8]) -> [String: String] {
        let fields = fields(of: remembered)
        var notes: [String: String] = [:]
        for start in stride(from: 0, to: max(0, fields.count - 2), by: 3) where fields[start].isEmpty {
            notes[fields[start + 1]] = fields[start + 2]
        }
        return notes
    }

    private static func fields(of bytes: [UInt8]) -> [String] {
        bytes.split(separator: 0, omittingEmptySubsequences: false).map { String(wire: $0) }
    }

    private static func parse(_ bytes: [UInt8]) -> [String: [String: Found]] {
        let fields = fields(of: bytes)
        var memory: [String: [String: Found]] = [:]
        for start in stride(from: 0, to: max(0, fields.count - 2), by: 3) {
            let key = fields[start]
            guard !key.isEmpty else { continue }
            if memory[key] == nil { memory[key] = [:] }
            if let found = Found(text: fields[start + 2][...]) { memory[key]?[fields[start + 1]] = found }
        }
        return memory
    }
}

extension PathWatcher.Entry {
    /// The first path for which the place's condition (it exists, or has entries) is true; nil if there is none.
    fileprivate var holds: String? {
        switch place.interest {
        case .existence: found.keys.min()
        case .entries: found.filter { $0.value.hasEntries ?? false }.keys.min()
        case .changes, .writes, .content: nil
        }
    }

    /// The paths at which the file has changed since `before`.
    fileprivate func changes(since before: PathWatcher.Entry) -> Set<String> {
        var paths: Set<String> = []
        for (path, now) in found where before.found[path] != now {
            let then = before.found[path]
            switch place.interest {
            case .existence: if then == nil { paths.insert(path) }
            case .entries: if now.hasEntries ?? false { paths.insert(path) }
            case .changes, .writes, .content: paths.insert(path)
            }
        }
        switch place.interest {
        case .existence, .entries: break
        case .changes, .writes, .content: for path in before.found.keys where found[path] == nil { paths.insert(path) }
        }
        return paths
    }
}
