// SPDX-License-Identifier: Apache-2.0

import DesktopProtocol
import DesktopRules
import EventLoop
import Linux

/// Runs `pw-dump --monitor`, a tool of PipeWire, and reports which processes play or record sound.
///
/// pw-dump exits when PipeWire ends; it is started again, with increasing delays. No call here blocks.
final class SoundWatch {
    private let loop: EventLoop
    private let session: Session
    private let report: (DesktopReport) -> Void
    private var process: ChildProcess?
    private var output: Descriptor?
    private var source: IOSource?
    private var dump = PipeWireDump()
    private var graph = PipeWireGraph()
    /// While pw-dump runs, limits the wait for its first complete array. After pw-dump ended, fires for the next
    /// start.
    private var timer: TimerSource?
    private var delay = SoundWatch.firstDelay
    private var startedAt = Duration.zero
    /// Whether pw-dump has written its first complete array, which contains all objects.
    private var isAnswered = false

    /// The streams that were reported last.
    private var streams: [DesktopSound] = []
    private var problem: String?

    private static let patience = Duration.seconds(5)
    private static let firstDelay = Duration.milliseconds(500)
    private static let longestDelay = Duration.seconds(10)
    /// The most bytes that are read in one turn of the event loop.
    private static let turn = 256 << 10
    /// The least time between two reports of streams, because a program may begin and end streams a thousand times a
    /// second.
    private static let pace = Duration.milliseconds(100)

    /// Runs until the next report of streams may be sent.
    private var pacer: TimerSource?
    private var reportedAt: Duration?

    init(_ loop: EventLoop, _ session: Session, _ report: @escaping (DesktopReport) -> Void) {
        self.loop = loop
        self.session = session
        self.report = report
        timer = try? loop.timer { [weak self] in self?.timeHasCome() }
        pacer = try? loop.timer { [weak self] in
            self?.pacer?.disarm()
            self?.reportStreams()
        }
        start()
    }

    deinit {
        source?.cancel()
        timer?.cancel()
        pacer?.cancel()
    }

    /// Sends the current state again, to a torpord that has just connected.
    func repeatReports() {
        if problem != nil || isAnswered { report(.listening(problem: problem)) }
        if isAnswered { report(.sound(streams)) }
    }

    private func start() {
        timer?.disarm()
        guard let none = session.none else { return fail("/dev/null cannot be opened") }
        guard File.isExecutable(session.pwDump) else {
            return fail("\(session.pwDump) is not there: install PipeWire's tools (Debian: pipewire-bin)")
        }
        do throws(Errno) {
            let (read, write) = try Descriptor.pipe()
            // Only this end is non-blocking: pw-dump itself may block until its output is read.
            try Descriptor.setNonBlocking(read.raw)
            source = try loop.watch(read.raw, .readable) { [weak self] _ in self?.read() }
            output = read
            process = try ChildProcess(
                session.pwDump,
                arguments: ["pw-dump", "--monitor"],
                environment: ThisProcess.environment.filter { !$0.hasPrefix("LC_ALL=") } + ["LC_ALL=C"],
                dependingWith: (none.raw, write.raw, none.raw)
            )
            write.close()
        } catch {
            hangUp()
            return fail("\(session.pwDump) cannot be started: \(error)")
        }
        (dump, graph, isAnswered) = (PipeWireDump(), PipeWireGraph(), false)
        startedAt = loop.now
        timer?.arm(after: Self.patience)
    }

    private func timeHasCome() {
        guard process != nil else { return start() }
        give(up: "pw-dump does not answer")
    }

    private func read() {
        guard let output else { return }
        do throws(Errno) {
            guard let bytes = try Descriptor.read(output.raw, maximum: Self.turn) else { return }
            guard !bytes.isEmpty else { return ended() }
            take(bytes)
        } catch {
            give(up: "pw-dump cannot be read: \(error)")
        }
    }

    private func take(_ bytes: [UInt8]) {
        do throws(PipeWireDump.Invalid) {
            try dump.read(bytes) { graph.take($0) }
        } catch {
            return give(up: "pw-dump \(error)")
        }
        // Related changes come in one array, so wait for the array's end.
        guard dump.isComplete else { return }
        guard isAnswered else {
            isAnswered = true
            timer?.disarm()
            problem = nil
            report(.listening(problem: nil))
            streams = graph.streams
            reportedAt = loop.now
            report(.sound(streams))
            return
        }
        reportStreams()
    }

    /// Reports the streams if they have changed, but at most one report per ``pace``. A stream that begins and ends
    /// between two reports is not reported.
    private func reportStreams() {
        guard isAnswered, pacer?.deadline == nil else { return }
        if let reportedAt, loop.now - reportedAt < Self.pace {
            pacer?.arm(after: reportedAt + Self.pace - loop.now)
            return
        }
        let found = graph.streams
        guard found != streams else { return }
        streams = found
        reportedAt = loop.now
        report(.sound(found))
    }

    private func ended() {
        let isAnswered = isAnswered
        hangUp()
        fail(isAnswered ? "PipeWire has ended" : "PipeWire does not run in this session")
    }

    private func give(up sentence: String) {
        hangUp()
        fail(sentence)
    }

    private func hangUp() {
        source?.cancel()
        source = nil
        output = nil
        process?.kill()
        process = nil
        streams = []
        pacer?.disarm()
    }

    private func fail(_ sentence: String) {
        if isAnswered, loop.now - startedAt >= Self.longestDelay { delay = Self.firstDelay }
        isAnswered = false
        if problem != sentence {
            problem = sentence
            report(.listening(problem: sentence))
        }
        timer?.arm(after: delay)
        delay = min(delay * 2, Self.longestDelay)
    }
}
