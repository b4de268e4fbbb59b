// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EngineHarness
import EventLoop
import Foundation
import KernelFiles
import Lifecycle
import Linux
import Mailbox
import Processes
import TestAddresses

@testable import EventSources

/// What did not come in time.
struct Overdue: Error, CustomStringConvertible {
    let description: String
    init(_ what: String) { description = "after 30 s it was still not so that \(what)" }
}

/// A folder that goes with the test.
final class TestFolder {
    let path: String

    init() throws {
        var template = Array((NSTemporaryDirectory() + "tp-XXXXXX").utf8CString)
        guard mkdtemp(&template) != nil else { throw Errno(rawValue: errno) }
        // The way there must be the same however it is written.
        path = try File.realPath(String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self))
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    func callAsFunction(_ name: String) -> String { path + "/" + name }
}

/// A place on this machine where nothing else is.
struct TestPort {
    let host = TestAddress.host
    let number: UInt16

    init() throws { number = try TestAddress.port() }

    var text: String { "\(host):\(number)" }

    func connect() throws -> Descriptor {
        let socket = try Sockets.connectTCP(address: host, port: number)
        guard try Descriptor.wait(socket.raw, writable: true, timeout: .seconds(30)) else {
            throw Overdue("it connects")
        }
        if let error = Sockets.pendingError(socket.raw) { throw error }
        return socket
    }

    func listen(backlog: Int32 = 128) throws -> Descriptor {
        try Sockets.listenTCP(address: host, port: number, backlog: backlog)
    }
}

extension FakeEvents {
    /// Apps for which this process stands, so that its sockets are theirs, and whose first launches are begun.
    ///
    /// - Parameters:
    ///   - left: what an earlier torpord left in the keeper.
    ///   - isStarted: false: the first launches are not begun yet.
    ///   - before: runs before there are any events.
    init(
        real toml: String,
        left: [(name: String, descriptors: [Descriptor])] = [],
        isStarted: Bool = true,
        before: (FakeShell, FakeEventHost) throws -> Void = { _, _ in }
    ) throws {
        shell = try FakeShell(toml: toml)
        shell.hands.process = ThisProcess.pid
        host = FakeEventHost(shell)
        host.inheritance = InheritedDescriptors(left)
        kernel = try KernelFiles()
        wakes = Wakes(shell.engine, shell.recorder, host)
        wakes.kernelFiles = kernel.root
        try before(shell, host)
        shell.engine.add(Ear(wakes))
        wakes.takeOver()
        wakes.begin()
        if isStarted { try begin() }
    }

    /// The first launches are begun.
    func begin() throws {
        shell.engine.started()
        shell.engine.goOnAfterStart()
        try pass(.zero)
    }

    /// Turns the loop until it is so; what does not come in 30 s never comes.
    ///
    /// - Parameter time: so much passes between two looks.
    func wait(_ what: String, passing time: Duration = .zero, until isSo: () throws -> Bool) throws {
        let end = Clock.monotonic() + .seconds(30)
        while true {
            try pass(time)
            if try isSo() { return }
            guard Clock.monotonic() < end else { throw Overdue(what) }
            try shell.engine.loop.runOnce(timeout: .milliseconds(10))
        }
    }

    func wait(for state: AppState, of app: String) throws {
        try wait("\(app) is \(state.rawValue)") { shell.state(app) == state }
    }

    /// Starts the app, and has it sleep.
    func fallAsleep(_ app: String) throws {
        if !shell.engine.machine(shell.app(app).id).isAlive { try shell.start(app) }
        try shell.request(.forceSuspend, app)
        try wait(for: .suspended, of: app)
    }

    /// It is ended in its sleep, for its memory.
    func evict(_ app: String) throws {
        shell.app(app).wasCutShort = true
        try shell.request(.evict, app)
        try pass(.zero)
    }

    /// What it was woken by: `woken by a connection at …`, oldest first, without the time that it took.
    func woken(_ app: String) -> [String] {
        shell.told(of: app).compactMap { line in
            guard let range = line.range(of: "woken by "), !line.contains("is not woken") else { return nil }
            return line[range.upperBound...].components(separatedBy: " after ")[0]
        }
    }

    /// What was put into its mailbox: topics, oldest first.
    func topics(_ app: String) -> [String] { (host.drafts[shell.app(app).id] ?? []).map(\.topic) }

    /// Another configuration is in force, of the same apps: for those that run too.
    func configure(_ toml: String) throws {
        for specification in try FakeShell(toml: toml).configuration.apps {
            shell.app(specification.name).specification = specification
        }
        wakes.configure()
        try pass(.zero)
    }

    /// The app leaves the configuration, and is gone for good.
    @discardableResult
    func remove(_ app: String) throws -> AppRuntime {
        let app = shell.app(app)
        wakes.forget(app)
        shell.engine.apps.remove(app)
        try pass(.zero)
        return app
    }

    /// The sockets that are bound for an app.
    func sockets(_ app: String) -> [ListeningSocket] { wakes.sockets.sockets(of: shell.app(app)) }

    /// Whether somebody holds the port of a socket for the app that is gone.
    func ports(_ app: String) -> [String] { wakes.connectionWatch.heldPorts(of: shell.app(app)) }
}

extension Descriptor {
    /// Waits until something can be read from it, or something waits to be accepted.
    func awaitInput() throws {
        guard try Descriptor.wait(raw, timeout: .seconds(30)) else { throw Overdue("something comes") }
    }

    /// Accepts the connection that comes.
    func accepted() throws -> Descriptor {
        try awaitInput()
        guard let connection = try Sockets.accept(raw) else { throw Overdue("a connection waits") }
        return connection
    }
}
