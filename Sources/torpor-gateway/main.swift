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
           torpor-gateway state claim APP [--local] | push APP | release APP | list [APP]
                          [--json] [--timeout SECONDS] [--config FILE]

      --config FILE  read the configuration FILE (default: \(GatewayLoader.defaultPath))
      --check        check the configuration and the secrets, and exit
      --version      print the version

      state claim    bring up the newest state of an app, and take it over from the machine that had it
      state push     push what the app saved last
      state release  push it, and give the token back
      state list     list whose states the server has
      --local        take this machine's state, and drop what the server has
      --timeout      how long to try while the server or torpord is away (default: 30)
    """

func fail(_ sentence: String, _ code: Int32) -> Never {
    ThisProcess.complain("torpor-gateway: \(sentence)")
    ThisProcess.exit(code)
}

var file = GatewayLoader.defaultPath
var onlyCheck = false
var arguments = CommandLine.arguments.dropFirst()
var order: StateVerbs.Order?
while let argument = arguments.popFirst() {
    switch argument {
    case "--config":
        guard let path = arguments.popFirst() else { fail("--config needs a file: torpor-gateway --config FILE", 2) }
        file = path
    case "state":
        switch StateVerbs.Order.read(Array(arguments), file: &file) {
        case .success(let read): order = read
        case .failure(let problem): fail("\(problem)", 2)
        }
        arguments = []
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

if let order {
    do {
        guard let states = gateway.state else {
            fail("\(file) has no [gateway.state], which says where states are kept", 2)
        }
        let login = try NATSLogin(states.broker, secrets)
        try Signal.ignore(Signal.pipe)
        try StateVerbs(order, StatePushing(states, socket: gateway.socket, login)).run()
    } catch {
        fail("\(error)", 1)
    }
    ThisProcess.exit(0)
}

do {
    let tokens = try TokenTable(gateway.http?.tokens ?? [], secrets)
    if onlyCheck {
        let all = gateway.nats + gateway.mqtt + (gateway.state.map { [$0.broker] } ?? [])
        for name in all.flatMap({ [$0.password, $0.token] }).compactMap(\.self) {
            _ = try secrets.read(name)
        }
        let (count, brokers) = (gateway.http?.tokens.count ?? 0, gateway.nats.count + gateway.mqtt.count)
        print("OK: \(count) token\(count == 1 ? "" : "s"), \(brokers) broker\(brokers == 1 ? "" : "s")")
        ThisProcess.exit(0)
    }
    // A broker that closes an encrypted connection must not end this program.
    try Signal.ignore(Signal.pipe)
    let stop = try Stop()
    let log = GatewayLog(level: gateway.logLevel)
    let owners = OwnerWatch(socket: gateway.socket, log: log)
    let surroundings = GatewayContext(
        queue: try PostQueue(
            socket: gateway.socket,
            limit: gateway.queue,
            connections: gateway.connections,
            owners: owners
        ),
        log: log,
        owners: owners,
        secrets: secrets,
        maxPayload: gateway.maxPayload,
        stop: stop
    )
    let notifySocket = environment["NOTIFY_SOCKET"]
    let pusher = try gateway.state.map {
        try StatePusher.start($0, socket: gateway.socket, notifySocket: notifySocket, surroundings)
    }
    try owners.start()
    // Find out first which apps this machine owns, so that no message is posted to an app that another machine owns.
    owners.waitUntilLearnt(until: Clock.monotonic() + .seconds(1))
    let server = try gateway.http.map { try Listening.serve($0, tokens, surroundings) }
    mosquitto_lib_init()
    let nats = try gateway.nats.map { try NATSSource.start($0, surroundings) }
    let mqtt = try gateway.mqtt.map { try MQTTSource.start($0, surroundings) }
    if let notifySocket { try? NotifySpeech.say("READY=1", to: notifySocket) }
    surroundings.log.say(.info, "started")
    _ = stop.wait(nil)
    if let notifySocket { try? NotifySpeech.say("STOPPING=1", to: notifySocket) }
    // Post the messages that were accepted already. Streams and brokers send all others again at the next start.
    let deadline = Clock.monotonic() + .seconds(5)
    for source in nats { _ = source.finish(until: deadline) }
    for isFinished in mqtt { let _: Bool? = isFinished.wait(until: deadline) { state, _ in state ? true : nil } }
    _ = pusher?.finish(until: deadline)
    _ = surroundings.queue.waitUntilEmpty(until: deadline)
    _ = server?.finish(until: deadline)
    ThisProcess.exit(0)
} catch {
    fail("\(error)", 1)
}
