// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CommandLinePages
import EverydayVerbs
import Lifecycle
import Linux
import StateDocuments
import TorporAPI
import Varlink
import WireText

struct Move: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Moves an app to another machine, with its saved state, its settings and its mail.",
        discussion: """
            Both machines must have the app with owner = "external", and this machine must own it. The app is ended \
            here; the other machine gets its state by ssh, owns the app, and launches it if it ran here. What stays \
            here (data folders, secrets, scenes) is named before, with the commands that move it. If a step fails, or Ctrl-C ends the move, this machine owns the app again. If SIGKILL ends the move, perhaps no \
            machine owns it: ‘torpor own’ makes this one its owner again.
            """
    )
    .examples(
        "torpor move orders other.example.org",
        "torpor move orders other --dry-run",
        "torpor move orders other --ssh 'ssh -p 2222'"
    )
    @OptionGroup var app: AppArgument
    @Argument(help: ArgumentHelp("The other machine, as ssh names it.", valueName: "host")) var host: String
    @Option(help: ArgumentHelp("The command that runs commands on the other machine.", valueName: "command"))
    var ssh = "ssh -o BatchMode=yes"
    @Option(
        name: .customLong("for"),
        help: ArgumentHelp("How long the other machine owns the app, unless that is renewed.", valueName: "duration")
    )
    var time: TimeLimit?
    @Option(help: ArgumentHelp("The longest time for each step, default 30s.", valueName: "duration"))
    var timeout: TimeLimit?
    @Flag(name: .customLong("dry-run"), help: "Check both machines, and say what would be done.") var dryRun = false
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if host.hasPrefix("-") || host.isEmpty { throw ValidationError("“\(host)” is no host") }
        if ssh.split(separator: " ").isEmpty { throw ValidationError("--ssh must name a command") }
        do {
            _ = try VerbRequest(verb: .own, parameters: ownership.parameters)
        } catch {
            throw ValidationError("--for must be longer than 0, and at most a year")
        }
    }

    /// The request that makes the other machine the owner of the app.
    private var ownership: VerbRequest {
        var request = VerbRequest(verb: .own, apps: [app.app])
        request.forMilliseconds = time.map { $0.milliseconds }
        return request
    }

    package func run() throws {
        let name = app.app
        let there = OtherMachine(host: host, ssh: ssh.split(separator: " ").map(String.init), limit: limit)
        let manager = try Manager(options)
        let here = try summary(manager)
        try requireOwner(here)
        let other = try status(of: name, there)
        try there.requireStandby(other, name)
        let belongings = try MovedBelongings(of: name, manager, there)
        for sentence in belongings.left { Complaint.say("\(name): \(sentence)", .warning) }
        var done = MoveReport(app: name, host: host)
        done.settings = belongings.values.count
        done.left = belongings.left
        if dryRun {
            let document = try StateDocument.read(name, manager)
            done.bytes = document.state?.count ?? 0
            done.mail = document.mail?.count ?? 0
            return say(done, isPlan: true)
        }
        // From here on, handle signals only between two steps. A signal in the middle of a step could leave the app
        // without a machine that owns it.
        for number in Self.signals { try? Signal.block(number) }
        try end(manager)
        do throws(Failure) {
            try requireNoSignal()
            let document = try StateDocument.read(name, manager, withMail: false)
            done.bytes = document.state?.count ?? 0
            // If a standby process of the app runs on the other machine, end it, because it would not get the imported
            // state.
            if other["pid"]?.intValue != nil { try there.run(["disown", name, "--stop"]) }
            try there.run(
                ["state", "import", name],
                input: Failure.of { () throws(DocumentFault) in try document.encoded() }
            )
            try belongings.set(there, name)
            try requireNoSignal()
        } catch {
            throw takeBack(manager, error)
        }
        var isOwned = false
        do throws(Failure) {
            try there.run(["own", name] + (time.map { ["--for", "\($0.milliseconds)ms"] } ?? []))
            isOwned = true
            try bringUp(there, as: here)
        } catch {
            let failure = error
            // The connection was lost, but the other machine may own the app already, or become the owner if ‘own’ is
            // still on its way.
            do throws(Failure) {
                try there.run(["disown", name, "--stop"])
                guard isOwned || failure.status != .noSupervisor else { throw failure }
            } catch {
                throw Failure(
                    status: .failed,
                    message:
                        "\(failure.message ?? "") – it is not known whether \(host) owns \(name), so it is not owned "
                        + "here: see ‘torpor status \(name)’ there, then ‘torpor own \(name)’ here or there"
                )
            }
            throw takeBack(manager, failure)
        }
        try moveMail(manager, there, &done)
        say(done, isPlan: false)
    }

    /// The state of the app on the other machine, before anything is changed on this one.
    private func status(of name: String, _ there: OtherMachine) throws(Failure) -> JSON {
        do throws(Failure) {
            return try there.status(of: name)
        } catch {
            throw Failure(status: error.status, message: "\(error.message ?? "") – \(name) stays here")
        }
    }

    private var limit: Duration { timeout.map { .milliseconds($0.milliseconds) } ?? .seconds(30) }

    private static let signals = [Signal.interrupt, Signal.terminate, Signal.hangup]

    private func requireNoSignal() throws(Failure) {
        guard Self.signals.contains(where: { Signal.isPending($0) }) else { return }
        throw Failure(status: .failed, message: "the move was interrupted")
    }

    /// If the app ran on this machine, starts or wakes it on the other machine. Ownership alone does not always do
    /// that: a user may have stopped the app there, it may have failed, or its configuration may launch it on demand.
    private func bringUp(_ there: OtherMachine, as here: AppSummary) throws(Failure) {
        let isWanted = [AppState.active, .inactive].contains { $0.rawValue == here.goal }
        guard isWanted || here.goal == AppState.background.rawValue else { return }
        let status = try there.status(of: here.name)
        switch status["state"]?.stringValue {
        case AppState.notRunning.rawValue: try there.run(["start", here.name] + (isWanted ? [] : ["--background"]))
        case AppState.suspended.rawValue: try there.run([isWanted ? "foreground" : "background", here.name])
        default: return
        }
    }

    private func summary(_ manager: Manager) throws(Failure) -> AppSummary {
        let reply = try manager.call(.status(app: app.app))
        return try Manager.read { () throws(FieldError) in
            try AppSummary(json: reply["status"] ?? .null)
        }
    }

    private func requireOwner(_ summary: AppSummary) throws(Failure) {
        switch summary.owner {
        case "here": return
        case nil:
            throw Failure(
                status: .failed,
                message:
                    "\(summary.name) is not an app of several machines: write owner = \"external\" into its configuration, "
                    + "here and on \(host)"
            )
        default:
            throw Failure(
                status: .failed,
                message: "\(summary.name) is not owned here: move it from the machine that owns it"
            )
        }
    }

    /// Ends the app on this machine, and this machine's ownership of the app.
    private func end(_ manager: Manager) throws(Failure) {
        var request = VerbRequest(verb: .disown, apps: [app.app])
        request.stop = true
        do throws(Failure) {
            try carryOut(request, manager)
        } catch {
            throw takeBack(manager, error)
        }
    }

    private func carryOut(_ request: VerbRequest, _ manager: Manager) throws(Failure) {
        var request = request
        request.token = .random()
        request.timeoutMilliseconds = limit.microseconds / 1000
        let reply = try manager.call(.verb(request), deadline: Clock.monotonic() + limit, reserve: .seconds(5))
        let results = try Manager.read { () throws(FieldError) in
            try Fields(reply).list("results") { json throws(FieldError) in try VerbResult(json: json) }
        }
        guard let bad = results.first(where: { !$0.ok }) else { return }
        throw Failure(status: .failed, message: bad.message ?? "\(bad.app) is \(bad.state)")
    }

    /// Makes this machine the owner again after a failed step. Returns the failure, with a sentence about the app's
    /// owner now.
    private func takeBack(_ manager: Manager, _ failure: Failure) -> Failure {
        let text = failure.message ?? "the move failed"
        do throws(Failure) {
            try carryOut(VerbRequest(verb: .own, apps: [app.app]), manager)
            return Failure(status: .failed, message: "\(text) – \(app.app) is owned here again")
        } catch {
            let why = error.message ?? ""
            return Failure(
                status: .failed,
                message:
                    "\(text) – and \(app.app) does not come back here (\(why)): ‘torpor own \(app.app)’ tries again"
            )
        }
    }

    /// Moves the messages that are queued on this machine, including those that arrived during the move.
    private func moveMail(_ manager: Manager, _ there: OtherMachine, _ done: inout MoveReport) throws {
        let document = try StateDocument.read(app.app, manager, withState: false)
        guard let mail = document.mail, !mail.isEmpty else { return }
        do throws(Failure) {
            try there.run(
                ["state", "import", app.app],
                input: Failure.of { () throws(DocumentFault) in try document.encoded() }
            )
        } catch {
            throw Failure(
                status: .failed,
                message: "\(app.app) is owned by \(host), but its mail is still here (\(error.message ?? "")): "
                    + "‘torpor state export \(app.app) --no-state’ writes it"
            )
        }
        done.mail = mail.count
        var request = MailboxRequest(app: app.app)
        request.drop = mail.map(\.id)
        try manager.call(.mailbox(request))
    }

    private func say(_ report: MoveReport, isPlan: Bool) {
        if options.json { return Output.document(report.json(isPlan: isPlan)) }
        Output.page(report.text(isPlan: isPlan))
    }
}

