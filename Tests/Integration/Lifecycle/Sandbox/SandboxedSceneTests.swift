// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

/// Scenes inside an app in a sandbox, whose rules were made when it was launched.
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
}
