// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

@Suite(
    "The dashboard in a real browser",
    .enabled(
        if: ["/usr/bin/chromium", "/usr/bin/chromedriver"].allSatisfy(File.isExecutable),
        "chromium and chromium-driver are needed: make test installs them"
    )
)
struct WebBrowserTests {
    static let fleet = #"""
        [apps.web]
        exec = ["/bin/sh", "-c", "n=0; while :; do n=$((n+1)); echo line $n; sleep 0.1; done"]
        requires = ["db"]
        snapshot = ["/bin/printf", '\033[31m<b>shown</b>\033[0m']
        [apps.pictured]
        exec = ["/bin/sleep", "1000"]
        launch = "background"
        snapshot = ["/bin/sh", "-c", "echo @PNG | base64 -d"]
        title = { default = "Picture <b>book</b>", de = "Bilderbuch" }
        summary = { default = "What <b>it</b> shows", de = "Was es zeigt" }
        icon = { default = "@D/face.svg", dark = "@D/dark.svg" }
        [apps.pictured.settings]
        port = { type = "integer", default = 8000, max = 65535, title = { default = "Port <b>", de = "Anschluss <b>" }, help = "Where it listens." }
        theme = { type = "choice", values = ["light", "dark"], default = "light" }
        key = { type = "secret", title = "API key" }
        [apps.db]
        exec = ["/bin/sleep", "1000"]
        [apps.quiet]
        exec = ["/bin/sh", "-c", "echo '<img src=x onerror=\"window.hurt=1\"><script>window.hurt=1</script>'; exec sleep 1000"]
        [apps.deaf]
        exec = ["@TORPOR", "app", "delegate", "--", "/bin/sleep", "1000"]
        ready = "delegate"
        topics = { "*" = "all" }
        [apps.caged]
        exec = ["/bin/sleep", "1000"]
        launch = "on-demand"
        sandbox = true
        [apps.caged.permissions]
        camera = { purpose = { default = "Sees <b>you", de = "Sieht <b>dich" } }
        network = { purpose = "Asks", ports = [443], default = "allow" }
        [apps.moody]
        exec = ["/bin/sh", "-c", "echo oh; exit 3"]
        restart = "never"
        """#
    private static let dark = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"48\" height=\"36\"/>"
    private static let face = """
        <svg xmlns="http://www.w3.org/2000/svg" width="32" height="24"><script>window.top.hurt = 1</script>
        <rect width="32" height="24" style="fill: teal"/></svg>
        """

    /// The folder of the scripts.
    private static let scripts = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "browser").path

    /// axe-core, which the Python package axe-core-python brings, in the build's folder: fetched once.
    private static func axe() throws -> String {
        let folder = (File.parent(of: Built.folder) ?? Built.folder) + "/web-axe"
        let found = {
            try Spawn.run(["/usr/bin/find", folder, "-name", "axe.min.js"]).output.split(separator: "\n").first
        }
        if File.exists(folder), let path = try found() { return String(path) }
        let python = try Spawn.run(["/usr/bin/env", "python3", "-m", "venv", folder])
        let words = ["install", "-q", "--no-deps", "--disable-pip-version-check", "axe-core-python==0.1.0"]
        let pip = try Spawn.run([folder + "/bin/pip"] + words)
        guard python.code == 0, pip.code == 0, let path = try found() else {
            throw Trouble("axe-core-python cannot be had: \(python.output) \(pip.output)")
        }
        return String(path)
    }

    @Test("shows and does all that it should, in both colours, on a telephone, and to those who do not see it")
    func check() throws {
        let axe = try Self.axe()
        let picture = Data(Pictured.png).base64EncodedString()
        let fleet = Self.fleet.replacingOccurrences(of: "@PNG", with: picture)
            .replacingOccurrences(of: "@TORPOR", with: Built.path("torpor"))
        try withDaemon(fleet, files: ["face.svg": Self.face, "dark.svg": Self.dark]) { daemon in
            for app in ["web", "db", "quiet", "deaf"] { try daemon.waitFor(app, "active") }
            try daemon.call(.post(PostRequest(app: "deaf", topic: "news <b>")))
            var alert = ScheduleAlertRequest(title: "Disk <b>full")
            (alert.id, alert.actions) = ("disk", [AlertAction(id: "clean", label: "Clean")])
            try daemon.call(.scheduleAlert(ScheduleAppAlertRequest(app: "pictured", alert: alert)))
            let web = try WebFixture(daemon)
            let pid = try #require(try daemon.summary("web").pid)
            let driver = ["/usr/bin/env", "python3", Self.scripts + "/check.py"]
            let began = Clock.monotonic()
            let pidOfCheck = try web.start(driver + [web.url, web.token, "web", "\(pid)", axe], output: "check.log")
            var status: Int32 = 0
            while waitpid(pidOfCheck, &status, WNOHANG) == 0, Clock.monotonic() - began < .seconds(300) {
                usleep(20_000)
            }
            let said = (try? File.readString(daemon.directory + "/check.log")) ?? ""
            #expect(status == 0 && said.contains("says_nothing"), "\(said)")
            print(said)
            web.forget(pidOfCheck)
            web.end()
        }
    }
}
