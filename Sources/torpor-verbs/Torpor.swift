// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CommandLinePages
import Configuration
import EverydayVerbs
import Linux
import TorporAPI

/// The root command. Each verb has its own file.
package struct Torpor: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "torpor",
        abstract: "Controls the apps of a Torpor supervisor.",
        discussion: """
            APP is a name, a glob in quotes ('web@*') or tag:NAME. The supervisor is found by --socket, else \
            $TORPOR_MANAGER_SOCKET, else in the default runtime directory.

            Exit status: 0 done; 1 failed; 2 wrong usage or configuration; 3 the app is not running (status); 4 \
            unknown app; 5 no supervisor answers.
            """,
        version: "torpor \(TorporVersion.text)",
        groupedSubcommands: [
            CommandGroup(
                name: "See what apps do",
                subcommands: [
                    List.self, Status.self, Top.self, Logs.self, Events.self, History.self, Reports.self,
                    SnapshotVerb.self, GraphVerb.self, MemoryVerb.self, TimersVerb.self, MailboxVerb.self,
                    SettingsVerb.self, PermissionsVerb.self, ProtectVerb.self,
                    Unhandled.self, TransfersVerb.self, AlertsVerb.self, DataVerb.self, Health.self, MetricsVerb.self,
                ]
            ),
            CommandGroup(
                name: "Control apps",
                subcommands: [
                    Start.self, Stop.self, Restart.self, Foreground.self, Open.self, ActivityVerb.self, Background.self,
                    Suspend.self,
                    Resume.self,
                    Interrupt.self, Scene.self, HoldApps.self, Own.self, Disown.self, Move.self,
                    StateVerbs.self, ForceQuit.self, SendSignal.self, Post.self, Notify.self,
                    BadgeVerb.self, Reset.self,
                    WaitFor.self,
                ]
            ),
            CommandGroup(
                name: "Configure",
                subcommands: [
                    Init.self, Import.self, Check.self, Apply.self, Policy.self, Desktop.self, BundleVerb.self,
                    InstallVerb.self, RollbackVerb.self, UninstallVerb.self,
                ]
            ),
            CommandGroup(name: "The supervisor and its machine", subcommands: [Doctor.self, Upgrade.self]),
            CommandGroup(name: "From within an app", subcommands: [AppVerbs.self]),
        ]
    )

    static func parseAndRun(_ arguments: [String]) throws {
        guard let arguments = try Help.parsable(arguments) else { return }
        try requireVerb(arguments)
        try requireBadge(arguments)
        try explainOptions(arguments)
        try refuseDump(arguments)
        do {
            var command = try Torpor.parseAsRoot(arguments)
            try command.run()
        } catch let failure as Failure {
            throw failure
        } catch {
            let text = Torpor.fullMessage(for: error)
            guard Torpor.exitCode(for: error) != .success else {
                // --help, --version and completion scripts come here as errors of the parser. The parser titles each
                // group `… SUBCOMMANDS:`, so remove that word.
                let shown = text.replacing(" SUBCOMMANDS:\n", with: ":\n")
                let text = shown.isEmpty || shown.hasSuffix("\n") ? shown : shown + "\n"
                // Wrap the usage line of a help text here: the parser wraps all the rest of the text, but not this
                // line.
                Output.write(text.hasPrefix("OVERVIEW: ") ? Terminal.fitted(text, indent: 7) : text)
                return
            }
            throw Failure(status: .usage, message: Self.sentence(Torpor.message(for: error), full: text))
        }
    }

    /// The number of words at the start that form the verb's name: two in `policy list web`.
    static func verb(in words: [String]) -> Int { max(1, descend(words).count) }

    /// Whether the words are exactly the name of a verb. `help` counts too, although the parser provides it.
    static func isVerb(_ words: [String]) -> Bool { words == ["help"] || descend(words).count == words.count }

    /// The verb that the words begin with, and the number of words in its name.
    private static func descend(_ words: some Sequence<String>) -> (verb: any ParsableCommand.Type, count: Int) {
        var verb: any ParsableCommand.Type = Torpor.self
        var count = 0
        for word in words {
            guard let next = verb.configuration.subcommands.first(where: { names(of: $0).contains(word) }) else {
                break
            }
            verb = next
            count += 1
        }
        return (verb, count)
    }

    private static func names(of verb: any ParsableCommand.Type) -> [String] {
        [verb._commandName] + verb.configuration.aliases
    }

    /// Checks that a badge is not a negative number. The parser would take such a number for an option, and report that
    /// the number is missing.
    private static func requireBadge(_ arguments: [String]) throws(Failure) {
        let (verb, count) = descend(arguments)
        guard verb == BadgeVerb.self || verb == AppBadge.self else { return }
        guard let word = arguments.dropFirst(count).first(where: { $0.wholeMatch(of: /-[0-9].*/) != nil }) else {
            return
        }
        throw Failure(status: .usage, message: BadgeVerb.problem(word))
    }

    /// Fails with an explanation for options of other supervisors. The parser would only report them as unknown or
    /// incomplete.
    private static func explainOptions(_ arguments: [String]) throws(Failure) {
        let (verb, count) = descend(arguments)
        let words = arguments.dropFirst(count).prefix { $0 != "--" }
        if verb == Logs.self {
            for (option, value) in zip(words, words.dropFirst()) where option == "-n" || option == "--lines" {
                guard value.wholeMatch(of: /-[0-9]+/) != nil else { continue }
                throw Failure(
                    status: .usage,
                    message:
                        "\(option) wants a number from 0, such as \(option) \(value.dropFirst()): see ‘torpor logs --help’"
                )
            }
        }
        if count == 1, appVerbs.contains(verb._commandName),
            let index = words.firstIndex(where: { $0 == "--app" || $0.hasPrefix("--app=") })
        {
            let next = words[index...].dropFirst().first
            let app = words[index] == "--app" ? next ?? "APP" : String(words[index].dropFirst("--app=".count))
            let line = Terminal.harmless("torpor \(verb._commandName) \(app)")
            throw Failure(
                status: .usage,
                message: "there is no --app: apps are named without an option, as in ‘\(line)’"
            )
        }
        if verb == Restart.self, words.contains("--update-env") {
            throw Failure(
                status: .usage,
                message:
                    "there is no --update-env: environment in the configuration has an app's variables; change it, "
                    + "then ‘torpor apply --restart APP’"
            )
        }
    }

    /// Verbs that take an app's name without an option, and for which other tools have an option.
    private static let appVerbs: Set<String> = [
        "events", "health", "history", "list", "logs", "report", "restart", "start", "status", "stop",
        "timers", "wait",
    ]

    /// Refuses the parser's option that writes all help as JSON, because release builds lack the encoder for it
    /// (packaging/link/foundation).
    private static func refuseDump(_ arguments: [String]) throws(Failure) {
        let option = "--experimental-dump-help"
        guard arguments.prefix(while: { $0 != "--" }).contains(where: { $0.hasPrefix(option) }) else { return }
        throw Failure(status: .usage, message: "unknown option '\(option)': ‘torpor help --all’ shows all verbs")
    }

    /// Checks that a group of verbs is followed by one of its verbs, because the parser would report a mistyped verb as
    /// an unexpected argument.
    private static func requireVerb(_ arguments: [String]) throws(Failure) {
        let words = arguments.first == "help" ? arguments.dropFirst() : arguments[...]
        let (group, count) = descend(words)
        let known = group.configuration.subcommands.flatMap(names)
        guard !known.isEmpty, let word = words.dropFirst(count).first, !word.isEmpty, !word.hasPrefix("-"),
            word != "help"
        else { return }
        let parents = words.prefix(count).map { $0 + " " }.joined()
        // For ‘torpor help’, the pages were already searched for the words, without a hit: say so.
        let pages = arguments.first == "help" ? Help.notFound(Array(words)) : ""
        if count == 0, let habit = Self.habits[word] {
            throw Failure(status: .usage, message: "there is no verb \(word): \(habit)")
        }
        let topics = count == 0 && arguments.first == "help" ? Help.names() : []
        let nearest = Nearest.name(to: word, among: known + topics).map { name in
            "did you mean ‘torpor \(known.contains(name) ? parents : "help ")\(name)’?"
        }
        let hint = nearest ?? "‘torpor \(count == 0 ? "help --all" : parents + "--help")’ shows all of them"
        throw Failure(status: .usage, message: "there is no verb \(parents)\(word)\(pages): \(hint)")
    }

    /// Names of verbs in other supervisors, each with Torpor's equivalent.
    static let habits = [
        "reread": "‘torpor apply --diff’ shows what an edited file would change",
        "update": "‘torpor apply’ reloads the configuration and touches only what changed",
        "reload": "‘torpor apply’ reloads the configuration; for an app: ‘torpor restart APP’, ‘torpor signal HUP APP’",
        "daemon-reload": "‘torpor apply’ reloads the configuration and touches only what changed",
        "add": "add the app to the configuration, then ‘torpor apply’",
        "remove": "remove the app from the configuration, then ‘torpor apply’",
        "delete": "remove the app from the configuration, then ‘torpor apply’",
        "scale": "set instances of the app in the configuration, then ‘torpor apply’",
        "tail": "‘torpor logs APP -f’ shows what an app writes",
        "fg": "‘torpor logs APP -f’ shows what an app writes",
        "avail": "‘torpor list’ shows all apps of the configuration, whether they run or not",
        "maintail": "‘torpor events -f’ shows what torpord does (journalctl -u torpord where it is a service)",
        "clear": "torpord rotates logs itself (log_max_size, log_max_age) and recreates a file that you remove",
        "flush": "torpord rotates logs itself (log_max_size, log_max_age) and recreates a file that you remove",
        "launch": "did you mean ‘torpor start APP’?",
        "run": "did you mean ‘torpor start APP’, or ‘torpord --config FILE’ to run the supervisor?",
        "terminate": "did you mean ‘torpor stop APP’, which also asks the app to save its data?",
        "end": "did you mean ‘torpor stop APP’?",
        "freeze": "did you mean ‘torpor suspend APP’, which stops an app and keeps it in memory?",
        "pause": "did you mean ‘torpor suspend APP’, which stops an app and keeps it in memory?",
        "sleep": "did you mean ‘torpor suspend APP’, which stops an app and keeps it in memory?",
        "wake": "did you mean ‘torpor foreground APP’, or ‘torpor resume APP’ to have it run in the background?",
        "thaw": "did you mean ‘torpor foreground APP’, or ‘torpor resume APP’ to have it run in the background?",
        "save": "did you mean ‘torpor app state save FILE’? torpord saves each app's state itself",
        "dump": "torpord stores the state of each app itself, and the apps are in the configuration",
        "env": "environment in the configuration has an app's variables; /proc/PID/environ has those of a process",
        "resurrect": "did you mean ‘torpor start APP’? After a boot torpord restores the state of each app",
        "is-active": "did you mean ‘torpor health APP’? Its exit status is 0 if the app is up",
        "is-failed": "did you mean ‘torpor health APP’? Its exit status is 1 if the app is not up",
        "version": "did you mean ‘torpor --version’?",
        "startup": "did you mean ‘systemctl enable torpord’? The package does that (loginctl enable-linger for a user)",
        "jlist": "‘torpor list --json’ shows all apps as JSON",
        "prettylist": "‘torpor list --json’ shows all apps as JSON",
        "ping": "did you mean ‘torpor health’? It says whether the supervisor answers and all apps are up",
        "sendsignal": "did you mean ‘torpor signal SIGNAL APP’?",
        "sendSignal": "did you mean ‘torpor signal SIGNAL APP’?",
        "id": "‘torpor list’ shows all apps, which have names and no numbers",
        "deploy": "Torpor does not copy programs: after a deployment, ‘torpor restart APP’",
        "monit": "‘torpor top’ shows all apps as they change",
        "ps": "‘torpor list’ shows all apps",
        "pid": "‘torpor list’ shows the process of each app",
        "describe": "‘torpor status APP’ shows everything about an app",
        "show": "‘torpor status APP’ shows everything about an app",
        "up": "‘torpord --config FILE’ is the supervisor, ‘torpor start APP’ launches an app",
        "down": "‘torpor stop APP’ ends an app; SIGTERM to torpord ends all of them",
        "shutdown": "SIGTERM ends torpord with all its apps (Ctrl-C in its terminal, systemctl stop torpord)",
        "quit": "SIGTERM ends torpord with all its apps (Ctrl-C in its terminal, systemctl stop torpord)",
        "enable": "apps are launched with the supervisor, unless they have launch = \"on-demand\"",
        "disable": "launch = \"on-demand\" in the configuration keeps an app from being launched with the supervisor",
    ]

    /// The parser's error message on one line, with the command that shows the right help.
    private static func sentence(_ message: String, full: String) -> String {
        var first = message.split(separator: "\n").first.map(String.init) ?? "the command line cannot be read"
        if first.hasPrefix("Error: ") { first.removeFirst(7) }
        while first.hasSuffix(".") { first.removeLast() }
        if let letter = first.first { first = letter.lowercased() + first.dropFirst() }
        if first.hasSuffix("?") { return first }
        if first.hasPrefix("the value '") {
            if first.contains("<duration>") { first += ", which wants a duration such as 500ms, 10s or 2min" }
            if first.contains("<time>") {
                first += ", which wants how long ago (10min) or a time (14:04, yesterday, 2026-01-31T12:34:56)"
            }
        }
        if first.hasPrefix("the value '"), first.hasSuffix("<lines>'") { first += ", which wants a number" }
        if first.hasPrefix("missing expected argument '<app>") { first = "no app is named" }
        // In `Usage: torpor policy check <library> …`, the words before the first argument are the verb.
        let usage = full.split(separator: "\n").first { $0.hasPrefix("Usage: ") }
        let words = usage.map { $0.split(separator: " ").dropFirst(2) } ?? []
        let verb = words.prefix { $0.first?.isLetter == true }
        let help = (["torpor"] + verb + ["--help"]).joined(separator: " ")
        return "\(first): see ‘\(help)’"
    }
}
