// SPDX-License-Identifier: Apache-2.0

public import EventLoop
public import Linux

/// Output cannot be captured; the description is a sentence.
public struct OutputError: Error, CustomStringConvertible {
    /// The sentence.
    public let description: String
}

/// What is asked and told of an app's output.
public protocol OutputCaptureDelegate: AnyObject {
    /// The log that it goes into; asked for once there is output.
    func outputLog(_ capture: OutputCapture) -> LogFile
    /// A batch was written to the log.
    func outputArrived(_ capture: OutputCapture)
    /// The FIFO was made again: the keeper should hold the new end.
    func outputRenewed(_ capture: OutputCapture)
    /// Something is wrong with the FIFO, the memory file or the log, in a sentence, or well again.
    func outputTroubled(_ capture: OutputCapture, _ sentence: String)
}

/// One app's output: from its FIFO, in batches, into its log file.
///
/// App and daemon open the FIFO each for themselves, since O_NONBLOCK belongs to the open file: a daemon that shared
/// it would make the app's writes fail. Both open it for reading and writing: so it never ends while apps come and go,
/// and an app that outlives daemon and keeper waits when the FIFO is full instead of dying of SIGPIPE. The keeper holds
/// the daemon's end, so that nothing in it is lost with the daemon.
///
/// An app that writes more than can be taken fills its own FIFO and waits; each turn takes a bounded amount, and the
/// next turn comes after everything else that was ready.
public final class OutputCapture {
    /// A batch like this has found the FIFO more than half full: it holds 64 KiB unless it is told otherwise, pipe(7).
    private static let largeBatch = 32 << 10

    /// The app's name.
    public let app: String
    /// `<runtime>/apps/<app>/out`.
    public var fifoPath: String { place.text }
    /// Where the lines go; nil before there are any.
    public private(set) var log: LogFile?
    /// Bytes taken from the app so far.
    public private(set) var bytesRead: UInt64 = 0
    private unowned let delegate: any OutputCaptureDelegate
    private let place: SharedPath
    private let batch: OutputBatch
    private let loop: EventLoop
    /// The app's user, if it has one of its own: whose the FIFO is where it is made again.
    public var owner: (uid: UInt32, gid: UInt32)?
    private var fifo: Descriptor?
    private var source: IOSource?
    private var observers: [(token: Int, call: () -> Void)] = []
    private var nextToken = 0
    private var resting = false
    /// Bytes taken since others were let go first.
    private var sinceRest = 0
    /// Large batches in a row.
    private var largeBatches = 0
    private var isLarge = false
    private var troubled = false

    /// A capture that has not begun. One `batch` may serve many. `owner` is the app's user, if it has one of its own.
    /// The delegate must be there as long as this is not closed.
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

    /// Makes the FIFO, or takes the one that is there with what waits in it, and begins to read. `held`: the end that
    /// an earlier daemon had, as the keeper gives it back.
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
            // It ends with this.
            source = try loop.watch(fifo.raw, .readable, priority: .last) { [unowned self] _ in self.turn() }
            self.fifo = fifo
        } catch {
            throw OutputError(
                description: "could not take the output of \(app) at \(fifoPath): \(error.description.lowercased())"
            )
        }
    }

    /// The end for a launch: an open file of its own, blocking, close-on-exec here.
    ///
    /// When somebody has removed the FIFO it is made again: what still has the old one open is lost from then on.
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

    /// The daemon's end, for the keeper to hold.
    public var descriptorToHold: Int32? { fifo?.raw }

    /// Takes what waits at this moment: before a report on an app that has exited is written.
    public func drain() {
        guard let fifo else { return }
        // A child that goes on writing must not hold this up: no more than a pipe can hold.
        var rest = (try? Splice.waiting(fifo.raw)) ?? 0
        while rest > 0 {
            let count = moveBatch()
            if count == 0 { return }
            rest -= count
        }
    }

    /// Ends the capture with what waits written out; `remove` also removes the FIFO.
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

    /// Calls back after each batch that was written, for those that follow the log with a `LogReader`.
    public func observe(_ call: @escaping () -> Void) -> Int {
        nextToken += 1
        observers.append((nextToken, call))
        return nextToken
    }

    /// Ends an observation.
    public func removeObserver(_ token: Int) {
        observers.removeAll { $0.token == token }
    }

    /// The last lines of the log, for a report or `status`.
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
        // A FIFO of its own user: otherwise the app could not open /dev/stdout again.
        if let owner { try File.setOwner(fifoPath, uid: owner.uid, gid: owner.gid) }
        try File.setMode(fifoPath, 0o600)
    }

    private func turn() {
        let count = moveBatch()
        enlarge(after: count)
        sinceRest += count
        guard sinceRest >= OutputBatch.capacity, let source, !resting else { return }
        // An app that fills its FIFO as fast as it is emptied would be ready for ever: what the loop does last would
        // never be done.
        sinceRest = 0
        resting = true
        source.setEvents([])
        loop.later { [weak self] in
            guard let self else { return }
            resting = false
            self.source?.setEvents(.readable)
        }
    }

    /// An app that keeps its FIFO full gets a larger one: so it is woken less often, and so is the daemon.
    private func enlarge(after count: Int) {
        guard count >= OutputCapture.largeBatch, !isLarge else {
            largeBatches = 0
            return
        }
        largeBatches += 1
        guard largeBatches >= 4, let fifo, batch.takeLargeFIFO() else { return }
        isLarge = true
        // A user's quota of pipe pages may be used up: then it stays as it is.
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

    /// The memory file fails: the app must go on all the same.
    private func discard(_ fifo: Descriptor) {
        if let bytes = try? Descriptor.read(fifo.raw, maximum: 65_536) { log?.drop(bytes.count) }
    }
}
