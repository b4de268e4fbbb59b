// SPDX-License-Identifier: Apache-2.0

public import EventLoop
public import Linux

/// Output cannot be captured; the description is a sentence.
public struct OutputError: Error, CustomStringConvertible {
    /// The sentence.
    public let description: String
}

/// Provides the log of an app's output, and is notified of events.
public protocol OutputCaptureDelegate: AnyObject {
    /// The log to write to; called at the first output.
    func outputLog(_ capture: OutputCapture) -> LogFile
    /// A batch was written to the log.
    func outputArrived(_ capture: OutputCapture)
    /// The FIFO was created again: the keeper should hold the new descriptor.
    func outputRenewed(_ capture: OutputCapture)
    /// The FIFO, the journal file or the log has failed, or works again; in a sentence.
    func outputTroubled(_ capture: OutputCapture, _ sentence: String)
}

/// Captures one app's output: from its FIFO, in batches, into its log file.
///
/// App and daemon each open the FIFO separately, since O_NONBLOCK belongs to the open file: with a shared one the
/// app's writes would fail. Both open it for reading and writing. So there is no end-of-file while apps come and go,
/// and an app that outlives daemon and keeper blocks on a full FIFO instead of dying of SIGPIPE. The keeper holds the
/// daemon's descriptor, so that buffered output survives the daemon.
///
/// An app that writes faster than its output is read blocks on its own FIFO: each turn reads a limited amount, and
/// the next turn comes after all other ready sources.
public final class OutputCapture {
    /// A batch of this size means that the FIFO was at least half full: its default size is 64 KiB, pipe(7).
    private static let largeBatch = 32 << 10

    /// The app's name.
    public let app: String
    /// `<runtime>/apps/<app>/out`.
    public var fifoPath: String { place.text }
    /// The log; nil before the first output.
    public private(set) var log: LogFile?
    /// Total bytes read from the app.
    public private(set) var bytesRead: UInt64 = 0
    private unowned let delegate: any OutputCaptureDelegate
    private let place: SharedPath
    private let batch: OutputBatch
    private let loop: EventLoop
    /// The app's own user, if it has one, who will own a FIFO that is created again.
    public var owner: (uid: UInt32, gid: UInt32)?
    private var fifo: Descriptor?
    private var source: IOSource?
    private var observers: [(token: Int, call: () -> Void)] = []
    private var nextToken = 0
    private var resting = false
    /// Bytes read since this last paused for other sources.
    private var sinceRest = 0
    /// Number of consecutive large batches.
    private var largeBatches = 0
    private var isLarge = false
    private var troubled = false

    /// Creates a capture that has not started. One `batch` may serve many. `owner` is the app's own user, if it has
    /// one. The delegate must outlive it until `close`.
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
        self.log = log
        return log
    }

    /// Creates the FIFO, or takes over an existing one with its content, and starts reading. `held`: an earlier
    /// daemon's descriptor, from the keeper.
    public func start(taking held: Descriptor? = nil) throws(OutputError) {
        guard fifo == nil else { return }
        do throws(Errno) {
            let fifo: Descriptor
            if let held {
                fifo = held
            } else {
                try makeFIFO()
                fifo = try File.open(fifoPath, [.readWrite, .nonBlocking, .noFollow])
            }
            guard try File.status(descriptor: fifo.raw).kind == .fifo else { throw .fileExists }
            // The source ends with this object.
            source = try loop.watch(fifo.raw, .readable, priority: .last) { [unowned self] _ in self.turn() }
            self.fifo = fifo
        } catch {
            throw OutputError(
                description: "could not take the output of \(app) at \(fifoPath): \(error.description.lowercased())"
            )
        }
    }

    /// The app's descriptor for a launch: opened separately, blocking, close-on-exec here.
    ///
    /// If the FIFO was removed, it is created again: output to the old one is then lost.
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

    /// The daemon's descriptor, for the keeper to hold.
    public var descriptorToHold: Int32? { fifo?.raw }

    /// Reads what is buffered now: before the report about an exited app is written.
    public func drain() {
        guard let fifo else { return }
        // Not more than that, since a child may keep writing.
        var rest = (try? Splice.waiting(fifo.raw)) ?? 0
        while rest > 0 {
            let count = moveBatch()
            if count == 0 { return }
            rest -= count
        }
    }

    /// Reads the rest and ends the capture; `remove` also removes the FIFO.
    public func close(remove: Bool = false) {
        drain()
        source?.cancel()
        source = nil
        fifo = nil
        giveBackLargeFIFO()
        observers.removeAll()
        log?.close()
        if remove { try? File.remove(fifoPath) }
    }

    /// Calls back after each batch that was written, for clients that follow the log with a `LogReader`.
    public func observe(_ call: @escaping () -> Void) -> Int {
        nextToken += 1
        observers.append((nextToken, call))
        return nextToken
    }

    /// Ends an observation.
    public func removeObserver(_ token: Int) {
        observers.removeAll { $0.token == token }
    }

    /// The last lines of the log, for a report or the status.
    public func lastLines(_ count: Int) -> [StampedLine] {
        LogReader(path: openLog().path).read(LogQuery(count: count)).lines
    }

    // MARK: -

    private func makeFIFO() throws(Errno) {
        do throws(Errno) {
            try File.makeFIFO(fifoPath, mode: 0o600)
        } catch {
            guard error == .fileExists, try File.kind(fifoPath) == .fifo else { throw error }
        }
        // Owned by the app's user, so that the app can reopen /dev/stdout.
        if let owner { try File.setOwner(fifoPath, uid: owner.uid, gid: owner.gid) }
        try File.setMode(fifoPath, 0o600)
    }

    private func turn() {
        let count = moveBatch()
        enlarge(after: count)
        sinceRest += count
        guard sinceRest >= OutputBatch.capacity, let source, !resting else { return }
        // An app that fills its FIFO as fast as it is read would always be ready, and the loop would never reach its
        // lowest priority.
        sinceRest = 0
        resting = true
        source.setEvents([])
        loop.later { [weak self] in
            guard let self else { return }
            resting = false
            self.source?.setEvents(.readable)
        }
    }

    /// Enlarges the FIFO of an app that keeps it full: then app and daemon wake less often.
    private func enlarge(after count: Int) {
        guard count >= OutputCapture.largeBatch, !isLarge else {
            largeBatches = 0
            return
        }
        largeBatches += 1
        guard largeBatches >= 4, let fifo, batch.takeLargeFIFO() else { return }
        isLarge = true
        // Fails if the user's quota of pipe pages is used up: then its size stays.
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
            bytesRead += UInt64(count)
            if count > 0 {
                delegate.outputArrived(self)
                for observer in observers { observer.call() }
            }
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

    /// The journal file has failed: discard output, so that the app does not block.
    private func discard(_ fifo: Descriptor) {
        if let bytes = try? Descriptor.read(fifo.raw, maximum: 65_536) { log?.drop(bytes.count) }
    }
}
