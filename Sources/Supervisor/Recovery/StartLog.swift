// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import Linux

/// Reports why torpord cannot start, before the supervisor and its log exist.
package enum StartLog {
    /// Writes a text to standard error. If standard error is connected to the journal, each line has the prefix of an
    /// error (sd-daemon(3)).
    ///
    /// The text is not sent to the journal's socket, as ``DaemonLog`` does. For entries from that socket, the journal
    /// can find the sender's unit only while the sender exists, but torpord ends at once: `journalctl -u torpord` would
    /// not show the entry.
    ///
    /// - Parameter name: the prefix of the text. It is left out in the journal, which names the program itself.
    package static func tell(_ name: String, _ text: String) {
        let log = DaemonLog(level: .debug)
        guard log.isJournal else { return ThisProcess.complain(name + text) }
        log.writeLines(text, .error)
    }
}
