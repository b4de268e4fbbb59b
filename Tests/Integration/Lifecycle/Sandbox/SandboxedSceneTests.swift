// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

/// Scenes inside an app in a sandbox, whose rules were made when it was launched, and scenes in sandboxes of their own.
@Suite(
    "Scenes inside a sandbox",
    .enabled(if: Confinement.isAvailable() && Users.isRoot, "needs root, and a kernel with Landlock")
) struct SandboxedSceneTests {
    private static let program = """
        import os, sys, time
        sys.path.insert(0, "\(Sources.root)/Clients/python")
        import torpor
        class Desk(torpor.Delegate):
            def scene_will_connect(self, message):
                state = message.read_state().decode() if message.path else "-"
                with open(os.environ["TORPOR_STATE_DIRECTORY"] + "/record", "a") as file:
                    file.write("%s %s\\n" % (message.scene, state))
            def scene_did_enter_background(self, message):
                message.app.save_state(("state of " + message.scene).encode(), scene=message.scene)
        with torpor.App(Desk()) as app:
            while True:
                time.sleep(3600)
        """

    @Test("A scene that was first saved in this run is connected again in this run, with its state")
    func again() throws {
        let toml = """
            [apps.desk]
            exec = ["/usr/bin/python3", "-S", "@D/app.py"]
            ready = "delegate"
            launch = "on-demand"
            launch_deadline = "60s"
            scenes = { inside = true }
            sandbox = true
            [apps.desk.permissions]
            "files:@D/app.py:ro" = { purpose = "Runs", default = "allow" }
            "files:\(Sources.root)/Clients:ro" = { purpose = "Runs", default = "allow" }

            """
        try withDaemon(toml, files: ["app.py": Self.program]) { daemon in
            let connections = {
                (try? String(contentsOfFile: daemon.directory + "/s/apps/desk/record", encoding: .utf8)) ?? ""
            }
            for count in 1...2 {
                try daemon.openScene("ann", of: "desk")
                try daemon.done(.background, "desk@ann")
                try daemon.done(.disconnect, "desk@ann")
                #expect(connections().split(separator: "\n").count == count)
            }
            #expect(connections() == "ann -\nann state of ann\n")
            // The app finds its own there, and nothing of others.
            let links = daemon.directory + "/s/archives/desk@"
            #expect(try File.list(links) == ["ann"])
            try daemon.done(.stop, "desk")
            try daemon.openScene("ann", of: "desk")
            #expect(connections().hasSuffix("ann state of ann\nann state of ann\n"))
        }
    }

    /// Keeps a file, and tries what another tenant has, whose process and folder the test has written down.
    private static let tenant = """
        echo secret >"$TORPOR_DOCUMENTS/mine"
        if [ -e @D/shared/other ]; then
            read pid folder <@D/shared/other
            {
                cat "$folder/mine"
                echo changed >"$folder/mine"
                ls "$folder"
                cat "/proc/$pid/environ"
                kill -0 "$pid"
            } >"$TORPOR_DOCUMENTS/seen.new" 2>&1
            mv "$TORPOR_DOCUMENTS/seen.new" "$TORPOR_DOCUMENTS/seen"
        fi
        exec sleep 1000
        """

    @Test("Tenants are scenes of one template and one user: they reach neither each other's files nor processes")
    func tenants() throws {
        let toml = """
            [apps.work]
            exec = ["/bin/sh", "-c", '''
            \(Self.tenant)
            ''']
            restart = "never"
            scenes = {}
            sandbox = "agent"
            [apps.work.permissions]
            "files:@D/shared:ro" = { purpose = "Which tenant to try", default = "allow" }

            """
        try withDaemon(toml) { daemon in
            func open(_ scene: String) throws -> (pid: Int32, documents: String) {
                try daemon.openScene(scene, of: "work")
                let pid = try #require(try daemon.summary("work@" + scene).pid)
                let start = "TORPOR_DOCUMENTS="
                let variables = try File.readString("/proc/\(pid)/environ").split(separator: "\0")
                let variable = try #require(variables.first { $0.hasPrefix(start) })
                return (pid, String(variable.dropFirst(start.count)))
            }
            try File.makeDirectories(daemon.directory + "/shared")
            let ann = try open("ann")
            try daemon.eventually("ann has her file") { File.exists(ann.documents + "/mine") }
            try File.write(daemon.directory + "/shared/other", "\(ann.pid) \(ann.documents)\n")
            let bob = try open("bob")
            #expect(bob.documents != ann.documents)
            try daemon.eventually("bob has tried all") { File.exists(bob.documents + "/seen") }
            let seen = try File.readString(bob.documents + "/seen")
            #expect(seen.components(separatedBy: "Permission denied").count - 1 == 4, "\(seen)")
            #expect(!seen.contains("secret") && !seen.contains("TORPOR_"), "\(seen)")
            if Confinement.version() >= 6 { #expect(seen.contains("not permitted"), "\(seen)") }
            #expect(try File.readString(ann.documents + "/mine") == "secret\n")
        }
    }
}
