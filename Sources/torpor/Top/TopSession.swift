import Linux
import TopView
import TorporAPI
import Varlink

/// `torpor top`, from its start to its end: keys and news go into the model, its picture onto the screen.
struct TopSession {
    private let path: String
    private let delay: Duration
    private var model = TopModel()

    /// What is in the past and known from the start, in microseconds; the timeline asks for more when it is to show more.
    private static let past: Int64 = 3_600_000_000
    /// The shortest time between two pictures, where no key is waited for.
    private static let shortest = Duration.milliseconds(30)

    init(path: String, delay: Duration, isASCII: Bool) throws(Failure) {
        (self.path, self.delay) = (path, delay)
        model.delay = Double(delay.microseconds) / 1e6
        let name = try? File.readString("/proc/sys/kernel/hostname", limit: 256)
        model.host = (name ?? "").split(separator: "\n").first.map(String.init) ?? ""
        let isUTF8 = TerminalDevice.adoptLocale()
        if isASCII || !isUTF8 { model.characters = .ascii }
        // The kernel's own console has few signs.
        if model.characters == .ascii || ThisProcess.environment("TERM") == "linux" { model.glyphs = .ascii }
        model.now = Times.now
    }

    // MARK: One picture

    /// Writes one picture as text. Two readings, since the use of processors is what is between them.
    func once() throws {
        var model = model
        let manager = try Manager(socket: path)
        func list() throws(Failure) {
            let asked = Times.now
            let reply = try manager.call(.list)
            model.now = Times.now
            let apps = try Manager.read { () throws(FieldError) in
                try Fields(reply).list("apps") { json throws(FieldError) in try AppSummary(json: json) }
            }
            model.take(list: apps, asked: asked)
        }
        let described = try manager.call(.describe)
        model.take(supervisor: try Manager.read { () throws(FieldError) in try SupervisorInfo(json: described) })
        try list()
        let began = Clock.monotonic()
        let memory = try manager.call(.memory)
        model.memory = try? MemoryStatus(json: memory["memory"] ?? .null)
        var request = EventsRequest()
        (request.since, request.limit) = (Times.now - Self.past, 4000)
        func take(_ reply: JSON) {
            model.take(events: (reply["events"]?.arrayValue ?? []).compactMap { try? EventRecord(json: $0) })
        }
        take(try manager.call(.events(request), onReply: take))
        // The supervisor measures once a second.
        ThisProcess.sleep(max(.zero, began + .milliseconds(1020) - Clock.monotonic()))
        try list()
        let asked = ThisProcess.environment("COLUMNS").flatMap { Int($0) }
        let columns = TerminalDevice.size(1)?.columns ?? asked ?? 120
        // All apps, whatever the height of the screen: three lines above, the heads, and two below, which stay empty.
        model.size = .init(columns: max(40, min(columns, 2000)), rows: max(16, model.apps.count + 6))
        let grid = TopLayout.frame(model)
        let rows = (0..<4 + max(1, model.apps.count)).map { grid.text(ofRow: $0) }
        ThisProcess.write(rows.joined(separator: "\n") + "\n")
    }

    // MARK: The screen

    /// The descriptors that are waited for.
    private enum Source: UInt64 { case keys, signals, news }

    func run() throws {
        guard ThisProcess.isTerminal(1), ThisProcess.isTerminal(0) else {
            let which = ThisProcess.isTerminal(1) ? "standard input" : "standard output"
            throw Failure(
                status: .usage,
                message: "top needs a terminal, and \(which) is none: use ‘torpor list’, or ‘torpor top --once’"
            )
        }
        // Nobody there is said as every verb says it, before the screen is taken.
        _ = try Manager(socket: path)
        let signals: TerminalSignals
        let inbox: TopInbox
        let poller: Poller
        do throws(Errno) {
            signals = try TerminalSignals()
            inbox = try TopInbox()
            poller = try Poller()
            try poller.add(0, .readable, tag: Source.keys.rawValue)
            try poller.add(signals.descriptor.raw, .readable, tag: Source.signals.rawValue)
            try poller.add(inbox.descriptor, .readable, tag: Source.news.rawValue)
        } catch {
            throw Failure(status: .failed, message: "the terminal cannot be waited for: \(error)")
        }
        let screen = try TopScreen(hasColour: (ThisProcess.environment("NO_COLOR") ?? "").isEmpty)
        let end = try withThreads(inbox) { talk throws(Failure) in
            try loop(screen, signals, inbox, poller, talk)
        }
        screen.close()
        if let end {
            TerminalSignals.end(by: end)
            ThisProcess.exit(128 + end)
        }
    }