/// What a move has transferred, for the report to the user.
private struct MoveReport {
    var app: String
    var host: String
    var bytes = 0
    var mail = 0
    var settings = 0
    /// What stays on this machine, as sentences.
    var left: [String] = []

    func json(isPlan: Bool) -> JSON {
        [
            "app": .string(app), "host": .string(host), "moved": .bool(!isPlan), "bytes": .int(Int64(bytes)),
            "mail": .int(Int64(mail)), "settings": .int(Int64(settings)), "left": .strings(left),
        ]
    }

    func text(isPlan: Bool) -> String {
        let state = bytes == 0 ? "no saved state" : "a state of \(Times.memory(bytes: Int64(bytes)))"
        let values = settings == 0 ? "" : settings == 1 ? ", 1 setting" : ", \(settings) settings"
        let messages = values + " and " + (mail == 1 ? "1 message" : "\(mail) messages")
        return isPlan
            ? "\(app): can move to \(host), as far as is known, with \(state)\(messages) (it may save another when it ends)\n"
            : "\(app): is owned by \(host), with \(state)\(messages)\n"
    }
}

/// The other machine, on which commands are run by ssh.
struct OtherMachine {
    var host: String
    var ssh: [String]
    /// The time limit of a command.
    var limit: Duration

    /// The maximum size of a command's output, in bytes.
    private static let mostAnswer = 4 << 20

