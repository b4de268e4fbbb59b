// SPDX-License-Identifier: Apache-2.0

/// The options that every verb has, without the argument parser.
struct PlainOptions {
    var socket: String?
    package var json = false
    var verbose = false
}

extension PlainOptions {
    init(_ options: GlobalOptions) { self.init(socket: options.socket, json: options.json, verbose: options.verbose) }
}

/// Parses simple command lines of `list`, `status` and `health`, which prompts, loops, scripts and probes call often.
/// The argument parser would take longer than all the rest. Command lines with other options or with mistakes are
/// left to the parser.
enum PlainArguments {
    case list(PlainList)
    case status(PlainStatus)
    case health(PlainHealth)

    init?(_ arguments: [String]) {
        guard let verb = arguments.first, ["list", "ls", "status", "health"].contains(verb) else { return nil }
        var options = PlainOptions()
        var operands: [String] = []
        var rest = arguments.dropFirst()
        while let argument = rest.popFirst() {
            switch argument {
            case "--json": options.json = true
            case "--verbose", "-v": options.verbose = true
            // ``Times/zone`` reads this option itself.
            case "--utc" where verb == "status": break
            case "--socket":
                guard let path = rest.popFirst(), !path.isEmpty, !path.hasPrefix("-") else { return nil }
                options.socket = path
            default:
                guard !argument.isEmpty, !argument.hasPrefix("-") else { return nil }
                operands.append(argument)
            }
        }
        switch verb {
        case "status":
            self = .status(PlainStatus(apps: operands, options: options))
        case "health":
            self = .health(PlainHealth(apps: operands, options: options))
        default:
            self = .list(PlainList(apps: operands, showsScenes: !operands.isEmpty, options: options))
        }
    }

    package func run() throws {
        switch self {
        case .list(let list): try list.run()
        case .status(let status): try status.run()
        case .health(let health): try health.run()
        }
    }
}
