import ArgumentParser
import Configuration
import Linux
import TorporAPI

/// The command line. One file a verb.
struct Torpor: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "torpor",
        abstract: "Controls the apps of a Torpor supervisor.",
        discussion: """
            APP is a name, a glob in quotes ('web@*') or tag:NAME. The supervisor is found by --socket, else \
            $TORPOR_MANAGER_SOCKET, else in the default runtime directory.

            Exit status: 0 done; 1 it failed; 2 usage or configuration; 3 the app is not running (status); 4 unknown \
            app, or no supervisor answers.
            """,
        version: "torpor \(TorporVersion.text)",
        groupedSubcommands: [
            CommandGroup(
                name: "See what apps do",
                subcommands: [
                    List.self, Status.self, Top.self, Logs.self, Events.self, History.self, Reports.self,
                    SnapshotVerb.self, GraphVerb.self, MemoryVerb.self, TimersVerb.self, MailboxVerb.self, Health.self,
                    MetricsVerb.self,
                ]
            ),
            CommandGroup(
                name: "Have apps do something",
                subcommands: [
                    Start.self, Stop.self, Restart.self, Foreground.self, Background.self, Suspend.self, Resume.self,
                    Interrupt.self, HoldApps.self, Kill.self, SendSignal.self, Post.self, Reset.self, WaitFor.self,
                ]
            ),
            CommandGroup(
                name: "Configure",
                subcommands: [
                    Init.self, Import.self, Check.self, Apply.self, PoliciesVerb.self, Policy.self,
                ]
            ),
            CommandGroup(name: "The supervisor and its machine", subcommands: [Doctor.self, Upgrade.self]),
            CommandGroup(
                name: "From within an app",
                subcommands: [DelegateVerb.self, TaskVerb.self, StateVerb.self, Subscribe.self]
            ),
        ]
    )

    static func parseAndRun(_ arguments: [String]) throws {
        try requireVerb(arguments)
        do {
            var command = try Torpor.parseAsRoot(arguments)
            try command.run()
        } catch let failure as Failure {
            throw failure
        } catch {
            let text = Torpor.fullMessage(for: error)
            guard Torpor.exitCode(for: error) != .success else {
                // --help, --version and what generates completions.
                // The parser says so of each group.
                let shown = text.replacing(" SUBCOMMANDS:\n", with: ":\n")
                Output.write(shown.isEmpty || shown.hasSuffix("\n") ? shown : shown + "\n")
                return
            }
            throw Failure(status: .usage, message: Self.sentence(Torpor.message(for: error), full: text))
        }
    }

    /// The parser would call a mistyped verb an unexpected argument.
    private static func requireVerb(_ arguments: [String]) throws(Failure) {
        let named = arguments.first == "help" ? arguments.dropFirst().first : arguments.first
        guard let verb = named, !verb.isEmpty, !verb.hasPrefix("-") else { return }
        let commands = configuration.subcommands.map { ($0._commandName, $0.configuration.aliases) }
        let verbs = commands.flatMap { [$0.0] + $0.1 } + ["help"]
        guard !verbs.contains(verb) else { return }
        if let habit = Self.habits[verb] {
            throw Failure(status: .usage, message: "there is no verb \(verb): \(habit)")
        }
        let nearest = Nearest.name(to: verb, among: verbs).map { "did you mean ‘torpor \($0)’?" }
        let hint = nearest ?? "‘torpor --help’ shows all of them"
        throw Failure(status: .usage, message: "there is no verb \(verb): \(hint)")
    }

    /// Verbs of other supervisors, and what they are called here.
    private static let habits = [
        "reread": "‘torpor apply --diff’ shows what an edited file would change",
        "update": "‘torpor apply’ reads the configuration again, and touches only what changed",
        "reload": "‘torpor apply’ reads the configuration again; ‘torpor signal HUP APP’ tells an app to",
        "daemon-reload": "‘torpor apply’ reads the configuration again, and touches only what changed",
        "add": "write the app into the configuration, then ‘torpor apply’",
        "remove": "take the app out of the configuration, then ‘torpor apply’",
        "delete": "take the app out of the configuration, then ‘torpor apply’",
        "scale": "set instances of the app in the configuration, then ‘torpor apply’",
        "tail": "‘torpor logs APP -f’ shows what an app writes",
        "fg": "‘torpor logs APP -f’ shows what an app writes",
        "monit": "‘torpor top’ shows all apps as they change",
        "ps": "‘torpor list’ shows all apps",
        "pid": "‘torpor list’ shows the process of each app",
        "describe": "‘torpor status APP’ shows everything about an app",
        "show": "‘torpor status APP’ shows everything about an app",
        "up": "‘torpord --config FILE’ is the supervisor, ‘torpor start APP’ launches an app",
        "down": "‘torpor stop APP’ ends an app, SIGTERM to torpord all of them",
        "shutdown": "SIGTERM ends torpord with all its apps (Ctrl-C in its terminal, systemctl stop torpord)",
        "quit": "SIGTERM ends torpord with all its apps (Ctrl-C in its terminal, systemctl stop torpord)",
        "enable": "apps are launched with the supervisor, unless they have launch = \"on-demand\"",
        "disable": "launch = \"on-demand\" in the configuration keeps an app from being launched with the supervisor",
    ]

    /// What the parser says, in one line, with where to look.
    private static func sentence(_ message: String, full: String) -> String {
        var first = message.split(separator: "\n").first.map(String.init) ?? "the command line cannot be read"
        if first.hasPrefix("Error: ") { first.removeFirst(7) }
        while first.hasSuffix(".") { first.removeLast() }
        if let letter = first.first { first = letter.lowercased() + first.dropFirst() }
        if first.hasSuffix("?") { return first }
        if first.hasPrefix("the value '") {
            if first.contains("<duration>") { first += ", which wants a duration such as 500ms, 10s or 2min" }
            if first.contains("<time>") {
                first += ", which wants how long ago (10min) or a time (2026-01-31T12:34:56Z)"
            }
        }
        if first.hasPrefix("the value '"), first.hasSuffix("<lines>'") { first += ", which wants a number" }
        if first.hasPrefix("missing expected argument '<app>") { first = "no app is named" }
        let usage = full.split(separator: "\n").first { $0.hasPrefix("Usage: ") }
        let verb = usage.map { $0.split(separator: " ") }.flatMap { $0.count > 2 ? $0[2] : nil }
        let help = verb.flatMap { $0.first?.isLetter == true ? "torpor \($0) --help" : nil } ?? "torpor --help"
        return "\(first): see ‘\(help)’"
    }
}

/// Every way to end, and the exit status for it.
enum Outcome: Int32 {
    case done = 0
    case failed = 1
    case usage = 2
    case notRunning = 3
    case unknown = 4

    /// Runs, says what went wrong, and gives the exit status.
    static func status(_ body: () throws -> Void) -> Int32 {
        do {
            try body()
            return done.rawValue
        } catch let failure as Failure {
            if let message = failure.message {
                ThisProcess.complain(Terminal.wrapped("torpor: \(message)", behind: 0, in: Terminal.columns(of: 2)))
            }
            return failure.status.rawValue
        } catch {
            ThisProcess.complain("torpor: \(error)")
            return failed.rawValue
        }
    }
}

/// The command did not do what was asked.
struct Failure: Error {
    var status: Outcome
    /// A sentence that says what to do; nil when everything was said already.
    var message: String?
}
