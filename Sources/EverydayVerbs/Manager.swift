// SPDX-License-Identifier: Apache-2.0

package import CommandLinePages
import Linux
package import TorporAPI
package import Varlink

extension ManagerRequest {
    /// The request for a list of these apps, or of all apps if none is named.
    package static func list(of apps: [String]) -> ManagerRequest { apps.isEmpty ? .list : .listOf(apps) }
}

/// The connection to the supervisor. Failures are sentences with an exit status.
package struct Manager {
    private let client: PersistentVarlinkClient
    /// Whether the connection is to the machine's supervisor only because this user's own supervisor does not run.
    private let isFallback: Bool
    /// Whether to show on a terminal that a reply is slow. False if the caller shows that itself or draws on the
    /// terminal.
    package var saysThatItWaits = true

    /// How long to wait for a supervisor that is being replaced.
    package static let patience = Duration.seconds(30)

    /// Connects to the socket that the options name, or to the default socket.
    package init(_ options: PlainOptions, patience: Duration = Self.patience) throws(Failure) {
        try self.init(socket: options.socket, isVerbose: options.verbose, patience: patience)
    }

    /// Connects to a socket. Reports on a terminal, or always with `isVerbose`, if the connection is lost.
    package init(socket: String?, isVerbose: Bool = false, patience: Duration = Self.patience) throws(Failure) {
        var isTold = false
        try self.init(socket: socket, patience: patience) {
            guard !isTold, isVerbose || ThisProcess.isTerminal(2) else { return }
            isTold = true
            Complaint.say("the supervisor is being replaced: waiting for the next one", .warning)
        }
    }

    /// Connects; `onLoss` is called each time the connection is lost. `isFallback`: whether the socket is that of the
    /// machine's supervisor, found by ``ControlSocket/search()``.
    package init(
        socket: String?,
        isFallback: Bool = false,
        patience: Duration = Self.patience,
        onLoss: @escaping () -> Void
    ) throws(Failure) {
        let found = socket.map { (path: $0, isFallback: isFallback) } ?? ControlSocket.search()
        let path = found.path
        self.isFallback = found.isFallback
        do throws(VarlinkClientError) {
            client = try PersistentVarlinkClient(path: path, patience: patience)
            client.onLoss = onLoss
        } catch {
            throw Failure(
                status: .noSupervisor,
                message: "\(error): start torpord, or name the socket of a running one with --socket"
            )
        }
    }

    /// The socket to use when no `--socket` is given.
    package static var defaultSocket: String { ControlSocket.found }

    /// Sends requests that only read and whose calls come next, in this order, so that the supervisor answers them all
    /// at once.
    package func sendAhead(_ requests: [ManagerRequest]) { client.sendAhead(requests.map(\.call)) }

    /// Makes a call. If the supervisor is replaced during the call, repeats it, so the request must only read or carry
    /// a token. `onReply` gets every reply except the last one, which is returned. `onError` may turn an error of the
    /// service into a more helpful failure.
    @discardableResult
    package func call(
        _ request: @autoclosure () -> ManagerRequest,
        deadline: Duration? = nil,
        reserve: Duration = .zero,
        onReply: (JSON) -> Void = { _ in },
        onError: (_ name: String, _ parameters: JSON) -> Failure? = { _, _ in nil }
    ) throws(Failure) -> JSON {
        let isChange = request().isChange
        try requireMeant(isChange)
        let waiting = Waiting(for: "the supervisor has not answered yet", isShown: saysThatItWaits)
        defer { waiting.end() }
        do throws(VarlinkClientError) {
            let last = try client.call(deadline: deadline, reserve: reserve, { request().call }) { reply in
                waiting.end()
                sayFallback(isChange)
                onReply(reply)
            }
            sayFallback(isChange)
            if let count = last["left_out"]?.intValue, count > 0 {
                Complaint.say("\(count) more are left out, since the reply would be too long: name an app", .remark)
            } else if last["truncated"]?.boolValue == true {
                Complaint.say("long texts and lists are cut, since the reply would be too long", .remark)
            }
            return last
        } catch {
            if case .service(let name, let parameters) = error, let failure = onError(name, parameters) {
                throw failure
            }
            throw failure(error)
        }
    }

    /// The names of the matching apps, or of all apps if none is named. `isOne`: whether the only argument is the
    /// exact name of one app.
    package func names(of apps: [String]) throws(Failure) -> (names: [String], isOne: Bool) {
        let reply = try call(.list(of: apps))
        let names = (reply["apps"]?.arrayValue ?? []).compactMap { $0["name"]?.stringValue }
        return (names, apps.count == 1 && names == apps)
    }

    /// Makes a call, and does not repeat it. Returns nil if the connection is lost before the reply. `onError` may turn
    /// an error of the service into a more helpful failure.
    package func callOnce(
        _ request: ManagerRequest,
        deadline: Duration? = nil,
        onError: (_ name: String, _ parameters: JSON) -> Failure? = { _, _ in nil },
        onReply: (JSON) -> Void = { _ in }
    ) throws(Failure) -> JSON? {
        try requireMeant(request.isChange)
        do throws(VarlinkClientError) {
            let last = try client.call(repeats: false, deadline: deadline, { request.call }) { reply in
                sayFallback(request.isChange)
                onReply(reply)
            }
            sayFallback(request.isChange)
            return last
        } catch {
            if error == .disconnected { return nil }
            if case .service(let name, let parameters) = error, let failure = onError(name, parameters) {
                throw failure
            }
            throw failure(error)
        }
    }

    /// Waits until the supervisor closes the connection. Returns false after the timeout. The next call reconnects.
    package func waitForEnd(timeout: Duration) -> Bool { client.waitForEnd(timeout: timeout) }

    /// Warns on standard error if the configuration's files were edited but not applied. If the supervisor does not say
    /// whether they were, continues without a warning.
    package func warnOfEdits() {
        guard let reply = try? call(.describe, deadline: Clock.monotonic() + .seconds(2)),
            let info = try? SupervisorInfo(json: reply), info.configurationDiffers
        else { return }
        // It may have been mended since torpord read it.
        let sentence =
            info.configurationFailure == nil
            ? "the configuration on disk differs from the one in force: ‘torpor apply’ loads it, ‘torpor apply --diff’ "
                + "shows the difference"
            : "the configuration on disk was not valid when the supervisor last read it, so the previous one stays in "
                + "force: ‘torpor check’ says what is wrong, ‘torpor apply’ loads it when it is mended"
        Complaint.say(sentence, .warning)
    }

    /// Decodes a reply. If that fails, the error says that the daemon may be of another version.
    package static func read<T>(_ body: () throws(FieldError) -> T) throws(Failure) -> T {
        do throws(FieldError) {
            return try body()
        } catch {
            throw Failure(
                status: .failed,
                message: "the supervisor's reply cannot be read (\(error)): are torpor and torpord of the same version?"
            )
        }
    }

    /// The failure for an error. If the machine's supervisor refuses this user, the failure mentions the user's own
    /// supervisor.
    private func failure(_ error: VarlinkClientError) -> Failure {
        var failure = Self.failure(error)
        if case .service(ManagerInterface.ErrorName.unknownApp, let parameters) = error,
            ProcessName.isLikely(parameters["name"]?.stringValue ?? ""),
            let reply = try? call(.list(of: []), deadline: Clock.monotonic() + .seconds(2))
        {
            let names = (reply["apps"]?.arrayValue ?? []).compactMap { $0["name"]?.stringValue }
            failure = Self.unknownApp(parameters, among: names)
        }
        if isFallback, case .service(ManagerInterface.ErrorName.notPermitted, _) = error, !mayLook {
            failure.message? += "; " + OwnSupervisor.hint
        }
        return failure
    }

    /// Whether the user may look at this supervisor's apps, and so probably means this one.
    private var mayLook: Bool {
        let deadline = Clock.monotonic() + .seconds(2)
        let reply = try? client.call(deadline: deadline, { ManagerRequest.list(of: []).call }) { _ in }
        return reply != nil
    }

    /// Throws if the request would change something in the machine's supervisor although the user may mean their own
    /// supervisor, which does not run.
    private func requireMeant(_ isChange: Bool) throws(Failure) {
        guard isFallback, isChange, let refusal = OwnSupervisor.refusal else { return }
        throw Failure(status: .noSupervisor, message: refusal)
    }

    /// Says, once per process, that the machine's supervisor answers in place of the user's own: for a change always,
    /// for other requests only on a terminal.
    private func sayFallback(_ isChange: Bool) {
        guard isFallback, isChange || ThisProcess.isTerminal(2), OwnSupervisor.isFirst() else { return }
        Complaint.say("your own supervisor is not running: this is the machine's", .warning)
    }

    /// The failure for an error: a sentence that says what to do, and the exit status.
    package static func failure(_ error: VarlinkClientError) -> Failure {
        let name: String
        let parameters: JSON
        switch error {
        case .service(let said, let with): (name, parameters) = (said, with)
        case .gone:
            return Failure(
                status: .noSupervisor,
                message: "\(error): start torpord again, or name the socket of a running one with --socket"
            )
        case .timedOut:
            return Failure(
                status: .noSupervisor,
                message: "the supervisor takes connections and does not answer: see what its log says"
            )
        case .tooLong: return Failure(status: .failed, message: "\(error)")
        case .cannotConnect, .disconnected, .malformed:
            return Failure(status: .noSupervisor, message: "\(error): is torpord still running?")
        }
        let message = parameters["message"]?.stringValue
        switch name {
        case ManagerInterface.ErrorName.unknownApp: return unknownApp(parameters)
        case VarlinkErrorName.invalidParameter:
            let parameter = parameters["parameter"]?.stringValue ?? "a parameter"
            return Failure(status: .usage, message: message ?? "the supervisor does not accept \(parameter)")
        case VarlinkErrorName.methodNotFound, VarlinkErrorName.methodNotImplemented, VarlinkErrorName.interfaceNotFound:
            return Failure(
                status: .failed,
                message: "this supervisor cannot do that: torpord is older than torpor, upgrade it"
            )
        default: return Failure(status: .failed, message: message ?? "the supervisor answered \(name)")
        }
    }

    /// Whether a name looks like a program or an ecosystem file, which PM2's `start` accepts.
    private static func isFile(_ name: String) -> Bool {
        let suffixes = [".js", ".cjs", ".mjs", ".ts", ".py", ".sh", ".rb", ".php", ".json", ".yml", ".yaml"]
        return suffixes.contains { name.hasSuffix($0) } && File.exists(name)
    }

    /// The failure for a name or pattern that matches no app. `names`: the names of all apps, if they are known.
    package static func unknownApp(_ parameters: JSON, among names: [String] = []) -> Failure {
        let app = parameters["name"]?.stringValue ?? "that"
        if app.hasPrefix("tag:") {
            let tag = app.dropFirst(4)
            return Failure(status: .unknown, message: "no app has the tag \(tag): ‘torpor list’ shows all apps")
        }
        if let colon = app.firstIndex(of: ":") {
            let (group, name) = (app[..<colon], app[app.index(after: colon)...])
            // In supervisord, the instances of a program are a group of its name.
            let isWhole = name == "*" || name.isEmpty
            let isApp = names.contains { $0 == group || $0.hasPrefix("\(group)@") }
            let found = isWhole && isApp ? String(group) : ProcessName.app(for: String(name), among: names)
            let other = isWhole ? "‘tag:\(group)’ is all apps with a tag" : "‘torpor list’ shows all apps"
            let hint = found.map { "did you mean \($0)?" } ?? other
            return Failure(
                status: .unknown,
                message: "there is no app \(app), since app names have no group: \(hint)"
            )
        }
        if app.contains("*") || app.contains("?") {
            let hint = app.contains("[") ? "only * and ? stand for other characters" : "‘torpor list’ shows all apps"
            return Failure(status: .unknown, message: "no app matches \(app): \(hint)")
        }
        if app == "all" {
            return Failure(status: .unknown, message: "there is no app all: write '*', in quotes, for all of them")
        }
        if isFile(app) {
            return Failure(
                status: .unknown,
                message: "there is no app \(app), and a file is not started by its name: add a table [apps.NAME] with "
                    + "exec to the configuration (‘torpor import’ translates an ecosystem file), then ‘torpor apply’"
            )
        }
        let nearest = parameters["nearest"]?.stringValue
        let similar = nearest.flatMap { ProcessName.isOtherInstance($0, than: app) ? nil : $0 }
        let meant = ProcessName.app(for: app, among: names) ?? similar
        let hint = meant.map { "did you mean \($0)?" } ?? "‘torpor list’ shows all apps"
        return Failure(status: .unknown, message: "there is no app \(app): \(hint)")
    }

    /// The policies in use, in the order in which torpord asks them.
    package func policies(deadline: Duration? = nil) throws -> [PolicyStatus] {
        let reply = try call(.policies, deadline: deadline)
        return try Self.read { () throws(FieldError) in
            try Fields(reply).list("policies") { json throws(FieldError) in try PolicyStatus(json: json) }
        }
    }
}
