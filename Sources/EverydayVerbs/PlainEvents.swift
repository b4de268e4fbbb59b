// SPDX-License-Identifier: Apache-2.0

import CommandLinePages
package import TorporAPI
package import Varlink

/// The verb `events` without the argument parser (see ``PlainArguments``).
package struct PlainEvents {
    private let request: EventsRequest
    private let options: PlainOptions

    package init(_ request: EventsRequest, options: PlainOptions) {
        self.request = request
        self.options = options
    }

    init?(_ words: ArraySlice<String>) {
        var request = EventsRequest()
        let read = PlainWords(words) { option, words in
            switch option {
            case "-f", "--follow": request.follow = true
            case "--utc": break
            case "--since": return words.set(&request.since) { PointInTime(argument: $0)?.microseconds }
            default: return words.setLines(option, &request.limit)
            }
            return true
        }
        guard let line = read, line.operands.count <= 1 else { return nil }
        request.app = line.operands.first
        self.init(request, options: line.options)
    }

    package func run() throws {
        try run { json in
            if options.json { return json.description + "\n" }
            guard let event = try? EventRecord(json: json) else { return "" }
            let time = Times.timestamp(event.at)
            let app = event.app.map { Terminal.coloured(Terminal.harmless($0), .bold) + ": " } ?? ""
            return Terminal.coloured(time, .dim) + " "
                + Terminal.wrapped(app + EventText.sentence(event), behind: time.count + 1) + "\n"
        }
    }

    /// Shows each event as `text` has it, in whole lines.
    package func run(_ text: (_ event: JSON) -> String) throws {
        var request = request
        if request.follow { Output.endWithReader() }
        // If the supervisor was replaced, continue after the last event that the old one sent.
        let last = try Manager(options).call(.events(request)) { reply in
            Self.show(reply, text)
            request.after = reply["sequence"]?.intValue
            request.limit = nil
        }
        Self.show(last, text)
    }

    private static func show(_ reply: JSON, _ text: (_ event: JSON) -> String) {
        let lines = (reply["events"]?.arrayValue ?? []).map(text).joined()
        EventText.warn(of: reply)
        Output.write(lines)
    }
}
