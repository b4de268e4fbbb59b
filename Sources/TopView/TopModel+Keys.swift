// SPDX-License-Identifier: Apache-2.0

public import TorporAPI

/// A key.
public enum TopKey: Hashable, Sendable {
    case character(Character)
    case up, down, left, right, pageUp, pageDown, home, end, enter, escape, backspace
}

/// An action that a key requests from the session.
public enum TopRequest: Hashable, Sendable {
    /// End the session.
    case quit
    /// Send this verb.
    case verb(VerbRequest)
    /// Load older events, from that time on, in microseconds since 1970.
    case history(since: Int64)
}

extension TopModel {
    /// Handles a key.
    @discardableResult
    public mutating func press(_ key: TopKey) -> TopRequest? {
        defer { settle() }
        if let prompt { return answer(prompt, key) }
        switch key {
        case .up, .character("k"): move(-1)
        case .down, .character("j"): move(1)
        case .pageUp: move(-pageRows)
        case .pageDown: move(pageRows)
        case .home, .character("g"): move(-1_000_000)
        case .end, .character("G"): move(1_000_000)
        case .left: shift = max(0, shift - 8)
        case .right: shift = isPage ? min(shift + 8, 4096) : 0
        case .enter, .character("i"): open(mode == .details ? .list : .details)
        case .escape, .character("q"): return back(key)
        case .character(" "): mark()
        case .character(let character): return act(character)
        case .backspace: break
        }
        return nil
    }

    private var isPage: Bool { mode != .list && mode != .timeline }
    private var pageRows: Int { max(1, TopLayout.Regions(size, mode).body.count - 1) }

    private mutating func act(_ character: Character) -> TopRequest? {
        switch character {
        case "t":
            open(mode == .timeline ? .list : .timeline)
            return wantedHistory
        case "l": open(mode == .log ? .list : .log)
        case "e": open(mode == .events ? .list : .events)
        case "?": open(mode == .help ? modeBefore : .help)
        case "a" where mode == .events:
            onlySubject.toggle()
            scroll = 0
        case "f": return send(VerbRequest(verb: .foreground, apps: targets))
        case "b": return send(VerbRequest(verb: .background, apps: targets))
        case "s": return send(VerbRequest(verb: .suspend, apps: targets))
        case "S": return send(VerbRequest(verb: .start, apps: targets))
        case "x": return send(VerbRequest(verb: .stop, apps: targets))
        case "R": return send(VerbRequest(verb: .restart, apps: targets))
        case "H": return send(hold)
        case "K":
            if targets.isEmpty { say("no app is selected", .error) } else { prompt = .kill(targets) }
        case "/": if !isPage { prompt = .filter(before: filter) }
        case "o", "O":
            let all = Order.allCases
            let step = character == "o" ? 1 : all.count - 1
            order = all[((all.firstIndex(of: order) ?? 0) + step) % all.count]
            arrange()
            say("sorted by \(order.rawValue)")
        case "m": sparksMemory.toggle()
        case "u": marked = []
        case "+", "=":
            zoom = max(0, zoom - 1)
        case "-":
            zoom = min(Self.spans.count - 1, zoom + 1)
            return mode == .timeline ? wantedHistory : nil
        default: break
        }
        return nil
    }

    /// A request for the part of the timeline that is not loaded yet.
    private var wantedHistory: TopRequest? {
        let since = now - span * 1_000_000
        return mode == .timeline && since < knownSince ? .history(since: since) : nil
    }

    /// A request for a hold of ten minutes, or for the end of the hold if all targets have one already.
    private var hold: VerbRequest {
        var request = VerbRequest(verb: .hold, apps: targets)
        let held = Set(apps.filter { $0.holds.contains { $0.contains("torpor top") } }.map(\.name))
        request.end = !targets.isEmpty && targets.allSatisfy(held.contains)
        if !request.end {
            request.forMilliseconds = 600_000
            request.reason = "torpor top"
        }
        return request
    }

    private mutating func send(_ request: VerbRequest) -> TopRequest? {
        guard !request.apps.isEmpty else {
            say("no app is selected", .error)
            return nil
        }
        let apps = request.apps.count == 1 ? request.apps[0] : "\(request.apps.count) apps"
        say("\(apps): \(request.verb.rawValue.lowercased()) …", .busy)
        return .verb(request)
    }

    // MARK: Moving

    private mutating func move(_ step: Int) {
        switch mode {
        case .list, .timeline:
            guard !visible.isEmpty else { return }
            let index = max(0, min(visible.count - 1, (selectedIndex ?? 0) + step))
            selected = visible[index].name
        case .details, .help: scroll = max(0, scroll + step)
        // The log and the events scroll from their end.
        case .log, .events: scroll = max(0, scroll - step)
        }
    }

    private mutating func open(_ new: Mode) {
        if new == .help, mode != .help { modeBefore = mode }
        if new == .details || new == .log, selected == nil { return say("no app is selected", .error) }
        // Switching between an app's pages keeps the app.
        if !(mode == .details || mode == .log || mode == .events || mode == .help) { subject = selected }
        if new == .details, mode != .details { details = [] }
        if new == .log, mode != .log { (logLines, logTrouble) = ([], nil) }
        mode = new
        (scroll, shift) = (0, 0)
    }

    private mutating func back(_ key: TopKey) -> TopRequest? {
        switch mode {
        case .help: open(modeBefore)
        case .details, .log, .events, .timeline: open(.list)
        case .list:
            if key == .character("q") { return .quit }
            marked = []
            filter = ""
            message = nil
            arrange()
        }
        return nil
    }

    private mutating func mark() {
        guard !isPage, let selected else { return }
        if marked.remove(selected) == nil { marked.insert(selected) }
        move(1)
    }

    // MARK: Answers

    private mutating func answer(_ asked: Prompt, _ key: TopKey) -> TopRequest? {
        switch asked {
        case .kill(let names):
            prompt = nil
            if key == .character("y") || key == .character("Y") {
                return send(VerbRequest(verb: .kill, apps: names))
            }
            say("nothing was ended")
        case .filter(let before):
            switch key {
            case .enter: prompt = nil
            case .escape:
                filter = before
                prompt = nil
            case .backspace: if !filter.isEmpty { filter.removeLast() }
            case .character(let character): if filter.utf8.count < 200 { filter.append(character) }
            case .up: move(-1)
            case .down: move(1)
            default: break
            }
            arrange()
        }
        return nil
    }
}
