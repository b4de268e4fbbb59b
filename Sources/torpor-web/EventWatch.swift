// SPDX-License-Identifier: Apache-2.0

import Linux
import TorporAPI
import Varlink
import Web

/// A thread that follows torpord's events. If the connection to torpord is lost, it reports that and reconnects.
enum EventWatch {
    /// Starts the thread. Throws if no thread can be started.
    ///
    /// - Parameter refusal: why torpor-web itself allows no changes; nil if it allows those that torpord permits.
    static func start(socket: String, hub: Hub, refusal: String?) throws(Errno) {
        try WorkerThread.start(named: "events") {
            var pause = Duration.zero
            while true {
                let end = follow(socket, hub, refusal) { pause = .zero }
                hub.take(supervisor: ["connected": false, "message": .string(end)])
                pause = min(max(pause * 2, .milliseconds(50)), .seconds(2))
                ThisProcess.sleep(pause)
            }
        }
    }

    /// Follows events until the connection ends. Returns the reason as a sentence.
    private static func follow(_ socket: String, _ hub: Hub, _ general: String?, onConnect: () -> Void) -> String {
        do throws(VarlinkClientError) {
            let client = try VarlinkClient(path: socket, timeout: .seconds(5))
            let supervisor = try described(client, general)
            var request = EventsRequest()
            request.follow = true
            if let newest = hub.state.withLock({ $0.events.newest }) {
                request.after = newest
            } else {
                request.limit = 200
            }
            var isTold = false
            _ = try client.callMore(ManagerRequest.events(request).call) { reply in
                hub.take(events: reply)
                guard !isTold else {
                    // Ask for the description again after a reload, because a new configuration may change
                    // permissions.
                    let kinds = (reply["events"]?.arrayValue ?? []).compactMap { $0["kind"]?.stringValue }
                    guard kinds.contains("configuration"),
                        let client = try? VarlinkClient(path: socket, timeout: .seconds(5)),
                        let supervisor = try? described(client, general)
                    else { return }
                    return hub.take(supervisor: supervisor)
                }
                isTold = true
                onConnect()
                hub.take(supervisor: supervisor)
                hub.refresh()
            }
            return "torpord ended the connection"
        } catch {
            switch error {
            case .disconnected: return "torpord is gone: waiting for it to come back"
            default: return "\(error)"
            }
        }
    }

    /// Asks torpord for its description, and whether this process may change apps.
    private static func described(_ client: VarlinkClient, _ general: String?) throws(VarlinkClientError) -> JSON {
        let supervisor = try client.call(ManagerRequest.describe.call, timeoutMilliseconds: 10_000)
        let refusal = if let general { general } else { try refusal(client) }
        guard case .object(var object) = supervisor else { return supervisor }
        object["connected"] = true
        object["may_change"] = .bool(refusal == nil)
        object["refusal"] = .optional(refusal)
        return .object(object)
    }

    /// Why this process's user may not change apps; nil if it may. The test request names an app that cannot exist:
    /// the reply "no such app" comes only if the user has the permission.
    private static func refusal(_ client: VarlinkClient) throws(VarlinkClientError) -> String? {
        let question = VerbRequest(verb: .reset, apps: [" "])
        do throws(VarlinkClientError) {
            _ = try client.call(ManagerRequest.verb(question).call, timeoutMilliseconds: 10_000)
        } catch {
            guard case .service(let name, _) = error else { throw error }
            return name == ManagerInterface.ErrorName.notPermitted ? "\(error)" : nil
        }
        return nil
    }
}
