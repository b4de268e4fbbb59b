// SPDX-License-Identifier: Apache-2.0

import EventLoop
import Linux
import Policies

/// What a policy's process writes to standard error, its log: reported line by line. A policy that writes more than is
/// reported is not read for a while; its pipe becomes full then, and what it writes is lost.
final class HostOutput {
    /// The maximum number of lines that are reported in each ``interval``.
    static let most = 20
    static let interval = Duration.seconds(1)
    /// How many bytes are read at once.
    static let piece = 4096
    /// The maximum number of pieces in each ``interval``: much more than the reported lines have, which may be between
    /// blank lines or followed by the rest of a line without end.
    static let mostPieces = 16
    /// How many pieces are read when the process has ended: more than a pipe holds.
    private static let lastPieces = 64

    /// Called with each line, and with a text about lines that were left out.
    var onLine: ((String) -> Void)?

    private let pipe: Descriptor
    private let loop: EventLoop
    private var lines = PolicyLines()
    private var source: IOSource?
    private var timer: TimerSource?
    /// When the current interval began, how many pieces were read in it, and how many of its lines were reported and
    /// left out.
    private var since: Duration
    private var pieces = 0
    private var reported = 0
    private var leftOut = 0

    /// Takes the end of the pipe that is read; it must not block.
    init(_ pipe: Descriptor, _ loop: EventLoop) throws(Errno) {
        self.pipe = pipe
        self.loop = loop
        since = loop.now
        timer = try loop.timer { [weak self] in self?.beginInterval() }
        try watch()
    }

    private func watch() throws(Errno) {
        source = try loop.watch(pipe.raw, .readable) { [weak self] _ in self?.read() }
    }

    private func read() {
        if loop.now - since >= Self.interval { beginInterval() }
        guard readPiece() else { return stop() }
        pieces += 1
        guard reported >= Self.most || pieces >= Self.mostPieces else { return }
        stop()
        timer?.arm(at: since + Self.interval)
    }

    private func stop() {
        source?.cancel()
        source = nil
    }

    private func beginInterval() {
        if leftOut > 0 { onLine?("(\(leftOut) more lines)") }
        (since, pieces, reported, leftOut) = (loop.now, 0, 0, 0)
        if source == nil { try? watch() }
    }

    /// Reads a piece. Returns whether more may come.
    private func readPiece() -> Bool {
        do throws(Errno) {
            guard let bytes = try Descriptor.read(pipe.raw, maximum: Self.piece) else { return true }
            for line in bytes.withUnsafeBytes({ lines.take($0) }) { report(line) }
            return !bytes.isEmpty
        } catch {
            return false
        }
    }

    private func report(_ line: String) {
        if reported < Self.most {
            reported += 1
            onLine?(line)
        } else {
            leftOut += 1
        }
    }

    /// Reports what was written until now, and returns the last line: of a process that has ended it often says why.
    /// Nothing is read afterwards.
    func finish() -> String {
        for _ in 0..<Self.lastPieces where Descriptor.readiness(pipe.raw).contains(.readable) {
            if !readPiece() { break }
        }
        if let line = lines.finish() { report(line) }
        stop()
        timer = nil
        if leftOut > 0 { onLine?("(\(leftOut) more lines)") }
        leftOut = 0
        return lines.last
    }
}
