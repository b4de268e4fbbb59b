// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CommandLinePages
import Configuration
import Linux

/// Options that every verb has.
struct GlobalOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The supervisor's control socket.", valueName: "path"), completion: .file())
    var socket: String?

    @Flag(help: "One JSON document on standard output (an object a line for streams).")
    package var json = false

    @Flag(name: .shortAndLong, help: "Report supervisor restarts and upgrades on standard error.")
    var verbose = false
}

/// Options of verbs that do not speak to the supervisor's control socket.
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

/// The apps of a verb.
struct AppsArgument: ParsableArguments {
    @Argument(
        help: ArgumentHelp("Names, globs or tag:NAME.", valueName: "app"),
        completion: .custom { words, _, _ in Completion.appsAndTags(words) }
    )
    package var apps: [String]
}

/// The apps of a verb that is about all of them if none is named.
struct AnyAppsArgument: ParsableArguments {
    @Argument(
        help: ArgumentHelp("Names, globs or tag:NAME; all apps, if none is named.", valueName: "app"),
        completion: .custom { words, _, _ in Completion.appsAndTags(words) }
    )
    package var apps: [String] = []
}

/// The apps of a verb that takes one name for them, and is about all of them if none is named.
struct AppOrAllArgument: ParsableArguments {
    @Argument(
        help: ArgumentHelp("A name, a glob or tag:NAME; all apps, if none is named.", valueName: "app"),
        completion: .custom { words, _, _ in Completion.appsAndTags(words) }
    )
    var app: String?
}

/// The one app of a verb.
struct AppArgument: ParsableArguments {
    @Argument(
        help: ArgumentHelp("The app's name.", valueName: "app"),
        completion: .custom { words, _, _ in Completion.apps(words) }
    )
    var app: String

    /// Whether it is one app's name, and not many's.
    static func isName(_ text: String) -> Bool {
        !text.utf8.contains(UInt8(ascii: "*")) && !text.utf8.contains(UInt8(ascii: "?")) && !text.hasPrefix("tag:")
    }

    func validate() throws {
        guard Self.isName(app) else {
            throw ValidationError("“\(app)” can be many apps, and this verb takes one: write its name")
        }
    }
}

/// A duration as configurations write it.
struct TimeLimit: ExpressibleByArgument {
    let milliseconds: Int64

    init?(argument: String) {
        guard let duration = try? Quantity.duration(argument) else { return nil }
        let parts = duration.components
        milliseconds = parts.seconds * 1000 + parts.attoseconds / 1_000_000_000_000_000
    }
}

extension TimeLimit {
    /// As help shows it.
    var defaultValueDescription: String { Quantity.text(.milliseconds(milliseconds)) }
}

/// A point in time: a duration (so long ago), `2 hours ago`, `boot`, `today` and `yesterday` (their first moment), `14:04` or
/// `14:04:00` (of today), `2026-01-31T12:34:56` in the zone that times are shown in, or that with `Z` or an offset.
struct PointInTime: ExpressibleByArgument {
    /// Since 1970.
    let microseconds: Int64

    /// The forms, for the help of options.
    static let help =
        "10min or '2 hours ago', boot, yesterday, 14:04, or 2026-01-31T12:34:56 (with Z: UTC)."

    private static let units = ["second": "s", "minute": "min", "hour": "h", "day": "d"]

    init?(argument: String) {
        if argument == "boot" {
            microseconds = Times.now - Clock.boot().microseconds
        } else if argument == "today" || argument == "yesterday" {
            guard let time = Times.midnight(isYesterdays: argument == "yesterday") else { return nil }
            microseconds = time
        } else if let time = Times.parse(Times.date(Times.now) + "T" + argument) {
            microseconds = time
        } else if argument.hasSuffix(" ago") {
            let words = argument.dropLast(4).split(separator: " ").map { word in
                Self.units.first { word == $0.key || word == $0.key + "s" }?.value ?? String(word)
            }
            guard let limit = TimeLimit(argument: words.joined()) else { return nil }
            microseconds = Times.now - limit.milliseconds * 1000
        } else if let limit = TimeLimit(argument: argument) {
            microseconds = Times.now - limit.milliseconds * 1000
        } else if let time = Times.parse(argument) {
            microseconds = time
        } else {
            return nil
        }
    }
}
