// SPDX-License-Identifier: Apache-2.0

import CommandLinePages
package import TorporAPI
import WireText

/// The values of the options that every verb has, for use without the argument parser.
package struct PlainOptions {
    package var socket: String?
    package var json = false
    package var verbose = false

    package init(socket: String? = nil, json: Bool = false, verbose: Bool = false) {
        self.socket = socket
        self.json = json
        self.verbose = verbose
    }
}

/// Parses simple command lines of the verbs that shell prompts, loops, scripts and probes call often. The argument
/// parser would take longer than the rest of such a command. Command lines with other options or with mistakes are
/// left to the parser.
package enum PlainArguments {
    case list(PlainList)
    case status(PlainStatus)
    case health(PlainHealth)
    case verb(PlainVerb)

    /// Parses a command line, without the program's name. Options may come before the verb.
    package init?(_ arguments: [String]) {
        let (leading, words) = CommandLineArguments.split(arguments)
        guard let word = words.first else { return nil }
        let verb = PlainVerb.verb(word)
        guard verb != nil || ["list", "ls", "status", "health"].contains(word) else { return nil }
        var request = VerbRequest(verb: verb ?? .wait, apps: [])
        var options = PlainOptions()
        var operands: [String] = []
        var rest = (leading + words.dropFirst())[...]
        while let argument = rest.popFirst() {
            switch argument {
            case "--json": options.json = true
            case "--verbose", "-v": options.verbose = true
            // Accept this option, but do not store it: ``Times/zone`` reads it from the command line itself.
            case "--utc" where word == "status": break
            case "--socket":
                guard let path = rest.popFirst(), !path.isEmpty, !path.hasPrefix("-") else { return nil }
                options.socket = path
            case "--no-wait" where verb != nil: request.wait = false
            case "--timeout" where verb != nil:
                guard let limit = rest.popFirst().flatMap(Quantity.milliseconds) else { return nil }
                request.timeoutMilliseconds = limit
            case "--force" where verb == .start || verb == .suspend || verb == .restart: request.force = true
            case "--background" where verb == .start: request.background = true
            case "--keep-state" where verb == .stop || verb == .restart: request.keepState = true
            default:
                guard !argument.isEmpty, !argument.hasPrefix("-") else { return nil }
                operands.append(argument)
            }
        }
        switch word {
        case "status":
            self = .status(PlainStatus(apps: operands, options: options))
        case "health":
            self = .health(PlainHealth(apps: operands, options: options))
        case "list", "ls":
            self = .list(PlainList(apps: operands, showsScenes: !operands.isEmpty, options: options))
        default:
            guard !operands.isEmpty else { return nil }
            request.apps = operands
            self = .verb(PlainVerb(request: request, options: options))
        }
    }

    package func run() throws {
        switch self {
        case .list(let list): try list.run()
        case .status(let status): try status.run()
        case .health(let health): try health.run()
        case .verb(let verb): try verb.run()
        }
    }
}

/// A verb that requests a state for apps, such as `suspend`, run without the argument parser (see ``PlainArguments``).
package struct PlainVerb {
    package var request: VerbRequest
    package var options: PlainOptions

    /// The verb with this name if it requests a state for apps; otherwise nil.
    package static func verb(_ name: String) -> Verb? {
        switch name {
        case "start": .start
        case "stop": .stop
        case "restart": .restart
        case "foreground": .foreground
        case "background": .background
        case "suspend": .suspend
        case "resume": .resume
        default: nil
        }
    }

    package func run() throws {
        let results = try VerbRunner.run(request, options)
        if request.verb == .suspend { SuspendHint.show(results, options) }
    }
}
