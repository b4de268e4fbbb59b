// SPDX-License-Identifier: Apache-2.0

import TorporAPI

/// Lays out the model as a grid.
public struct TopLayout {
    /// The rows of the screen's parts.
    struct Regions: Hashable, Sendable {
        /// The rows about the machine and the supervisor.
        var header: Range<Int>
        /// The row of the columns' heads, or of a page's title.
        var head: Int
        /// The rows of the apps, or of the lines of a page.
        var body: Range<Int>
        /// The rows of the status line, and of the keys if there is room.
        var footer: Range<Int>

        init(_ size: TopModel.Size, _ mode: TopModel.Mode) {
            let rows = max(4, size.rows)
            let isList = mode == .list || mode == .timeline
            let header = rows >= 16 ? 3 : rows >= 8 ? 2 : 1
            let footer = rows >= 14 ? 2 : 1
            self.header = 0..<(isList || rows >= 16 ? header : 1)
            head = self.header.upperBound
            body = head + 1..<max(head + 2, rows - footer)
            self.footer = body.upperBound..<max(body.upperBound + 1, rows)
        }
    }

    let model: TopModel
    var grid: StyledGrid
    let regions: Regions
    /// Whether the data is old, because the supervisor does not answer.
    let isStale: Bool

    private init(_ model: TopModel) {
        self.model = model
        grid = StyledGrid(columns: model.size.columns, rows: model.size.rows, characters: model.characters)
        regions = Regions(model.size, model.mode)
        if case .lost = model.link { isStale = true } else { isStale = false }
    }

    /// The complete screen.
    public static func frame(_ model: TopModel) -> StyledGrid {
        var layout = TopLayout(model)
        layout.header()
        switch model.mode {
        case .list: layout.list()
        case .timeline: layout.timeline()
        case .details, .log, .events, .help: layout.page()
        }
        layout.footer()
        return layout.grid
    }

    // MARK: Pieces in a row

    /// A piece of a row, shown whole or not at all.
    struct Part {
        var text: String
        var style: Style

        init(_ text: String, _ ink: Color = .plain, bold: Bool = false) {
            self.text = text
            style = Style(ink, bold: bold)
        }
    }

    /// Writes as many groups of parts side by side as fit. Returns the column after the last part.
    @discardableResult
    mutating func put(_ groups: [[Part]], row: Int, column: Int = 0, gap: Int = 2) -> Int {
        var place = column
        for group in groups where !group.isEmpty {
            let width = group.reduce(0) { $0 + DisplayText.width($1.text, model.characters) }
            guard place + width <= grid.columns else { break }
            for part in group { place += grid.put(part.text, row: row, column: place, part.style) }
            place += gap
        }
        return place
    }

    // MARK: Header

    private mutating func header() {
        title()
        if regions.header.count > 1 { counts(row: 1) }
        if regions.header.count > 2 { machine(row: 2) }
    }

    private mutating func title() {
        let glyphs = model.glyphs
        var text = " torpor top"
        if !model.host.isEmpty { text += " \(glyphs.separator) \(model.host)" }
        if let info = model.supervisor {
            text += " \(glyphs.separator) torpord \(info.version)"
            if let phase = info.phase, phase != "running" { text += ", \(phase)" }
        }
        let right: String
        let ink: Color
        switch model.link {
        case .lost(_, let since):
            let age = Amounts.age(seconds: Double(model.now - since) / 1e6)
            (right, ink) = ("no answer\(age == "now" ? "" : " for \(age)") ", .failed)
        case .connecting: (right, ink) = ("asking … ", .dim)
        case .up:
            let shown =
                model.visible.count == model.apps.count
                ? "\(model.apps.count)" : "\(model.visible.count) of \(model.apps.count)"
            let apps = shown == "1" ? "1 app " : "\(shown) apps "
            (right, ink) =
                model.mayChange == false ? ("read-only \(glyphs.separator) \(apps)", .warning) : (apps, .plain)
        }
        let width = DisplayText.width(right, model.characters)
        grid.put(text, row: 0, column: 0, width: max(12, grid.columns - width - 1), Style(.plain, bold: true))
        if grid.columns >= width + 14 {
            grid.put(right, row: 0, endingAt: grid.columns, width: width, Style(ink, bold: true))
        }
        grid.ground(.bar, row: 0)
    }

    private mutating func counts(row: Int) {
        var numbers: [ShownState: Int] = [:]
        for app in model.apps { numbers[ShownState(app), default: 0] += 1 }
        let isNarrow = grid.columns < 70
        var groups = ShownState.allCases.compactMap { state -> [Part]? in
            let count = numbers[state] ?? 0
            guard count > 0 || (state != .failed && state != .notRunning && !isNarrow) else { return nil }
            let ink: Color = count == 0 ? .dim : state.ink
            let name = isNarrow ? "" : " \(state.name)"
            return [
                Part(model.glyphs.sign(state), ink, bold: count > 0),
                Part(" \(count)\(name)", ink, bold: state == .failed && count > 0),
            ]
        }
        let moving = model.apps.count { $0.transition != nil }
        if moving > 0 {
            groups.append([Part("\(model.glyphs.moving) \(moving)\(isNarrow ? "" : " in transition")", .warning)])
        }
        if regions.header.count == 2, let memory = model.memory {
            groups.append([
                Part("mem ", .dim), Part(Amounts.memory(memory.availableBytes), level(memory)), Part(" free", .dim),
            ])
            if memory.level != "none" { groups.append([Part(memory.level, level(memory), bold: true)]) }
        }
        put(groups, row: row, column: 1)
    }

