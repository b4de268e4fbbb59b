// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CommandLinePages
import Configuration
import EverydayVerbs
import Importing
import Linux
import PolicyTools
import TorporAPI
import Varlink
import WireText

struct Check: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check",
        abstract: "Validates a configuration, without a supervisor.",
        discussion: """
            Prints all errors at once. Without errors, prints when each app would be restarted if it kept ending at \
            once. Programs, folders and files that apps need and this machine lacks are warnings, and so are a sandbox \
            or protected data that it cannot provide, limits that torpord cannot raise, options of a policy that name no \
            app, and files that every user can change. Options that a policy refuses are errors.
            """
    )
    .examples(
        "torpor check",
        "torpor check ./torpor.toml",
        "torpor check --strict ./torpor.toml"
    )

    @Argument(
        help: "The configuration file; the supervisor's own if none is named.",
        completion: .file(extensions: ["toml"])
    )
    var file: String?

    @Flag(help: "Fail on warnings too, with exit status 1.")
    var strict = false
    @OptionGroup var options: GlobalOptions

    package func run() throws {
        let environment = ThisProcess.variables
        var system = ConfigurationSystem.live
        system.policyFinding = { policy, folder in (try? PolicyTool(policy, in: folder))?.finding }
        system.inspection = ConfigurationSystem.Inspection(searchPath: nil)
        system.inspection?.callerPath = environment["PATH"]
        system.inspection?.hasLocale = Locales.has
        system.inspection?.landlock = KernelRelease.landlock
        system.inspection?.encrypts = ConfigurationSystem.Inspection.encrypts
        let roots = RootsConfiguration(file)
        // Root's torpord has limits of its own.
        if roots == nil { system.inspection?.hardLimit = ConfigurationSystem.Inspection.hardLimit }
        roots?.adapt(&system)
        if let roots, roots.isForbidden {
            throw Failure(status: .failed, message: "\(roots.name) cannot be judged: you may not read it\(roots.way)")
        }
        switch ConfigurationLoader.load(path: file, environment: environment, system: system) {
        case .failure(let list):
            if options.json { Output.document(Self.json(ok: false, list.diagnostics, apps: [])) }
            if file == nil, let absence = Self.absence(environment) {
                throw Failure(status: .usage, message: absence)
            }
            for diagnostic in list.diagnostics { Complaint.say(diagnostic.description, .remark) }
            if let file, let kind = Importer.kind(ofFile: ImportFiles.absolute(file), ImportFiles.live) {
                throw Failure(
                    status: .usage,
                    message: "\(Terminal.harmless(file)) is \(kind.title): translate it by ‘torpor import "
                        + "\(ShellWord.quoted(file)) --output torpor.toml’, then check that"
                )
            }
            if let roots, roots.isPartial { Complaint.say("only a part is judged\(roots.way)", .remark) }
            let errors = list.diagnostics.count { $0.severity == .error }
            throw Failure(
                status: .usage,
                message:
                    "the configuration has \(errors == 1 ? "an error" : "\(errors) errors"), it is not used: correct "
                    + (errors == 1 ? "it" : "them")
            )
        case .success(let configuration):
            let warnings = configuration.warnings
            for warning in warnings { Complaint.say(warning.description, .remark) }
            if let roots, roots.isPartial { Complaint.say("only a part is judged\(roots.way)", .remark) }
            let isFine = !strict || warnings.isEmpty
            if options.json { Output.document(Self.json(ok: isFine, warnings, apps: configuration.apps)) }
            guard isFine else {
                let files = Set(warnings.map(\.file))
                let isOne = files.count == 1 && configuration.files.count > 1
                let place = isOne ? files.first.map(Terminal.harmless) : nil
                throw Failure(
                    status: .failed,
                    message:
                        "\(place ?? Self.place(configuration)) has \(warnings.count == 1 ? "a warning" : "\(warnings.count) warnings"), "
                        + "which --strict does not allow"
                )
            }
            if !options.json { Output.page(Self.text(configuration)) }
        }
    }

    /// What to do if the supervisor of this user has no configuration; nil if it has one.
    private static func absence(_ environment: [String: String]) -> String? {
        let paths = DefaultPaths(environment: environment, userID: Users.effectiveUID)
        guard !File.exists(paths.configuration) else { return nil }
        let machine = DefaultPaths(environment: [:], userID: 0).configuration
        let isOther = machine != paths.configuration && File.exists(machine)
        let other = isOther ? "; that of root's supervisor: ‘torpor check \(machine)’" : ""
        let whose = Users.isRoot ? "there is no configuration yet" : "you have no configuration of your own"
        return "\(Terminal.harmless(paths.configuration)): \(whose): name a file (‘torpor check FILE’), or have "
            + "‘torpor init’ write a first one\(other)"
    }

    private static func place(_ configuration: TorporConfiguration) -> String {
        let more = configuration.files.count - 1
        let others =
            more == 0 ? "" : more == 1 ? " and the file that it includes" : " and \(more) files that it includes"
        return Terminal.harmless(configuration.sources.path) + others
    }

    private static func text(_ configuration: TorporConfiguration) -> String {
        let count = configuration.apps.count
        let templates = configuration.templates.count
        let more =
            templates == 0 ? "" : templates == 1 ? " and a template of scenes" : " and \(templates) templates of scenes"
        var text = "OK: \(count) \(count == 1 ? "app" : "apps")\(more) in \(place(configuration))\n"
        // Most apps have the same schedule, so print each different schedule once.
        var order: [String] = []
        var names: [String: [String]] = [:]
        for app in configuration.apps + configuration.templates {
            let schedule = sentence(ConfigurationLoader.restartSchedule(for: app))
            if names[schedule] == nil { order.append(schedule) }
            names[schedule, default: []].append(app.name)
        }
        for schedule in order { text += "  \(names[schedule, default: []].joined(separator: ", ")): \(schedule)\n" }
        return text + announced(configuration) + sleepless(configuration)
    }

    /// A text with one line for each service that the apps announce on the local network through Avahi.
    private static func announced(_ configuration: TorporConfiguration) -> String {
        configuration.apps.flatMap { app in
            app.announcements.map { announcement in
                let port = announcement.port(of: app).map { ", port \($0)" } ?? ""
                let time = announcement.time == .always ? "always" : "while it is \(announcement.time.rawValue)"
                return "  \(app.name): announced on the local network \(time): \(announcement.type)\(port)\n"
            }
        }.joined()
    }

    /// A sentence that names the apps which the policy `server` would leave running, because no event could wake
    /// them.
    private static func sleepless(_ configuration: TorporConfiguration) -> String {
        let isAsked = configuration.supervisor.policies.contains("server")
        let server = configuration.policies.first { $0.name == "server" }
        guard isAsked, server?.options["suspend"] == nil || server?.options["suspend"] == .string("wakeable") else {
            return ""
        }
        let required = Set(configuration.apps.flatMap(\.requires))
        let names = configuration.apps.filter { app in
            app.maySleep && !app.isWokenByEvents && !required.contains(app.name)
        }.map(\.name)
        var text = ""
        if !names.isEmpty {
            text +=
                "  \(names.joined(separator: ", ")): never suspended by the policy server, since no event would wake "
                + "\(names.count == 1 ? "it" : "them") (wake_on_connect, sockets, timers: ‘torpor help policies’)\n"
        }
        for app in configuration.apps where app.maySleep && !app.isWokenByEvents && required.contains(app.name) {
            let users = configuration.apps.filter { $0.requires.contains(app.name) }.map(\.name)
            text +=
                "  \(app.name): suspended by the policy server while no app runs that requires it "
                + "(\(users.joined(separator: ", "))), unless it listens: no event would wake it. If it has work of its "
                + "own then, name it in protect of [policies.server.options]\n"
        }
        return text
    }

    private static func sentence(_ schedule: RestartSchedule) -> String {
        guard !schedule.delays.isEmpty else { return "never restarted" }
        if schedule.total == .zero {
            let count = schedule.delays.count
            return "if it ends at once, restarted at once"
                + (schedule.givesUp ? ", \(count == 1 ? "once" : "\(count) times"), then marked failed" : ", always")
        }
        var delays = schedule.delays.map { Times.duration(milliseconds: milliseconds($0)) }
        if delays.count > 12 { delays = Array(delays.prefix(6)) + ["…"] + delays.suffix(2) }
        let end =
            schedule.givesUp
            ? "then marked failed (\(Times.duration(milliseconds: milliseconds(schedule.total))) in all)"
            : "then always after the last"
        return "if it ends at once, restarted after \(delays.joined(separator: ", ")), \(end)"
    }

    private static func milliseconds(_ duration: Duration) -> Int64 { duration.microseconds / 1000 }

    private static func json(ok: Bool, _ diagnostics: [Diagnostic], apps: [AppSpecification]) -> JSON {
        [
            "ok": .bool(ok),
            "diagnostics": .array(
                diagnostics.map {
                    [
                        "file": .string($0.file), "line": .int(Int64($0.line)), "column": .int(Int64($0.column)),
                        "path": .string($0.path), "message": .string($0.message),
                        "severity": .string($0.severity.rawValue),
                    ]
                }
            ),
            "apps": .array(
                apps.map { app in
                    let schedule = ConfigurationLoader.restartSchedule(for: app)
                    return [
                        "name": .string(app.name),
                        "restart_delays_ms": .array(schedule.delays.map { .int(milliseconds($0)) }),
                        "gives_up": .bool(schedule.givesUp),
                    ]
                }
            ),
        ]
    }
}

