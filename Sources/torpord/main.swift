// SPDX-License-Identifier: Apache-2.0

import Configuration
import ControlService
import Linux
import Processes
import Supervisor

let usage = """
    Usage: torpord [--config FILE] [--check] [--version] [--help]

      --config FILE  read this configuration instead of /etc/torpor/torpor.toml (root) or
                     $XDG_CONFIG_HOME/torpor/torpor.toml (other users)
      --check        check the configuration, report its errors, and exit
      --version      print the version, and exit

    torpord writes to $RUNTIME_DIRECTORY, $STATE_DIRECTORY and $LOGS_DIRECTORY; without them to
    /run/torpor, /var/lib/torpor and /var/log/torpor as root, and as a user to
    $XDG_RUNTIME_DIR/torpor, $XDG_STATE_HOME/torpor and $XDG_STATE_HOME/torpor/log.
    """

func fail(_ sentence: String, _ code: Int32) -> Never {
    StartLog.tell("torpord: ", sentence)
    ThisProcess.exit(code)
}

Memory.setUp()

var file: String?
var onlyCheck = false
var checkUpgrade = false
var arguments = CommandLine.arguments.dropFirst()
while let argument = arguments.popFirst() {
    switch argument {
    case "--config":
        guard let path = arguments.popFirst() else { fail("--config needs a file: torpord --config torpor.toml", 2) }
        file = path
    case "--check": onlyCheck = true
    case "--check-upgrade": checkUpgrade = true
    case "--version":
        print("torpord \(Supervisor.version)")
        ThisProcess.exit(0)
    case "--help", "-h":
        print(usage)
        ThisProcess.exit(0)
    default:
        if argument.hasPrefix("--config=") {
            file = String(argument.dropFirst("--config=".count))
        } else {
            fail("there is no option \(argument): see torpord --help", 2)
        }
    }
}

let environment = ThisProcess.variables

if checkUpgrade {
    // The running torpord runs this check before an upgrade: descriptors 3 and 4 are its recovery file and
    // configuration.
    if let refusal = UpgradeCheck.refusal(environment: environment) { fail(refusal, 1) }
    ThisProcess.exit(0)
}

let isInvalid = "the configuration is not valid, so nothing was started"
if onlyCheck {
    switch ConfigurationLoader.load(path: file, environment: environment) {
    case .success(let configuration):
        print("OK: \(configuration.apps.count) apps")
        ThisProcess.exit(0)
    case .failure(let diagnostics):
        StartLog.tell("", diagnostics.description)
        fail(isInvalid, 2)
    }
}
guard Keeper.isAbove else { fail(Keeper.become(arguments: Array(CommandLine.arguments.dropFirst())), 1) }
let keeper = ThisProcess.parent
do throws(StartError) {
    let startup = try Startup(arguments: CommandLine.arguments)
    let configuration: TorporConfiguration
    var invalid: DiagnosticList?
    switch startup.configuration(path: file, environment: environment) {
    case .success(let loaded): configuration = loaded
    case .failure(let diagnostics):
        guard let last = startup.lastValidConfiguration(path: file, environment: environment) else {
            StartLog.tell("", diagnostics.description)
            startup.giveUp()
            fail(isInvalid, 2)
        }
        configuration = last
        invalid = diagnostics
    }
    let supervisor: Supervisor
    do throws(StartError) {
        supervisor = try Supervisor(configuration, startup, insteadOf: invalid)
    } catch {
        startup.giveUp(error)
        throw error
    }
    supervisor.clients = ControlService(supervisor)
    ThisProcess.exit(try supervisor.run())
} catch {
    guard ThisProcess.parent == keeper else {
        StartLog.tell("torpord: ", "torpor-keeper ended before torpord could reach it: starting another one")
        fail(Keeper.become(arguments: Array(CommandLine.arguments.dropFirst())), 1)
    }
    fail(error.description, 1)
}