    private func level(_ memory: MemoryStatus) -> Color {
        switch memory.level {
        case "none": .plain
        case "warning": .warning
        default: .failed
        }
    }

    private mutating func machine(row: Int) {
        guard let memory = model.memory else { return }
        let used = max(0, memory.totalBytes - memory.availableBytes)
        let share = memory.totalBytes > 0 ? Double(used) / Double(memory.totalBytes) : 0
        let bar = max(8, min(24, grid.columns / 8))
        let full = Int((share * Double(bar)).rounded())
        let ink = level(memory)
        var groups: [[Part]] = [
            [
                Part("memory ", .dim),
                Part(String(repeating: model.glyphs.gaugeFull, count: min(bar, full)), ink == .plain ? .good : ink),
                Part(String(repeating: model.glyphs.gaugeEmpty, count: bar - min(bar, full)), .dim),
                Part(" " + Amounts.memory(memory.availableBytes), ink, bold: true),
                Part(" of \(Amounts.memory(memory.totalBytes)) available", .dim),
            ],
            [
                Part("pressure ", .dim), Part(memory.level, ink == .plain ? .good : ink, bold: ink != .plain),
                Part(memory.somePercent.map { " \(Amounts.percent($0)) %" } ?? "", .dim),
                Part(memory.fullPercent.map { ", full \(Amounts.percent($0)) %" } ?? "", .dim),
            ],
        ]
        groups.append(
            memory.swapTotalBytes > 0
                ? [
                    Part("swap ", .dim), Part(Amounts.memory(memory.swapTotalBytes - memory.swapFreeBytes)),
                    Part(" of \(Amounts.memory(memory.swapTotalBytes))", .dim),
                ] : [Part("no swap", .dim)]
        )
        if let policy = memory.policy { groups.append([Part("order ", .dim), Part(policy)]) }
        put(groups, row: row, column: 1, gap: 3)
    }

    // MARK: Footer

    private mutating func footer() {
        let last = grid.rows - 1
        let width = grid.columns
        guard last >= regions.footer.lowerBound else { return }
        if let sentence = sentence {
            let lines = regions.footer.count > 1 ? DisplayText.wrapped(sentence.text, to: width - 1) : [sentence.text]
            if lines.count < 2, regions.footer.count > 1 { hints(row: last) }
            let row = lines.count < 2 ? regions.footer.lowerBound : last - 1
            for (index, line) in lines.prefix(2).enumerated() {
                // If the text needs more than two lines, the second ends with an ellipsis.
                let text = index == 1 && lines.count > 2 ? lines[1...].joined(separator: " ") : line
                grid.put(text, row: row + index, column: 0, Style(sentence.ink, bold: sentence.isBold))
            }
            return
        }
        hints(row: last)
    }

    /// The current text of the status line.
    private var sentence: (text: String, ink: Color, isBold: Bool)? {
        switch model.prompt {
        case .kill(let names):
            let apps = names.count == 1 ? names[0] : "\(names.count) apps"
            return ("force quit \(apps)? (y/n) SIGKILL without notice, and no event launches it again", .failed, true)
        case .filter: return ("filter: \(model.filter)_", .accent, true)
        case nil: break
        }
        if case .lost(let problem, _) = model.link {
            return ("\(problem): trying again", .failed, true)
        }
        if let message = model.currentMessage {
            let ink: Color =
                switch message.kind {
                case .done: .good
                case .busy: .warning
                case .error: .failed
                }
            return (message.text, ink, message.kind == .error)
        }
        if !model.marked.isEmpty {
            return ("\(model.marked.count) marked: keys act on them, u unmarks", .accent, false)
        }
        if !model.filter.isEmpty, model.mode == .list || model.mode == .timeline {
            return ("only apps with “\(model.filter)”: Esc shows all", .accent, false)
        }
        // Show the selected app's last event here, because the column of the list is too narrow for its sentence.
        if model.mode == .list, let name = model.selected, let event = model.lastEvents[name] {
            return ("\(name): \(event.text)", .dim, false)
        }
        return nil
    }

    private mutating func hints(row: Int) {
        let words: [(String, String)]
        switch model.mode {
        case .list:
            words = [
                ("?", "help"), ("q", "quit"), ("Enter", "details"), ("s", "suspend"), ("f", "foreground"),
                ("b", "background"), ("t", "timeline"), ("l", "log"), ("e", "events"), ("S", "start"), ("x", "stop"),
                ("R", "restart"), ("K", "kill"), ("H", "hold"), ("/", "filter"),
                ("o", "sort: \(model.order.rawValue)"),
            ]
        case .timeline:
            words = [("q", "back"), ("+", "closer"), ("-", "wider"), ("?", "help"), ("o", "sort"), ("/", "filter")]
        case .events:
            words = [
                ("q", "back"), ("a", model.onlySubject ? "all apps" : "only \(model.subject ?? "one")"),
                ("?", "help"),
            ]
        case .log, .details:
            words = [
                ("q", "back"), ("i", "details"), ("l", "log"), ("s", "suspend"), ("f", "foreground"),
                ("b", "background"), ("S", "start"), ("x", "stop"), ("R", "restart"), ("K", "kill"), ("?", "help"),
            ]
        case .help: words = [("q", "back")]
        }
        put(words.map { [Part($0.0, .accent, bold: true), Part(" \($0.1)", .dim)] }, row: row, column: 0)
    }
}
