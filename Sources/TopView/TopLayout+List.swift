// SPDX-License-Identifier: Apache-2.0

import TorporAPI

/// A column of the list.
enum ListColumn: CaseIterable, Hashable {
    case name, state, pid, memory, processor, spark, holds, uptime, restarts, last

    /// The columns by priority: they are added in this order while they fit. A column that does not fit is skipped.
    static let byWorth: [ListColumn] = [
        .name, .state, .memory, .processor, .uptime, .last, .spark, .restarts, .pid, .holds,
    ]

    var isRight: Bool { [.pid, .memory, .processor, .uptime, .restarts].contains(self) }

    /// The minimum width.
    var least: Int {
        switch self {
        case .name: 12
        case .state: 13
        case .pid: 7
        case .memory: 5
        case .processor: 5
        case .spark: 10
        case .holds: 10
        case .uptime: 6
        case .restarts: 3
        case .last: 18
        }
    }

    func head(_ model: TopModel) -> String {
        switch self {
        case .name: "NAME"
        case .state: "STATE"
        case .pid: "PID"
        case .memory: "MEM"
        case .processor: "CPU%"
        case .spark: model.sparksMemory ? "MEM 1min" : "CPU 1min"
        case .holds: "HELD BY"
        case .uptime: "UPTIME"
        case .restarts: "RST"
        case .last: "LAST EVENT"
        }
    }

    func sorts(_ order: TopModel.Order) -> Bool {
        switch self {
        case .name: order == .name
        case .state: order == .state
        case .memory: order == .memory
        case .processor: order == .cpu
        case .last: order == .lastEvent
        default: false
        }
    }

    /// The columns that fit, from left to right, with their widths.
    static func chosen(_ model: TopModel, columns: Int) -> [(column: ListColumn, width: Int)] {
        var widths: [ListColumn: Int] = [:]
        // The first column of the screen shows which apps are marked.
        var left = columns - 1
        for column in byWorth where column.least + 1 <= left || column == .name {
            if column == .holds, !model.apps.contains(where: { !$0.holds.isEmpty }) { continue }
            widths[column] = min(column.least, max(1, left))
            left -= column.least + 1
        }
        func widen(_ column: ListColumn, to wanted: Int) {
            guard let width = widths[column], wanted > width, left > 0 else { return }
            let more = min(wanted - width, left)
            widths[column] = width + more
            left -= more
        }
        let names = model.visible.map { DisplayText.width($0.shownName, model.characters) }.max() ?? 0
        let states = model.visible.compactMap { $0.transition }.map { $0.utf8.count + 4 }.max() ?? 0
        // Reserve room for transitions if there is enough: otherwise the columns would move with each change of state.
        widen(.name, to: min(names, columns >= 100 ? 32 : 16))
        widen(.state, to: columns >= 140 ? 23 : min(states, columns >= 110 ? 23 : columns >= 70 ? 20 : 15))
        widen(.last, to: 34)
        widen(.spark, to: columns >= 150 ? 30 : 20)
        widen(.holds, to: 22)
        widen(.name, to: names)
        widen(.last, to: .max)
        return allCases.compactMap { column in widths[column].map { (column, $0) } }
    }
}

extension TopLayout {
    mutating func list() {
        let columns = ListColumn.chosen(model, columns: grid.columns)
        heads(columns)
        let glyphs = model.glyphs
        if model.visible.isEmpty { return nothing() }
        for (row, app) in zip(regions.body, model.visible.dropFirst(model.first)) {
            var place = 1
            let isMarked = model.marked.contains(app.name)
            let isSelected = app.name == model.selected
            if isMarked { grid.put(glyphs.marked, row: row, column: 0, Style(.accent, bold: true)) }
            for (column, width) in columns {
                cell(column, of: app, row: row, column: place, width: width)
                place += width + 1
            }
            if isMarked {
                grid.put(app.shownName, row: row, column: 1, width: columns[0].width, Style(.accent, bold: true))
            }
            if isSelected { grid.ground(.selected, row: row) }
        }
        more()
    }

    /// Shows at the end of the last row how many apps are below the screen.
    private mutating func more() {
        let below = model.visible.count - model.first - regions.body.count
        guard below > 0 else { return }
        let text = " \(model.glyphs.down)\(below)"
        grid.put(text, row: regions.head, endingAt: grid.columns, width: 8, Style(.accent, bold: true))
    }

    mutating func nothing() {
        let text: String
        switch (model.link, model.apps.isEmpty) {
        case (.connecting, _): text = "asking the supervisor …"
        case (.lost, _): text = ""
        case (.up, true): text = "no apps are configured: add some to the configuration, then ‘torpor apply’"
        case (.up, false): text = "no app has “\(model.filter)” in its name or state: Esc shows all"
        }
        grid.put(text, row: regions.body.lowerBound, column: 1, Style(.dim))
    }

    private mutating func heads(_ columns: [(column: ListColumn, width: Int)]) {
        var place = 1
        for (column, width) in columns {
            let text = column.head(model)
            let style = Style(column.sorts(model.order) ? .accent : .dim, bold: true)
            if column.isRight {
                grid.put(text, row: regions.head, endingAt: place + width, width: width, style)
            } else {
                grid.put(text, row: regions.head, column: place, width: width, style)
            }
            place += width + 1
        }
    }