    /// Who asks the supervisor.
    private struct Talk {
        let feed: TopFeed
        let events: TopEvents
        let verbs: TopVerbs
    }

    private func withThreads<Result>(
        _ inbox: TopInbox,
        _ body: (Talk) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let feed = TopFeed(path: path, delay: delay, inbox: inbox)
        let events = TopEvents(path: path, since: Times.now - Self.past, feed: feed, inbox: inbox)
        do throws(Errno) {
            try feed.start()
            try events.start()
        } catch {
            throw Failure(status: .failed, message: "there can be no more threads: \(error)")
        }
        return try body(Talk(feed: feed, events: events, verbs: TopVerbs(path: path, inbox: inbox)))
    }

    /// Until the end is asked for. Gives the signal that did, nil: a key.
    private func loop(
        _ screen: TopScreen,
        _ signals: TerminalSignals,
        _ inbox: TopInbox,
        _ poller: Poller,
        _ talk: Talk
    ) throws(Failure) -> Int32? {
        var model = model
        model.know(since: Times.now - Self.past)
        model.size = screen.size()
        var drawn = Duration.zero
        var isDirty = true
        var subject = TopSubject.none
        while true {
            model.now = Times.now
            let now = Clock.monotonic()
            if isDirty, now - drawn >= Self.shortest {
                screen.show(TopLayout.frame(model))
                (isDirty, drawn) = (false, now)
            }
            // Ages grow, also when nothing comes.
            let next = isDirty ? drawn + Self.shortest : drawn + .seconds(1)
            if (try? Descriptor.wait(poller.descriptor.raw, timeout: max(.milliseconds(1), next - now))) != true {
                isDirty = true
                continue
            }
            var ready: [(Source?, IOEvents)] = []
            _ = try? poller.drain { ready.append((Source(rawValue: $0), $1)) }
            model.now = Times.now
            for (source, events) in ready {
                switch source {
                case .keys:
                    while let key = screen.key() {
                        // Whoever presses a key waits for what it does.
                        (isDirty, drawn) = (true, .zero)
                        guard let request = model.press(key) else { continue }
                        if request == .quit { return nil }
                        carryOut(request, talk)
                    }
                    // The terminal is gone.
                    if !events.isDisjoint(with: [.hangup, .error]) { return nil }
                case .signals:
                    while let signal = signals.next() {
                        switch signal {
                        case .end(let number): return number
                        case .stop:
                            screen.leave()
                            TerminalSignals.stop()
                        case .resumed: screen.redraw()
                        case .resized: break
                        }
                        model.size = screen.size()
                        (isDirty, drawn) = (true, .zero)
                    }
                case .news:
                    for news in inbox.take() { take(news, into: &model) }
                    isDirty = true
                case nil: break
                }
            }
            let wanted = Self.subject(of: model)
            if wanted != subject {
                subject = wanted
                talk.feed.want(subject)
            }
        }
    }

    private func carryOut(_ request: TopRequest, _ talk: Talk) {
        switch request {
        case .quit: break
        case .verb(let verb): talk.verbs.send(verb)
        case .history(let since): talk.events.ask(since: since)
        }
    }

    private static func subject(of model: TopModel) -> TopSubject {
        guard let name = model.subject else { return .none }
        return switch model.mode {
        case .details: .details(name)
        case .log: .log(name)
        default: .none
        }
    }

    private func take(_ news: TopNews, into model: inout TopModel) {
        switch news {
        case .supervisor(let info): model.take(supervisor: info)
        case .list(let apps, let asked): model.take(list: apps, asked: asked)
        case .memory(let memory): model.memory = memory
        case .mayChange(let may): model.mayChange = may
        case .events(let events): model.take(events: events)
        case .history(let events, let since): model.take(history: events, since: since)
        // What comes for a page that was left is not shown on the next one.
        case .details(let app, let lines): if model.subject == app { model.details = lines }
        case .log(let app, let lines, let isFirst):
            if model.subject == app { model.take(log: lines, isFirst: isFirst) }
        case .logTrouble(let app, let text): if model.subject == app { model.logTrouble = text }
        case .said(let text, let kind): model.say(text, kind)
        case .lost(let problem): model.lose(problem)
        }
    }
}
