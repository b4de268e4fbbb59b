// SPDX-License-Identifier: Apache-2.0

import Engine
import Supervisor
import TorporAPI
import Varlink
import VarlinkServer

/// Requests about how apps ended.
extension ControlService {
    func reports(of name: String?, _ reply: Reply) throws(Selection.Unknown) {
        let chosen = try name.map { name throws(Selection.Unknown) in try selection.resolve([name]) }
        let reports = (chosen ?? selection.apps).flatMap(\.reports).sorted { $0.at > $1.at }
        reply.send(Self.reply(with: reports.map(\.json)))
    }

    /// The reply of Reports. If the reports are too large together, their details are left out first.
    static func reply(with reports: [JSON]) -> JSON {
        BoundedReply.list("reports", reports, emptying: ["log", "threads", "timeline", "locks"])
    }
}
