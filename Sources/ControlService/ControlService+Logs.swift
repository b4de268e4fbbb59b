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
        if let text = request.grep, text.utf8.count > LogReader.longestText {
            return reply.fail(FieldError(field: "grep", problem: "has at most \(LogReader.longestText) bytes"))
        }
        app.capture?.drain()
        let reader = LogReader(path: supervisor.launcher.logPath(of: app))
        var position: LogPosition?
        if let cursor = request.cursor {
            position = LogPosition(text: cursor)
            guard position != nil else {
                return reply.fail(FieldError(field: "cursor", problem: "must be one that came with a reply of Logs"))
            }
        }
        let follows = request.follow && reply.more
        let query = LogQuery(
            count: request.lines.map { Int(clamping: $0) } ?? (request.since == nil ? 100 : nil),
            since: request.since,
            grep: request.grep,
            onlyWhole: follows || position != nil
        )
        let follower = LogFollower(reader, query, from: position, follows: follows, reply, loop)
        app.outputFollowers.append(follower)
        let forget = { [weak app, weak follower] in
            guard let app, let follower else { return }
            app.outputFollowers.removeAll { $0 === follower }
        }
        reply.onClosed = forget
        follower.onDone = forget
        follower.step()
    }
}
