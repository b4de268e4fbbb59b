// SPDX-License-Identifier: Apache-2.0

public import EventLoop
public import Linux
import WireText

/// Watches places in the file system for the loop, which is woken by nothing else than what happens there.
///
/// News are read and sorted on the loop; the walks, which may wait for a disk or a server, are done on a thread that is
/// there only while there is something to walk to. While one is under way no news are read: the kernel keeps them.
public final class PathWatcher {
    /// What became of places.
    public var onNews: (([PathNews]) -> Void)?
    /// ``remembered`` is another one.
    public var onRemember: (() -> Void)?
    /// Whether no walk is under way or to come.
    public var isIdle: Bool { underWay.isEmpty && dirty.isEmpty }

    fileprivate struct Entry {
        var place: Place
        var watches: Set<Int32> = []
        var found: [String: Found] = [:]
        /// What was found is known, from a walk or from the watcher before this one.
        var isKnown = false
        var trouble: String?
        /// It is not walked to again before.
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
    /// Places that have to be walked to.
    private var dirty: Set<String> = []
    /// Of whom it was asked how they are.
    private var asked: Set<String> = []
    /// What is known to have happened there.
    private var happened: [String: Set<String>] = [:]
    /// Something happened there, and it is not known what.
    private var missed: Set<String> = []
    private var underWay: Set<String> = []
    private var walkedAt = Duration.zero

    /// What happens often is gathered for so long.
    private static let gathering = Duration.milliseconds(20)
    /// Paths that are named when much happens at once.
    private static let mostPaths = 64
    /// Paths that are remembered until the walk; what more happened counts as missed.
    private static let mostHappened = 1024
    /// A place to which the walk is long rests for so many times as long: whoever fills a folder keeps no processor busy.
    private static let rests = 4
    private static let longestRest = Duration.seconds(1)
    /// No thread could be had.
    private static let retry = Duration.milliseconds(100)

    /// A watcher of nothing. Errors: out of descriptors, or of inotify instances (fs.inotify.max_user_instances).
    ///
    /// - Parameter remembered: ``remembered`` of an earlier watcher: what changed since then is news.
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

    /// Watches these places from now on, each under a name that stays the same.
    public func watch(_ places: [String: Place]) {
        for (key, entry) in entries where places[key] != entry.place {
            guard let place = places[key], place.path == entry.place.path, place.interest == entry.place.interest else {
                forget(key)
                continue
            }
            // With other rights: what is found otherwise is news.
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

    /// Asks how it is there now: it is told, whether or not anything has happened.
    public func look(_ key: String) {
        guard entries[key] != nil else { return }
        dirty.insert(key)
        asked.insert(key)
        walk()
    }

    /// Why a place cannot be watched, or not all of it, in a sentence.
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
            // It is there no more, or has changed: the walk finds out.
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
            // What was to be looked at is watched no more.
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
            // The others are heard meanwhile.
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
            // No room for a thread: later, since the loop waits for no disk.
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
        // Not before: what is lost between the two is found again.
        onRemember?()
        walk()
    }

    private func take(_ outcome: Walk.Outcome) -> PathNews? {
        let key = outcome.key
        guard var entry = entries[key] else {
            // It was forgotten meanwhile.
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
            // What happened in a directory is known by its names.
            let inside = paths.map { $0[..<($0.lastIndex(of: "/") ?? $0.startIndex)] }
            paths.formUnion(entry.changes(since: before).subtracting(inside.map(String.init)))
        }
        if entry.place.interest == .existence { paths.formIntersection(entry.found.keys) }
        let wasMissed = missed.remove(key) != nil
        // Of what lasts, the first look is news; of what happens, only what happens from then on.
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

    /// Whether it is known that what lasts there does not hold now.
    public func isOver(_ key: String) -> Bool { entries[key].map { $0.isKnown && $0.holds == nil } ?? true }

    // MARK: Over a restart

    /// What was found everywhere, for the watcher after this one.
    public var remembered: [UInt8] {
        var text: [UInt8] = []
        func add(_ fields: String...) { for field in fields { text += Array(field.utf8) + [0] } }
        for (key, entry) in entries where entry.isKnown {
            add(key, "", "")
            for (path, found) in entry.found { add(key, path, found.text) }
        }
        return text
    }

    private static func parse(_ bytes: [UInt8]) -> [String: [String: Found]] {
        let fields = bytes.split(separator: 0, omittingEmptySubsequences: false).map {
            String(wire: $0)
        }
        var memory: [String: [String: Found]] = [:]
        for start in stride(from: 0, to: max(0, fields.count - 2), by: 3) {
            let key = fields[start]
            if !key.isEmpty, memory[key] == nil { memory[key] = [:] }
            if let found = Found(text: fields[start + 2][...]) { memory[key]?[fields[start + 1]] = found }
        }
        return memory
    }
}

extension PathWatcher.Entry {
    /// Where it is so now.
    fileprivate var holds: String? {
        switch place.interest {
        case .existence: found.keys.min()
        case .entries: found.filter { $0.value.hasEntries ?? false }.keys.min()
        case .changes, .writes, .content: nil
        }
    }

    /// The paths at which another thing was found.
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
