// SPDX-License-Identifier: Apache-2.0

import AppConnection
import CommandLinePages
import Linux
import TorporAPI
import Varlink

/// Acts as an app's delegate on behalf of a script or program that does not know Torpor's lifecycle.
package final class DelegateRun {
    /// How messages are handled.
    enum Manner {
        /// Runs a command for each message: the command for the message's name or, if there is none, the command for
        /// `*`.
        case commands([String: String])
        /// Writes the message to standard output. The answer is read from standard input, or is always `done`.
        case lines(json: Bool, readsAnswers: Bool)
    }

    /// The message that is being handled.
    private struct Current {
        var name: String
        /// Whether another app may get the message if this app cannot use it.
        var isForOthers: Bool
        var answer: AppAnswer
        var command: String?
        var child: ChildProcess?
        /// The pipe from which the command's answers are read; the command's descriptor 3 is its other end. Nil if
        /// there is none.
        var pipe: Descriptor?
        var lines = LineBuffer()
    }

    private let manner: Manner
    private let words: [String]
    private let link: AppLink
    private let poller: Poller
    private let signals: EventCounter

    private var waiting: [AppMessage] = []
    private var current: Current?
    private var program: ChildProcess?
    private var input = LineBuffer()
    private var endSince: Duration?
    private var isForwarded = false
    private var wasAttached = false

    /// How long to wait before forwarding SIGTERM to the program. If all processes of the app got the signal, the
    /// program is already ending by then and needs no second one.
    private static let forwardAfter = Duration.seconds(1)

    /// - Parameter words: a program to run, and its arguments. The delegate ends when the program does. Empty for no
    ///   program.
    init(manner: Manner, words: [String], socket: String) throws {
        self.manner = manner
        self.words = words
        if case .commands(let commands) = manner {
            for (name, command) in commands.sorted(by: { $0.key < $1.key }) {
                guard let problem = HookProgram.problem(of: command) else { continue }
                Complaint.say("the command for \(name) cannot be run: \(problem)", .warning)
            }
        }
        link = try AppLink(path: socket, isDelegate: true)
        poller = try Poller()
        signals = try EventCounter()
        try poller.add(link.poller.descriptor.raw, .readable, tag: 0)
        try poller.add(signals.raw, .readable, tag: 0)
        try Signal.count(Signal.terminate, with: signals)
        if case .lines(_, true) = manner {
            try Descriptor.setNonBlocking(0)
            do throws(Errno) {
                try poller.add(0, .readable, tag: 0)
            } catch {
                throw Failure(
                    status: .usage,
                    message: "--answers reads standard input, which is neither a pipe nor a terminal: leave it out"
                )
            }
        }
    }

    /// Runs a delegate of the app that this process belongs to, and exits with its exit status. Without a command and a
    /// program, messages are written to standard output.
    package static func run(_ hooks: [DelegateHook], _ words: [String], json: Bool, readsAnswers: Bool) throws {
        guard let socket = AppSide.environment.socket else {
            guard !words.isEmpty else {
                _ = try AppSide.socket()
                return
            }
            // Without a supervisor there are no messages, so this process just executes the program.
            let path = try AppSide.program(words[0])
            let error = ThisProcess.execute(path, arguments: words, environment: ThisProcess.environment)
            throw Failure(status: .notExecutable, message: "\(words[0]) could not be run: \(error)")
        }
        let isInLines = hooks.isEmpty && words.isEmpty
        let commands = Dictionary(hooks.map { ($0.message, $0.command) }) { $1 }
        let manner: Manner = isInLines ? .lines(json: json, readsAnswers: readsAnswers) : .commands(commands)
        ThisProcess.exit(try DelegateRun(manner: manner, words: words, socket: socket).run())
    }

    /// Runs until the delegate ends. Returns the exit status.
    private func run() throws -> Int32 {
        while true {
            wait()
            for event in link.work() { try handle(event) }
            if signals.drain() { endSince = endSince ?? Clock.monotonic() }
            readAnswers()
            try finishCommand()
            try startNext()
            if let status = program?.reap(within: .zero) {
                flush()
                return AppSide.exitStatus(status)
            }
            if let endSince {
                if let program {
                    if !isForwarded, Clock.monotonic() - endSince >= Self.forwardAfter {
                        isForwarded = true
                        try? Pidfd.sendSignal(program.pidfd.raw, Signal.terminate)
                    }
                } else if current?.child == nil {
                    flush()
                    return 0
                }
            }
            if case .lines(_, true) = manner, input.isAtEnd {
                flush()
                return 0
            }
        }
    }

    private func wait() {
        var times = [link.wakeTime].compactMap { $0 }
        if let endSince, program != nil, !isForwarded { times.append(endSince + Self.forwardAfter) }
        let timeout = times.min().map { max(.zero, $0 - Clock.monotonic()) }
        _ = try? Descriptor.wait(poller.descriptor.raw, timeout: timeout)
    }

    /// Sends the last answer before this process ends, if a supervisor is connected.
    private func flush() {
        let end = Clock.monotonic() + .milliseconds(500)
        while link.pendingCount > 0, link.isAttached, Clock.monotonic() < end {
            _ = try? Descriptor.wait(link.poller.descriptor.raw, timeout: .milliseconds(50))
            _ = link.work()
        }
    }

    private func handle(_ event: AppLink.Event) throws {
        switch event {
        case .attached(let situation):
            wasAttached = true
            if situation.transition != "launching" { try startProgram() }
        case .message(let message): waiting.append(message)
        case .refused(let error): throw AppSide.failure(error)
        case .lost where link.isForbidden && !wasAttached:
            let user = (try? File.status(link.path).uid).map { "user \($0)" } ?? "its user"
            throw Failure(
                status: .failed,
                message: "the app's socket is only for the app's user, and this is user \(Users.effectiveUID): let a "
                    + "program change its user behind ‘torpor app delegate’, not before it, or set user in the "
                    + "configuration (\(link.path) belongs to \(user))"
            )
        case .lost, .tasksLost: break
        }
    }

    private func startProgram() throws {
        guard !words.isEmpty, program == nil else { return }
        let child = try AppSide.startInPlace(words)
        try poller.add(child.pidfd.raw, .readable, tag: 0)
        program = child
    }

    private func startNext() throws {
        while current == nil, !waiting.isEmpty {
            let message = waiting.removeFirst()
            // The program may look for saved state when it starts, so restore the state first.
            if message.name != "willFinishLaunching", message.name != "restoreState" { try startProgram() }
            // If this program does not know the message, it cannot tell.
            let isForOthers = DelegateMessage(rawValue: message.name)?.isForOthers ?? true
            current = Current(name: message.name, isForOthers: isForOthers, answer: AppAnswer(id: message.id))
            switch manner {
            case .lines(let json, let readsAnswers):
                let line = json ? "\(message.json)" : "\(message.id) \(message.name) \(message.parameters)"
                Output.write(line + "\n")
                if !readsAnswers { answer() }
            case .commands(let commands):
                guard let command = commands[message.name] ?? commands["*"] else {
                    if isForOthers { current?.answer.result = .unhandled }
                    answer()
                    continue
                }
                do {
                    try start(command, for: message)
                } catch {
                    notRun((error as? Failure)?.message ?? "\(error)")
                    answer()
                }
            }
        }
    }

    /// Sets the answer if the command of the message was not run. `failed` would mean that the app has handled the
    /// message, and mail would be lost; but the app must not seem to have handled a message that concerns only it.
    private func notRun(_ text: String) {
        let isForOthers = current?.isForOthers ?? false
        current?.answer.result = isForOthers ? .unhandled : .failed
        current?.answer.text = text
        Complaint.say("\(current?.name ?? "a message") is not handled: \(text)", .warning)
    }

    private func start(_ command: String, for message: AppMessage) throws {
        let (read, write) = try Descriptor.pipe()
        try Descriptor.setNonBlocking(read.raw)
        let child = try AppSide.start(
            ["/bin/sh", "-c", command],
            variables: Self.variables(message),
            descriptors: [(0, 0), (1, 1), (2, 2), (3, write.raw)]
        )
        try poller.add(child.pidfd.raw, .readable, tag: 0)
        try poller.add(read.raw, .readable, tag: 0)
        current?.command = command
        current?.child = child
        current?.pipe = read
    }

    /// The variable TORPOR_MESSAGE, and one for each parameter of the message, such as TORPOR_MESSAGE_URL and
    /// TORPOR_MESSAGE_PATH.
    static func variables(_ message: AppMessage) -> [String: String] {
        var variables: [String: String] = [:]
        if [DelegateMessage.settingsDidChange, .identityDidChange].contains(where: { $0.rawValue == message.name }) {
            let payload = message.parameters["payload"]
            let changed = payload?["changed"]?.arrayValue?.compactMap(\.stringValue) ?? []
            variables["TORPOR_MESSAGE_CHANGED"] = changed.filter { !$0.utf8.contains(0) }.joined(separator: "\n")
            let path = payload?["path"]?.stringValue ?? ""
            variables["TORPOR_MESSAGE_CHANGED_PATH"] = path.utf8.contains(0) ? "" : path
        }
        if message.name == DelegateMessage.refresh.rawValue {
            let names = message.parameters["payload"]?["names"]?.arrayValue?.compactMap(\.stringValue) ?? []
            variables["TORPOR_MESSAGE_NAMES"] = names.filter { !$0.utf8.contains(0) }.joined(separator: "\n")
        }
        if message.name == DelegateMessage.didDiscardScenes.rawValue {
            let names = message.parameters["payload"]?["names"]?.arrayValue?.compactMap(\.stringValue) ?? []
            variables["TORPOR_MESSAGE_SCENES"] = names.filter { !$0.utf8.contains(0) }.joined(separator: "\n")
        }
        variables.merge(sceneVariables(message)) { $1 }
        if message.name == DelegateMessage.didReceiveLocalNotification.rawValue {
            // These parameters are null if no user was asked. Set the variables even then, because scripts with ‘set
            // -u’ fail at missing ones.
            for name in ["ACTION", "ACTIVATION_TOKEN", "PAYLOAD"] { variables["TORPOR_MESSAGE_" + name] = "" }
        }
        if message.name == DelegateMessage.continueActivity.rawValue {
            // An activity may lack any of these. Set the variables even then, for scripts with ‘set -u’.
            for name in ["TITLE", "PAYLOAD", "URL", "SOURCE"] { variables["TORPOR_MESSAGE_" + name] = "" }
        }
        for member in message.parameters.objectValue?.members ?? [] where !member.value.isNull {
            // A variable cannot hold NUL: such a string is passed as JSON, which has \u0000 for it.
            let string = member.value.stringValue.flatMap { $0.utf8.contains(0) ? nil : $0 }
            let text = string ?? "\(member.value)"
            let name = member.name.uppercased()
            guard name.utf8.allSatisfy({ $0 == 0x5f || (0x30...0x5a).contains($0) }) else { continue }
            variables["TORPOR_MESSAGE_" + name] = text
        }
        variables["TORPOR_MESSAGE"] = message.name
        variables["TORPOR_MESSAGE_ID"] = "\(message.id)"
        // Set the variable even if there is no deadline, because scripts with ‘set -u’ fail at a missing one.
        variables["TORPOR_MESSAGE_DEADLINE_MS"] = message.deadlineMilliseconds.map { "\($0)" } ?? ""
        return variables
    }

    /// Variables that name the scene inside the app to which a message belongs. If the app itself is a scene, messages
    /// without `scene` leave the app's own TORPOR_SCENE and TORPOR_SESSION unchanged.
    private static func sceneVariables(_ message: AppMessage) -> [String: String] {
        func harmless(_ text: String) -> String { text.utf8.contains(0) ? "" : text }
        guard let scene = message.parameters["scene"]?.stringValue else { return [:] }
        var variables = ["TORPOR_SCENE": harmless(scene)]
        guard message.name == DelegateMessage.sceneWillConnect.rawValue else { return variables }
        // Set the variable even if its value is empty, because scripts with ‘set -u’ fail at a missing one.
        let session = message.parameters["options"]?["session"] ?? .null
        variables["TORPOR_SESSION"] = session.isNull ? "" : harmless("\(session)")
        variables["TORPOR_SCENE_CGROUP"] = harmless(message.parameters["options"]?["cgroup"]?.stringValue ?? "")
        let state = message.parameters["state"]
        variables["TORPOR_MESSAGE_PATH"] = harmless(state?["path"]?.stringValue ?? "")
        variables["TORPOR_MESSAGE_BYTES"] = state?["bytes"]?.intValue.map { "\($0)" } ?? ""
        return variables
    }

    private func readAnswers() {
        if case .lines(_, true) = manner { for line in input.read(0) { take(line) } }
        guard let pipe = current?.pipe, let lines = current?.lines.read(pipe.raw) else { return }
        for line in lines { take(line) }
        if current?.lines.isAtEnd == true {
            try? poller.remove(pipe.raw)
            current?.pipe = nil
        }
    }

    private func take(_ line: String) {
        guard current != nil else {
            return Complaint.say("“\(line)” is ignored: no message is waiting for an answer", .warning)
        }
        do throws(DelegateLine.NotUnderstood) {
            switch try DelegateLine(line) {
            case .done: if current?.child == nil { answer() }
            case .unhandled:
                let isForOthers = current?.isForOthers ?? false
                current?.answer.result = isForOthers ? .unhandled : .done
                current?.answer.text = nil
                if current?.child == nil { answer() }
            case .failed(let text):
                current?.answer.result = .failed
                current?.answer.text = text
                if current?.child == nil { answer() }
            case .pending(let milliseconds, let text):
                guard let id = current?.answer.id else { return }
                guard current?.name != DelegateMessage.didEnterBackground.rawValue else {
                    return Complaint.say(
                        "“\(line)” is refused: the deadline of didEnterBackground cannot be extended",
                        .warning
                    )
                }
                var pending = AppAnswer(id: id, result: .pending, text: text)
                pending.expectedMilliseconds = milliseconds
                send(pending)
            case .decline(let what): current?.answer.declines.append(what)
            case .fetch(let what): current?.answer.fetch = what
            }
        } catch {
            Complaint.say("\(error)", .warning)
            current?.answer.text = "\(error)"
            guard error.isLast else { return }
            // It may be a misspelt “unhandled”: “done” and “failed” would lose the message.
            let isForOthers = current?.isForOthers ?? false
            current?.answer.result = isForOthers ? .unhandled : .failed
            // A script takes the message for answered: nothing else would end it before its deadline. A command ends.
            if current?.child == nil { answer() }
        }
    }

    private func finishCommand() throws {
        guard let child = current?.child, let status = child.reap(within: .zero) else { return }
        readAnswers()
        if let pipe = current?.pipe { try? poller.remove(pipe.raw) }
        let code = AppSide.exitStatus(status)
        let command = current?.command ?? "the command"
        if HookProgram.unrunnable.contains(code), current?.answer.result != .failed {
            notRun("‘\(command)’ could not be run: the shell ended with exit status \(code)")
        } else if code != 0, current?.answer.result != .failed {
            // If the command has written “unhandled”, the message must be kept whatever the exit status is.
            if current?.answer.result != .unhandled { current?.answer.result = .failed }
            if current?.answer.result == .failed || current?.answer.text == nil {
                current?.answer.text = "‘\(command)’ ended with exit status \(code)"
            }
        }
        answer()
    }

    private func answer() {
        guard let answer = current?.answer else { return }
        current = nil
        send(answer)
    }

    private func send(_ answer: AppAnswer) {
        link.call(.answer(answer)) { result in
            if case .failure(let error) = result { Complaint.say("\(error)", .warning) }
        }
    }
}
