// SPDX-License-Identifier: Apache-2.0

import CommandLinePages
import Linux
package import Varlink
import WireText

/// Standard output. If a write fails, the verb fails. If the reader has closed the pipe, the verb ends without an
/// error.
package enum Output {
    package static func write(_ text: String) { write(Array(text.utf8)) }

    /// Writes a page for users, wrapped at the terminal's width.
    package static func page(_ text: String) { write(Terminal.fitted(text)) }

    package static func write(_ bytes: [UInt8]) {
        do throws(Errno) {
            try ThisProcess.write(bytes)
        } catch {
            // The reader, such as head(1), has closed the pipe because it needs no more: this is not an error.
            if error == .brokenPipe { ThisProcess.exit(Outcome.done.rawValue) }
            Complaint.say("standard output cannot be written: \(error)", status: .failed)
            ThisProcess.exit(Outcome.failed.rawValue)
        }
    }

    /// Writes one JSON document, pretty-printed.
    package static func document(_ json: JSON) { write(String(wire: json.serialisedPretty()) + "\n") }

    /// Writes one object of a stream, on one line.
    package static func line(_ json: JSON) { write(json.description + "\n") }

    /// Makes this process exit as soon as no process reads standard output any longer. For verbs that follow events and
    /// may write nothing for a long time, so that no write would fail.
    package static func endWithReader() {
        // If no thread can be started, the verb ends only at its next write.
        try? WorkerThread.start(named: "reader") {
            guard Descriptor.waitUntilUnread(1) else { return }
            ThisProcess.exit(Outcome.done.rawValue)
        }
    }
}
