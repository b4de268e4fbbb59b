// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EventLoop
import Lifecycle
import Linux
import Output
import Processes
import Supervisor
import TorporAPI
import Varlink
import VarlinkServer

/// Replies with the output of apps.
extension ControlService {
    func logs(_ request: LogsRequest, _ app: AppRuntime, _ reply: Reply) {
        switch app.specification.log {
        case .file: break
        case .journal:
            let place = JournalPlace(of: app, supervisor.place.cgroups)
            return reply.fail(
                ManagerInterface.ErrorName.inJournal,
                [
                    "app": .string(app.name), "journal": place.json,
                    "message": .string("\(app.name) writes to the journal: read it with ‘\(place.command)’"),
                ]
            )
        case .inherit:
            return reply.fail(
                "\(app.name) writes to the output of torpord itself (log = \"inherit\"): look there (if that is the "
                    + "journal, ‘journalctl -t torpord’ shows it)"
            )
        case .null:
            return reply.fail("\(app.name) writes nowhere (log = \"null\"): choose log = \"file\" to keep its output")
        }
        app.capture?.drain()
        send(supervisor.launcher.logPath(of: app), request, of: app, reply)
    }

    /// Replies with what is left of the log of an app that is no longer in the configuration. Returns false if nothing
    /// is.
    func sendLeftLog(_ request: LogsRequest, _ reply: Reply) -> Bool {
        let name = request.app
        // Only names of apps and of their instances, which cannot lead out of the folder.
        let template = name.prefix { $0 != "@" }
        guard AppName.problem(String(template)) == nil, !name.contains("/"), name.utf8.count <= 255,
            !name.utf8.contains(0)
        else { return false }
        let path = supervisor.runtime.logPath(of: name)
        guard File.exists(path) else { return false }
        send(path, request, of: nil, reply)
        return true
    }

    /// - Parameter app: nil for an app that is gone, whose log does not grow.
    private func send(_ path: String, _ request: LogsRequest, of app: AppRuntime?, _ reply: Reply) {
        if let text = request.grep, text.utf8.count > LogReader.longestText {
            return reply.fail(FieldError(field: "grep", problem: "has at most \(LogReader.longestText) bytes"))
        }
        let reader = LogReader(path: path)
        var position: LogPosition?
        if let cursor = request.cursor {
            position = LogPosition(text: cursor)
            guard position != nil else {
                return reply.fail(FieldError(field: "cursor", problem: "must be one that came with a reply of Logs"))
            }
        }
        let follows = request.follow && reply.more && app != nil
        let query = LogQuery(
            count: request.lines.map { Int(clamping: $0) } ?? (request.since == nil ? 100 : nil),
            since: request.since,
            grep: request.grep,
            onlyWhole: follows || position != nil
        )
        let follower = LogFollower(reader, query, from: position, follows: follows, reply, loop)
        // Without an app, the reply keeps the follower until the log is sent.
        var kept = app == nil ? follower : nil
        app?.outputFollowers.append(follower)
        let forget = { [weak app, weak follower] in
            if kept != nil { kept = nil }
            guard let app, let follower else { return }
            app.outputFollowers.removeAll { $0 === follower }
        }
        reply.onClosed = forget
        follower.onDone = forget
        follower.step()
    }
}