    /// The app's state on the other machine, as ‘torpor status --json’ describes it.
    func status(of app: String) throws(Failure) -> JSON {
        let answer = try run(["status", app, "--json"], codes: [0, Outcome.notRunning.rawValue])
        guard let status = try? JSON.parse(answer[...]) else {
            throw Failure(
                status: .failed,
                message: "torpor on \(host) does not say in JSON how \(app) is: is it torpor?"
            )
        }
        return status
    }

    /// Fails if the other machine owns the app, or if the app needs no owner there.
    func requireStandby(_ status: JSON, _ app: String) throws(Failure) {
        switch status["owner"]?.stringValue {
        case "none": return
        case nil:
            throw Failure(
                status: .failed,
                message: "\(app) needs no owner on \(host): write owner = \"external\" into its configuration there"
            )
        default:
            throw Failure(
                status: .failed,
                message:
                    "\(app) is owned on \(host) too: ‘torpor disown \(app)’ there or here, so that one machine owns it"
            )
        }
    }

    /// Runs a verb of torpor on the other machine, and returns its output.
    ///
    /// Fails with the status `noSupervisor` if torpor gave no answer: it is then unknown whether the verb was carried
    /// out.
    ///
    /// - Parameter codes: the exit statuses that mean success.
    @discardableResult
    func run(_ words: [String], input: [UInt8] = [], codes: Set<Int32> = [0]) throws(Failure) -> [UInt8] {
        let what = "‘torpor \(words.joined(separator: " "))’ on \(host)"
        let program = try AppSide.program(ssh[0])
        let answer: [UInt8]
        let status: Int32?
        do throws(Errno) {
            (answer, status) = try converse(program, words, input)
        } catch {
            throw Failure(status: .noSupervisor, message: "\(what) cannot be run: \(error)")
        }
        guard let status else {
            throw Failure(
                status: .noSupervisor,
                message: "\(what) took longer than \(Times.duration(seconds: limit.inSeconds))"
            )
        }
        guard let code = WaitStatus.exitCode(status) else {
            throw Failure(status: .noSupervisor, message: "\(what) was ended by a signal")
        }
        guard !codes.contains(code) else { return answer }
        switch code {
        case 255:
            throw Failure(
                status: .noSupervisor,
                message: "\(what) failed: \(ssh[0]) does not reach \(host), or is refused there"
            )
        case Outcome.notFound.rawValue:
            throw Failure(
                status: .failed,
                message: "\(what) failed: there is no torpor in the PATH of commands that \(ssh[0]) runs there"
            )
        case Outcome.unknown.rawValue:
            throw Failure(status: .failed, message: "\(what) failed: no app has that name there")
        case Outcome.noSupervisor.rawValue:
            throw Failure(status: .failed, message: "\(what) failed: no torpord answers there")
        default: throw Failure(status: .failed, message: "\(what) failed with exit status \(code)")
        }
    }

    /// Runs the command. Returns its output and its wait status; the status is nil if the command has timed out.
    private func converse(
        _ program: String,
        _ words: [String],
        _ input: [UInt8]
    ) throws(Errno) -> (output: [UInt8], status: Int32?) {
        let file = try Memory.file(named: "torpor-move")
        try Descriptor.writeAll(file.raw, input)
        _ = try File.seek(file.raw, to: 0)
        // The output goes to a file of limited size. So if a command writes without end, it fails on the other machine,
        // and does not use up memory on this one.
        let output = try Memory.file(named: "torpor-answer", size: UInt64(Self.mostAnswer))
        try Memory.bound(output.raw)
        let child = try ChildProcess(
            program,
            arguments: ssh + [host, "torpor"] + words.map(Self.quoted),
            environment: ThisProcess.environment,
            descriptors: [(there: 0, here: file.raw), (there: 1, here: output.raw)],
            unblocksSignals: true
        )
        guard let status = child.reap(within: limit) else {
            child.kill()
            _ = child.reap()
            return ([], nil)
        }
        let length = try File.position(output.raw)
        return (try File.read(output.raw, at: 0, maximum: Int(clamping: length)), status)
    }

    /// Quotes a word, because ssh passes the words to a shell on the other machine.
    private static func quoted(_ word: String) -> String {
        let plain = word.utf8.allSatisfy { byte in
            (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
                || (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
                || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || "-_.@".utf8.contains(byte)
        }
        return plain ? word : "'" + word.replacing("'", with: "'\\''") + "'"
    }
}
