// SPDX-License-Identifier: Apache-2.0

import AppConnection
import Configuration
import Gateway
import GatewayConfiguration
import HTTPServing
import Linux
import TorporAPI
import WireText

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
    // Keep the sentence on one line: a server may have chosen some of the words.
    ThisProcess.complain("torpor-gateway: \(sentence.onOneLine)")
    ThisProcess.exit(code)
}

var file = GatewayLoader.defaultPath
var onlyCheck = false
var arguments = CommandLine.arguments.dropFirst()
var order: StateVerbs.Order?
// The source that this process serves, if the gateway has started it for one.
var source: GatewaySource?
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
    case "--source":
        guard let read = arguments.popFirst().flatMap(GatewaySource.init) else {
            fail("--source is what torpor-gateway calls itself with", 2)
        }
        source = read
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

// The content of the configuration. The processes of sources get the same content.
let text: [UInt8]?
if source == nil {
    text = GatewayLoader.text(path: file)
} else {
    text = try? SourceService.configuration()
}
let gateway: GatewaySpecification
switch text.map({ GatewayLoader.load(path: file, text: $0, environment: environment) })
    ?? GatewayLoader.load(path: file, environment: environment)
{
case .success(let loaded): gateway = loaded
case .failure(let problems):
    ThisProcess.complain(problems.description)
    fail("the configuration is not valid" + (onlyCheck ? "" : ", so nothing was started"), 2)
}
if source == nil {
    for warning in gateway.warnings { ThisProcess.complain(warning.description) }
}
let secrets = Secrets(folder: gateway.secrets, credentials: environment["CREDENTIALS_DIRECTORY"])

if let order {
    do {
        guard let states = gateway.state else {
            fail("\(file) has no [gateway.state], which says where states are kept", 2)
        }
        let login = try NATSLogin(states.broker, secrets)
        try Signal.ignore(Signal.pipe)
        try StateVerbs.confine(order.verb, states, secrets)
        try StateVerbs(order, StatePushing(states, socket: gateway.socket, login)).run()
    } catch {
        fail("\(error)", 1)
    }
    ThisProcess.exit(0)
}

do {
    if let source {
        try SourceService(source, gateway, secrets).run()
        ThisProcess.exit(0)
    }
    let tokens = try TokenTable(gateway.http?.tokens ?? [], secrets)
    let all = gateway.nats + gateway.mqtt + (gateway.state.map { [$0.broker] } ?? [])
    for name in all.flatMap({ [$0.password, $0.token] }).compactMap(\.self) { _ = try secrets.read(name) }
    if onlyCheck {
        let (count, brokers) = (gateway.http?.tokens.count ?? 0, gateway.nats.count + gateway.mqtt.count)
        print("OK: \(count) token\(count == 1 ? "" : "s"), \(brokers) broker\(brokers == 1 ? "" : "s")")
        ThisProcess.exit(0)
    }
    // A client that closes its connection must not end this program.
    try Signal.ignore(Signal.pipe)
    let stop = try Stop()
    let log = GatewayLog(level: gateway.logLevel)
    let notifySocket = environment["NOTIFY_SOCKET"]
    let endpoint = try gateway.http.map { try Listening.serve($0, gateway, tokens, secrets, log, stop) }
    let start = SourceProcesses.Start(file: file, text: text ?? [], notifySocket: notifySocket)
    let processes = try SourceProcesses(gateway.sources, start, log, stop)
    if let notifySocket { try? NotifySpeech.say("READY=1", to: notifySocket) }
    log.say(.info, "started")
    _ = stop.wait(nil)
    if let notifySocket { try? NotifySpeech.say("STOPPING=1", to: notifySocket) }
    // Post the accepted messages first, as the processes of sources do.
    let deadline = Clock.monotonic() + .seconds(5)
    _ = endpoint?.queue.waitUntilEmpty(until: deadline)
    _ = endpoint?.server.finish(until: deadline)
    // Processes that have not ended at the deadline are killed a second later, so wait longer.
    _ = processes.finish(until: deadline + .seconds(2))
    ThisProcess.exit(0)
} catch {
    fail(source.map { "\($0): \(error)" } ?? "\(error)", 1)
}
