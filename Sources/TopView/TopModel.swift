// SPDX-License-Identifier: Apache-2.0

public import TorporAPI
import Varlink

/// The state of `torpor top`: apps, events, the selection. It does no input or output: replies, keys and the time
/// come from outside.
public struct TopModel: Sendable {
    /// What the whole screen shows.
    public enum Mode: Hashable, Sendable { case list, timeline, details, log, events, help }

    /// The sort key of the list.
    public enum Order: String, CaseIterable, Hashable, Sendable {
        case name
        case state
        case memory
        case cpu
        case lastEvent = "last event"
    }

    /// A question to the user.
    public enum Prompt: Hashable, Sendable {
        /// The user is typing the filter; `before` is the previous one.
        case filter(before: String)
        /// The question whether to force these apps to quit.
        case kill([String])
    }

    /// The state of the connection to the supervisor.
    public enum Link: Hashable, Sendable {
        case connecting
        case up
        /// Lost since that time, in microseconds since 1970, with the reason as a sentence.
        case lost(String, since: Int64)
    }

    /// A sentence in the status line.
    public struct Message: Hashable, Sendable {
        /// The kind of message.
        public enum Kind: Hashable, Sendable { case done, busy, error }
        /// The kind of message.
        public var kind: Kind
        /// The sentence that is shown.
        public var text: String
        /// When the message was shown, in microseconds since 1970.
        public var at: Int64
    }

    /// The size of the screen.
    public struct Size: Hashable, Sendable {
        /// The width in columns.
        public var columns: Int
        /// The height in rows.
        public var rows: Int

        /// Creates a size.
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
    /// The characters that text may contain.
    public var characters = DisplayText.Characters.unicode
    /// The glyphs to draw with.
    public var glyphs = Glyphs.unicode
    /// Whether the terminal shows pictures.
    public var drawsPictures = false
    /// The current time, in microseconds since 1970.
    public var now: Int64 = 0

    // MARK: What it is told

    /// The connected supervisor.
    public internal(set) var supervisor: SupervisorInfo?
    /// All apps, sorted by name.
    public internal(set) var apps: [AppSummary] = []
    /// The machine's memory.
    public var memory: MemoryStatus?
    /// The state of the connection to the supervisor.
    public internal(set) var link = Link.connecting
    /// Whether this user may change apps; nil until it is known.
    public var mayChange: Bool?
    /// CPU use and memory of each app over time.
    public internal(set) var measurements: [String: Measurements] = [:]
    /// Recent events, newest last.
    public internal(set) var events: [EventRecord] = []
    /// The last event of each app.
    public internal(set) var lastEvents: [String: EventRecord] = [:]
    /// The changes of state of each app, newest last.
    var changes: [String: [StateChange]] = [:]
    /// From when on all changes of state are known, in microseconds since 1970.
    public internal(set) var knownSince: Int64 = .max
    /// The number of the newest event.
    public internal(set) var sequence: Int64 = 0
    /// When the list in `apps` was requested, in microseconds since 1970.
    var listedAt: Int64 = 0
    /// The lines of the page about one app.
    public var details: [String] = []
    /// The last snapshot of the app whose page is shown.
    public var snapshot: TopSnapshot?
    /// The last lines of an app's log, newest last.
    public internal(set) var logLines: [LogLine] = []
    /// Why there is no log to show.
    public var logTrouble: String?

    // MARK: What is shown

    /// What the whole screen shows.
    public internal(set) var mode = Mode.list
    /// The mode that help returns to.
    var modeBefore = Mode.list
    /// The app whose page is shown.
    public internal(set) var subject: String?
    /// The sort key of the list.
    public internal(set) var order = Order.name
    /// Show only apps with this text in their name or state.
    public internal(set) var filter = ""
    /// The apps that match the filter, sorted.
    public internal(set) var visible: [AppSummary] = []
    /// The app that keys act on if none is marked.
    public internal(set) var selected: String?
    /// The marked apps: if there are any, keys act on them.
    public internal(set) var marked: Set<String> = []
    /// Index of the first app on the screen.
    public internal(set) var first = 0
    /// Lines scrolled: from the start of a page; in the log and the events from the end.
    public internal(set) var scroll = 0
    /// Columns of a page scrolled away at the left.
    public internal(set) var shift = 0
    /// The timeline's length, an index of ``spans``.
    var zoom = 2
    /// Whether sparklines show memory instead of CPU use.
    public internal(set) var sparksMemory = false
    /// Whether to show only the selected app's events.
    public internal(set) var onlySubject = false
    /// The current question to the user.
    public internal(set) var prompt: Prompt?
    /// The sentence in the status line.
    public internal(set) var message: Message?

    /// The timeline's lengths in seconds.
    static let spans: [Int64] = [60, 300, 900, 3600, 3 * 3600, 6 * 3600, 12 * 3600, 24 * 3600]

    /// Creates an empty model.
    public init() {}

    /// The timeline's length in seconds.
    public var span: Int64 { Self.spans[zoom] }

    // MARK: Sentences

    /// How long a message stays, in microseconds. Errors stay longer, because they say what to do.
    private static let stays: [Message.Kind: Int64] = [.done: 6_000_000, .busy: 60_000_000, .error: 15_000_000]

    /// Shows a message in the status line.
    public mutating func say(_ text: String, _ kind: Message.Kind = .done) {
        message = Message(kind: kind, text: text, at: now)
    }

    /// Removes the message about an app's state if it is older than `time`.
    mutating func forgetMessage(of app: String, at time: Int64) {
        guard let said = message, said.kind == .done, said.at < time, said.text.hasPrefix("\(app): ") else { return }
        message = nil
    }

    /// The message to show now; nil once its time is over.
    public var currentMessage: Message? {
        message.flatMap { now - $0.at < Self.stays[$0.kind, default: 0] ? $0 : nil }
    }

    // MARK: The arrangement

    /// Filters and sorts the apps. Scenes without a process appear only with a filter. If the selected app is gone,
    /// its neighbour becomes selected.
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

    /// The index of the selected app in `visible`.
    public var selectedIndex: Int? { selected.flatMap { name in visible.firstIndex { $0.name == name } } }

    /// The apps that a key acts on: the marked ones, else the page's app or the selected one.
    public var targets: [String] {
        if mode == .list || mode == .timeline {
            if !marked.isEmpty { return apps.map(\.name).filter(marked.contains) }
            return selected.map { [$0] } ?? []
        }
        return (subject ?? selected).map { [$0] } ?? []
    }

    /// Scrolls the selected app onto the screen, and keeps the page from scrolling beyond its end.
    mutating func settle() {
        let rows = max(1, TopLayout.Regions(size, mode).body.count)
        if let index = selectedIndex {
            if index < first { first = index }
            if index >= first + rows { first = index - rows + 1 }
        }
        first = max(0, min(first, visible.count - rows))
        scroll = max(0, min(scroll, pageCount - rows))
    }

    /// The number of lines of the page.
    var pageCount: Int {
        switch mode {
        case .list, .timeline: 0
        case .details: detailPage.count
        case .log: logLines.count
        case .events: shownEvents.count
        case .help: TopHelp.lines.count
        }
    }

    /// The events that the page shows.
    var shownEvents: [EventRecord] {
        guard onlySubject, let name = subject else { return events }
        return events.filter { $0.app == name }
    }
}
