// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EventLoop
import HTTPAsking
import Lifecycle
import Linux
import Processes
import SystemPackage

/// Checks repeatedly whether an app is ready, and reports it to the core. It stops when its last reference is gone.
final class ReadinessProbe {
    private let probe: Probe
    private weak var app: AppRuntime?
    private weak var supervisor: Supervisor?
    private var timer: TimerSource?
    private var limit: TimerSource?
    private var socket: Descriptor?
    private var source: IOSource?
    private var question: HTTPQuestion?
    private var command: Descriptor?
    /// The last error of the file check that was logged, so that it is logged once.
    private var said: Errno?
    /// Identifies the current try, so that answers to an earlier one are ignored.
    private var attempt = 0

    init(_ probe: Probe, app: AppRuntime, supervisor: Supervisor) {
        self.probe = probe
        self.app = app
        self.supervisor = supervisor
    }

    deinit {
        if let command { try? Pidfd.sendSignal(command.raw, Signal.kill) }
    }

    func start() {
        timer = try? supervisor?.loop.timer { [weak self] in self?.tryOnce() }
        limit = try? supervisor?.loop.timer { [weak self] in self?.failed() }
        tryOnce()
    }

    private func tryOnce() {
        guard let supervisor, let app, coordinatorSaysLaunching(supervisor, app) else { return }
        attempt += 1
        limit?.arm(after: probe.timeout)
        switch probe.kind {
        case .file(let path): look(path, app, supervisor)
        case .tcp(let host, let port): connect(host, port)
        case .http(let host, let port, let path):
            ask(HTTPQuestion.Place(host: host, port: port, path: path), supervisor)
        case .command(let words): run(words, app, supervisor)
        }
    }

    /// Runs on a background thread, since the owner of the path could make the check block, and with the rights of
    /// the app's user, who may have linked the path anywhere. While a check hangs, no other starts for the app,
    /// whichever incarnation asks.
    func look(_ path: String, _ app: AppRuntime, _ supervisor: Supervisor) {
        guard !app.isLookedAt else { return }
        guard let account = try? Optional(supervisor.launcher.account(of: app)) else { return failed() }
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
            guard let self, let supervisor = self.supervisor, let app = self.app,
                self.coordinatorSaysLaunching(supervisor, app)
            else { return }
            if let error, error != self.said, error != .noSuchFileOrDirectory {
                self.said = error
                let user = rights.map { " as its user, \($0.name)" } ?? ""
                supervisor.log.warning(
                    "\(app.name): cannot check its readiness file \(path)\(user): \(error)"
                )
            }
            error == nil ? self.succeeded() : self.failed()
        }
    }

    private func coordinatorSaysLaunching(_ supervisor: Supervisor, _ app: AppRuntime) -> Bool {
        supervisor.coordinator.machine(app.id).transition == .launching
    }

    private func succeeded() {
        stopTry()
        timer?.cancel()
        limit?.cancel()
        guard let supervisor, let app else { return }
        supervisor.deliver(.ready, to: app.id)
    }

    private func failed() {
        stopTry()
        timer?.arm(after: probe.interval)
    }

    private func stopTry() {
        attempt += 1
        limit?.disarm()
        source?.cancel()
        source = nil
        socket = nil
        question = nil
        if let command { try? Pidfd.sendSignal(command.raw, Signal.kill) }
        command = nil
    }

    // MARK: TCP and HTTP

    private func connect(_ host: String, _ port: UInt16) {
        do throws(Errno) {
            let address = host == "localhost" ? "127.0.0.1" : host
            let socket = try Sockets.connectTCP(address: address, port: port)
            self.socket = socket
            source = try supervisor?.loop.watch(socket.raw, .writable) { [weak self] _ in
                guard let self, let socket = self.socket else { return }
                Sockets.pendingError(socket.raw) == nil ? self.succeeded() : self.failed()
            }
        } catch {
            failed()
        }
    }

    private func ask(_ place: HTTPQuestion.Place, _ supervisor: Supervisor) {
        question = HTTPQuestion(place, for: .status, on: supervisor.loop) { [weak self] result in
            guard let self else { return }
            if case .success(let answer) = result, (200..<400).contains(answer.status) {
                self.succeeded()
            } else {
                self.failed()
            }
        }
    }

    // MARK: Commands

    private func run(_ words: [String], _ app: AppRuntime, _ supervisor: Supervisor) {
        let mine = attempt
        supervisor.launcher.runCommand(app, words) { [weak self] pidfd in
            guard let self, self.attempt == mine else {
                try? Pidfd.sendSignal(pidfd.raw, Signal.kill)
                return
            }
            self.command = pidfd
        } completion: { [weak self] result in
            guard let self, self.attempt == mine else { return }
            self.command = nil
            if case .success(.exited(0)) = result { self.succeeded() } else { self.failed() }
        }
    }
}

extension Incarnation {
    var probe: ReadinessProbe? {
        get { slots[ProbeSlot.self] }
        set { slots[ProbeSlot.self] = newValue }
    }
}

private enum ProbeSlot: Slot { typealias Value = ReadinessProbe }
