// SPDX-License-Identifier: Apache-2.0

import Linux

/// Compares the log of an app with what the app has written: every line once, in order, and what is missing is counted.
struct LogCheck {
    private let app: AppModel
    private let name: String
    /// The files in the folder of the logs.
    private let names: Set<String>
    private let base: String
    /// Writing to the log has failed in this run of the simulation, so the end of the log may be missing.
    private let mayLackEnd: Bool

    init(_ app: AppModel, in folder: String, _ names: Set<String>, mayLackEnd: Bool) {
        self.app = app
        self.names = names
        name = app.name + ".log"
        base = folder + "/" + name
        self.mayLackEnd = mayLackEnd
    }

    private enum Entry {
        case line(Substring)
        case missing(bytes: Int)
    }

    func run() throws {
        let (entries, isRotated) = read()
        var next = 0
        var gap: Int?
        var isFirst = isRotated
        for entry in entries {
            switch entry {
            case .missing(let bytes): gap = (gap ?? 0) + bytes
            case .line(let line):
                // What was rotated away is gone.
                if isFirst { next = app.lines.firstIndex { $0.text == line } ?? 0 }
                isFirst = false
                try match(line, &next, &gap)
            }
        }
        if next < app.lines.count, !mayLackEnd {
            throw Violation(
                "the log of \(app.name) lacks its last \(app.lines.count - next) lines, from \(app.lines[next].text) on"
            )
        }
    }

    private func match(_ line: Substring, _ next: inout Int, _ gap: inout Int?) throws {
        guard next < app.lines.count else { throw Violation("the log of \(app.name) has \(line) twice or too late") }
        if line != app.lines[next].text {
            guard let found = app.lines[next...].firstIndex(where: { $0.text == line }) else {
                throw Violation("the log of \(app.name) has \(line) where \(app.lines[next].text) was written")
            }
            let missing = app.lines[next..<found]
            let bytes = missing.reduce(0) { $0 + $1.text.utf8.count + 1 }
            let first = app.lines[next]
            let last = app.lines[found]
            let isForgotten = first.keepers != last.keepers || (app.wasRemoved && first.deaths != last.deaths)
            guard mayLackEnd, isForgotten || gap == bytes else {
                throw Violation(
                    "the log of \(app.name) lacks \(bytes) bytes before \(line), from \(app.lines[next].text) on, and says "
                        + "\(gap.map(String.init) ?? "nothing")"
                )
            }
            next = found
        }
        gap = nil
        next += 1
    }

    private func read() -> (entries: [Entry], isRotated: Bool) {
        var texts: [String] = []
        for number in (1...9).reversed() where names.contains("\(name).\(number)") {
            if let text = try? File.readString("\(base).\(number)", limit: 1 << 24) { texts.append(text) }
        }
        if let text = try? File.readString(base, limit: 1 << 24) { texts.append(text) }
        var entries: [Entry] = []
        // Bytes, not characters: all logs are read at each settling.
        let own = Array((app.name + " ").utf8)
        for text in texts {
            for line in text.utf8.split(separator: UInt8(ascii: "\n")) {
                guard let space = line.firstIndex(of: UInt8(ascii: " ")) else { continue }
                let rest = line[line.index(after: space)...]
                if rest.starts(with: own) {
                    entries.append(.line(Substring(rest)))
                } else if rest.starts(with: "torpor: ".utf8) {
                    let said = Substring(rest)
                    guard said.contains("bytes of output are missing here") else { continue }
                    entries.append(.missing(bytes: Int(said.dropFirst(8).prefix { $0 != " " }) ?? 0))
                }
            }
        }
        return (entries, texts.count > 1)
    }
}