/// A configuration of root's supervisor, which an operator checks. It is judged as root's, as far as the operator may
/// read it.
private final class RootsConfiguration {
    /// Whether the caller may not even read the file itself.
    let isForbidden: Bool
    /// Whether the caller may not read some of the files.
    private(set) var isPartial = false
    private let file: String

    /// Nil if the caller is root, or if the file does not belong to root.
    init?(_ file: String?) {
        guard let file, !Users.isRoot, (try? File.status(file))?.uid == 0 else { return nil }
        self.file = file
        isForbidden = Self.mayNotRead(file)
    }

    /// The file, for messages.
    var name: String { Terminal.harmless(file) }
    /// How all of the configuration is judged, as the rest of a sentence.
    var way: String { ": ‘sudo torpor check \(ShellWord.quoted(file))’ judges all of it" }

    func adapt(_ system: inout ConfigurationSystem) {
        system.effectiveUserID = 0
        system.effectiveGroupID = 0
        system.isForbidden = { [weak self] path in
            guard Self.mayNotRead(path) else { return false }
            self?.isPartial = true
            return true
        }
    }

    private static func mayNotRead(_ path: String) -> Bool {
        do throws(Errno) {
            _ = try File.open(path, [.read, .nonBlocking])
            return false
        } catch {
            return error == .permissionDenied
        }
    }
}

