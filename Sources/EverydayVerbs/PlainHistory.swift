// SPDX-License-Identifier: Apache-2.0

import CommandLinePages
package import TorporAPI
import Varlink

/// The verb `history` without the argument parser (see ``PlainArguments``).
package struct PlainHistory {
    private let request: EventsRequest
    private let options: PlainOptions

    /// Without a number and a time, the last 100 events are shown.
    package init(_ request: EventsRequest, options: PlainOptions) {
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
        guard let line = read, line.operands.count <= 1 else { return nil }
        request.app = line.operands.first
        self.init(request, options: line.options)
    }

    package func run() throws {
        var request = request
        var events: [JSON] = []
        func take(_ reply: JSON) {
            events += reply["events"]?.arrayValue ?? []
            request.after = reply["sequence"]?.intValue
            EventText.warn(of: reply)
        }
        take(try Manager(options).call(.events(request), onReply: take))
        if options.json { return Output.document(.array(events)) }
        Output.page(events.isEmpty ? "no events\n" : text(events))
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
            if let name = event.app, name != request.app {
                sentence = Terminal.coloured(Terminal.harmless(name), .bold) + ": " + sentence
            }
            text += Terminal.wrapped(sentence, behind: time.count + column.count) + "\n"
        }
        return text
    }
}
