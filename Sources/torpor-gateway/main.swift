// SPDX-License-Identifier: Apache-2.0

import AppConnection
import CMosquitto
import Configuration
import Gateway
import GatewayConfiguration
import HTTPServing
import Linux
import TorporAPI

let usage = """
    Usage: torpor-gateway [--config FILE] [--check] [--version] [--help]

      --config FILE  read the configuration FILE (default: \(GatewayLoader.defaultPath))
      --check        check the configuration and the secrets, and exit
      --version      print the version
    """

func fail(_ sentence: String, _ code: Int32) -> Never {
    ThisProcess.complain("torpor-gateway: \(sentence)")
    ThisProcess.exit(code)
}

var file = GatewayLoader.defaultPath
var onlyCheck = false
var arguments = CommandLine.arguments.dropFirst()
while let argument = arguments.popFirst() {
    switch argument {
    case "--config":
        guard let path = arguments.popFirst() else { fail("--config needs a file: torpor-gateway --config FILE", 2) }
        file = path
    case "--check": onlyCheck = true
    case "--version":
        print("torpor-gateway \(TorporVersion.text)")
        ThisProcess.exit(0)
    case "--help", "-h":
        print(usage)
        ThisProcess.exit(0)
    default:
        if argument.hasPrefix("--config=") {
            file = String(argument.dropFirst("--config=".count))
        } else {
            fail("there is no option \(argument): see torpor-gateway --help", 2)
        }
    }
}

let environment = ThisProcess.variables

let gateway: GatewaySpecification
switch GatewayLoader.load(path: file, environment: environment) {
case .success(let loaded): gateway = loaded
case .failure(let problems):
    ThisProcess.complain(problems.description)
    fail("the configuration is not valid" + (onlyCheck ? "" : ", so nothing was started"), 2)
}
for warning in gateway.warnings { ThisProcess.complain(warning.description) }
let secrets = Secrets(folder: gateway.secrets, credentials: environment["CREDENTIALS_DIRECTORY"])

do {
    let tokens = try TokenTable(gateway.http?.tokens ?? [], secrets)
    if onlyCheck {
        for name in (gateway.nats + gateway.mqtt).flatMap({ [$0.password, $0.token] }).compactMap(\.self) {
            _ = try secrets.read(name)
        }
        let (count, brokers) = (gateway.http?.tokens.count ?? 0, gateway.nats.count + gateway.mqtt.count)
        print("OK: \(count) token\(count == 1 ? "" : "s"), \(brokers) broker\(brokers == 1 ? "" : "s")")
        ThisProcess.exit(0)
    }
    // A broker that closes an encrypted connection must not end this program.
    try Signal.ignore(Signal.pipe)
    let stop = try Stop()
    let surroundings = GatewayContext(
        queue: try PostQueue(socket: gateway.socket, limit: gateway.queue, connections: gateway.connections),
        log: GatewayLog(level: gateway.logLevel),
        secrets: secrets,
        maxPayload: gateway.maxPayload,
        stop: stop
    )
    let server = try gateway.http.map { try Listening.serve($0, tokens, surroundings) }
    mosquitto_lib_init()
    let nats = try gateway.nats.map { try NATSSource.start($0, surroundings) }
    let mqtt = try gateway.mqtt.map { try MQTTSource.start($0, surroundings) }
    let notifySocket = environment["NOTIFY_SOCKET"]
    if let notifySocket { try? NotifySpeech.say("READY=1", to: notifySocket) }
    surroundings.log.say(.info, "started")
    _ = stop.wait(nil)
    if let notifySocket { try? NotifySpeech.say("STOPPING=1", to: notifySocket) }
    // Posts what was accepted; streams and brokers send the rest again at the next start.
    let deadline = Clock.monotonic() + .seconds(5)
    for source in nats { _ = source.finish(until: deadline) }
    for isFinished in mqtt { let _: Bool? = isFinished.wait(until: deadline) { state, _ in state ? true : nil } }
    _ = surroundings.queue.waitUntilEmpty(until: deadline)
    _ = server?.finish(until: deadline)
    ThisProcess.exit(0)
} catch {
    fail("\(error)", 1)
}
