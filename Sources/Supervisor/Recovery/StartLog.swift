// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import Linux

/// Reports why torpord does not start, before there is a supervisor.
package enum StartLog {
    /// Writes a text to standard error. If standard error is connected to the journal, each line has the prefix of an
    /// error (sd-daemon(3)).
    ///
    /// The lines do not go to the journal's socket, as those of ``DaemonLog`` do: torpord ends at once, and the journal
    /// finds the unit of an entry from the socket only while its sender exists. `journalctl -u torpord` would miss it.
    ///
    /// - Parameter name: the prefix of the text. It is left out in the journal, which names the program itself.
    package static func tell(_ name: String, _ text: String) {
        let log = DaemonLog(level: .debug)
        guard log.isJournal else { return ThisProcess.complain(name + text) }
        log.writeLines(text, .error)
    }
}
