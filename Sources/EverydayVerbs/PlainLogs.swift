// SPDX-License-Identifier: Apache-2.0

import CommandLinePages
import Linux
import TorporAPI
import Varlink

/// The verb `logs` without the argument parser (see ``PlainArguments``).
package struct PlainLogs {
    private let apps: [String]
    private let choice: LogChoice
    private let showsTimes: Bool
    private let options: PlainOptions

    package init(apps: [String], choice: LogChoice, showsTimes: Bool, options: PlainOptions) {
        self.apps = apps
        self.choice = choice
        self.showsTimes = showsTimes
        self.options = options
    }

    init?(_ words: ArraySlice<String>) {
        var choice = LogChoice()
        var showsTimes = false
        let read = PlainWords(words) { option, words in
            switch option {
            case "-f", "--follow": choice.follow = true
            case "-t", "--times": showsTimes = true
            case "--utc": break
            case "--grep": return words.set(&choice.grep) { $0 }
            case "--since": return words.set(&choice.since) { PointInTime(argument: $0)?.microseconds }
            default: return words.setLines(option, &choice.lines)
            }
            return true
        }
        guard let line = read else { return nil }
        self.init(apps: line.operands, choice: choice, showsTimes: showsTimes, options: line.options)
    }

    package func run() throws {
        let manager = try Manager(options)
        if choice.follow { Output.endWithReader() }
        let names: [String]
        let isOne: Bool
        do throws(Failure) {
            (names, isOne) = try manager.names(of: apps)
        } catch {
            guard error.status == .unknown, apps.count == 1, try showLeftLog(of: apps[0], manager) else { throw error }
            return
        }
        if isOne {
            let lines = Lines(hasTimes: showsTimes, isJSON: options.json)
            return try AppLog(app: names[0], manager: manager, choice: choice).read { page in
                Output.write(page.lines.map { lines.text(of: $0) }.joined())
                return true
            }
        }
        let lines = Lines(hasTimes: showsTimes, isJSON: options.json)
        // If each app is named, none is followed besides.
        let patterns = !apps.isEmpty && apps.allSatisfy(names.contains) ? nil : apps
        try ManyLogs(apps: names, patterns: patterns, options: options, choice: choice) { app, apps, line in
            Output.write(lines.text(of: line, app, apps))
        }.run()
    }

    /// Shows what is left of the log of an app that was removed from the configuration. Returns false if nothing is.
    private func showLeftLog(of app: String, _ manager: Manager) throws -> Bool {
        let lines = Lines(hasTimes: showsTimes, isJSON: options.json)
        // Ask now: while the log is read, the connection takes no other call.
        let sentence = sentence(aboutRemoved: app, manager)
        var isSaid = false
        do {
            try AppLog(app: app, manager: manager, choice: choice).read { page in
                if !isSaid { Complaint.say(sentence, .remark) }
                isSaid = true
                Output.write(page.lines.map { lines.text(of: $0) }.joined())
                return true
            }
        } catch let error as Failure {
            if isSaid || error.status != .unknown { throw error }
        }
        return isSaid
    }

    private func sentence(aboutRemoved app: String, _ manager: Manager) -> String {
        var request = EventsRequest()
        request.app = app
        request.limit = 20
        let events = (try? manager.call(.events(request)))?["events"]?.arrayValue ?? []
        let removal = events.last {
            $0["kind"]?.stringValue == "configuration" && $0["text"]?.stringValue?.contains("removed") == true
        }
        let when = removal?["at"]?.intValue.map { " since \(Times.timestamp($0))" } ?? ""
        return "\(Terminal.harmless(app)) is not in the configuration\(when): this is what is left of its log"
    }

    private struct Lines: Sendable {
        var hasTimes: Bool
        var isJSON: Bool

        private static let colours: [Terminal.Colour] = [.cyan, .yellow, .green, .magenta, .blue, .red]

        /// A line as it is shown, behind the name of its app if lines of several `apps` are.
        func text(of line: JSON, _ app: Int? = nil, _ apps: [String] = []) -> String {
            if isJSON {
                guard let app, var object = line.objectValue else { return line.description + "\n" }
                object = JSONObject(members: [.init(name: "app", value: .string(apps[app]))] + object.members)
                return JSON.object(object).description + "\n"
            }
            var text = ""
            if let app {
                let name = Terminal.harmless(apps[app])
                let width = apps.reduce(0) { max($0, $1.count) }
                let padded = name + String(repeating: " ", count: max(0, width - name.count))
                text = Terminal.coloured(padded + " |", Self.colours[app % Self.colours.count]) + " "
            }
            if hasTimes, let at = line["at"]?.intValue {
                text += Terminal.coloured(Times.timestamp(at), .dim) + " "
            }
            return text + Terminal.line(line["text"]?.stringValue ?? "") + "\n"
        }
    }
}
