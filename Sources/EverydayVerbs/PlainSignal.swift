// SPDX-License-Identifier: Apache-2.0

import Linux
import TorporAPI
import Varlink

/// The verb `signal` without the argument parser (see ``PlainArguments``).
package struct PlainSignal {
    private let signal: String
    private let app: String
    private let options: PlainOptions

    package init(signal: String, app: String, options: PlainOptions) {
        self.signal = signal
        self.app = app
        self.options = options
    }

    init?(_ words: ArraySlice<String>) {
        guard let line = PlainWords(words), line.operands.count == 2, Signal.number(named: line.operands[0]) != nil
        else { return nil }
        self.init(signal: line.operands[0], app: line.operands[1], options: line.options)
    }

    package func run() throws {
        let token = RequestToken.random()
        let reply = try Manager(options).call(.signal(app: app, signal: signal, token: token))
        if options.json { Output.document(["app": .string(app), "ok": true]) }
        if let message = reply["message"]?.stringValue { Complaint.say(message, .remark) }
    }
}
