// SPDX-License-Identifier: Apache-2.0

import CommandLinePages
import Linux
import TorporAPI
import Varlink

/// The verb `signal` without the argument parser (see ``PlainArguments``).
package struct PlainSignal {
    private let signal: String
    private let apps: [String]
    private let options: PlainOptions

    package init(signal: String, apps: [String], options: PlainOptions) {
        self.signal = signal
        self.apps = apps
        self.options = options
    }

    init?(_ words: ArraySlice<String>) {
        guard let line = PlainWords(words), line.operands.count >= 2, Self.isSignal(line.operands[0]) else {
            return nil
        }
        self.init(signal: line.operands[0], apps: Array(line.operands.dropFirst()), options: line.options)
    }

    /// Whether the word names a signal, or is 0, which asks whether apps run.
    package static func isSignal(_ word: String) -> Bool { word == "0" || Signal.number(named: word) != nil }

    package func run() throws {
        // An app that two of the words mean gets the signal once, since all requests have the same token.
        let token = RequestToken.random()
        let manager = try Manager(options)
        // If a word means no app, no app gets the signal.
        if apps.count > 1 { _ = try manager.call(.list(of: apps)) }
        var failures: [Failure] = []
        var sent: [JSON] = []
        for app in apps {
            do throws(Failure) {
                let reply = try manager.call(.signal(app: app, signal: signal, token: token))
                sent.append(["app": .string(app), "ok": true])
                if let message = reply["message"]?.stringValue { Complaint.say(message, .remark) }
            } catch {
                guard apps.count > 1 else { throw error }
                failures.append(error)
                sent.append(["app": .string(app), "ok": false])
            }
        }
        if options.json { Output.document(apps.count == 1 ? sent[0] : .array(sent)) }
        guard let first = failures.first else { return }
        for failure in failures.dropLast() { if let message = failure.message { Complaint.say(message) } }
        throw Failure(status: first.status, message: failures.last?.message)
    }
}
