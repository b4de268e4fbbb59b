// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

@Suite("Apps that lock what they share") struct SharedResourceTests {
    private static let database = """
        import sqlite3
        os.makedirs(os.path.dirname(path), exist_ok=True)
        c = sqlite3.connect(path, isolation_level=None)
        c.execute("CREATE TABLE notes (text)")
        """

    private func run(
        _ begin: String,
        _ end: String = "c.execute('COMMIT')",
        resources: String = "@D/shared",
        _ body: (Daemon) throws -> Void
    ) throws {
        let program = Locking.app(Self.database + "\n" + begin, release: end)
        let toml = Locking.toml(#"shared_resources = ["\#(resources)"]"#, path: "@D/shared/notes.db")
        try withDaemon(toml, files: ["holder.py": program]) { daemon throws in
            try daemon.waitForRecord("holder", "locked")
            try body(daemon)
        }
    }

    @Test("An SQLite transaction in a shared folder is waited for although nobody is seen waiting")
    func transaction() throws {
        try run("c.execute('BEGIN IMMEDIATE')") { daemon throws in
            try daemon.wantSuspended()
            let event = try daemon.waitForEvent("holder", "cannot stay suspended")
            #expect(event.text.contains("holds a lock on \(daemon.directory)/shared/notes.db (posix)"))
            #expect(event.text.contains("one of its shared_resources"))
            try daemon.release()
            try daemon.waitFor("holder", "suspended")
        }
    }

    @Test("A reader's transaction keeps writers away, and counts too")
    func reader() throws {
        let begin = "c.execute('BEGIN'); c.execute('SELECT * FROM notes').fetchall()"
        try run(begin) { daemon throws in
            try daemon.wantSuspended()
            try daemon.waitForEvent("holder", "cannot stay suspended")
            try daemon.release()
            try daemon.waitFor("holder", "suspended")
        }
    }

    @Test("A mere connection to a database in WAL mode keeps nobody from working, a transaction of it does")
    func writeAheadLog() throws {
        let begin = "c.execute('PRAGMA journal_mode=WAL'); c.execute('INSERT INTO notes VALUES (1)')"
        try run(begin, "c.execute('BEGIN IMMEDIATE')") { daemon throws in
            let holder = try #require(daemon.processes(of: "holder").first)
            let reading = HeldLockReading([holder])
            #expect(reading.read())
            #expect(reading.locks.contains { $0.path?.hasSuffix("-shm") ?? false }, "it has a lock")
            try daemon.done(.suspend, "holder")
            #expect(daemon.isStopped("holder"))
            try daemon.done(.resume, "holder")
            try daemon.release()
            try daemon.waitForRecord("holder", "released")
            try daemon.wantSuspended()
            try daemon.waitForEvent("holder", "notes.db-shm (posix), one of its shared_resources")
        }
    }

    @Test("A shared resource is found behind a symbolic link, and one with a like name is another")
    func names() throws {
        for (resource, isShared) in [("@D/link", true), ("@D/shar", false), ("@D/shared/notes.db", true)] {
            try run("c.execute('BEGIN IMMEDIATE')", resources: resource) { daemon throws in
                try File.link(daemon.directory + "/link", to: "shared")
                // Whoever uses it has had the kernel look at it.
                _ = try File.realPath(daemon.directory + "/link")
                if isShared {
                    try daemon.wantSuspended()
                    try daemon.waitForEvent("holder", "cannot stay suspended")
                } else {
                    try daemon.done(.suspend, "holder")
                    #expect(daemon.isStopped("holder"))
                }
            }
        }
    }
}
