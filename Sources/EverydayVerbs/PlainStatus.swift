// SPDX-License-Identifier: Apache-2.0

import CommandLinePages
import Linux
import TorporAPI
import Varlink

/// The verb `status` without the argument parser (see ``PlainArguments``).
package struct PlainStatus {
    package var apps: [String]
    package var options: PlainOptions

    package init(apps: [String], options: PlainOptions) {
        self.apps = apps
        self.options = options
    }

    init?(_ words: ArraySlice<String>) {
        guard let line = PlainWords(words, { option, _ in option == "--utc" }) else { return nil }
        self.init(apps: line.operands, options: line.options)
    }

    package func run() throws {
        guard !apps.isEmpty || options.json else {
            try PlainList(apps: [], showsScenes: false, options: options).run()
            if ThisProcess.isTerminal(2) { Complaint.say("‘torpor status APP’ shows everything about an app", .remark) }
            return try Manager(options).warnOfEdits()
        }
        let manager = try Manager(options)
        let only = try replyAboutOne(manager)
        // Print an array if the arguments could match several apps, even if only one matches.
        let (names, isOne) = only == nil ? try manager.names(of: apps) : (apps, true)
        var documents: [JSON] = []
        var pages: [String] = []
        var isDown = false
        for name in names {
            let reply = try only ?? manager.call(.status(app: name))
            var status = try Manager.read { () throws(FieldError) in try AppStatus(json: reply["status"] ?? .null) }
            var reading = JournalReading()
            reading.complete(&status)
            isDown = isDown || status.summary.state == "not-running" && status.summary.transition == nil
            if options.json {
                documents.append(reading.isChanged ? status.json : reply["status"] ?? .null)
            } else {
                var page = StatusPage(status)
                page.events = events(of: name, manager)
                pages.append(page.text)
            }
        }
        if options.json {
            Output.document(isOne ? documents[0] : .array(documents))
        } else {
            Output.page(pages.isEmpty ? "no apps\n" : pages.joined(separator: "\n"))
        }
        manager.warnOfEdits()
        if isDown, !apps.isEmpty { throw Failure(status: .notRunning, message: nil) }
    }

    /// The reply about the only app that is named; nil if other apps are meant too, or the supervisor must be asked
    /// which ones.
    private func replyAboutOne(_ manager: Manager) throws(Failure) -> JSON? {
        guard apps.count == 1 else { return nil }
        // These are all questions, unless several apps are meant after all.
        let events = options.json ? [] : [ManagerRequest.events(Self.lastEvents(of: apps[0]))]
        if !apps[0].contains("*"), !apps[0].contains("?") {
            manager.sendAhead([.status(app: apps[0])] + events + [.describe])
        }
        var isRefused = false
        do throws(Failure) {
            let reply = try manager.call(
                .status(app: apps[0]),
                onError: { _, _ in
                    isRefused = true
                    return Failure(status: .unknown)
                }
            )
            // For a template with one instance, the reply is about that instance.
            guard reply["status"]?["name"]?.stringValue == apps[0] else { return nil }
            return reply
        } catch {
            guard isRefused else { throw error }
            return nil
        }
    }

    /// The app's last events. Empty if they cannot be read, because the rest of the status is still useful.
    private func events(of app: String, _ manager: Manager) -> [EventRecord] {
        let reply = try? manager.call(.events(Self.lastEvents(of: app)))
        return (reply?["events"]?.arrayValue ?? []).compactMap { try? EventRecord(json: $0) }
    }

    private static func lastEvents(of app: String) -> EventsRequest {
        var request = EventsRequest()
        request.app = app
        request.limit = 5
        return request
    }
}
