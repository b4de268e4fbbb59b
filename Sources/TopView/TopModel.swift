// SPDX-License-Identifier: Apache-2.0

public import TorporAPI
import Varlink

/// What `torpor top` knows and shows: apps, what happened, what is selected. It asks nobody and draws nothing; what it is
/// told and which keys are pressed come from outside, with the time.
public struct TopModel: Sendable {
    /// What fills the screen.
    public enum Mode: Hashable, Sendable { case list, timeline, details, log, events, help }

    /// By what the apps are sorted.
    public enum Order: String, CaseIterable, Hashable, Sendable {
        case name
        case state
        case memory
        case cpu
        case lastEvent = "last event"
    }

    /// What is being asked of the person.
    public enum Prompt: Hashable, Sendable {
        /// The filter is being typed; what it was before.
        case filter(before: String)
        /// Whether these are to be forced to quit.
        case kill([String])
    }

    /// How it stands with the supervisor.
    public enum Link: Hashable, Sendable {
        case connecting
        case up
        /// It is gone since that time, in microseconds since 1970; why, in a sentence.
        case lost(String, since: Int64)
    }

    /// A sentence in the status line.
    public struct Message: Hashable, Sendable {
        /// What sort.
        public enum Kind: Hashable, Sendable { case done, busy, error }
        /// What sort.
        public var kind: Kind
        /// The sentence.
        public var text: String
        /// Microseconds since 1970.
        public var at: Int64
    }

    /// The size of the screen.
    public struct Size: Hashable, Sendable {
        /// How wide.
        public var columns: Int
        /// How high.
        public var rows: Int

        /// Makes one.
        public init(columns: Int, rows: Int) {
            self.columns = columns
            self.rows = rows
        }
    }

    /// The machine's name.
    public var host = ""
    /// Seconds between two readings.
    public var delay = 1.0
    /// The size of the screen.
    public var size = Size(columns: 80, rows: 24) { didSet { settle() } }
    /// What text may have in it.
    public var characters = DisplayText.Characters.unicode
    /// The signs with which things are shown.
    public var glyphs = Glyphs.unicode
    /// Whether the terminal shows pictures.
    public var drawsPictures = false
    /// Microseconds since 1970.
    public var now: Int64 = 0

    // MARK: What it is told

    /// Which torpord answers.
    public internal(set) var supervisor: SupervisorInfo?
    /// All apps, sorted by name.
    public internal(set) var apps: [AppSummary] = []
    /// The machine's memory.
    public var memory: MemoryStatus?
    /// How it stands with the supervisor.
    public internal(set) var link = Link.connecting
    /// Whether the caller may change anything; nil as long as that is not known.
    public var mayChange: Bool?
    /// What was measured of each app.
    public internal(set) var measurements: [String: Measurements] = [:]
    /// What happened, the newest last.
    public internal(set) var events: [EventRecord] = []
    /// What happened last to each app.
    public internal(set) var lastEvents: [String: EventRecord] = [:]
    /// The changes of state of each app, the newest last.
    var changes: [String: [StateChange]] = [:]
    /// From when on all changes of state are known, in microseconds since 1970.
    public internal(set) var knownSince: Int64 = .max
    /// The number of the newest event.
    public internal(set) var sequence: Int64 = 0
    /// When the list was asked for that `apps` is, in microseconds since 1970.
    var listedAt: Int64 = 0
    /// The page about one app, a line each.
    public var details: [String] = []
    /// What that app showed last.
    public var snapshot: TopSnapshot?
    /// The last lines that an app wrote, the newest last.
    public internal(set) var logLines: [LogLine] = []
    /// Why there is no log to show.
    public var logTrouble: String?

    // MARK: What is shown

    /// What fills the screen.
    public internal(set) var mode = Mode.list
    /// What did before help.
    var modeBefore = Mode.list
    /// The app whose page is shown.
    public internal(set) var subject: String?
    /// By what the apps are sorted.
    public internal(set) var order = Order.name
    /// Only apps with this in their name or state.
    public internal(set) var filter = ""
    /// Those that fit the filter, in order.
    public internal(set) var visible: [AppSummary] = []
    /// The app on which keys act.
    public internal(set) var selected: String?
    /// Those that are marked: keys act on them then.
    public internal(set) var marked: Set<String> = []
    /// The first app on the screen.
    public internal(set) var first = 0
    /// How far a page is scrolled: from its beginning, of the log and the events from their end.
    public internal(set) var scroll = 0
    /// How many columns of a page are left out at its left.
    public internal(set) var shift = 0
    /// The timeline's length, an index of ``spans``.
    var zoom = 2
    /// Sparklines show memory, and not processor time.
    public internal(set) var sparksMemory = false
    /// Only the events of the selected app.
    public internal(set) var onlySubject = false
    /// What is being asked.
    public internal(set) var prompt: Prompt?
    /// The sentence in the status line.
    public internal(set) var message: Message?

