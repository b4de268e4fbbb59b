// SPDX-License-Identifier: Apache-2.0

import Engine
import Supervisor
import TorporAPI
import Varlink
import VarlinkServer

/// Replies whose size apps determine, for instance by the arguments of their processes. They must not grow so large that
/// no client can read them.
enum BoundedReply {
    /// The maximum size of a reply as JSON, in bytes. Clients refuse messages of more than 16 MiB.
    static let mostBytes = 4 << 20
    /// The bounds that are tried in turn: the size of a string as JSON in bytes, and the number of elements of an array.
    private static let steps: [(string: Int, array: Int)] = [(1024, 500), (256, 100), (64, 10)]

    /// Returns the results as they are, if they are not too large. Otherwise returns them with shorter strings and
    /// arrays, and with `truncated`.
    static func shortened(_ results: JSON, to most: Int = mostBytes) -> JSON {
        guard results.serialisedSize > most else { return results }
        var short = results
        for step in steps {
            short = results.shortened(stringsTo: step.string, arraysTo: step.array)
            if short.serialisedSize <= most { break }
        }
        guard var object = short.objectValue else { return short }
        object["truncated"] = true
        return .object(object)
    }
}

extension ControlService {
    func reports(of name: String?, _ reply: Reply) throws(Selection.Unknown) {
        let chosen = try name.map { name throws(Selection.Unknown) in try selection.resolve([name]) }
        let reports = (chosen ?? selection.apps).flatMap(\.reports).sorted { $0.at > $1.at }
        reply.send(BoundedReply.reports(reports.map(\.json)))
    }
}

extension BoundedReply {
    /// The reply of Reports. If the reports are too large together, their details are left out first.
    static func reports(_ reports: [JSON]) -> JSON {
        let list = BoundedList(reports, emptying: ["log", "threads", "timeline", "locks"], most: mostBytes)
        return list.reply("reports", ["truncated": .bool(list.isEmptied)])
    }
}
