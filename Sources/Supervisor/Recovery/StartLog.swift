// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import Linux

/// What torpord has to say before there is a supervisor: why it does not start.
package enum StartLog {
    /// Writes to standard error, or, where that is a stream of the journal, an error for each line.
    ///
    /// - Parameter name: what stands before it where nobody else says who writes.
    package static func tell(_ name: String, _ text: String) {
        let log = DaemonLog(level: .debug)
        guard log.isJournal else { return ThisProcess.complain(name + text) }
        for line in text.split(separator: "\n") { log.error(String(line)) }
    }
}
