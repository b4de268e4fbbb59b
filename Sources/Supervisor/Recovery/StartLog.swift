// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import Linux

/// Reports why torpord does not start, before there is a supervisor.
package enum StartLog {
    /// Writes a text to standard error. If standard error is connected to the journal, logs each line as an error.
    ///
    /// - Parameter name: the prefix of the text. It is left out in the journal, which names the program itself.
    package static func tell(_ name: String, _ text: String) {
        let log = DaemonLog(level: .debug)
        guard log.isJournal else { return ThisProcess.complain(name + text) }
        for line in text.split(separator: "\n") { log.error(String(line)) }
    }
}
