// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Testing
import TorporAPI
import Varlink

@Suite("What a delegate in Python raises")
struct PythonFailureTests {
    private static let program = """
        import asyncio, sys, torpor, torpor.aio

        class Failing(torpor.Delegate):
            def did_receive_event(self, message):
                if message.payload == "cancelled":
                    raise asyncio.CancelledError
                if message.payload == "missing":
                    raise KeyError("x")
                if message.payload == "end":
                    sys.exit(3)

        async def main():
            async with torpor.aio.App(Failing()):
                await asyncio.Event().wait()

        asyncio.run(main()) if sys.argv[1] == "asyncio" else torpor.App(Failing()).run()
        """

    @Test("is answered, and a message that ends the program is told again", arguments: ["threads", "asyncio"])
    func raised(kind: String) throws {
        try withDaemon(
            """
            [apps.web]
            exec = ["/usr/bin/python3", "-S", "@D/app.py", "\(kind)"]
            environment = { PYTHONPATH = "\(Language.sources)/Clients/python", PYTHONDONTWRITEBYTECODE = "1" }
            launch = "on-demand"
            ready = "delegate"
            launch_deadline = "20s"
            watchdog = "20s"
            restart = "on-failure"
            restart_backoff = { initial = "10ms" }
            mail_attempts = 2
            topics = { jobs = {} }
            """,
            files: ["app.py": Self.program]
        ) { daemon in
            try daemon.done(.start, "web")
            try daemon.post("jobs", "cancelled")
            try daemon.waitForEvent("web", "failed to handle didReceiveEvent: CancelledError")
            try daemon.post("jobs", "missing")
            try daemon.waitForEvent("web", "failed to handle didReceiveEvent: KeyError: 'x'")
            try daemon.post("jobs", "end")
            try daemon.waitForEvent("web", "ended 2 times while handling a message about jobs")
            try daemon.eventually("it runs again") { try daemon.summary("web").state == "active" }
            try daemon.done(.stop, "web")
        }
    }
}
