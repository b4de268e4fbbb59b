// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The database of a daemon that does not run.
package enum Sqlite {
    /// Runs one statement, and gives the values of the first row, a space between them.
    package static func ask(_ daemon: Daemon, _ sql: String) throws -> String {
        let script = """
            import sqlite3, sys
            db = sqlite3.connect(sys.argv[1])
            row = db.execute(sys.argv[2]).fetchone()
            db.commit()
            print(*(row or []))
            """
        let (code, output) = try Spawn.run(
            ["/usr/bin/python3", "-c", script, daemon.directory + "/s/torpor.db", sql]
        )
        guard code == 0 else { throw Trouble("sqlite: \(output)") }
        return output.trimmingCharacters(in: .newlines)
    }
}
