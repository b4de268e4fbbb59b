// SPDX-License-Identifier: Apache-2.0

import TorporAPI

extension TopModel {
    /// The lines of an app's details page.
    var detailPage: [String] { details }

    /// The app whose page is shown.
    var subjectApp: AppSummary? { subject.flatMap { name in apps.first { $0.name == name } } }
}

extension TopLayout {
    mutating func page() {
        switch model.mode {
        case .details: details()
        case .log: log()
        case .events: events()
        default: help()
        }
    }

    /// Writes the title of a page into the row where the list shows the heads of its columns.
    private mutating func title(_ what: String, _ app: AppSummary?) {
        let row = regions.head
        var place = 1
        if let app {
            let state = ShownState(app)
            place += grid.put(model.glyphs.sign(state) + " ", row: row, column: place, Style(state.ink, bold: true))
            place += grid.put(
                app.name + " ",
                row: row,
                column: place,
                width: grid.columns / 2,
                Style(.plain, bold: true)
            )
            let text = app.transition.map { "\(model.glyphs.moving)\($0)" } ?? state.name
            place += grid.put(text + " ", row: row, column: place, Style(app.transition == nil ? state.ink : .warning))
        }
        grid.put(what, row: row, column: place + (app == nil ? 0 : 1), Style(.dim))
    }

    private mutating func details() {
        let app = model.subjectApp
        title("", app)
        if let app, grid.columns >= 60 {
            let name = DisplayText.width(app.name, model.characters)
            let columns = min(30, (grid.columns - name - 40) / 2)
            if columns >= 8 {
                let cpu = model.measurements[app.name]?.processorPercent.map { Amounts.percent($0) + " %" } ?? "-"
                let state = ShownState(app)
                let groups: [[Part]] = [
                    [
                        Part("cpu ", .dim), Part(spark(app, columns: columns, memory: false), state.ink),
                        Part(" " + cpu),
                    ],
                    [
                        Part("mem ", .dim), Part(spark(app, columns: columns, memory: true), state.ink),
                        Part(" " + (app.memoryBytes.map(Amounts.memory) ?? "-")),
                    ],
                ]
                put(groups, row: regions.head, column: name + 24)
            }
        }
        if model.details.isEmpty {
            grid.put("asking …", row: regions.body.lowerBound, column: 1, Style(.dim))
        }
        for (row, line) in zip(regions.body, model.detailPage.dropFirst(model.scroll)) {
            put(line: line, row: row, Style(line.hasSuffix(":") && !line.hasPrefix(" ") ? .accent : .plain))
            // The line consists of the name of a fact and its value: show the name dim.
            if model.shift == 0, let name = Self.name(ofFact: line) { put(line: name, row: row, Style(.dim)) }
        }
        snapshot()
    }

    /// The name of a fact in a line: `   memory:` in `   memory: 1.6 MiB`; nil for other lines.
    private static func name(ofFact line: String) -> String? {
        guard line.hasPrefix("  "), let colon = line.firstIndex(of: ":") else { return nil }
        let name = line[...colon]
        let letters = name.dropLast().drop { $0 == " " }
        return letters.allSatisfy { $0.isLetter || $0 == " " } && !letters.isEmpty ? String(name) : nil
    }

    private mutating func log() {
        title("log, live" + (model.scroll > 0 ? " (\(model.scroll) more lines below)" : ""), model.subjectApp)
        if let trouble = model.logTrouble {
            for (row, line) in zip(regions.body, DisplayText.wrapped(trouble, to: grid.columns - 2)) {
                grid.put(line, row: row, column: 1, Style(.failed))
            }
            return
        }
        let lines = model.logLines.dropLast(model.scroll).suffix(regions.body.count)
        for (row, line) in zip(regions.body, lines) {
            put(line: line.text, row: row, Style(line.stream == "stderr" ? .warning : .plain))
        }
        if lines.isEmpty { grid.put("nothing yet", row: regions.body.lowerBound, column: 1, Style(.dim)) }
    }

    private mutating func events() {
        let all = model.shownEvents
        let what = model.onlySubject ? "its events" : "events, newest last"
        title(what + (model.scroll > 0 ? " (\(model.scroll) below)" : ""), model.onlySubject ? model.subjectApp : nil)
        let chosen = all.dropLast(model.scroll).suffix(regions.body.count)
        let names = min(20, chosen.compactMap { $0.app.map { DisplayText.width($0, model.characters) } }.max() ?? 0)
        for (row, event) in zip(regions.body, chosen) {
            let age = Amounts.age(seconds: Double(model.now - event.at) / 1e6)
            grid.put(age, row: row, endingAt: 5, width: 4, Style(.dim))
            var place = 6
            if !model.onlySubject {
                grid.put(event.app ?? "", row: row, column: place, width: names, Style(.plain, bold: true))
                place += names + 1
            }
            grid.put(shifted(TopText.sentence(event)), row: row, column: place, Style(TopText.ink(event)))
        }
        if chosen.isEmpty { grid.put("nothing yet", row: regions.body.lowerBound, column: 1, Style(.dim)) }
    }

    private mutating func help() {
        title("keys", nil)
        for (row, line) in zip(regions.body, TopHelp.lines.dropFirst(model.scroll)) {
            guard line.hasPrefix("STATE") else {
                grid.put(line, row: row, column: 0, width: grid.columns, Style(.plain))
                grid.put(String(line.prefix(11)), row: row, column: 0, Style(.accent, bold: true))
                continue
            }
            guard let state = Int(line.dropFirst(5)).flatMap(ShownState.init(rawValue:)) else { continue }
            grid.put(model.glyphs.sign(state), row: row, column: 4, Style(state.ink, bold: true))
            grid.put(model.glyphs.lane(state), row: row, column: 6, Style(state.ink))
            grid.put(state.name, row: row, column: 12, Style(state.ink))
        }
    }

    private mutating func put(line: String, row: Int, _ style: Style) {
        grid.put(shifted(line), row: row, column: 0, style)
    }

    /// The text without the columns that are scrolled away at the left.
    private func shifted(_ text: String) -> String {
        guard model.shift > 0 else { return text }
        var left = model.shift
        var pieces = DisplayText.pieces(text, model.characters)[...]
        while left > 0, let piece = pieces.popFirst() { left -= piece.width }
        return pieces.map(\.text).joined()
    }
}
