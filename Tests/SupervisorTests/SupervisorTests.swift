// SPDX-License-Identifier: Apache-2.0

import Lifecycle
import Testing

@testable import Engine
@testable import Supervisor

@Suite("What apps get in their environment") struct LaunchEnvironmentTests {
    @Test("Variables that speak to the supervisor itself are kept from apps")
    func own() {
        let inherited = LaunchEnvironment(inheriting: [
            "PATH=/bin", "NOTIFY_SOCKET=/run/systemd/notify", "WATCHDOG_PID=1", "LISTEN_FDS=3", "TORPOR_KEEPER_FD=3",
            "JOURNAL_STREAM=1:2", "EMPTY=", "EQUALS=a=b", "broken",
        ])
        #expect(inherited.entries(adding: [:]) == ["PATH=/bin", "EMPTY=", "EQUALS=a=b"])
        #expect(inherited.entries(adding: ["EMPTY": "no"]).sorted() == ["EMPTY=no", "EQUALS=a=b", "PATH=/bin"])
        #expect(inherited["EQUALS"] == "a=b")
    }
}

@Suite("Finding programs") struct ExecutableTests {
    @Test("A path is taken as it is, relative to the directory")
    func path() throws {
        #expect(try Executable.find("/a/b", path: nil, directory: nil) == "/a/b")
        #expect(try Executable.find("bin/run", path: "/bin", directory: "/srv/web") == "/srv/web/bin/run")
    }

    @Test("A name is looked up on the PATH, and its absence is said with the PATH")
    func name() throws {
        #expect(try Executable.find("sh", path: "/nonexistent:/bin", directory: nil) == "/bin/sh")
        let trouble = #expect(throws: LaunchError.self) {
            try Executable.find("no-such-program", path: "/nonexistent", directory: nil)
        }
        #expect(trouble?.description.contains("it is not on the PATH /nonexistent") == true)
    }

    @Test("A file of that name that is not executable is said to be so")
    func notExecutable() {
        let trouble = #expect(throws: LaunchError.self) {
            try Executable.find("passwd", path: "/etc", directory: nil)
        }
        #expect(trouble?.description.contains("/etc/passwd is not executable") == true)
    }
}
