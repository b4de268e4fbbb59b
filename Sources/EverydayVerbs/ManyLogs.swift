// SPDX-License-Identifier: Apache-2.0

import CommandLinePages
import Linux
import TorporAPI
import Varlink

/// Merges the logs of several apps: first existing lines, sorted by time, then new lines as they arrive, also of apps
/// that are added later (``LaterApps``).
struct ManyLogs {
    /// The names of the apps at the beginning.
    let apps: [String]
    /// What selects apps that are added later; nil if none is followed.
    var patterns: [String]?
    let options: PlainOptions
    let choice: LogChoice
    /// Shows a line of the app with this index in the list of all apps so far.
    let show: @Sendable (_ app: Int, _ apps: [String], _ line: JSON) -> Void

    /// Lines with the indices of their apps in `apps`.
    private typealias Lines = [(app: Int, line: JSON)]

    /// The state of the threads that follow the logs.
    private struct Following: Sendable {
        /// The names of all apps so far.
        var apps: [String]
        /// The indices of apps whose existing lines are not read completely yet.
        var awaited: Set<Int>
        /// Existing lines, kept until they are complete and can be sorted.
        var past: Lines = []
        /// New lines of apps whose existing lines are complete, kept until `awaited` is empty, because all existing
        /// lines are shown first.
        var news: Lines = []
        /// How many apps are still followed.
        var running: Int
        /// Whether apps that are added later are followed.
        var awaitsMore: Bool
        var failure: Failure?
    }

    func run() throws {
        if choice.follow { try follow() } else { try showPast() }
    }

    private func showPast() throws {
        let manager = try Manager(options)
        var lines: Lines = []
        var failure: Failure?
        var isAny = false
        for (index, app) in apps.enumerated() {
            do throws(Failure) {
                try read(app, choice, manager) { page in
                    lines += page.lines.map { (index, $0) }
                    return true
                }
                isAny = true
            } catch {
                Self.complain(error, app)
                failure = error
            }
        }
        showAll(lines, apps, count: choice.count)
        if let failure, !isAny { throw Failure(status: failure.status, message: nil) }
    }

    private func read(
        _ app: String,
        _ choice: LogChoice,
        _ manager: Manager,
        _ take: (AppLog.Page) -> Bool
    ) throws(Failure) {
        do {
            try AppLog(app: app, manager: manager, choice: choice).read(take)
        } catch let failure as Failure {
            throw failure
        } catch {
            throw Failure(status: .failed, message: "\(error)")
        }
    }

    /// Starts a thread for each app, because each must wait on its own connection. Only one thread at a time shows
    /// lines.
    private func follow() throws {
        let state = Monitor(
            Following(apps: apps, awaited: Set(apps.indices), running: apps.count, awaitsMore: patterns != nil)
        )
        let later = patterns.map { LaterApps($0, following: apps, options) }
        for (index, app) in apps.enumerated() {
            do throws(Errno) {
                try WorkerThread.start(named: "log") { follow(app, index, choice, state, later) }
            } catch {
                throw Failure(status: .failed, message: "\(apps.count) apps cannot be followed at once: \(error)")
            }
        }
        if let later { follow(later, state) }
        _ = state.wait { state, _ in
            state.running == 0 && (!state.awaitsMore || state.failure != nil) ? true : nil
        }
        if let failure = state.withLock({ $0.failure }) { throw Failure(status: failure.status, message: nil) }
    }

    /// Follows apps that are added from now on.
    private func follow(_ later: LaterApps, _ state: Monitor<Following>) {
        do throws(Errno) {
            try WorkerThread.start(named: "apps") {
                later.watch { begin($0, since: $1, state, later) }
                state.withLock { $0.awaitsMore = false }
                state.wake()
            }
        } catch {
            Complaint.say("apps that are added later cannot be followed: \(error)")
            state.withLock { $0.awaitsMore = false }
        }
    }

    /// Follows an app that was added, with the lines since this time.
    private func begin(_ app: String, since: Int64, _ state: Monitor<Following>, _ later: LaterApps) {
        var choice = choice
        choice.lines = nil
        choice.since = since
        let added = choice
        let index = state.withLock { state in
            state.running += 1
            if let index = state.apps.firstIndex(of: app) { return index }
            state.apps.append(app)
            return state.apps.count - 1
        }
        do throws(Errno) {
            try WorkerThread.start(named: "log") { follow(app, index, added, state, later) }
        } catch {
            Complaint.say("\(app) cannot be followed: \(error)")
            state.withLock { $0.running -= 1 }
        }
    }

    private func follow(
        _ app: String,
        _ index: Int,
        _ choice: LogChoice,
        _ state: Monitor<Following>,
        _ later: LaterApps?
    ) {
        var hasFailed = false
        do throws(Failure) {
            try read(app, choice, try Manager(options)) { page in
                state.withLock { add(page, of: index, to: &$0) }
                return true
            }
        } catch {
            Self.complain(error, app)
            state.withLock { $0.failure = error }
            hasFailed = true
        }
        if let later { later.ended(app, hasFailed: hasFailed) { begin($0, since: $1, state, later) } }
        state.withLock { state in
            add(AppLog.Page(lines: []), of: index, to: &state)
            state.running -= 1
        }
        state.wake()
    }

    private func add(_ page: AppLog.Page, of index: Int, to state: inout Following) {
        let lines = page.lines.map { (index, $0) }
        guard !state.awaited.isEmpty else { return showAll(lines, state.apps, isSorted: true) }
        if state.awaited.contains(index) { state.past += lines } else { state.news += lines }
        if !page.more { state.awaited.remove(index) }
        guard state.awaited.isEmpty else { return }
        showAll(state.past, state.apps, count: choice.count)
        showAll(state.news, state.apps)
        state.past = []
        state.news = []
    }

    private func showAll(_ lines: Lines, _ apps: [String], count: Int? = nil, isSorted: Bool = false) {
        var lines = lines
        if !isSorted {
            // A line without a time gets the time of the line before it from the same app.
            var last = [Int64](repeating: 0, count: apps.count)
            let times = lines.map { entry in
                last[entry.app] = entry.line["at"]?.intValue ?? last[entry.app]
                return last[entry.app]
            }
            let order = lines.indices.sorted { (times[$0], $0) < (times[$1], $1) }
            lines = order.map { lines[$0] }
            if let count { lines = lines.suffix(count) }
        }
        for entry in lines { show(entry.app, apps, entry.line) }
    }

    private static func complain(_ failure: Failure, _ app: String) {
        guard let message = failure.message else { return }
        Complaint.say(message.contains(app) ? message : "\(app): \(message)")
    }
}
