// SPDX-License-Identifier: Apache-2.0

import CommandLinePages
package import TorporAPI
import Varlink

/// The verb `history` without the argument parser (see ``PlainArguments``).
package struct PlainHistory {
    private let request: EventsRequest
    /// Names, globs and tags; all apps if there is none.
    private let apps: [String]
    private let options: PlainOptions

    /// Without a number and a time, the last 100 events are shown, of all `apps` together.
    package init(_ request: EventsRequest, of apps: [String], options: PlainOptions) {
        self.apps = apps
        var request = request
        request.limit = request.limit ?? (request.since == nil ? 100 : nil)
        self.request = request
        self.options = options
    }

    init?(_ words: ArraySlice<String>) {
        var request = EventsRequest()
        let read = PlainWords(words) { option, words in
            switch option {
            case "--utc": return true
            case "--since": return words.set(&request.since) { PointInTime(argument: $0)?.microseconds }
            default: return words.setLines(option, &request.limit)
            }
        }
        guard let line = read else { return nil }
        self.init(request, of: line.operands, options: line.options)
    }

    package func run() throws {
        let manager = try Manager(options)
        var events = try events(of: apps.first, manager)
        if apps.count > 1 {
            for app in apps.dropFirst() { events += try self.events(of: app, manager) }
            events = merged(events)
        }
        if options.json { return Output.document(.array(events)) }
        Output.page(events.isEmpty ? "no events\n" : text(events))
    }

    private func events(of app: String?, _ manager: Manager) throws -> [JSON] {
        var request = request
        request.app = app
        var events: [JSON] = []
        func take(_ reply: JSON) {
            events += reply["events"]?.arrayValue ?? []
            request.after = reply["sequence"]?.intValue
            EventText.warn(of: reply)
        }
        take(try manager.call(.events(request), onReply: take))
        return events
    }

    /// The events in their order, each once, and no more than were asked for.
    private func merged(_ events: [JSON]) -> [JSON] {
        var bySequence: [Int64: JSON] = [:]
        for event in events { bySequence[event["sequence"]?.intValue ?? 0] = event }
        let sorted = bySequence.sorted { $0.key < $1.key }.map(\.value)
        return request.limit.map { Array(sorted.suffix(Int(clamping: $0))) } ?? sorted
    }

    private func text(_ events: [JSON]) -> String {
        var text = ""
        for json in events {
            guard let event = try? EventRecord(json: json) else { continue }
            let time = Times.timestamp(event.at)
            let run = event.incarnation.map { $0 > 0 ? "run \($0)" : "-" } ?? "-"
            let column = "  " + run + String(repeating: " ", count: max(1, 8 - run.count))
            text += Terminal.coloured(time, .dim) + column
            var sentence = EventText.sentence(event)
            if let name = event.app, apps != [name] {
                sentence = Terminal.coloured(Terminal.harmless(name), .bold) + ": " + sentence
            }
            text += Terminal.wrapped(sentence, behind: time.count + column.count) + "\n"
        }
        return text
    }
}
