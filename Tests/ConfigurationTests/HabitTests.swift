// SPDX-License-Identifier: Apache-2.0

import Configuration
import Testing

@Suite("What is written from habit is an error that says what to write")
struct HabitTests {
    @Test(
        "what PM2 starts again by cron or by a watch is a job that restarts the app",
        arguments: [
            ("cron_restart = \"0 3 * * *\"", "timers = [{ calendar"), ("watch = true", "paths = [{ changed"),
        ]
    )
    func restarts(keys: String, hint: String) {
        let found = complaints(app: keys)
        #expect(found.count == 1 && found[0].contains(hint) && found[0].contains("\"--only-running\""), "\(found)")
    }

    private static let ready = "is not \"exec\", \"notify\", \"delegate\" or a table with tcp, http, command or file"

    @Test(
        "a value of an app's key",
        arguments: [
            (
                "environment.PORT = 80",
                "20: apps.web.environment.PORT: expected a string, found an integer: write \"80\""
            ),
            (
                "environment = [\"PORT=80\"]",
                "15: apps.web.environment: expected a table, found an array: write { PORT = \"80\" }"
            ),
            (
                "environment = []",
                "15: apps.web.environment: expected a table, found an array: write { NAME = \"value\" }"
            ),
            (
                "grace = \"5sec\"",
                "9: apps.web.grace: \"sec\" is not a unit of time: write \"s\"; there are us, ms, s, min, h and d"
            ),
            (
                "memory_limit = \"100mb\"",
                "16: apps.web.memory_limit: \"mb\" is not a unit of size: write \"MB\"; there are B, KiB, MiB, GiB and TiB "
                    + "(or K, M, G and T), KB, MB, GB and TB"
            ),
            (
                "ready = { http = \"https://a\" }",
                "18: apps.web.ready.http: \"https://a\" does not begin with http://: Torpor asks without TLS: write "
                    + "{ command = [\"curl\", \"-fs\", \"https://…\"] }"
            ),
            ("ready = \"http://a/\"", "9: apps.web.ready: \"http://a/\" \(ready): write { http = \"http://a/\" }"),
            ("ready = \"a:80\"", "9: apps.web.ready: \"a:80\" \(ready): write { tcp = \"a:80\" }"),
            (
                "ready = \"/run/a\"",
                "9: apps.web.ready: \"/run/a\" \(ready): write { file = \"/run/a\" }, or { command = [\"/run/a\"] }"
            ),
            (
                "before_start = [\"sleep\", 5]",
                "26: apps.web.before_start[1]: expected a string, found an integer: write \"5\""
            ),
            (
                "cover = \"a | tee b\"",
                "9: apps.web.cover: expected an array of strings, found a string: write [\"/bin/sh\", \"-c\", \"a | tee b\"]"
            ),
        ]
    )
    func value(line: String, complaint: String) { #expect(complaints(app: line) == ["torpor.toml:3:" + complaint]) }

    @Test("a number of instances as PM2 has it is one error, whatever else needs instances")
    func instances() {
        let keys = "instances = \"max\"\ninstance_first = 0\nsockets = [{ stream = \"80%02i\" }]"
        #expect(
            complaints(app: keys) == [
                "torpor.toml:3:13: apps.web.instances: expected a number, such as 4 (‘nproc’ prints how many "
                    + "processors there are), found a string"
            ]
        )
    }
}
