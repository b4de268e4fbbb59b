// SPDX-License-Identifier: Apache-2.0

import CommandLinePages
import Linux
import Varlink
import WireText

/// Standard output. A failed write fails the verb; a closed reader ends it without an error.
enum Output {
    static func write(_ text: String) { write(Array(text.utf8)) }

    /// A page for people, wrapped at the terminal's width.
    static func page(_ text: String) { write(Terminal.fitted(text)) }

    static func write(_ bytes: [UInt8]) {
        do throws(Errno) {
            try ThisProcess.write(bytes)
        } catch {
            // The reader chose to stop.
            if error == .brokenPipe { ThisProcess.exit(Outcome.done.rawValue) }
            Complaint.say("standard output cannot be written: \(error)", status: .failed)
            ThisProcess.exit(Outcome.failed.rawValue)
        }
    }

    /// One document, pretty-printed.
    static func document(_ json: JSON) { write(String(wire: json.serialisedPretty()) + "\n") }

    /// One object of a stream, on one line.
    package static func line(_ json: JSON) { write(json.description + "\n") }

    /// Exits as soon as the reader of standard output is gone: for verbs that may follow for long without output.
    static func endWithReader() {
        // If no thread can be started, the verb ends at its next write.
        try? WorkerThread.start(named: "reader") {
            guard Descriptor.waitUntilUnread(1) else { return }
            ThisProcess.exit(Outcome.done.rawValue)
        }
    }
}
