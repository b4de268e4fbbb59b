// SPDX-License-Identifier: Apache-2.0

import CommandLinePages
import EverydayVerbs
import Linux
import TopView
import TorporAPI
import Varlink

/// Runs verbs, each on its own thread, and reports their results in the words of the command line.
final class TopVerbs: Sendable {
    private let path: String
    /// Whether the path is that of the machine's supervisor, used because this user's own supervisor does not run.
    private let isFallback: Bool
    private let inbox: TopInbox
    private let running = Monitor(0)

    /// The maximum number of verbs that run at the same time.
    private static let most = 16

    init(path: String, isFallback: Bool, inbox: TopInbox) {
        (self.path, self.isFallback, self.inbox) = (path, isFallback, inbox)
        // Suppress the line that says that the machine's supervisor answers: it would be written over the screen.
        if isFallback { _ = OwnSupervisor.isFirst() }
    }

    func send(_ request: VerbRequest) {
        let isRoom = running.withLock { running in
            guard running < Self.most else { return false }
            running += 1
            return true
        }
        guard isRoom else {
            return inbox.put(.said("\(Self.most) requests are under way: wait for one of them", .error))
        }
        do throws(Errno) {
            try WorkerThread.start(named: "top-verb") {
                self.carryOut(request)
                self.running.withLock { $0 -= 1 }
            }
        } catch {
            running.withLock { $0 -= 1 }
            inbox.put(.said("cannot send the request: \(error)", .error))
        }
    }

    private func carryOut(_ asked: VerbRequest) {
        var request = asked
        request.token = .random()
        do throws(Failure) {
            let inbox = inbox
            var manager = try Manager(socket: path, isFallback: isFallback) {
                inbox.put(.said("the supervisor is being replaced: waiting for the next one", .busy))
            }
            manager.saysThatItWaits = false
            let reply = try manager.call(.verb(request)) { progress in
                guard let step = try? VerbProgress(json: progress), !step.text.isEmpty else { return }
                inbox.put(.said(VerbRunner.line(step), .busy))
            }
            let results = try Manager.read { () throws(FieldError) in
                try Fields(reply).list("results") { json throws(FieldError) in try VerbResult(json: json) }
            }
            say(results)
        } catch {
            inbox.put(.said(error.message ?? "it failed", .error))
        }
    }

    private func say(_ results: [VerbResult]) {
        let failed = results.filter { !$0.ok }
        if let first = failed.first {
            let others = failed.count > 1 ? " (and \(failed.count - 1) more failed)" : ""
            return inbox.put(.said(VerbRunner.sentence(first) + others, .error))
        }
        if results.count > 3 {
            let states = Set(results.map(\.state))
            let state = states.count == 1 ? states.first ?? "" : "done"
            return inbox.put(.said("\(results.count) apps: \(state)", .done))
        }
        inbox.put(.said(results.map(VerbRunner.sentence).joined(separator: "; "), .done))
    }
}
