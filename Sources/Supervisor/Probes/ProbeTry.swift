// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EventLoop
import HTTPAsking
import Lifecycle
import Linux
import Processes
import SystemPackage

/// One attempt of a probe (`ready` or `health`). The attempt stops when the last reference to this object is
/// released.
final class ProbeTry {
    /// Gets nil if the probe succeeded; otherwise the reason, as a sentence without its subject (the app or the check).
    typealias Completion = (_ problem: String?) -> Void

    private let probe: Probe
    /// Whether the attempt must not count as use of the app: it must leave no trace such as a recently closed
    /// connection.
    private let isQuiet: Bool
    private unowned(unsafe) let supervisor: Supervisor
    private var completion: Completion?
    private var limit: TimerSource?
    private var socket: Descriptor?
    private var source: IOSource?
    private var question: HTTPQuestion?
    private var command: Descriptor?

    /// Begins at once. The outcome comes in a later turn of the loop, or never if the last reference is released.
    init(
        _ probe: Probe,
        of app: AppRuntime,
        _ supervisor: Supervisor,
        isQuiet: Bool,
        _ completion: @escaping Completion
    ) {
        self.probe = supervisor.settings.filled(probe, of: app)
        self.isQuiet = isQuiet
        self.supervisor = supervisor
        self.completion = completion
        limit = try? supervisor.loop.timer { [weak self] in self?.isLate() }
        limit?.arm(after: probe.timeout)
        switch self.probe.kind {
        case .file(let path): look(path, app)
        case .tcp(let host, let port): connect(host, port)
        case .http(let host, let port, let path): ask(HTTPQuestion.Place(host: host, port: port, path: path))
        case .command(let words): run(words, app)
        case .inside(let words): run(supervisor.launcher.containers.inside(app, words), app)
        }
    }

    deinit { stop() }

    private func isLate() {
        // The answer has come. Only the end of the connection is missing, so wait for that a little longer.
        if question?.isClosing == true { return limit?.arm(after: HTTPQuestion.patience) ?? () }
        finish("gave no answer within \(Quantity.text(probe.timeout))")
    }

    private func finish(_ problem: String?) {
        stop()
        guard let completion else { return }
        self.completion = nil
        completion(problem)
    }

    private func later(_ problem: String) {
        supervisor.loop.later { [weak self] in self?.finish(problem) }
    }

    private func stop() {
        limit?.cancel()
        limit = nil
        source?.cancel()
        source = nil
        socket = nil
        question = nil
        if let command { try? Pidfd.sendSignal(command.raw, Signal.kill) }
        command = nil
    }

    // MARK: Files

    /// Checks on a background thread whether the file exists, because the check may block: for example, the path may be
    /// on a filesystem that hangs. The check has only the rights of the app's user, because that user may have made the
    /// path a link to any file. While one check hangs, no other check of the same app starts, not even in its next
    /// incarnation (run).
    private func look(_ path: String, _ app: AppRuntime) {
        guard !app.isLookedAt else { return later("waits for an earlier check of \(path)") }
        guard let account = try? Optional(supervisor.launcher.account(of: app)) else {
            return later("has no user as whom \(path) could be checked")
        }
        let rights = account?.fileRights
        app.isLookedAt = true
        supervisor.launcher.reads.ask {
            do throws(Errno) {
                _ = try FileRights.status(path, as: rights)
                return Errno?.none
            } catch {
                return error
            }
        } _: { [weak self, weak app] error in
            app?.isLookedAt = false
            guard let self else { return }
            guard let error else { return finish(nil) }
            let user = rights.map { " as its user, \($0.name)" } ?? ""
            finish(
                error == .noSuchFileOrDirectory
                    ? Self.isMissing(path) : "cannot have its file \(path) looked at\(user): \(error)"
            )
        }
    }

    static func isMissing(_ path: String) -> String { "has no file \(path)" }

    // MARK: TCP and HTTP

    private func connect(_ host: String, _ port: UInt16) {
        do throws(Errno) {
            let address = host == "localhost" ? "127.0.0.1" : host
            let socket = try Sockets.connectTCP(address: address, port: port)
            if isQuiet { try Sockets.resetOnClose(socket.raw) }
            self.socket = socket
            source = try supervisor.loop.watch(socket.raw, .writable) { [weak self] _ in
                guard let self, let socket = self.socket else { return }
                finish(Sockets.pendingError(socket.raw).map { "does not accept at \(host):\(port): \($0)" })
            }
        } catch {
            later("cannot be reached at \(host):\(port): \(error)")
        }
    }

    private func ask(_ place: HTTPQuestion.Place) {
        question = HTTPQuestion(place, for: isQuiet ? .statusAtEnd : .status, on: supervisor.loop) {
            [weak self] result in
            switch result {
            case .success(let answer) where (200..<400).contains(answer.status): self?.finish(nil)
            case .success(let answer): self?.finish("answers \(place.path) with status \(answer.status)")
            case .failure(let problem): self?.finish("does not answer: \(place)\(problem)")
            }
        }
    }

    // MARK: Commands

    private func run(_ words: [String], _ app: AppRuntime) {
        supervisor.launcher.runCommand(app, words, isCheck: true) { [weak self] pidfd in
            guard let self, completion != nil else {
                try? Pidfd.sendSignal(pidfd.raw, Signal.kill)
                return
            }
            command = pidfd
        } completion: { [weak self] result in
            guard let self else { return }
            command = nil
            switch result {
            case .success(.exited(0)): finish(nil)
            case .success(.exited(let status)): finish("fails its check, which exited with status \(status)")
            case .success(.signaled(let signal, _)): finish("fails its check, which \(Signal.name(signal)) ended")
            case .failure(let error): finish("cannot be checked: \(error)")
            }
        }
    }
}
