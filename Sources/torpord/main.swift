import Configuration
import Linux
import Processes
import Supervisor

let usage = """
    Usage: torpord [--config FILE] [--check] [--version] [--help]

      --config FILE  the configuration; without it /etc/torpor/torpor.toml as root,
                     $XDG_CONFIG_HOME/torpor/torpor.toml as a user
      --check        read the configuration, say what is wrong with it, and end
      --version      print the version
    """

func fail(_ sentence: String, _ code: Int32) -> Never {
    ThisProcess.complain("torpord: \(sentence)")
    ThisProcess.exit(code)
}

var file: String?
var onlyCheck = false
var arguments = CommandLine.arguments.dropFirst()
while let argument = arguments.popFirst() {
    switch argument {
    case "--config":
        guard let path = arguments.popFirst() else { fail("--config needs a file: torpord --config torpor.toml", 2) }
        file = path
    case "--check": onlyCheck = true
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

var environment: [String: String] = [:]
for entry in ThisProcess.environment {
    guard let split = entry.firstIndex(of: "=") else { continue }
    environment[String(entry[..<split])] = String(entry[entry.index(after: split)...])
}

let configuration: TorporConfiguration
switch ConfigurationLoader.load(path: file, environment: environment) {
case .success(let loaded): configuration = loaded
case .failure(let diagnostics):
    ThisProcess.complain(diagnostics.description)
    fail("the configuration is not valid, so nothing was started", 2)
}
if onlyCheck {
    print("OK: \(configuration.apps.count) apps")
    ThisProcess.exit(0)
}

guard Keeper.isAbove else {
    fail(Keeper.become(arguments: Array(CommandLine.arguments.dropFirst())), 1)
}
do throws(StartError) {
    let supervisor = try Supervisor(configuration)
    try supervisor.run()
} catch {
    fail(error.description, 1)
}
