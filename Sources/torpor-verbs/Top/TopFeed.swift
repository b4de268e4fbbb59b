// SPDX-License-Identifier: Apache-2.0

import CommandLinePages
import EverydayVerbs
import Linux
import TopView
import TorporAPI
import Varlink

/// What the screen shows about one app in addition to the list. The feed must read it.
enum TopSubject: Hashable, Sendable {
    case none
    case details(String)
    case log(String)
}

/// Reads the supervisor's state and the page of one app at an interval, or the log of one app more often, on its own
/// thread. Reconnects if the supervisor is replaced or lost.
final class TopFeed: Sendable {
    private struct Wishes {
        var subject = TopSubject.none
        /// Whether to read the list before its interval has passed, because an event has arrived.
        var isHurried = false
        /// Whether to read the memory report before its interval has passed, because memory pressure has begun or
        /// ended.
        var isMemoryHurried = false
    }

    private let path: String
    private let delay: Duration
    private let inbox: TopInbox
    private let wishes = Monitor(Wishes())

    init(path: String, delay: Duration, inbox: TopInbox) {
        (self.path, self.delay, self.inbox) = (path, delay, inbox)
    }

    /// The timeout of a call, in milliseconds.
    private static let patience: Int32 = 5000
    /// The minimum interval between two readings of the list, because a list of a thousand apps takes the supervisor
    /// some milliseconds.
    private static let soonest = Duration.milliseconds(200)

    func start() throws(Errno) { try WorkerThread.start(named: "top-feed") { self.run() } }

    /// Sets what the feed reads in addition to the list.
    func want(_ subject: TopSubject) {
        wishes.withLock { $0.subject = subject }
        wishes.wake()
    }

    /// The interval between memory reports. A report is costly, because the supervisor measures every app and
    /// consults the policies.
    private static let memoryDelay = Duration.seconds(5)

    /// Makes the feed read the list soon; with `memory`, the memory report too.
    func hurry(memory: Bool) {
        wishes.withLock { wishes in
            wishes.isHurried = true
            wishes.isMemoryHurried = wishes.isMemoryHurried || memory
        }
        wishes.wake()
    }

    private func run() {
        var pause = Duration.milliseconds(20)
        while true {
            do throws(VarlinkClientError) {
                let client = try VarlinkClient(path: path, timeout: .milliseconds(Self.patience))
                try read(client) { pause = .milliseconds(20) }
            } catch {
                inbox.put(.lost(Self.sentence(error)))
            }
            ThisProcess.sleep(pause)
            pause = min(pause * 2, .seconds(1))
        }
    }

    /// The error as a sentence without advice to the user, because the feed itself reconnects.
    static func sentence(_ error: VarlinkClientError) -> String {
        switch error {
        case .disconnected: "the supervisor has ended the connection"
        case .timedOut: "the supervisor takes connections and does not answer"
        case .service: Manager.failure(error).message ?? "\(error)"
        case .cannotConnect, .malformed, .gone, .tooLong: "\(error)"
        }
    }

    private func read(_ client: VarlinkClient, onSuccess: () -> Void) throws(VarlinkClientError) {
        func ask(_ request: ManagerRequest) throws(VarlinkClientError) -> JSON {
            try client.call(request.call, timeoutMilliseconds: Self.patience)
        }
        let described = try ask(.describe)
        if let info = try? SupervisorInfo(json: described) { inbox.put(.supervisor(info)) }
        inbox.put(.mayChange(try mayChange(client)))
        var log = LogReading()
        var snapshot = SnapshotReading()
        var last = Duration.zero - .seconds(1000)
        var lastMemory = last
        while true {
            let now = Clock.monotonic()
            let (subject, isDue, isMemoryDue) = wishes.withLock { wishes in
                let isNew = wishes.subject != log.subject
                let isDue = now - last >= (wishes.isHurried ? min(delay, Self.soonest) : delay) || isNew
                let isMemoryDue = isDue && (wishes.isMemoryHurried || now - lastMemory >= Self.memoryDelay)
                if isDue { wishes.isHurried = false }
                if isMemoryDue { wishes.isMemoryHurried = false }
                return (wishes.subject, isDue, isMemoryDue)
            }
            if isDue {
                let asked = Clock.realtimeMicroseconds()
                inbox.put(.list(try Self.apps(try ask(.list)), asked: asked))
                if isMemoryDue {
                    let reply = try ask(.memory)
                    if let memory = try? MemoryStatus(json: reply["memory"] ?? .null) { inbox.put(.memory(memory)) }
                    lastMemory = now
                }
                if case .details(let app) = subject { try readDetails(of: app, &snapshot, client) }
                onSuccess()
                // The interval begins at the reply: torpord measures apps at most once a second, so a request that
                // comes earlier would get the old values again.
                last = Clock.monotonic()
            }
            try readLog(&log, subject, client)
            wait(last, subject, log)
        }
    }

