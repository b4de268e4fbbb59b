// SPDX-License-Identifier: Apache-2.0

public import EventLoop
public import Linux

/// An error that prevents the capture of output; its description is a sentence.
public struct OutputError: Error, CustomStringConvertible {
    /// The error as a sentence.
    public let description: String
}

/// Provides the log for an app's output, and is notified of events.
public protocol OutputCaptureDelegate: AnyObject {
    /// Returns the log to write to; called when the app writes its first output.
    func outputLog(_ capture: OutputCapture) -> LogFile
    /// Called after a batch was written to the log.
    func outputArrived(_ capture: OutputCapture)
    /// Called after the FIFO was created again: the keeper should hold the new descriptor.
    func outputRenewed(_ capture: OutputCapture)
    /// Called when the FIFO, the journal file or the log fails, or works again; `sentence` says what happened.
    func outputTroubled(_ capture: OutputCapture, _ sentence: String)
}

/// Captures one app's output: from its FIFO, in batches, into its log file.
///
/// The app and torpord open the FIFO separately, since O_NONBLOCK belongs to the open file: if they shared it, the
/// app's writes to a full FIFO would fail (EAGAIN). Both open it for reading and writing. So there is no end-of-file
/// when apps end, and an app that outlives torpord and keeper blocks on a full FIFO instead of getting SIGPIPE. The
/// keeper holds torpord's descriptor, so that buffered output is not lost when torpord ends.
///
/// An app that writes faster than torpord reads blocks on its own FIFO: each turn of the event loop reads a limited
/// amount, and the next turn comes after all other ready sources.
public final class OutputCapture {
    /// A batch of this size, in bytes, shows that the FIFO was at least half full: its default size is 64 KiB
    /// (pipe(7)).
    private static let largeBatch = 32 << 10
    /// So many large batches in a row enlarge the FIFO.
    private static let enlargesAfter: UInt8 = 4

    /// The app's name.
    public let app: String
    /// The path of the FIFO: `<runtime>/apps/<app>/out`.
    public var fifoPath: String { place.text }
    /// The log; nil before the first output.
    public private(set) var log: LogFile?
    /// Total bytes read from the app.
    public private(set) var bytesRead: UInt64 = 0
    private unowned let delegate: any OutputCaptureDelegate
    private let place: SharedPath
    private let batch: OutputBatch
    private let loop: EventLoop
    /// The app's own user, if it has one. This user becomes the owner of a FIFO that is created again.
    public var owner: (uid: UInt32, gid: UInt32)?
    private var fifo: Descriptor?
    private var source: IOSource?
    /// The retries after a failed write to the log; nil while writing works.
    private var retries: Retries?

    // The small values are together, so that they take little memory.

    /// Bytes read since the capture last paused, so that the event loop could handle other sources.
    private var sinceRest: Int32 = 0
    /// The number of consecutive large batches.
    private var largeBatches: UInt8 = 0
    private var isLarge = false
    private var resting = false
    private var troubled = false
    /// Whether nothing was read since ``endLine()``, so that the next run begins a line of its own.
    private var hasEndedLine = false
    /// Whether there was no log when ``endLine()`` looked for it. Nothing was read since.
    private var hasNoLog = false

    /// Tries the log again at intervals.
    private final class Retries {
        /// The longest delay.
        static let longest = Duration.seconds(10)

        var timer: TimerSource?
        /// The delay before the next retry.
        var delay = Duration.seconds(1)
    }

    /// Creates a capture that has not started. Several captures may share one `batch`. `owner` is the app's own user,
    /// if it has one. The delegate must not be freed before `close`.
    public init(
        app: String,
        fifo place: SharedPath,
        delegate: any OutputCaptureDelegate,
        batch: OutputBatch,
        loop: EventLoop,
        owner: (uid: UInt32, gid: UInt32)? = nil
    ) {
        self.app = app
        self.place = place
        self.delegate = delegate
        self.batch = batch
        self.loop = loop
        self.owner = owner
    }

    private func openLog() -> LogFile {
        if let log { return log }
        let log = delegate.outputLog(self)
        log.onTrouble = { [unowned self] in self.delegate.outputTroubled(self, $0) }
        batch.restoreLoss(of: log)
        self.log = log
        return log
    }

    /// Creates the FIFO, or takes over an existing one with its content, and starts reading. `held` is an earlier
    /// torpord's descriptor of the FIFO, from the keeper.
    public func start(taking held: Descriptor? = nil) throws(OutputError) {
        guard fifo == nil else { return }
        do throws(Errno) {
            let fifo: Descriptor
            if let held {
                fifo = held
            } else {
                try makeFIFO()
                fifo = try File.open(fifoPath, [.readWrite, .nonBlocking, .noFollow])
                guard try File.status(descriptor: fifo.raw).kind == .fifo else { throw .fileExists }
            }
            // `unowned` is safe, because the watch of the FIFO ends when this object is destroyed.
            source = try loop.watch(fifo.raw, .readable, priority: .last) { [unowned self] _ in self.turn() }
            self.fifo = fifo
        } catch {
            throw OutputError(
                description: "could not take the output of \(app) at \(fifoPath): \(error.description.lowercased())"
            )
        }
    }

    /// Opens a descriptor for the app to write to: blocking, close-on-exec in this process.
    ///
    /// If the FIFO was removed, a new one is created: output that the app writes to the old FIFO is then lost.
    public func writerForApp() throws(OutputError) -> Descriptor {
        do throws(Errno) {
            return try File.open(fifoPath, [.readWrite, .noFollow])
        } catch {
            if error == .noSuchFileOrDirectory, fifo != nil {
                drain()
                source?.cancel()
                fifo = nil
                giveBackLargeFIFO()
                try start()
                delegate.outputRenewed(self)
                return try writerForApp()
            }
            throw OutputError(
                description: "could not open the output of \(app) at \(fifoPath): \(error.description.lowercased())"
            )
        }
    }

