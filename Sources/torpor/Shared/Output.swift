// SPDX-License-Identifier: Apache-2.0

import CommandLinePages
import Linux
import Varlink
import WireText

/// Standard output. A verb whose output cannot be written has failed; one that is no longer read is over.
enum Output {
    /// A text.
    static func write(_ text: String) { write(Array(text.utf8)) }

    /// A page for people.
    static func page(_ text: String) { write(Terminal.fitted(text)) }

    /// Bytes.
    static func write(_ bytes: [UInt8]) {
        do throws(Errno) {
            try ThisProcess.write(bytes)
        } catch {
            // That is the reader's choice.
            if error == .brokenPipe { ThisProcess.exit(Outcome.done.rawValue) }
            Complaint.say("standard output cannot be written: \(error)", status: .failed)
            ThisProcess.exit(Outcome.failed.rawValue)
        }
    }

    /// One document, on lines of its own.
    static func document(_ json: JSON) { write(String(wire: json.serialisedPretty()) + "\n") }

    /// One object of a stream, on one line.
    package static func line(_ json: JSON) { write(json.description + "\n") }

    /// Ends this process as soon as nobody reads standard output: for verbs that follow what may not come for long.
    static func endWithReader() {
        // Without a thread it ends with the next thing that it writes.
        try? WorkerThread.start(named: "reader") {
            guard Descriptor.waitUntilUnread(1) else { return }
            ThisProcess.exit(Outcome.done.rawValue)
        }
    }
}