    /// Waits until the next reading is due or requested.
    private func wait(_ last: Duration, _ subject: TopSubject, _ log: LogReading) {
        var end = last + delay
        // Read a log more often while it is shown.
        if case .log = subject, !log.isOver { end = min(end, Clock.monotonic() + .milliseconds(200)) }
        _ = wishes.wait(until: end) { wishes, deadline -> Bool? in
            if wishes.subject != subject { return true }
            if wishes.isHurried { deadline = min(end, max(last + Self.soonest, Clock.monotonic())) }
            return nil
        }
    }

    /// Decodes a reply, which a daemon of another version may have sent.
    package static func apps(_ reply: JSON) throws(VarlinkClientError) -> [AppSummary] {
        do throws(FieldError) {
            return try Fields(reply).list("apps") { json throws(FieldError) in try AppSummary(json: json) }
        } catch {
            throw .malformed("\(error)")
        }
    }

    /// Whether the supervisor lets this user change apps. To learn this before the user tries, sends a verb for an app
    /// that cannot exist.
    private func mayChange(_ client: VarlinkClient) throws(VarlinkClientError) -> Bool {
        let request = VerbRequest(verb: .reset, apps: ["/"])
        do throws(VarlinkClientError) {
            _ = try client.call(ManagerRequest.verb(request).call, timeoutMilliseconds: Self.patience)
        } catch {
            guard case .service(let name, _) = error else { throw error }
            return name != ManagerInterface.ErrorName.notPermitted
        }
        return true
    }

    private func readDetails(
        of app: String,
        _ snapshot: inout SnapshotReading,
        _ client: VarlinkClient
    ) throws(VarlinkClientError) {
        do throws(VarlinkClientError) {
            let reply = try client.call(ManagerRequest.status(app: app).call, timeoutMilliseconds: Self.patience)
            guard let status = try? AppStatus(json: reply["status"] ?? .null) else {
                return inbox.put(.details(app: app, ["its status cannot be read"]))
            }
            var page = StatusPage(status)
            page.paint = { text, _ in text }
            page.columns = nil
            let lines = page.text.split(separator: "\n", omittingEmptySubsequences: false).dropLast().map(String.init)
            inbox.put(.details(app: app, lines))
            try read(&snapshot, SnapshotReading(app: app, info: status.snapshot), client)
        } catch {
            guard case .service = error else { throw error }
            inbox.put(.details(app: app, [Self.sentence(error)]))
        }
    }

    // MARK: What it showed

    /// Identifies the snapshot that was read last.
    private struct SnapshotReading: Hashable {
        var app: String?
        var info: SnapshotInfo?
    }

    private func read(
        _ last: inout SnapshotReading,
        _ wanted: SnapshotReading,
        _ client: VarlinkClient
    ) throws(VarlinkClientError) {
        guard last != wanted, let app = wanted.app else { return }
        last = wanted
        guard let info = wanted.info else { return inbox.put(.snapshot(app: app, nil)) }
        let isToBeShown = (info.kind == .text || info.kind == .png) && info.bytes <= TopSnapshot.mostBytes
        guard isToBeShown else { return inbox.put(.snapshot(app: app, TopSnapshot(app: app, info, []))) }
        let whole = try SnapshotPart.whole { (offset) throws(VarlinkClientError) in
            let request = ManagerRequest.snapshot(app: app, offset: offset)
            let reply = try client.call(request.call, timeoutMilliseconds: Self.patience)
            return (try? SnapshotPart(json: reply)) ?? SnapshotPart(nil)
        }
        inbox.put(.snapshot(app: app, whole.snapshot.map { TopSnapshot(app: app, $0, whole.data) }))
    }

    // MARK: The log

    /// How far the log of an app was read.
    private struct LogReading {
        var subject = TopSubject.none
        var cursor: String?
        /// Whether the log cannot be read any further here, because it is stored elsewhere.
        var isOver = false
    }

    private func readLog(
        _ log: inout LogReading,
        _ subject: TopSubject,
        _ client: VarlinkClient
    ) throws(VarlinkClientError) {
        if log.subject != subject { log = LogReading(subject: subject) }
        guard case .log(let app) = subject, !log.isOver else { return }
        var request = LogsRequest(app: app)
        request.isOneReply = true
        request.lines = 500
        request.cursor = log.cursor
        let isFirst = log.cursor == nil
        var lines: [LogLine] = []
        func take(_ reply: JSON) {
            lines += (reply["lines"]?.arrayValue ?? []).compactMap { try? LogLine(json: $0) }
            log.cursor = reply["cursor"]?.stringValue ?? log.cursor
        }
        do throws(VarlinkClientError) {
            take(
                try client.callMore(
                    ManagerRequest.logs(request).call,
                    timeoutMilliseconds: Self.patience,
                    onReply: take
                )
            )
            if isFirst || !lines.isEmpty { inbox.put(.log(app: app, lines, isFirst: isFirst)) }
            // Without a cursor, each reading would start again from the beginning.
            if log.cursor == nil { log.isOver = true }
        } catch {
            guard case .service = error else { throw error }
            inbox.put(.logTrouble(app: app, Self.sentence(error)))
            log.isOver = true
        }
    }
}
