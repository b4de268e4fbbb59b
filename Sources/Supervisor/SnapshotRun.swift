import Configuration
import EventLoop
import Lifecycle
import Linux
import Processes

/// Has a snapshot made as the configuration says: by a command, or a request to a server, whose answer it gathers. It ends
/// with its last reference, and what it has started with it.
final class SnapshotRun {
    /// What it came to: what is to be kept, or why there is nothing, in a sentence.
    typealias Outcome = Result<ArchiveContent, LaunchTrouble>

    private static let mostBytes = Int(ArchiveFolder.largestSnapshot)
    /// Behind a status line and headers no longer than that comes what was asked for.
    private static let mostHead = 64 << 10
    /// Read at a time: others have their turn in between.
    private static let portion = 64 << 10

    private let loop: EventLoop
    private let queue: SnapshotQueue
    private let completion: (Outcome) -> Void
    private var hasBegun = false
    private var isOver = false
    private var bytes: [UInt8] = []
    /// Of a server's answer, head and all, once its head is there.
    private var length: Int?
    private var descriptor: Descriptor?
    private var source: IOSource?
    private var command: Descriptor?

    /// - Parameter completion: called by the loop, once, and not after the last reference is gone.
    init(_ loop: EventLoop, _ queue: SnapshotQueue, _ completion: @escaping (Outcome) -> Void) {
        self.loop = loop
        self.queue = queue
        self.completion = completion
    }

    /// Has it made, as soon as it is its turn.
    func begin(_ source: SnapshotSpecification.Source, for app: AppRuntime, _ supervisor: Supervisor) {
        queue.enter(self) { [weak app, weak supervisor] run in
            run.hasBegun = true
            guard let app, let supervisor else { return }
            switch source {
            case .command(let words): run.run(words, for: app, supervisor)
            case .http(let host, let port, let path): run.ask(host, port, path)
            case .file(let path): run.take(file: path, of: supervisor.ownUsers(of: app))
            }
        }
    }

    deinit { stop() }

    private func finish(_ outcome: Outcome) {
        guard !isOver else { return }
        stop()
        completion(outcome)
    }

    private func fail(_ sentence: String) { finish(.failure(LaunchTrouble(sentence))) }

    private func stop() {
        guard !isOver else { return }
        isOver = true
        if hasBegun { queue.leave() }
        source?.cancel()
        source = nil
        descriptor = nil
        if let command { Pidfd.killGroup(command.raw) }
        command = nil
    }

    // MARK: A command

    private func run(_ words: [String], for app: AppRuntime, _ supervisor: Supervisor) {
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
        supervisor.runCommand(app, words, output: ends.write) { [weak self] pidfd in
            guard let self, !self.isOver else { return Pidfd.killGroup(pidfd.raw) }
            self.command = pidfd
        } completion: { [weak self] result in
            guard let self, !self.isOver else { return }
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
                let portion = self.read(place, most: Self.mostBytes + Self.mostHead)
                if portion == .end || portion == .some && self.isWhole { self.take(place) }
            }
        } catch {
            fail("\(place): \(error)")
        }
    }

    /// Where the head ends and the body begins, as far as that is there.
    private var body: Int? {
        let end = Array("\r\n\r\n".utf8)
        let last = min(bytes.count, Self.mostHead) - end.count
        guard last >= 0 else { return nil }
        return (0...last).first { bytes[$0..<($0 + end.count)].elementsEqual(end) }.map { $0 + end.count }
    }

    /// Whether as much is there as the server has said; one that does not say it closes the connection.
    private var isWhole: Bool {
        if length == nil, let body {
            let head = String(decoding: bytes[..<body], as: UTF8.self).lowercased().split(whereSeparator: \.isNewline)
            let said = head.first { $0.hasPrefix("content-length:") }?.dropFirst(15).filter { $0 != " " }
            length = said.flatMap { Int($0) }.map { min($0, Self.mostBytes) + body } ?? .max
        }
        return length.map { bytes.count >= $0 } ?? false
    }

    /// The whole answer is there.
    private func take(_ place: String) {
        guard !isOver else { return }
        let line = String(decoding: bytes.prefix(12), as: UTF8.self)
        guard line.hasPrefix("HTTP/1."), let status = Int(line.suffix(3)), let body else {
            return fail("\(place) gives no answer of HTTP")
        }
        guard (200..<300).contains(status) else { return fail("\(place) answers \(status)") }
        finish(.success(.bytes(Array(bytes[body...]))))
    }

    // MARK: A file

    /// A file is read where disks are waited for.
    private func take(file path: String, of owners: Set<UInt32>) {
        let name = path.split(separator: "/").last.map(String.init) ?? ""
        let folder = File.parent(of: path) ?? "/"
        finish(.success(.file(name: name, directory: folder, owners: owners)))
    }
}
