// SPDX-License-Identifier: Apache-2.0

import CSimulatedKernel
import Configuration
import ControlService
import Linux
import Processes
import Supervisor
import Varlink

/// torpord, as `Sources/torpord` has it, in a process that the simulator has forked.
enum Torpord {
    nonisolated(unsafe) static var root = ""

    /// Looks up what each torpord would look up after its fork: Swift's types, above all those of the configuration.
    static func warmUp() {
        sim_warm_up_types()
        let text = """
            [apps.app]
            exec = ["/bin/true"]
            timers = [{ every = "1min" }]
            requires = ["app"]
            [supervisor]

            """
        let path = "/dev/shm/torpor-simulation-\(ThisProcess.pid).toml"
        try? File.write(path, text)
        if case .success(let configuration) = ConfigurationLoader.load(path: path, environment: [:]) {
            _ = ConfigurationDiff(configuration, configuration)
        }
        try? File.remove(path)
        _ = try? JSON.parse(Array("{\"a\": [1, \"b\", null]}".utf8))
    }

    static func run() {
        sim_redirect_errors(root + "/errors")
        sim_set("TORPOR_KEEPER_FD", "902")
        sim_set("TORPOR_KEEPER_PID", "\(SIM_KEEPER)")
        let environment = ThisProcess.variables
        let path = root + "/torpor.toml"
        do throws(StartError) {
            let startup = try Startup(arguments: ["torpord", "--config", path])
            let configuration: TorporConfiguration
            switch startup.configuration(path: path, environment: environment) {
            case .success(let loaded): configuration = loaded
            case .failure(let diagnostics):
                startup.giveUp()
                fail(diagnostics.description)
            }
            let supervisor: Supervisor
            do throws(StartError) {
                supervisor = try Supervisor(configuration, startup)
            } catch {
                startup.giveUp(error)
                throw error
            }
            supervisor.clients = ControlService(supervisor)
            sim_exit(try supervisor.run())
        } catch {
            fail(error.description)
        }
    }

    private static func fail(_ sentence: String) -> Never {
        ThisProcess.complain("torpord: " + sentence)
        sim_exit(1)
    }
}
