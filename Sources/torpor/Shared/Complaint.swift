// SPDX-License-Identifier: Apache-2.0

import CommandLinePages
import Linux
import Varlink

/// What is said on standard error: sentences, broken at the width of a terminal, or with `--json` an object a line.
enum Complaint {
    enum Level: String {
        /// What was asked for is not done.
        case error
        /// It is done, and something is to be known.
        case warning
        /// A part of a list, such as a mistake in a configuration.
        case remark
    }

    static let isJSON = CommandLineArguments.isGiven("--json")

    /// Says it, in one line of its own, above the line of one that waits. `status` is the exit status, where this ends the program.
    static func say(_ text: String, _ level: Level = .error, status: Outcome? = nil) {
        let text = Terminal.harmless(text)
        Waiting.above { ThisProcess.complain(isJSON ? json(text, level, status) : sentence(text, level)) }
    }

    private static func sentence(_ text: String, _ level: Level) -> String {
        Terminal.fitted(level == .remark ? text : "torpor: " + text, in: Terminal.columns(of: 2), indent: 0)
    }

    private static func json(_ text: String, _ level: Level, _ status: Outcome?) -> String {
        var object: JSONObject = ["level": .string(level.rawValue), "message": .string(text)]
        if let status { object["exit_status"] = .int(Int64(status.rawValue)) }
        return JSON.object(object).description
    }
}