    private mutating func cell(_ column: ListColumn, of app: AppSummary, row: Int, column place: Int, width: Int) {
        let state = ShownState(app)
        let isUp = state < .notRunning
        switch column {
        case .name:
            grid.put(
                app.shownName,
                row: row,
                column: place,
                width: width,
                Style(isStale ? .dim : .plain, bold: isUp && !isStale)
            )
        case .state: put(state: state, of: app, row: row, column: place, width: width)
        case .spark:
            let style = Style(isStale ? .dim : sparkInk(app, state))
            grid.put(spark(app, columns: width), row: row, column: place, width: width, style)
        case .last: put(lastOf: app, row: row, column: place, width: width)
        case .holds: grid.put(app.holds.joined(separator: ", "), row: row, column: place, width: width, Style(.accent))
        case .pid, .memory, .processor, .uptime, .restarts:
            let (text, ink) = number(column, app)
            grid.put(text, row: row, endingAt: place + width, width: width, Style(isStale ? .dim : ink))
        }
    }

    private func number(_ column: ListColumn, _ app: AppSummary) -> (String, Color) {
        switch column {
        case .pid: return (app.pid.map { "\($0)" } ?? "-", app.pid == nil ? .dim : .plain)
        case .memory: return app.pid == nil ? ("-", .dim) : (app.memoryBytes.map(Amounts.memory) ?? "-", .plain)
        case .processor:
            guard app.pid != nil, let value = model.measurements[app.name]?.processorPercent else { return ("-", .dim) }
            return (Amounts.percent(value), value >= 80 ? .warning : value < 0.05 ? .dim : .plain)
        case .uptime:
            return (app.uptime.map { Amounts.duration(seconds: $0) } ?? "-", app.uptime == nil ? .dim : .plain)
        default: return ("\(app.restarts)", app.restarts == 0 ? .dim : .warning)
        }
    }

    mutating func put(state: ShownState, of app: AppSummary, row: Int, column: Int, width: Int) {
        let ink: Color = isStale ? .dim : state.ink
        grid.put(model.glyphs.sign(state), row: row, column: column, width: 1, Style(ink, bold: true))
        guard width > 2 else { return }
        if let transition = app.transition {
            let text = "\(model.glyphs.moving)\(transition)"
            grid.put(text, row: row, column: column + 2, width: width - 2, Style(isStale ? .dim : .warning))
        } else {
            grid.put(state.name, row: row, column: column + 2, width: width - 2, Style(ink, bold: state == .failed))
        }
    }

    private func sparkInk(_ app: AppSummary, _ state: ShownState) -> Color { app.pid == nil ? .dim : state.ink }

    /// CPU use or memory in the last minute.
    func spark(_ app: AppSummary, columns: Int, memory: Bool? = nil) -> String {
        guard let measured = model.measurements[app.name] else { return "" }
        let isMemory = memory ?? model.sparksMemory
        let values = measured.values(model.now, slot: max(1, model.delay)) {
            isMemory ? $0.memoryBytes.map(Double.init) : $0.processorPercent
        }
        // Scale to at least 10 % of a CPU, so that little use looks little.
        let most = values.compactMap { $0 }.max() ?? 0
        return model.glyphs.sparkline(values, columns: columns, top: isMemory ? most : max(10, most))
    }

    private mutating func put(lastOf app: AppSummary, row: Int, column: Int, width: Int) {
        var text = ""
        var ink = Color.dim
        var age = ""
        if let event = model.lastEvents[app.name] {
            age = Amounts.age(seconds: Double(model.now - event.at) / 1e6)
            text = TopText.sentence(event)
            ink = TopText.ink(event)
        }
        if let left = app.nextRestartMilliseconds, app.pid == nil {
            text = "restarts in \(Amounts.duration(seconds: Double(left) / 1000)); " + text
        } else if let status = app.status, !status.isEmpty, app.pid != nil {
            text = "“\(status)”" + (text.isEmpty ? "" : ", \(text)")
        }
        grid.put(age, row: row, endingAt: column + 4, width: 4, Style(.dim))
        grid.put(text, row: row, column: column + 5, width: width - 5, Style(isStale ? .dim : ink))
    }
}

/// Renders events as sentences.
enum TopText {
    static func sentence(_ event: EventRecord) -> String {
        guard let reason = event.reason, !event.text.contains(reason) else { return event.text }
        return "\(event.text) (\(reason))"
    }

    static func ink(_ event: EventRecord) -> Color {
        switch event.kind {
        case "state": event.to.flatMap { ShownState($0) }?.ink ?? .plain
        case "exit": StateChange(event) == nil ? .gone : .failed
        case "notice", "memory", "policy": .warning
        case "request", "task", "wake": .accent
        default: .plain
        }
    }
}

extension AppSummary {
    /// The app's name, and its badge.
    fileprivate var shownName: String { name + (badge.map { " (\($0))" } ?? "") }
}
