import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

@Suite("At rest") struct IdleTests {
    @Test("Daemon and keeper sleep through two seconds with twenty idle apps")
    func noSwitches() throws {
        // Without swap memory available would be looked at now and then.
        let toml = """
            [supervisor.memory]
            warning_available = "0%"
            critical_available = "0%"
            [apps.idle]
            exec = ["/bin/sleep", "1000"]
            instances = 20
            """
        try withDaemon(toml) { daemon in
            try daemon.eventually("all apps are active") {
                try daemon.list().filter { $0.state == "active" }.count == 20
            }
            try daemon.expectRest()
        }
    }
}