    /// The timeline's lengths in seconds.
    static let spans: [Int64] = [60, 300, 900, 3600, 3 * 3600, 6 * 3600, 12 * 3600, 24 * 3600]

    /// One that knows nothing yet.
    public init() {}

    /// The timeline's length in seconds.
    public var span: Int64 { Self.spans[zoom] }

    // MARK: Sentences

    /// How long a sentence stays: errors longer, since they say what to do.
    private static let stays: [Message.Kind: Int64] = [.done: 6_000_000, .busy: 60_000_000, .error: 15_000_000]

    /// Puts a sentence into the status line.
    public mutating func say(_ text: String, _ kind: Message.Kind = .done) {
        message = Message(kind: kind, text: text, at: now)
    }

    /// What was said of an app's state is not so any more.
    mutating func forgetMessage(of app: String, at time: Int64) {
        guard let said = message, said.kind == .done, said.at < time, said.text.hasPrefix("\(app): ") else { return }
        message = nil
    }

    /// The sentence that is to be seen now; nil when it has been there for long enough.
    public var currentMessage: Message? {
        message.flatMap { now - $0.at < Self.stays[$0.kind, default: 0] ? $0 : nil }
    }

    // MARK: The arrangement

    /// Chooses and sorts anew. Scenes without a process are among what a filter finds alone. The selected app stays selected; where it is gone, its neighbour is.
    mutating func arrange() {
        let place = selectedIndex
        let wanted = filter.lowercased()
        visible = apps.filter { app in
            wanted.isEmpty
                ? !app.isUnattached
                : app.name.lowercased().contains(wanted) || app.state.contains(wanted)
                    || (app.transition?.contains(wanted) ?? false) || (app.failed && "failed".contains(wanted))
        }
        switch order {
        case .name: break
        case .state: sort { ShownState($0).rawValue }
        case .memory: sort { -($0.memoryBytes ?? -1) }
        case .cpu: sort { [measurements] in -(measurements[$0.name]?.processorPercent ?? -1) }
        case .lastEvent: sort { [lastEvents] in -(lastEvents[$0.name]?.at ?? 0) }
        }
        if selectedIndex == nil {
            selected = visible.isEmpty ? nil : visible[min(place ?? 0, visible.count - 1)].name
        }
        settle()
    }

    private mutating func sort<Key: Comparable>(_ key: (AppSummary) -> Key) {
        visible = visible.map { (key($0), $0) }.sorted { $0.0 != $1.0 ? $0.0 < $1.0 : $0.1.name < $1.1.name }.map(\.1)
    }

    /// Where the selected app is among those that are visible.
    public var selectedIndex: Int? { selected.flatMap { name in visible.firstIndex { $0.name == name } } }

    /// Those on which a key acts: the marked ones, else the one whose page it is, or that is selected.
    public var targets: [String] {
        if mode == .list || mode == .timeline {
            if !marked.isEmpty { return apps.map(\.name).filter(marked.contains) }
            return selected.map { [$0] } ?? []
        }
        return (subject ?? selected).map { [$0] } ?? []
    }

    /// Has the selected app on the screen, and the page not beyond its end.
    mutating func settle() {
        let rows = max(1, TopLayout.Regions(size, mode).body.count)
        if let index = selectedIndex {
            if index < first { first = index }
            if index >= first + rows { first = index - rows + 1 }
        }
        first = max(0, min(first, visible.count - rows))
        scroll = max(0, min(scroll, pageCount - rows))
    }

    /// How many lines the page has.
    var pageCount: Int {
        switch mode {
        case .list, .timeline: 0
        case .details: detailPage.count
        case .log: logLines.count
        case .events: shownEvents.count
        case .help: TopHelp.lines.count
        }
    }

    /// The events of the page.
    var shownEvents: [EventRecord] {
        guard onlySubject, let name = subject else { return events }
        return events.filter { $0.app == name }
    }
}
