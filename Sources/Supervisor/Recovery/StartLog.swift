// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import Linux

/// Reports why torpord does not start, before there is a supervisor.
package enum StartLog {
    /// Writes to standard error; if that is a stream of the journal, as one error for each line.
    ///
    /// - Parameter name: the prefix, unless the journal names the writer itself.
    package static func tell(_ name: String, _ text: String) {
        let log = DaemonLog(level: .debug)
        guard log.isJournal else { return ThisProcess.complain(name + text) }
        for line in text.split(separator: "\n") { log.error(String(line)) }
    }
}
