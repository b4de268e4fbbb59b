// SPDX-License-Identifier: Apache-2.0

import CommandLinePages
import EverydayVerbs
import Linux
import TopView
import TorporAPI
import Varlink

/// Runs `torpor top`: passes keys and news to the model, and draws the model's frames on the screen.
///
/// This is a class with small methods for a reason. With a loop around a value as large as the model, Swift's optimiser
/// runs for a quarter of an hour. Its loop-invariant code motion then compares every pair of instructions for access to
/// the same field.
final class TopSession {
    private let path: String
    private let isFallback: Bool
    private let delay: Duration
    private var model = TopModel()
    private var subject = TopSubject.none
    /// When the last frame was drawn. `isDirty`: whether the model has changed since.
    private var drawn = Duration.zero
    private var isDirty = true

    /// How much history is loaded at the start, in microseconds: one hour. The timeline requests more when it needs
    /// more.
    private static let past: Int64 = 3_600_000_000
    /// The minimum time between two frames. A frame after a key is drawn at once.
    private static let shortest = Duration.milliseconds(30)

    /// `isFallback`: whether the path is that of the machine's supervisor, used because this user's own supervisor does
    /// not run.
    init(path: String, isFallback: Bool, delay: Duration, isASCII: Bool) throws(Failure) {
        (self.path, self.isFallback, self.delay) = (path, isFallback, delay)
        model.delay = Double(delay.microseconds) / 1e6
        let name = try? File.readString("/proc/sys/kernel/hostname", limit: 256)
        model.host = (name ?? "").split(separator: "\n").first.map(String.init) ?? ""
        let isUTF8 = TerminalDevice.adoptLocale()
        if isASCII || !isUTF8 { model.characters = .ascii }
        // Use ASCII on the Linux console too, because its font has few glyphs.
        if model.characters == .ascii || ThisProcess.environment("TERM") == "linux" { model.glyphs = .ascii }
        model.now = Times.now
    }

    // MARK: One picture

    /// Writes one frame as text or JSON. Takes two readings, because CPU use is the difference between two.
    func once(json: Bool) throws {
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
        // The supervisor measures only once a second, so wait that long.
        ThisProcess.sleep(max(.zero, began + .milliseconds(1020) - Clock.monotonic()))
        try list()
        guard !json else { return Output.document(document) }
        let asked = ThisProcess.environment("COLUMNS").flatMap { Int($0) }
        let columns = TerminalDevice.size(1)?.columns ?? asked ?? 120
        // Make the frame high enough for all apps, whatever the terminal's height: the list has four lines above it and
        // two below it, which stay empty.
        model.size = .init(columns: max(40, min(columns, 2000)), rows: max(16, model.apps.count + 6))
        let grid = TopLayout.frame(model)
        let rows = (0..<4 + max(1, model.apps.count)).map { grid.text(ofRow: $0) }
        Output.write(rows.joined(separator: "\n") + "\n")
    }

    /// The frame as JSON.
    private var document: JSON {
        let apps = model.apps.map { app in
            var object = app.json.objectValue ?? JSONObject()
            object["cpu_percent"] = .optional(model.measurements[app.name]?.processorPercent)
            return JSON.object(object)
        }
        return [
            "host": .string(model.host), "at": .int(model.now), "supervisor": model.supervisor?.json ?? .null,
            "memory": model.memory?.json ?? .null, "apps": .array(apps),
        ]
    }

    // MARK: The screen

    private enum Source: UInt64 { case keys, signals, news }

    package func run() throws {
        guard ThisProcess.isTerminal(1), ThisProcess.isTerminal(0) else {
            let which = ThisProcess.isTerminal(1) ? "standard input" : "standard output"
            throw Failure(
                status: .usage,
                message: "top needs a terminal, and \(which) is not one: use ‘torpor list’, or ‘torpor top --once’"
            )
        }
        // If the supervisor cannot be reached, report that as every other verb does, before this process takes control
        // of the terminal.
        _ = try Manager(socket: path)
        let signals: TerminalSignals
        let inbox: TopInbox
        let poller: Poller
        do throws(Errno) {
            try TerminalDevice.waitForForeground(0)
            signals = try TerminalSignals()
            inbox = try TopInbox()
            poller = try Poller()
            try poller.add(0, .readable, tag: Source.keys.rawValue)
            try poller.add(signals.descriptor.raw, .readable, tag: Source.signals.rawValue)
            try poller.add(inbox.descriptor, .readable, tag: Source.news.rawValue)
        } catch {
            throw Failure(status: .failed, message: "cannot wait for the terminal: \(error)")
        }
        let screen = try TopScreen(hasColour: (ThisProcess.environment("NO_COLOR") ?? "").isEmpty)
        let end = try withThreads(inbox) { talk throws(Failure) in
            loop(screen, signals, inbox, poller, talk)
        }
        screen.close()
        if let end {
            TerminalSignals.end(by: end)
            ThisProcess.exit(128 + end)
        }
    }

    /// The workers that call the supervisor.
    private struct Workers {
        let feed: TopFeed
        let events: TopEvents
        let verbs: TopVerbs
    }