/// The locales of this machine, as locale(1) lists them.
private enum Locales {
    /// Whether programs find a locale of this name; nil if that is unknown.
    static func has(_ name: String) -> Bool? {
        if let all, !["C", "POSIX"].contains(code(name)) { all.contains(plain(name)) } else { nil }
    }

    /// The names of the locales in the form in which they are compared; nil if they cannot be listed.
    private static let all: Set<String>? = {
        guard let program = try? AppSide.program("locale"), let output = try? Descriptor.pipe(),
            let child = try? ChildProcess(
                program,
                arguments: ["locale", "-a"],
                environment: ThisProcess.environment,
                descriptors: [(there: 1, here: output.write.raw)]
            )
        else { return nil }
        output.write.close()
        var bytes: [UInt8] = []
        while bytes.count < 1 << 20, let piece = (try? Descriptor.read(output.read.raw, maximum: 1 << 16)) ?? nil,
            !piece.isEmpty
        {
            bytes += piece
        }
        guard let status = child.reap(within: .seconds(10)), WaitStatus.exitCode(status) == 0 else { return nil }
        return Set(bytes.split(separator: 10).map { plain(String(wire: $0)) })
    }()

    /// The language and territory of a locale, such as `de_DE` of `de_DE.UTF-8@euro`.
    private static func code(_ name: String) -> String { String(name.prefix { $0 != "." && $0 != "@" }) }

    /// The form in which locales are compared. Only letters and digits of the codeset count, so `de_DE.UTF-8` equals
    /// `de_DE.utf8`.
    private static func plain(_ name: String) -> String {
        guard let dot = name.firstIndex(of: ".") else { return name }
        let rest = name[dot...]
        let codeset = rest.prefix { $0 != "@" }.lowercased().filter { $0.isLetter || $0.isNumber }
        let modifier = rest.drop { $0 != "@" }
        return "\(name[..<dot]).\(codeset)\(modifier)"
    }
}
