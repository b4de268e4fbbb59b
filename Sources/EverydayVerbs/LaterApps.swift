// SPDX-License-Identifier: Apache-2.0

import CommandLinePages
import Linux
import TorporAPI
import Varlink

/// Finds apps that are added while logs are followed, by the events of the supervisor.
struct LaterApps: Sendable {
    private let patterns: [String]
    private let options: PlainOptions
    private let state: Monitor<State>

    private struct State: Sendable {
        var followed: Set<String>
        /// Apps whose output cannot be read, and apps that the patterns do not select.
        var skipped: Set<String> = []
        /// From when on lines of an app are shown that is found; microseconds since 1970.
        var since: [String: Int64] = [:]
        let begin: Int64
    }

    init(_ patterns: [String], following apps: [String], _ options: PlainOptions) {
        self.patterns = patterns
        self.options = options
        state = Monitor(State(followed: Set(apps), begin: Clock.realtimeMicroseconds()))
    }

    /// Called when an app is followed no longer: it was removed, or its output cannot be read. `begin` as for ``watch``.
    func ended(_ app: String, hasFailed: Bool, _ begin: (_ app: String, _ since: Int64) -> Void) {
        state.withLock { state in
            state.followed.remove(app)
            // If an app of the same name is added later, its earlier lines are not shown again.
            state.since[app] = Clock.realtimeMicroseconds()
            if hasFailed { state.skipped.insert(app) }
        }
        // It may be there again, with an event that came before its log ended.
        if !hasFailed, let lister = try? Manager(options) { look(lister, [], begin) }
    }

    /// Calls `begin` with each app that is added, and the time from which on its lines are new. Returns when the
    /// supervisor no longer sends events.
    func watch(_ begin: (_ app: String, _ since: Int64) -> Void) {
        var request = EventsRequest()
        request.follow = true
        request.limit = 1
        do throws(Failure) {
            let lister = try Manager(options)
            var isFirst = true
            _ = try Manager(options).call(.events(request)) { reply in
                // If the supervisor is replaced, continue after the last event that the old one sent.
                request.after = reply["sequence"]?.intValue
                request.limit = nil
                let events = (reply["events"]?.arrayValue ?? []).compactMap { try? EventRecord(json: $0) }
                // An app may have been added before the events were followed.
                guard !events.filter(isNews).isEmpty || isFirst else { return }
                isFirst = false
                look(lister, events.compactMap(\.app), begin)
            }
        } catch {
            // The threads that follow logs have the same error, and report it.
        }
    }

    /// Whether the event concerns an app that is not known yet.
    private func isNews(_ event: EventRecord) -> Bool {
        state.withLock { state in
            guard let app = event.app else { return false }
            if event.kind == "configuration" {
                // The app may be another one from now on.
                state.skipped.remove(app)
                return false
            }
            return !state.followed.contains(app) && !state.skipped.contains(app)
        }
    }

    private func look(_ lister: Manager, _ mentioned: [String], _ begin: (String, Int64) -> Void) {
        // If no app matches any longer, the request fails, but not this command.
        let names = (try? lister.names(of: patterns).names) ?? []
        let found: [(String, Int64)] = state.withLock { state in
            state.skipped.formUnion(mentioned.filter { !names.contains($0) })
            let added = names.filter { !state.followed.contains($0) && !state.skipped.contains($0) }
            state.followed.formUnion(added)
            return added.map { ($0, state.since[$0] ?? state.begin) }
        }
        for (app, since) in found { begin(app, since) }
    }
}
