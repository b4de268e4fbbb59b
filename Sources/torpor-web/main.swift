// SPDX-License-Identifier: Apache-2.0

import AppConnection
import Configuration
import HTTPServing
import Linux
import TorporAPI
import Web
import WireText

func fail(_ sentence: String, _ code: Int32) -> Never {
    ThisProcess.complain("torpor-web: \(sentence)")
    ThisProcess.exit(code)
}

let options: WebOptions
do throws(WebOptions.Problem) {
    options = try WebOptions(Array(CommandLine.arguments.dropFirst()))
} catch {
    fail("\(error)", 2)
}
if options.wantsHelp {
    print(WebOptions.usage)
    ThisProcess.exit(0)
}
if options.wantsVersion {
    print("torpor-web \(TorporVersion.text)")
    ThisProcess.exit(0)
}

do {
    // Ignore SIGPIPE: otherwise a browser that disconnects would end this process.
    try Signal.ignore(Signal.pipe)
    let stop = try Stop()
    let token: [UInt8]?
    if let path = options.tokenFile {
        token = try TokenStore.read(path)
    } else if case .unix = options.address {
        token = nil
    } else {
        token = try TokenStore.own(TokenStore.place)
    }
    let listener: Descriptor
    do throws(Errno) {
        switch options.address {
        case .tcp(let host, let port): listener = try Sockets.listenTCP(address: host, port: port)
        case .unix(let path): listener = try Sockets.listen(path: path, mode: 0o660)
        }
    } catch {
        fail("cannot listen at \(options.address): \(error)", 1)
    }
    let service = try WebService(options, token: token, socket: options.socket ?? ControlSocket.found)
    let server = try HTTPServer(listener, connections: 256, timeout: .seconds(60), service)
    if options.tokenFile == nil, let token {
        try? ThisProcess.write("http://\(options.address)/?token=\(String(wire: token))\n")
    } else {
        try? ThisProcess.write("torpor-web listens at \(options.address)\n")
    }
    let notifySocket = ThisProcess.environment("NOTIFY_SOCKET")
    if let notifySocket { try? NotifySpeech.say("READY=1", to: notifySocket) }
    _ = stop.wait(nil)
    if let notifySocket { try? NotifySpeech.say("STOPPING=1", to: notifySocket) }
    service.hub.end()
    _ = server.finish(until: Clock.monotonic() + .seconds(2))
    ThisProcess.exit(0)
} catch {
    fail("\(error)", 1)
}
