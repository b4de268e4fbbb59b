// SPDX-License-Identifier: Apache-2.0

import Configuration
import Testing

@Suite("A hint for a key of supervisord has the value of the user")
struct ForeignValueTests {
    @Test(
        "each key",
        arguments: [
            ("stopsignal = \"QUIT\"", "stop_signal = \"SIGQUIT\""), ("stopsignal = 15", "stop_signal = \"SIGTERM\""),
            ("numprocs = 3", "instances = 3"), ("stopwaitsecs = 30", "grace = \"30s\""),
            ("stopwaitsecs = \"2min\"", "grace = \"2min\""), ("startsecs = 7", "stable_after = \"7s\""),
            ("startretries = 5", "restart_backoff = { limit = 5 }"), ("exitcodes = \"0,3\"", "[0, 3]"),
            ("exitcodes = [2]", "success_exit_status = [2]"), ("autostart = false", "launch = \"on-demand\""),
            ("autorestart = true", "restart = \"always\""), ("autorestart = \"unexpected\"", "\"on-failure\""),
            ("stdout_logfile_backups = 9", "log_max_files = 9"), ("stdout_logfile_maxbytes = \"50MB\"", "\"50MiB\""),
            ("command = \"/bin/web -p 80\"", "exec = [\"/bin/web\", \"-p\", \"80\"]"),
        ]
    )
    func value(key: String, right: String) {
        let complaint = complaints(app: key)
        let hint = complaint.first { $0.contains("there is no such key; write ") }
        #expect(hint?.contains(right) == true, "\(complaint)")
    }

    @Test(
        "an example, if the value is none that supervisord accepts",
        arguments: [
            ("stopsignal = \"NONE\"", "stop_signal = \"SIGTERM\""), ("numprocs = \"many\"", "instances = 4"),
            ("stopwaitsecs = -1", "grace = \"5s\""), ("exitcodes = [\"a\"]", "success_exit_status = [0, 2]"),
        ]
    )
    func example(key: String, right: String) {
        let complaint = complaints(app: key)
        #expect(complaint.contains { $0.contains(right) }, "\(complaint)")
    }

    @Test("restart as true or false", arguments: [("true", "always"), ("false", "never")])
    func restart(flag: String, word: String) {
        let complaint = complaints(app: "restart = \(flag)")
        #expect(complaint.contains { $0.contains("found a boolean: write \"\(word)\"") }, "\(complaint)")
    }
}