    private func withThreads<Result>(
        _ inbox: TopInbox,
        _ body: (Workers) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let feed = TopFeed(path: path, delay: delay, inbox: inbox)
        let events = TopEvents(path: path, since: Times.now - Self.past, feed: feed, inbox: inbox)
        do throws(Errno) {
            try feed.start()
            try events.start()
        } catch {
            throw Failure(status: .failed, message: "cannot start a thread: \(error)")
        }
        let verbs = TopVerbs(path: path, isFallback: isFallback, inbox: inbox)
        return try body(Workers(feed: feed, events: events, verbs: verbs))
    }

    private enum End {
        case key
        case signal(Int32)
    }

    /// Runs until a key or a signal ends the session. Returns the signal's number; nil for a key.
    private func loop(
        _ screen: TopScreen,
        _ signals: TerminalSignals,
        _ inbox: TopInbox,
        _ poller: Poller,
        _ talk: Workers
    ) -> Int32? {
        model.know(since: Times.now - Self.past)
        model.drawsPictures = TerminalPictures.areKnown
        model.size = screen.size()
        while true {
            draw(screen)
            // Draw a frame every second even without news, because the times and ages on the screen change.
            let next = drawn + (isDirty ? Self.shortest : .seconds(1))
            let left = max(.milliseconds(1), next - Clock.monotonic())
            guard (try? Descriptor.wait(poller.descriptor.raw, timeout: left)) == true else {
                isDirty = true
                continue
            }
            var ready: [(source: UInt64, events: IOEvents)] = []
            _ = try? poller.drain { ready.append(($0, $1)) }
            for one in ready {
                guard let end = handle(one.source, one.events, screen, signals, inbox, talk) else { continue }
                if case .signal(let number) = end { return number }
                return nil
            }
            follow(talk)
        }
    }

    /// Draws the model, unless the last frame was drawn too recently.
    private func draw(_ screen: TopScreen) {
        let now = Clock.monotonic()
        guard isDirty, now - drawn >= Self.shortest else { return }
        model.now = Times.now
        screen.show(TopLayout.frame(model), model.picturePlace.flatMap { place in model.snapshot.map { (place, $0) } })
        (isDirty, drawn) = (false, now)
    }

    /// Makes the next frame come without delay, because the user waits for the effect of a key.
    private func drawAtOnce() { (isDirty, drawn) = (true, .zero) }

    private func handle(
        _ source: UInt64,
        _ events: IOEvents,
        _ screen: TopScreen,
        _ signals: TerminalSignals,
        _ inbox: TopInbox,
        _ talk: Workers
    ) -> End? {
        model.now = Times.now
        switch Source(rawValue: source) {
        case .keys:
            while let key = screen.key() {
                if press(key, talk) { return .key }
            }
            // A hangup or an error means that the terminal is gone.
            return events.isDisjoint(with: [.hangup, .error]) ? nil : .key
        case .signals:
            while let signal = signals.next() {
                if case .end(let number) = signal { return .signal(number) }
                obey(signal, screen)
            }
        case .news:
            for news in inbox.take() { take(news) }
            isDirty = true
        case nil: break
        }
        return nil
    }

    /// Handles a key. Returns true if it ends the session.
    private func press(_ key: TopKey, _ talk: Workers) -> Bool {
        drawAtOnce()
        guard let request = model.press(key) else { return false }
        carryOut(request, talk)
        return request == .quit
    }

    private func obey(_ signal: TerminalSignals.Kind, _ screen: TopScreen) {
        switch signal {
        case .stop:
            screen.leave()
            TerminalSignals.stop()
        case .resumed:
            guard screen.isForeground else { return TerminalSignals.stopInBackground() }
            screen.redraw()
        case .resized, .end: break
        }
        model.size = screen.size()
        drawAtOnce()
    }

    /// Tells the feed to read what the current page shows.
    private func follow(_ talk: Workers) {
        let wanted = Self.subject(of: model)
        guard wanted != subject else { return }
        subject = wanted
        talk.feed.want(wanted)
    }

    private func carryOut(_ request: TopRequest, _ talk: Workers) {
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

    private func take(_ news: TopNews) {
        switch news {
        case .supervisor(let info): model.take(supervisor: info)
        case .list(let apps, let asked): model.take(list: apps, asked: asked)
        case .memory(let memory): model.memory = memory
        case .mayChange(let may): model.mayChange = may
        case .events(let events): model.take(events: events)
        case .history(let events, let since): model.take(history: events, since: since)
        // Ignore data for a page that the user has left since.
        case .details(let app, let lines): if model.subject == app { model.details = lines }
        case .snapshot(let app, let snapshot): if model.subject == app { model.snapshot = snapshot }
        case .log(let app, let lines, let isFirst):
            if model.subject == app { model.take(log: lines, isFirst: isFirst) }
        case .logTrouble(let app, let text): if model.subject == app { model.logTrouble = text }
        case .said(let text, let kind): model.say(text, kind)
        case .lost(let problem): model.lose(problem)
        }
    }
}
