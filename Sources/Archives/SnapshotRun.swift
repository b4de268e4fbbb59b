// SPDX-License-Identifier: Apache-2.0

package import Configuration
package import Engine
import EventLoop
import Lifecycle
import Linux
import Processes
import WireText

/// Has a snapshot made as the configuration says: by a command, or a request to a server, whose answer it gathers. It ends
/// with its last reference, and what it has started with it.
package final class SnapshotRun {
    /// What it came to: what is to be kept, or why there is nothing, in a sentence.
    typealias Outcome = Result<ArchiveContent, LaunchError>

    private static let mostBytes = Int(ArchiveFolder.largestSnapshot)
    /// Behind a status line and headers no longer than that comes what was asked for.
    private static let mostHead = 64 << 10
    /// Read at a time: others have their turn in between.
    private static let portion = 64 << 10
    /// The core's deadline comes first.
    private static let reserve = Duration.seconds(1)
    /// So long a server has to close the connection after its answer.
    private static let patience = Duration.milliseconds(250)

    private let loop: EventLoop
    private let queue: SnapshotQueue
    private let completion: (Outcome) -> Void
    private var hasBegun = false
    private var isOver = false
    private var bytes: [UInt8] = []
    /// Of a server's answer, once its head is there: where its body begins, and where it ends if the server has said so.
    private var body: Int?
    private var end: Int?
    private var scanned = 0
    private var isClosing = false
    private var timer: TimerSource?
    /// The app shows something new meanwhile.
    package var isOutdated = false
    private var descriptor: Descriptor?
    private var source: IOSource?
    private var command: Descriptor?

    /// - Parameter completion: called by the loop, once, and not after the last reference is gone.
    init(_ loop: EventLoop, _ queue: SnapshotQueue, _ completion: @escaping (Outcome) -> Void) {
        self.loop = loop
        self.queue = queue
        self.completion = completion
    }

    /// Has it made when the time is over, as soon as it is its turn then.
    package func begin(
        _ specification: SnapshotSpecification,
        after wait: Duration,
        for app: AppRuntime,
        _ states: SavedStates
    ) {
        guard wait > .zero else { return enter(specification, for: app, states) }
        timer = try? loop.timer { [weak self, weak app, weak states] in
            guard let self, let app, let states else { return }
            self.enter(specification, for: app, states)
        }
        timer?.arm(after: wait)
    }

    private func enter(_ specification: SnapshotSpecification, for app: AppRuntime, _ states: SavedStates) {
        // The app's own time stands still while it is traced, and so does its deadline: this one is the supervisor's.
        timer = try? loop.timer { [weak self] in self?.fail("it was not there within its deadline") }
        timer?.arm(after: specification.deadline + Self.reserve)
        queue.enter(self) { [weak app, weak states] run in
            run.hasBegun = true
            guard let app, let states else { return }
            app.snapshotBegan = run.loop.now
            switch specification.source {
            case .command(let words): run.run(words, for: app, states)
            case .http(let host, let port, let path): run.ask(host, port, path)
            case .file(let path): run.take(file: path, of: states.ownUsers(of: app))
            }
        }
    }

    deinit { stop() }

    private func finish(_ outcome: Outcome) {
        guard !isOver else { return }
        stop()
        completion(outcome)
    }

    private func fail(_ sentence: String) { finish(.failure(LaunchError(sentence))) }

    private func stop() {
        guard !isOver else { return }
        isOver = true
        if hasBegun { queue.leave() }
        timer?.cancel()
        timer = nil
        source?.cancel()
        source = nil
        descriptor = nil
        if let command { Pidfd.killGroup(command.raw) }
        command = nil
    }

    // MARK: A command

    private func run(_ words: [String], for app: AppRuntime, _ states: SavedStates) {
        let name = words.first ?? ""
        let ends: (read: Descriptor, write: Descriptor)
        do throws(Errno) {
            ends = try Descriptor.pipe()
            try Descriptor.setNonBlocking(ends.read.raw)
            source = try loop.watch(ends.read.raw, .readable, priority: .last) { [weak self] _ in self?.gather(name) }
        } catch {
            return fail("command \(name) has no pipe: \(error)")
        }
        descriptor = ends.read
        states.host.runCommand(app, words, output: ends.write) { [weak self] pidfd in
            guard let self, !self.isOver else { return Pidfd.killGroup(pidfd.raw) }
            self.command = pidfd
        } completion: { [weak self] result in
            guard let self, !self.isOver else { return }
            // What it has left running has nobody else who would end it.
            if let command = self.command { Pidfd.killGroup(command.raw) }
            self.command = nil
            switch result {
            case .success(.exited(0)):
                // What is left of it is no more than a pipe has.
                while self.read(name, most: Self.mostBytes) == .some {}
                self.finish(.success(.bytes(self.bytes)))
            case .success(.exited(let code)): self.fail("command \(name) failed with exit status \(code)")
            case .success(.signaled(let signal, _)): self.fail("command \(name) died of \(Signal.name(signal))")
            case .failure(let trouble): self.fail("command \(name): \(trouble)")
            }
        }
    }

    private func gather(_ name: String) {
        // The command may have closed its output and go on: its exit tells.
        if read(name, most: Self.mostBytes) == .end { source?.cancel() }
    }

    /// What one read came to.
    private enum Portion { case some, none, end }

    private func read(_ name: String, most: Int) -> Portion {
        guard !isOver, let descriptor else { return .end }
        do throws(Errno) {
            guard let part = try Descriptor.read(descriptor.raw, maximum: Self.portion) else { return .none }
            bytes += part
            if bytes.count > most { fail("\(name) gives more than \(Self.mostBytes >> 20) MiB") }
            return part.isEmpty ? .end : .some
        } catch {
            fail("\(name): \(error)")
            return .end
        }
    }

    // MARK: A server

    private func ask(_ host: String, _ port: UInt16, _ path: String) {
        let place = "http://\(host):\(port)\(path)"
        do throws(Errno) {
            let address = host == "localhost" ? "127.0.0.1" : host
            let socket = try Sockets.connectTCP(address: address, port: port)
            // That torpord looked is no use of the app: nothing of the connection stays behind for those who count.
            try Sockets.resetOnClose(socket.raw)
            descriptor = socket
            source = try loop.watch(socket.raw, .writable) { [weak self] _ in
                guard let self, let socket = self.descriptor else { return }
                if let error = Sockets.pendingError(socket.raw) { return self.fail("\(place): \(error)") }
                self.request(host, port, path, place)
            }
        } catch {
            fail("\(place): \(error)")
        }
    }

    private func request(_ host: String, _ port: UInt16, _ path: String, _ place: String) {
        guard let descriptor else { return }
        source?.cancel()
        let head = "GET \(path) HTTP/1.0\r\nHost: \(host):\(port)\r\nUser-Agent: torpor\r\nConnection: close\r\n\r\n"
        do throws(Errno) {
            // A request this short fits into the buffer of a fresh connection.
            _ = try Descriptor.write(descriptor.raw, Array(head.utf8))
            source = try loop.watch(descriptor.raw, .readable, priority: .last) { [weak self] _ in
                guard let self else { return }
                switch self.read(place, most: Self.mostBytes + Self.mostHead) {
                case .none: break
                case .some: self.look(place)
                case .end: self.take(place)
                }
            }
        } catch {
            fail("\(place): \(error)")
        }
    }

    /// Looks how far the answer is.
    private func look(_ place: String) {
        guard !isOver else { return }
        findBody()
        guard let body else {
            if bytes.count > Self.mostHead { fail("\(place) gives no answer of HTTP") }
            return
        }
        guard let end, bytes.count >= end else {
            if let end, end - body > Self.mostBytes { fail("\(place) gives more than \(Self.mostBytes >> 20) MiB") }
            return
        }
        guard !isClosing else { return }
        isClosing = true
        // It closes the connection now, as it was asked to: the app is not to fall asleep with that before it.
        timer = try? loop.timer { [weak self] in self?.take(place) }
        timer?.arm(after: Self.patience)
    }

    private func findBody() {
        let mark = Array("\r\n\r\n".utf8)
        let last = min(bytes.count, Self.mostHead) - mark.count
        guard body == nil, last >= scanned else { return }
        body = (scanned...last).first { bytes[$0..<($0 + mark.count)].elementsEqual(mark) }.map { $0 + mark.count }
        scanned = last + 1
        guard let body else { return }
        let head = String(wire: bytes[..<body]).lowercased().split(whereSeparator: \.isNewline)
        let said = head.first { $0.hasPrefix("content-length:") }?.dropFirst(15).filter { $0 != " " && $0 != "\t" }
        end = said.flatMap { Int($0) }.flatMap { $0 >= 0 && $0 <= Int.max - body ? $0 + body : nil }
    }

    /// The whole answer is there.
    private func take(_ place: String) {
        guard !isOver else { return }
        let line = String(wire: bytes.prefix(12))
        findBody()
        guard line.hasPrefix("HTTP/1."), let status = Int(line.suffix(3)), let body else {
            return fail("\(place) gives no answer of HTTP")
        }
        guard (200..<300).contains(status) else { return fail("\(place) answers \(status)") }
        guard bytes.count >= end ?? body else { return fail("\(place) breaks off its answer") }
        finish(.success(.bytes(Array(bytes[body..<(end ?? bytes.count)]))))
    }

    // MARK: A file

    /// A file is read where disks are waited for.
    private func take(file path: String, of owners: Set<UInt32>) {
        let name = path.split(separator: "/").last.map(String.init) ?? ""
        let folder = File.parent(of: path) ?? "/"
        finish(.success(.file(name: name, directory: folder, owners: owners)))
    }
}
