// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CommandLinePages
import Configuration
import EverydayVerbs

/// Options that every verb has.
struct GlobalOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The supervisor's control socket.", valueName: "path"), completion: .file())
    var socket: String?

    @Flag(help: "One JSON document on standard output (an object a line for streams).")
    package var json = false

    @Flag(name: .shortAndLong, help: "Report supervisor restarts and upgrades on standard error.")
    var verbose = false
}

/// Options of verbs that do not use the supervisor's control socket.
struct OutputOptions: ParsableArguments {
    @Flag(help: "One JSON document on standard output.")
    package var json = false
}

/// Options of verbs that wait.
struct WaitOptions: ParsableArguments {
    @Flag(name: .customLong("no-wait"), help: "Return as soon as the supervisor has the request.")
    var noWait = false

    @Option(help: ArgumentHelp("The longest time to wait, such as 10s.", valueName: "duration"))
    var timeout: TimeLimit?
}

/// The apps that a verb acts on.
struct AppsArgument: ParsableArguments {
    @Argument(
        help: ArgumentHelp("Names, globs or tag:NAME.", valueName: "app"),
        completion: .custom { words, _, _ in Completion.appsAndTags(words) }
    )
    package var apps: [String]
}

/// The apps that a verb acts on; all apps if none is named.
struct AnyAppsArgument: ParsableArguments {
    @Argument(
        help: ArgumentHelp("Names, globs or tag:NAME; all apps, if none is named.", valueName: "app"),
        completion: .custom { words, _, _ in Completion.appsAndTags(words) }
    )
    package var apps: [String] = []
}

/// The app, glob or tag that a verb acts on; all apps if none is named.
struct AppOrAllArgument: ParsableArguments {
    @Argument(
        help: ArgumentHelp("A name, a glob or tag:NAME; all apps, if none is named.", valueName: "app"),
        completion: .custom { words, _, _ in Completion.appsAndTags(words) }
    )
    var app: String?
}

/// The app that a verb acts on.
struct AppArgument: ParsableArguments {
    @Argument(
        help: ArgumentHelp("The app's name.", valueName: "app"),
        completion: .custom { words, _, _ in Completion.apps(words) }
    )
    var app: String

    func validate() throws {
        guard AppWord.isName(app) else {
            throw ValidationError("“\(app)” can be many apps, and this verb takes one: write its name")
        }
    }
}

/// A duration in the syntax of configurations.
struct TimeLimit: ExpressibleByArgument {
    let milliseconds: Int64

    init?(argument: String) {
        guard let time = Quantity.milliseconds(argument) else { return nil }
        milliseconds = time
    }
}

extension TimeLimit {
    var defaultValueDescription: String { Quantity.text(.milliseconds(milliseconds)) }
}

/// A duration in the syntax of configurations, or `none`.
struct TimeLimitOrNone: ExpressibleByArgument {
    package let duration: Duration?

    init?(argument: String) {
        if argument == "none" {
            duration = nil
        } else if let given = try? Quantity.duration(argument) {
            duration = given
        } else {
            return nil
        }
    }

    init(_ duration: Duration) { self.duration = duration }

    var defaultValueDescription: String { duration.map { Quantity.text($0) } ?? "none" }
}

extension PointInTime: ExpressibleByArgument {}

extension PlainOptions {
    init(_ options: GlobalOptions) { self.init(socket: options.socket, json: options.json, verbose: options.verbose) }
}

extension Manager {
    /// Connects to the socket that the options name, or to the default socket.
    init(_ options: GlobalOptions) throws(Failure) { try self.init(PlainOptions(options)) }
}