    /// The FIFO's descriptor, which the keeper holds for the next torpord.
    public var descriptorToHold: Int32? { fifo?.raw }

    /// Reads the output that is buffered in the FIFO. Called before the report about an ended app is written.
    public func drain() {
        guard let fifo else { return }
        // Read no more than is buffered now, since a child of the app may continue to write.
        var rest = (try? Splice.waiting(fifo.raw)) ?? 0
        while rest > 0 {
            let count = moveBatch()
            if count == 0 { return }
            rest -= count
        }
    }

    /// Reads the output that is buffered in the FIFO and ends its last line, when the main process has ended.
    public func endLine() {
        drain()
        endLineOfLog()
    }

    private func endLineOfLog() {
        let wasOpen = log != nil
        let log = openLog()
        log.endLine()
        hasEndedLine = log.failure == nil
        hasNoLog = hasEndedLine && !log.isOpen
        // Most apps never write: before its first output, an app needs no log in memory, and no open file.
        guard !wasOpen, log.failure == nil else { return }
        log.close()
        self.log = nil
    }

    /// Opens a descriptor for a new run to write to, whose output begins a line of its own, with its own time.
    public func writerForRun() throws(OutputError) -> Descriptor {
        drain()
        // At a restart, the line was ended just before, when the old run ended.
        if !hasEndedLine { endLineOfLog() }
        hasEndedLine = false
        return try writerForApp()
    }

    /// Reads the output that is buffered in the FIFO and ends the capture. With `remove`, also removes the FIFO.
    public func close(remove: Bool = false) {
        drain()
        source?.cancel()
        source = nil
        retries?.timer?.cancel()
        retries = nil
        fifo = nil
        giveBackLargeFIFO()
        log?.close()
        if remove { try? File.remove(fifoPath) }
    }

    /// The last lines of the log, for a termination report or the app's status.
    public func lastLines(_ count: Int) -> [StampedLine] {
        hasNoLog ? [] : LogReader(path: openLog().path).read(LogQuery(count: count)).lines
    }

    // MARK: -

    private func makeFIFO() throws(Errno) {
        do throws(Errno) {
            try File.makeFIFO(fifoPath, mode: 0o600)
        } catch {
            guard error == .fileExists, try File.kind(fifoPath) == .fifo else { throw error }
        }
        // The app's user owns the FIFO, so that the app can reopen /dev/stdout.
        if let owner { try File.setOwner(fifoPath, uid: owner.uid, gid: owner.gid) }
        try File.setMode(fifoPath, 0o600)
    }

    private func turn() {
        let count = moveBatch()
        enlarge(after: count)
        sinceRest = Int32(min(Int(sinceRest) + count, OutputBatch.capacity))
        guard sinceRest >= OutputBatch.capacity, let source, !resting else { return }
        // An app that fills its FIFO as fast as torpord reads it would always be ready, and the event loop would never
        // handle lower priorities. So torpord ignores the FIFO until deferred work (`later`) was handled.
        sinceRest = 0
        resting = true
        source.setEvents([])
        loop.later { [weak self] in
            guard let self else { return }
            resting = false
            self.source?.setEvents(.readable)
        }
    }

    /// Enlarges the FIFO of an app that fills it again and again, so that the app and torpord wake less often.
    private func enlarge(after count: Int) {
        guard count >= OutputCapture.largeBatch, !isLarge else {
            largeBatches = 0
            return
        }
        if largeBatches < Self.enlargesAfter { largeBatches += 1 }
        guard largeBatches == Self.enlargesAfter, let fifo, batch.takeLargeFIFO() else { return }
        isLarge = true
        // This fails if the user's quota of pipe pages is used up: then the FIFO keeps its size.
        try? Splice.setCapacity(fifo.raw, OutputBatch.capacity)
    }

    private func giveBackLargeFIFO() {
        if isLarge { batch.giveBackLargeFIFO() }
        isLarge = false
    }

    private func moveBatch() -> Int {
        guard let fifo else { return 0 }
        let log = openLog()
        do throws(Errno) {
            let count = try batch.move(from: fifo.raw, to: log, limit: OutputBatch.capacity)
            troubled = false
            if count > 0 { (hasEndedLine, hasNoLog) = (false, false) }
            bytesRead += UInt64(count)
            if log.failure != nil, retries?.timer == nil { beginRetries() }
            if count > 0 { delegate.outputArrived(self) }
            return count
        } catch {
            if !troubled {
                delegate.outputTroubled(self, "could not move the output of \(app): \(error.description.lowercased())")
            }
            troubled = true
            discard(fifo)
            return 0
        }
    }

    /// Tries the log again at intervals until it can be written, whether or not the app writes something.
    private func beginRetries() {
        let retries = Retries()
        self.retries = retries
        retries.timer = try? loop.timer { [weak self] in
            guard let self, let log = self.log, let retries = self.retries else { return }
            guard !self.batch.tryAgain(log) else {
                retries.timer?.cancel()
                self.retries = nil
                return
            }
            retries.delay = min(retries.delay * 2, Retries.longest)
            retries.timer?.arm(after: retries.delay)
        }
        retries.timer?.arm(after: retries.delay)
    }

    /// Reads output and discards it, because the journal file has failed. Otherwise the app would block on its full
    /// FIFO.
    private func discard(_ fifo: Descriptor) {
        if let log, let bytes = try? Descriptor.read(fifo.raw, maximum: 65_536) { batch.drop(bytes.count, of: log) }
    }
}
