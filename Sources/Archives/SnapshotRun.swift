// SPDX-License-Identifier: Apache-2.0

package import Configuration
package import Engine
import EventLoop
import HTTPAsking
import Lifecycle
import Linux
import Processes

/// Takes one snapshot from the configured source: the output of a command, the answer of a server, or a file. When
/// the last reference to this object is dropped, the command or request is ended.
package final class SnapshotRun {
    /// The content to save, or the reason why there is none, as a sentence.
    typealias Outcome = Result<ArchiveContent, LaunchError>

    private static let mostBytes = Int(ArchiveFolder.largestSnapshot)
    /// Bytes per read, limited so that other work of the event loop gets a turn.
    private static let portion = 64 << 10
    /// Added to the deadline, so that the core's own deadline expires first.
    private static let reserve = Duration.seconds(1)

    private let loop: EventLoop
    private let queue: SnapshotQueue
    private let completion: (Outcome) -> Void
    private var hasBegun = false
    private var isOver = false
    private var bytes: [UInt8] = []
    private var timer: TimerSource?
    /// Whether the app has shown something new since the snapshot began.
    package var isOutdated = false
    private var descriptor: Descriptor?
    private var source: IOSource?
    private var command: Descriptor?
    private var question: HTTPQuestion?

    /// - Parameter completion: called once by the event loop, unless the last reference is dropped before.
    init(_ loop: EventLoop, _ queue: SnapshotQueue, _ completion: @escaping (Outcome) -> Void) {
        self.loop = loop
        self.queue = queue
        self.completion = completion
    }

    /// Takes the snapshot when `wait` is over and the queue has a place for it.
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
        // Unlike the core's deadline, this timer also runs while a debugger is attached to the app.
        timer = try? loop.timer { [weak self] in self?.fail("it was not ready within its deadline") }
        timer?.arm(after: specification.deadline + Self.reserve)
        queue.enter(self) { [weak app, weak states] run in
            run.hasBegun = true
            guard let app, let states else { return }
            app.snapshotBegan = run.loop.now
            switch specification.source {
            case .command(let words): run.run(words, for: app, states)
            case .http(let host, let port, let path):
                run.ask(HTTPQuestion.Place(host: host, port: port, path: path))
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
        question = nil
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
            return fail("cannot make a pipe for command \(name): \(error)")
        }
        descriptor = ends.read
        states.host.runCommand(app, words, output: ends.write) { [weak self] pidfd in
            guard let self, !self.isOver else { return Pidfd.killGroup(pidfd.raw) }
            self.command = pidfd
        } completion: { [weak self] result in
            guard let self, !self.isOver else { return }
            // Kill processes that the command left behind, because no other process would.
            if let command = self.command { Pidfd.killGroup(command.raw) }
            self.command = nil
            switch result {
            case .success(.exited(0)):
                // Read what the pipe still holds.
                while self.read(name) == .some {}
                self.finish(.success(.bytes(self.bytes)))
            case .success(.exited(let code)): self.fail("command \(name) failed with exit status \(code)")
            case .success(.signaled(let signal, _)): self.fail("command \(name) was killed by \(Signal.name(signal))")
            case .failure(let trouble): self.fail("command \(name): \(trouble)")
            }
        }
    }

    private func gather(_ name: String) {
        // The command may close its output and continue to run, so only its exit completes the snapshot.
        if read(name) == .end { source?.cancel() }
    }

    /// The result of one read of the command's output.
    private enum Portion { case some, none, end }

    private func read(_ name: String) -> Portion {
        guard !isOver, let descriptor else { return .end }
        do throws(Errno) {
            guard let part = try Descriptor.read(descriptor.raw, maximum: Self.portion) else { return .none }
            bytes += part
            if bytes.count > Self.mostBytes { fail("\(name) gives more than \(Self.mostBytes >> 20) MiB") }
            return part.isEmpty ? .end : .some
        } catch {
            fail("\(name): \(error)")
            return .end
        }
    }

    // MARK: A server

    private func ask(_ place: HTTPQuestion.Place) {
        question = HTTPQuestion(place, for: .body(most: Self.mostBytes), on: loop) { [weak self] result in
            guard let self else { return }
            switch result {
            case .success(let answer) where (200..<300).contains(answer.status):
                self.finish(.success(.bytes(answer.body)))
            case .success(let answer): self.fail("\(place) answered \(answer.status)")
            case .failure(let problem): self.fail("\(place)\(problem)")
            }
        }
    }

    // MARK: A file

    /// Ends the run with the path of a file as its result. A thread that may block on a disk reads the file later.
    private func take(file path: String, of owners: Set<UInt32>) {
        let name = path.split(separator: "/").last.map(String.init) ?? ""
        let folder = File.parent(of: path) ?? "/"
        finish(.success(.file(name: name, directory: folder, owners: owners)))
    }
}
